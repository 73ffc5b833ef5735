//! A progress bar on standard error, for runs that take a while.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use sim::Millis;

/// Runs that end sooner show nothing.
const PROGRESS_DELAY: Duration = Duration::from_millis(400);

/// The progress of a run.
pub(crate) struct Progress {
    total: Millis,
    began: Instant,
    wanted: bool,
    bar: Option<ProgressBar>,
    steps: u32,
}

impl Progress {
    pub(crate) fn new(total: Millis, wanted: bool) -> Self {
        let wanted = wanted && std::io::stderr().is_terminal();
        Self { total, began: Instant::now(), wanted, bar: None, steps: 0 }
    }

    /// Updates the elapsed virtual time.
    pub(crate) fn at(&mut self, elapsed: Millis) {
        self.steps = self.steps.wrapping_add(1);
        // Reading the clock costs more than a step.
        if !self.wanted || !self.steps.is_multiple_of(256) {
            return;
        }
        if self.bar.is_none() && self.began.elapsed() > PROGRESS_DELAY {
            let bar = ProgressBar::new(self.total.0.unsigned_abs());
            if let Ok(style) = ProgressStyle::with_template("simulating {wide_bar} {percent}% {eta} left") {
                bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏░"));
            }
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(elapsed.0.unsigned_abs());
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
