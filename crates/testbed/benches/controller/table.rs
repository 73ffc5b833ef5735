//! Limits and verdicts.

use crate::figures::Measured;

const MIB: f64 = (1 << 20) as f64;

/// Prints one variant beside the peer; true if all limits are kept.
pub(crate) fn beside(variant: &str, theirs: &Measured, ours: &Measured) -> bool {
    println!("\n{variant}");
    println!("{:<34} {:>10} {:>10} {:>7}   limit", "", "theirs", "ours", "ratio");
    let mut good = true;
    let mut row = |what: &str, theirs: f64, ours: f64, digits: usize, limit: Option<f64>| {
        let ratio = ours / theirs;
        let kept = limit.is_none_or(|limit| ratio <= limit);
        good &= kept;
        let limit = limit.map_or_else(String::new, |limit| {
            format!("{limit:.3}   {}", if kept { "kept" } else { "MISSED" })
        });
        println!("{what:<34} {theirs:>10.digits$} {ours:>10.digits$} {ratio:>7.3}   {limit}");
    };
    row("CPU per sync, µs", theirs.cpu_per_sync(), ours.cpu_per_sync(), 0, Some(0.2));
    row("resident memory, MiB", theirs.resident as f64 / MIB, ours.resident as f64 / MIB, 1, Some(0.25));
    row("… at most since the start, MiB", theirs.peak as f64 / MIB, ours.peak as f64 / MIB, 1, None);
    row("API requests per sync", theirs.requests_per_sync(), ours.requests_per_sync(), 3, Some(0.5));
    row("status writes per sync", theirs.writes_per_sync(), ours.writes_per_sync(), 3, None);
    row("syncs", theirs.syncs as f64, ours.syncs as f64, 0, None);
    for (who, measured) in [("theirs", theirs), ("ours", ours)] {
        println!("requests of {who}:");
        for ((method, shape), count) in &measured.requests {
            println!("  {count:>8}  {method} {shape}");
        }
    }
    good
}

/// A line with a limit that must not be exceeded.
pub(crate) fn at_most(what: &str, value: f64, digits: usize, limit: f64) -> bool {
    let kept = value <= limit;
    let verdict = if kept { "kept" } else { "MISSED" };
    println!("{what:<44} {value:>10.digits$}   limit {limit:.digits$}   {verdict}");
    kept
}

/// A line that is only told.
pub(crate) fn told(what: &str, value: f64, digits: usize) {
    println!("{what:<44} {value:>10.digits$}");
}

pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / MIB
}
