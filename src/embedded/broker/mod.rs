//! (in work)
mod hold;
mod key_index;
mod lock_table;
mod offset_table;
mod schedule;
mod store;

pub use store::WhenFull;
