//! What it costs to turn bytes into values and back, with the allocations it takes.
//!
//! `cargo bench --bench codec`

use divan::AllocProfiler;

mod pull_answer;
mod pull_header;

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}
