//! A table of measurements: name, value, limit and verdict.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// A table whose rows are printed at once.
#[derive(Default)]
pub(crate) struct Table {
    missed: usize,
}

impl Table {
    /// A table with this title.
    pub(crate) fn new(title: &str) -> Self {
        println!("\n{title:<58} {:>14} {:>14}   verdict", "measured", "limit");
        Self::default()
    }

    /// A measurement that must not be above `limit`.
    pub(crate) fn row(&mut self, what: &str, measured: f64, limit: f64, show: impl Fn(f64) -> String) {
        let within = measured <= limit;
        self.missed += usize::from(!within);
        let verdict = if within { "ok" } else { "MISSED" };
        println!("{what:<58} {:>14} {:>14}   {verdict}", show(measured), show(limit));
    }

    /// A failed measurement, which counts as a missed limit.
    pub(crate) fn not_measured(&mut self, what: &str, why: &str) {
        self.missed += 1;
        println!("{what:<58} not measured: {why}");
    }

    /// Whether every limit was kept.
    pub(crate) fn verdict(&self) -> ExitCode {
        if self.missed == 0 {
            return ExitCode::SUCCESS;
        }
        println!("\n{} of the limits missed", self.missed);
        ExitCode::FAILURE
    }
}

/// A row for information, without a limit.
pub(crate) fn note(what: &str, measured: f64, show: impl Fn(f64) -> String) {
    println!("{what:<58} {:>14}", show(measured));
}

/// Microseconds.
pub(crate) fn micros(seconds: f64) -> String {
    format!("{:.2} µs", seconds * 1e6)
}

/// Nanoseconds.
pub(crate) fn nanos(seconds: f64) -> String {
    format!("{:.2} ns", seconds * 1e9)
}

/// Whole numbers in groups of three.
pub(crate) fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Seconds that one call of `work` takes: of a hundred short batches the tenth best, because neighbours on a shared
/// machine can only make it slower.
pub(crate) fn time(mut work: impl FnMut()) -> f64 {
    const BATCH: Duration = Duration::from_millis(4);
    const BATCHES: usize = 101;
    let started = Instant::now();
    let mut calls = 0_u32;
    while started.elapsed() < BATCH {
        work();
        calls += 1;
    }
    let mut batches = [0.0; BATCHES];
    for batch in &mut batches {
        let started = Instant::now();
        (0..calls).for_each(|_| work());
        *batch = started.elapsed().as_secs_f64() / f64::from(calls);
    }
    batches.sort_unstable_by(f64::total_cmp);
    batches.get(BATCHES / 10).copied().unwrap_or_default()
}

/// Instructions that this program spends inside its function `measured` when it is run with `args`.
///
/// It is run once more under `valgrind --tool=callgrind`. A harness such as gungraun would need a runner of exactly its
/// own version installed beside valgrind; this needs valgrind alone.
pub(crate) fn count_under_valgrind(args: &[&str]) -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg("--toggle-collect=*measured*")
        .arg(program)
        .args(args)
        .output()
        .map_err(|e| format!("cannot run valgrind: {e}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let total = text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse::<f64>().ok());
    match total {
        Some(total) if total > 0.0 && output.status.success() => Ok(total),
        _ => Err(format!("no count in what valgrind says: {}", text.lines().last().unwrap_or_default())),
    }
}
