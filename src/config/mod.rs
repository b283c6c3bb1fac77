//! What a client is told: the settings that producers and consumers share, and how a setting is read from text.

mod client;
mod item;

pub(crate) use client::{ClientConfig, client_items};
pub(crate) use item::{Item, builder_items, check_range};
