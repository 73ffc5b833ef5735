//! Newtypes for replica counts and metric values, so that one is never used in place of the other.

use std::cmp::Ordering;
use std::fmt;

use quantity::Quantity;
use serde::{Deserialize, Serialize};

/// A replica count. It is signed as in Kubernetes, where a broken metric can propose a negative count.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Replicas(i32);

/// A metric value in thousandths: `610` is `610m` of cpu.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MilliValue(i64);

impl Replicas {
    /// No replicas.
    pub const ZERO: Self = Self(0);

    /// A count.
    pub const fn new(count: i32) -> Self {
        Self(count)
    }

    /// The plain number.
    pub const fn get(self) -> i32 {
        self.0
    }

    /// Rounds up. A number that does not fit becomes the largest count, never the smallest (see docs/compatibility).
    pub(crate) fn ceil(value: f64) -> Self {
        Self(value.ceil() as i32)
    }
}

impl MilliValue {
    /// The largest value.
    pub const MAX: Self = Self(i64::MAX);
    /// The smallest value.
    pub const MIN: Self = Self(i64::MIN);

    /// A value from its number of thousandths.
    pub const fn new(thousandths: i64) -> Self {
        Self(thousandths)
    }

    /// The number of thousandths.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The number of thousandths as a float, for ratios.
    pub(crate) fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// Clamps a sum to the range of values.
    pub(crate) fn clamp(sum: i128) -> Self {
        Self(i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX }))
    }
}

impl From<i32> for Replicas {
    fn from(count: i32) -> Self {
        Self(count)
    }
}

impl From<i64> for MilliValue {
    fn from(thousandths: i64) -> Self {
        Self(thousandths)
    }
}

impl From<&Quantity> for MilliValue {
    fn from(quantity: &Quantity) -> Self {
        Self(quantity.milli_value())
    }
}

impl PartialEq<i32> for Replicas {
    fn eq(&self, count: &i32) -> bool {
        self.0 == *count
    }
}

impl PartialOrd<i32> for Replicas {
    fn partial_cmp(&self, count: &i32) -> Option<Ordering> {
        self.0.partial_cmp(count)
    }
}

impl fmt::Debug for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for MilliValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for MilliValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}m", self.0)
    }
}
