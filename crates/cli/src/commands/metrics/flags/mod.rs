//! The flags of `plimsoll metrics`: those of metrics-server and prometheus-adapter, and our own.

mod table;
#[cfg(test)]
mod tests;

pub(crate) use table::FLAGS;

use crate::flags::{Flag, Table};

/// The table of `plimsoll metrics`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics;

impl Table for Metrics {
    const FLAGS: &'static [Flag] = FLAGS;
}

/// The given flags.
pub(crate) type MetricsFlags = crate::flags::Flags<Metrics>;
