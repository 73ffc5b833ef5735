//! Wire types, defaults, validation and conversion of every API Plimsoll speaks.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may read the clock of the machine"))]

pub mod age;
pub mod autoscaling;
pub mod convert;
pub mod decisions;
pub mod decode;
pub mod diagnosis;
pub mod field;
pub mod gotext;
pub mod history;
pub mod instant;
pub mod keda;
pub mod manifest;
pub mod map;
pub mod meta;
pub mod metrics;
pub mod names;
pub mod overlap;
pub mod plimsoll;
pub mod pod;
pub mod provider;
pub mod reading;
pub mod reports;
pub mod scale;
pub mod selector;
pub mod table;
pub mod text;
pub mod time;
pub mod url_escape;
pub mod wire;
pub mod yaml;
