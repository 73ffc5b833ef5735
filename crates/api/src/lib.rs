//! Wire types, defaults, validation and conversion of every API Plimsoll speaks.

pub mod autoscaling;
pub mod scale;
pub mod pod;
pub mod overlap;
pub mod metrics;
pub mod door;
pub mod field;
mod gosort;
pub mod gotext;
pub mod instant;
pub mod meta;
pub mod names;
pub mod selector;
pub mod text;
pub mod time;
mod wire;
