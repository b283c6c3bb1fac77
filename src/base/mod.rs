//! Small parts that know nothing of RocketMQ's types.

pub mod fastjson;
pub mod java_hash;
pub mod net;
pub mod rng;
