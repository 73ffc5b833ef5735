//! Lines become containers, containers become pods.

use api::provider::Compat;
use jiff::Timestamp;

use super::Family;
use super::labels::Whose;
use super::line::Sample;
use crate::kubelet::{Lack, LeftOut, PodPoints, Point, Scrape};

/// What was read so far. A container may have several rows, which become one in the end.
#[derive(Debug)]
pub(super) struct Rows<'a> {
    containers: Vec<(Whose<'a>, Row)>,
    node: Row,
    not_measured: bool,
    /// The row that the next line is about, as families list their containers in the same order.
    next: usize,
    /// Number of samples so far.
    count: u32,
    sent: i64,
    compat: Compat,
}

/// What is known about a container or the node.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    cpu: Measured<u64>,
    memory: Measured<u64>,
    start: Measured<Option<i64>>,
}

/// A value, its time in nanoseconds, and which sample told it: of several the last counts. 0 is no sample.
#[derive(Clone, Copy, Debug, Default)]
struct Measured<T> {
    value: T,
    time: i64,
    told: u32,
}

impl<'a> Rows<'a> {
    /// For an answer of so many bytes.
    pub(super) fn new(size: usize, sent: Timestamp, compat: Compat) -> Self {
        /// Bytes that a kubelet needs at least to tell all about one container.
        const ONE: usize = 300;
        let sent = sent.as_millisecond().saturating_mul(NANOS);
        let containers = Vec::with_capacity(size / ONE);
        Self { containers, node: Row::default(), not_measured: false, next: 0, count: 0, sent, compat }
    }

    /// A line was read. A sample that cannot be read is as good as none, and hides earlier ones.
    pub(super) fn add(&mut self, family: Family, whose: Option<Whose<'a>>, sample: Option<Sample>) {
        self.count = self.count.saturating_add(1);
        let (told, time) = (self.count, self.time(sample));
        // A time that cannot be told makes the sample useless, except that the time of a start does not matter.
        let timely = sample.filter(|_| time.is_some()).map(|sample| sample.value);
        let time = time.unwrap_or_default();
        match family {
            Family::NodeCpu => self.node.cpu = Measured { value: cpu(timely), time, told },
            Family::NodeMemory => self.node.memory = Measured { value: memory(timely), time, told },
            Family::ScrapeError => self.not_measured = sample.is_some_and(|sample| sample.value != 0.0),
            Family::ContainerCpu | Family::ContainerMemory | Family::ContainerStart => {
                // Without its labels a line is not about a container.
                let Some(whose) = whose else { return };
                self.change(whose, |row| match family {
                    Family::ContainerCpu => row.cpu = Measured { value: cpu(timely), time, told },
                    Family::ContainerMemory => row.memory = Measured { value: memory(timely), time, told },
                    _ => row.start = Measured { value: start(sample), time: 0, told },
                });
            }
        }
    }

    /// Whether the kubelet said that it could not measure.
    pub(super) fn not_measured(&self) -> bool {
        self.not_measured
    }

    /// What was read, pods ascending by namespace and name, containers by name.
    pub(super) fn into_scrape(mut self) -> Scrape {
        // Stable, and quick where rows are in order for stretches, as they are.
        self.containers.sort_by(|a, b| a.0.cmp(&b.0));
        self.containers.dedup_by(|later, first| later.0 == first.0 && first.1.join(&later.1));
        let mut scrape = Scrape { node: self.node.point(self.compat).ok(), ..Scrape::default() };
        let same =
            |a: &(Whose<'_>, Row), b: &(Whose<'_>, Row)| (a.0.namespace, a.0.pod) == (b.0.namespace, b.0.pod);
        scrape.pods.reserve_exact(self.containers.chunk_by(same).count());
        for rows in self.containers.chunk_by(same) {
            let Some((first, _)) = rows.first() else { continue };
            let lacks = rows.iter().find_map(|(of, row)| Some((of.container, row.point(self.compat).err()?)));
            if let Some((container, lacks)) = lacks {
                scrape.left_out.push(LeftOut {
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

    /// When it was measured, in nanoseconds; metrics-server lets times beyond the year 2262 wrap around.
    fn time(&self, sample: Option<Sample>) -> Option<i64> {
        match sample?.time {
            None => Some(self.sent),
            Some(time) if self.compat.is_strict() => Some(time.wrapping_mul(NANOS)),
            Some(time) => time.checked_mul(NANOS),
        }
    }

    /// Changes the row of a container: the one that is expected next, or a new one.
    fn change(&mut self, of: Whose<'a>, change: impl FnOnce(&mut Row)) {
        // One container without this family does not upset the order; the next family starts with the first row again.
        for at in [self.next, self.next + 1, 0] {
            if let Some((_, row)) = self.containers.get_mut(at).filter(|(whose, _)| *whose == of) {
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
const NANOS: i64 = 1_000_000;

impl Row {
    /// Takes what another row of the same container knows better.
    fn join(&mut self, other: &Self) -> bool {
        self.cpu.join(&other.cpu);
        self.memory.join(&other.memory);
        self.start.join(&other.start);
        true
    }

    /// The point, or what it lacks.
    fn point(&self, compat: Compat) -> Result<Point, Lack> {
        match (self.cpu.value, self.memory.value) {
            (0, 0) => return Err(Lack::Both),
            (0, _) => return Err(Lack::Cpu),
            (_, 0) => return Err(Lack::Memory),
            _ => {}
        }
        // The time of the counter is the one that a rate needs; metrics-server takes that of the line which came last.
        let memory_time = compat.is_strict() && self.memory.told > self.cpu.told;
        let time = if memory_time { self.memory.time } else { self.cpu.time };
        Ok(Point { start: self.start.value, time, cpu: self.cpu.value, memory: self.memory.value })
    }
}

impl<T: Copy> Measured<T> {
    fn join(&mut self, other: &Self) {
        if other.told > self.told {
            *self = *other;
        }
    }
}

/// 2⁶⁴.
const BEYOND: f64 = 18_446_744_073_709_551_616.0;

/// Nanoseconds of processor time; 0 if it is not known or makes no sense.
fn cpu(value: Option<f64>) -> u64 {
    memory(value.map(|seconds| seconds * 1e9))
}

/// Whole bytes; 0 if they are not known or make no sense.
fn memory(value: Option<f64>) -> u64 {
    value.filter(|value| (0.0..BEYOND).contains(value)).map_or(0, |value| value as u64)
}

/// Nanoseconds since the epoch, if they are known and make sense.
fn start(sample: Option<Sample>) -> Option<i64> {
    let nanos = sample?.value * 1e9;
    (nanos.abs() < BEYOND / 2.0).then_some(nanos as i64)
}
