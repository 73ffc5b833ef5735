//! CPU time and memory of processes, as the kernel counts them.

use std::time::{Duration, Instant};

use testbed::ProcessUsage;

/// What a process used in a measurement window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessMeasurement {
    pub(crate) took: Duration,
    pub(crate) cpu: Duration,
    /// The mean of the resident memory in the window, in bytes.
    pub(crate) resident: u64,
    /// The maximum of the resident memory since the start of the process, in bytes.
    pub(crate) peak: u64,
}

impl ProcessMeasurement {
    /// The mean CPU usage in thousandths of a core.
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

/// Measures what each of these processes uses during `window`.
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
    std::array::from_fn(|index| ProcessMeasurement {
        took,
        cpu: last[index].cpu.saturating_sub(first[index].cpu),
        resident: resident[index] / samples.max(1),
        peak: last[index].peak,
    })
}

/// A percentile of the values, which this sorts.
pub(crate) fn percentile(values: &mut [Duration], percent: usize) -> Duration {
    values.sort_unstable();
    let index = (values.len() * percent).div_ceil(100).saturating_sub(1);
    values.get(index).copied().unwrap_or_default()
}
