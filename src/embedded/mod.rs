//! (in work)
mod broker;

pub use broker::WhenFull;
