//! The remoting layer against peers whose every byte the test decides.

mod calls;
mod support;
