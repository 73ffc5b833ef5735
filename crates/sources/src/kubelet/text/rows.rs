//! Collects lines into containers and pods.

use api::provider::Compat;
use jiff::Timestamp;

use super::MetricFamily;
use super::labels::ContainerKey;
use super::line::SampleValue;
use crate::kubelet::{IncompletePod, MetricsPoint, MissingUsage, PodPoints, Scrape};

/// Samples read so far. A container may have several rows, which are merged at the end.
#[derive(Debug)]
pub(super) struct RowTable<'a> {
    containers: Vec<(ContainerKey<'a>, Row)>,
    node: Row,
    not_measured: bool,
    /// Expected row of the next line, because every family lists the containers in the same order.
    next: usize,
    /// Number of samples so far.
    count: u32,
    sent: i64,
    compat: Compat,
}

/// Values of a container or the node.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    cpu: RowValue<u64>,
    memory: RowValue<u64>,
    start: RowValue<Option<i64>>,
}

/// A value, its time in nanoseconds, and the number of its sample; the last sample wins. 0 means no sample.
#[derive(Clone, Copy, Debug, Default)]
struct RowValue<T> {
    value: T,
    time: i64,
    sequence: u32,
}

impl<'a> RowTable<'a> {
    /// Creates a table for a response of `size` bytes.
    pub(super) fn new(size: usize, sent: Timestamp, compat: Compat) -> Self {
        /// Minimum bytes per container in a response.
        const MIN_CONTAINER_BYTES: usize = 300;
        let sent = sent.as_millisecond().saturating_mul(NANOS_PER_MILLI);
        let containers = Vec::with_capacity(size / MIN_CONTAINER_BYTES);
        Self { containers, node: Row::default(), not_measured: false, next: 0, count: 0, sent, compat }
    }

    /// Adds a sample. An unreadable sample (`None`) overrides earlier ones.
    pub(super) fn add(
        &mut self,
        family: MetricFamily,
        container_key: Option<ContainerKey<'a>>,
        sample: Option<SampleValue>,
    ) {
        self.count = self.count.saturating_add(1);
        let (sequence, time) = (self.count, self.time(sample));
        // A sample with an invalid timestamp is unusable; the timestamp of a start time is ignored.
        let timely = sample.filter(|_| time.is_some()).map(|sample| sample.value);
        let time = time.unwrap_or_default();
        match family {
            MetricFamily::NodeCpu => self.node.cpu = RowValue { value: cpu(timely), time, sequence },
            MetricFamily::NodeMemory => self.node.memory = RowValue { value: memory(timely), time, sequence },
            MetricFamily::ScrapeError => self.not_measured = sample.is_some_and(|sample| sample.value != 0.0),
            MetricFamily::ContainerCpu | MetricFamily::ContainerMemory | MetricFamily::ContainerStart => {
                // A line without the labels is not about a container.
                let Some(container_key) = container_key else { return };
                self.change(container_key, |row| match family {
                    MetricFamily::ContainerCpu => row.cpu = RowValue { value: cpu(timely), time, sequence },
                    MetricFamily::ContainerMemory => {
                        row.memory = RowValue { value: memory(timely), time, sequence }
                    }
                    _ => row.start = RowValue { value: start(sample), time: 0, sequence },
                });
            }
        }
    }

    /// Whether the kubelet reported `resource_scrape_error 1`.
    pub(super) fn not_measured(&self) -> bool {
        self.not_measured
    }

    /// Builds the scrape: pods ascending by namespace and name, containers by name.
    pub(super) fn into_scrape(mut self) -> Scrape {
        // A stable sort, fast because rows are mostly ordered.
        self.containers.sort_by(|a, b| a.0.cmp(&b.0));
        self.containers.dedup_by(|later, first| later.0 == first.0 && first.1.join(&later.1));
        let mut scrape = Scrape { node: self.node.point(self.compat).ok(), ..Scrape::default() };
        let same = |a: &(ContainerKey<'_>, Row), b: &(ContainerKey<'_>, Row)| {
            (a.0.namespace, a.0.pod) == (b.0.namespace, b.0.pod)
        };
        scrape.pods.reserve_exact(self.containers.chunk_by(same).count());
        for rows in self.containers.chunk_by(same) {
            let Some((first, _)) = rows.first() else { continue };
            let lacks = rows.iter().find_map(|(of, row)| Some((of.container, row.point(self.compat).err()?)));
            if let Some((container, lacks)) = lacks {
                scrape.incomplete.push(IncompletePod {
                    namespace: first.namespace.into(),
                    name: first.pod.into(),
                    container: container.into(),
                    lacks,
                });
                continue;
            }
            let mut containers = Vec::with_capacity(rows.len());
            containers.extend(
                rows.iter().filter_map(|(of, row)| Some((of.container.into(), row.point(self.compat).ok()?))),
            );
            scrape.pods.push(PodPoints {
                namespace: first.namespace.into(),
                name: first.pod.into(),
                containers,
            });
        }
        scrape
    }

    /// Sample time in nanoseconds; metrics-server wraps around after the year 2262.
    fn time(&self, sample: Option<SampleValue>) -> Option<i64> {
        match sample?.time {
            None => Some(self.sent),
            Some(time) if self.compat.is_strict() => Some(time.wrapping_mul(NANOS_PER_MILLI)),
            Some(time) => time.checked_mul(NANOS_PER_MILLI),
        }
    }

    /// Changes the row of a container: the expected one, or a new one.
    fn change(&mut self, of: ContainerKey<'a>, change: impl FnOnce(&mut Row)) {
        // A container may lack this family, and the next family starts at the first row again.
        for at in [self.next, self.next + 1, 0] {
            if let Some((_, row)) =
                self.containers.get_mut(at).filter(|(container_key, _)| *container_key == of)
            {
                change(row);
                self.next = at + 1;
                return;
            }
        }
        let mut row = Row::default();
        change(&mut row);
        self.containers.push((of, row));
        self.next = self.containers.len();
    }
}

/// Nanoseconds in a millisecond.
const NANOS_PER_MILLI: i64 = 1_000_000;

impl Row {
    /// Merges the later values of another row of the same container.
    fn join(&mut self, other: &Self) -> bool {
        self.cpu.join(&other.cpu);
        self.memory.join(&other.memory);
        self.start.join(&other.start);
        true
    }

    /// Builds the point, or returns which value is missing.
    fn point(&self, compat: Compat) -> Result<MetricsPoint, MissingUsage> {
        match (self.cpu.value, self.memory.value) {
            (0, 0) => return Err(MissingUsage::Both),
            (0, _) => return Err(MissingUsage::Cpu),
            (_, 0) => return Err(MissingUsage::Memory),
            _ => {}
        }
        // The rate needs the time of the CPU counter; metrics-server uses the time of the last line.
        let memory_time = compat.is_strict() && self.memory.sequence > self.cpu.sequence;
        let time = if memory_time { self.memory.time } else { self.cpu.time };
        Ok(MetricsPoint { start: self.start.value, time, cpu: self.cpu.value, memory: self.memory.value })
    }
}

impl<T: Copy> RowValue<T> {
    fn join(&mut self, other: &Self) {
        if other.sequence > self.sequence {
            *self = *other;
        }
    }
}

/// 2⁶⁴.
const TWO_POW_64: f64 = 18_446_744_073_709_551_616.0;

/// CPU time in nanoseconds; 0 if unknown or out of range.
fn cpu(value: Option<f64>) -> u64 {
    memory(value.map(|seconds| seconds * 1e9))
}

/// Whole bytes; 0 if unknown or out of range.
fn memory(value: Option<f64>) -> u64 {
    value.filter(|value| (0.0..TWO_POW_64).contains(value)).map_or(0, |value| value as u64)
}

/// Nanoseconds since the epoch, if known and in range.
fn start(sample: Option<SampleValue>) -> Option<i64> {
    let nanos = sample?.value * 1e9;
    (nanos.abs() < TWO_POW_64 / 2.0).then_some(nanos as i64)
}
