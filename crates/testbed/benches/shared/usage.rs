//! CPU and memory of processes, as the kernel counts them.

use std::time::{Duration, Instant};

use testbed::ProcessUsage;

/// What a process used in some time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessMeasurement {
    pub(crate) took: Duration,
    pub(crate) cpu: Duration,
    /// Resident memory in bytes: its mean over the time, and its maximum since the start of the process.
    pub(crate) resident: u64,
    pub(crate) peak: u64,
}

impl ProcessMeasurement {
    /// Thousandths of a core.
    pub(crate) fn millicores(&self) -> f64 {
        self.cpu.as_secs_f64() * 1000.0 / self.took.as_secs_f64()
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            took: self.took,
            cpu: self.cpu + other.cpu,
            resident: self.resident + other.resident,
            peak: self.peak + other.peak,
        }
    }
}

/// Measures what each of these processes uses from now on for so long.
pub(crate) async fn measure<const N: usize>(
    processes: [u32; N],
    window: Duration,
) -> [ProcessMeasurement; N] {
    let usage = || processes.map(|pid| ProcessUsage::of(pid).expect("its process is there"));
    let (begun, first) = (Instant::now(), usage());
    let (mut resident, mut samples) = ([0; N], 0);
    while begun.elapsed() < window {
        tokio::time::sleep(Duration::from_secs(1)).await;
        samples += 1;
        for (sum, now) in resident.iter_mut().zip(usage()) {
            *sum += now.resident;
        }
    }
    let (took, last) = (begun.elapsed(), usage());
    std::array::from_fn(|place| ProcessMeasurement {
        took,
        cpu: last[place].cpu.saturating_sub(first[place].cpu),
        resident: resident[place] / samples.max(1),
        peak: last[place].peak,
    })
}

/// A percentile of these values, which get sorted.
pub(crate) fn percentile(values: &mut [Duration], percent: usize) -> Duration {
    values.sort_unstable();
    let place = (values.len() * percent).div_ceil(100).saturating_sub(1);
    values.get(place).copied().unwrap_or_default()
}
