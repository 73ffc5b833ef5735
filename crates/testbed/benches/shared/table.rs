//! Prints rows of results, with limits.

const MIB: f64 = (1 << 20) as f64;

/// A table that compares the program that is replaced with Plimsoll.
pub(crate) struct ComparisonTable {
    good: bool,
}

impl ComparisonTable {
    pub(crate) fn new(title: &str) -> Self {
        Self::with_columns(title, ["theirs", "ours"])
    }

    /// Begins a table with other names of the two columns.
    pub(crate) fn with_columns(title: &str, [compared, own]: [&str; 2]) -> Self {
        println!("\n{title}");
        println!("{:<44} {compared:>11} {own:>11} {:>8}   limit", "", "ratio");
        Self { good: true }
    }

    /// Prints a row. With a limit, the value of Plimsoll divided by the other one must not exceed it.
    pub(crate) fn row(&mut self, what: &str, theirs: f64, ours: f64, digits: usize, limit: Option<f64>) {
        let ratio = ours / theirs;
        let kept = limit.is_none_or(|limit| ratio <= limit);
        self.good &= kept;
        let limit = limit.map_or_else(String::new, |limit| {
            format!("{limit:.3}   {}", if kept { "kept" } else { "MISSED" })
        });
        println!("{what:<44} {theirs:>11.digits$} {ours:>11.digits$} {ratio:>8.3}   {limit}");
    }

    /// Whether all limits were kept.
    pub(crate) fn good(&self) -> bool {
        self.good
    }
}

/// Prints a row with a limit, and returns whether the value does not exceed it.
pub(crate) fn at_most(what: &str, value: f64, digits: usize, limit: f64) -> bool {
    let kept = value <= limit;
    let verdict = if kept { "kept" } else { "MISSED" };
    println!("{what:<44} {value:>11.digits$}   limit {limit:.digits$}   {verdict}");
    kept
}

/// Prints a row without a limit.
pub(crate) fn row(what: &str, value: f64, digits: usize) {
    println!("{what:<44} {value:>11.digits$}");
}

pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / MIB
}

pub(crate) fn millis(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
