//! A progress bar on standard error, for runs that take a while.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use sim::Millis;

/// Runs that end sooner show nothing.
const PATIENCE: Duration = Duration::from_millis(400);

/// How far a run is.
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

    /// Tells how much virtual time has passed.
    pub(crate) fn at(&mut self, elapsed: Millis) {
        self.steps = self.steps.wrapping_add(1);
        // Looking at the clock costs more than a step does.
        if !self.wanted || !self.steps.is_multiple_of(256) {
            return;
        }
        if self.bar.is_none() && self.began.elapsed() > PATIENCE {
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

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
