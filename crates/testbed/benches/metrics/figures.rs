//! What the kernel says of a process.

use std::time::{Duration, Instant};

use crate::subject::Subject;

/// What happened in some time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) took: Duration,
    pub(crate) cpu: Duration,
    /// Resident memory in bytes, its mean over the time.
    pub(crate) resident: u64,
}

impl Measured {
    /// Thousandths of a core.
    pub(crate) fn millicores(&self) -> f64 {
        self.cpu.as_secs_f64() * 1000.0 / self.took.as_secs_f64()
    }
}

/// What happens from now on for so long.
pub(crate) async fn measure(subject: &Subject, window: Duration) -> Measured {
    let usage = || subject.program.usage().expect("its process is there");
    let (begun, first) = (Instant::now(), usage());
    let mut resident = Vec::new();
    while begun.elapsed() < window {
        tokio::time::sleep(Duration::from_secs(1)).await;
        resident.push(usage().resident);
    }
    let last = usage();
    Measured {
        took: begun.elapsed(),
        cpu: last.cpu.saturating_sub(first.cpu),
        resident: resident.iter().sum::<u64>() / resident.len().max(1) as u64,
    }
}

/// A value below which so many percent of the others are; they get sorted.
pub(crate) fn percentile(values: &mut [Duration], percent: usize) -> Duration {
    values.sort_unstable();
    let place = (values.len() * percent).div_ceil(100).saturating_sub(1);
    values.get(place).copied().unwrap_or_default()
}
