//! Values that are validated while they are decoded.

use std::fmt;
use std::time::Duration;

use api::time::parse_go_duration;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// A duration in Go syntax: `5s`, `1m30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoDuration(pub Duration);

/// A port; 443 if none is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port(pub u16);

/// Default timeout; clients wait for all upstreams that are queried one after the other.
pub(super) fn five_seconds() -> GoDuration {
    GoDuration(Duration::from_secs(5))
}

impl Default for Port {
    fn default() -> Self {
        Self(443)
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parsed = parse_go_duration(&text).and_then(|period| Duration::try_from(period).ok());
        parsed.map(Self).ok_or_else(|| D::Error::custom("not a time; write for example 5s or 1m30s"))
    }
}

impl<'de> Deserialize<'de> for Port {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u16::deserialize(deserializer)? {
            0 => Err(D::Error::custom("a port is between 1 and 65535")),
            port => Ok(Self(port)),
        }
    }
}
