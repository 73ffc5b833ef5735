//! Binary encoding of samples between replicas: compact, versioned, and rejected as a whole if any part is invalid.
//!
//! ```text
//! page    "plS1" incarnation generation more count entry…
//! entry   node age(ms) length scrape
//! scrape  point? pods… left out…
//! ```
//! Numbers are varints, times are deltas, texts are length-prefixed. The encoding is private to plimsoll and not JSON
//! or protobuf, because replicas exchange all samples of the cluster every few seconds: delta-encoded points are a
//! fraction of their size, and a page decodes without intermediate objects.

use crate::kubelet::{IncompletePod, MetricsPoint, MissingUsage, PodPoints, Scrape};

/// Prefix of a page; the digit is the version.
const MAGIC: &[u8; 4] = b"plS1";
/// Maximum length of a name in bytes, as in Kubernetes.
const MAX_NAME_BYTES: usize = 253;
/// Limits of nodes per page and bytes per encoded scrape.
const MAX_NODES_PER_PAGE: u64 = 20_000;
pub(crate) const MAX_SCRAPE_BYTES: usize = 4 << 20;

/// One page of samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SamplesPage {
    /// Random number of this process run; generations of two runs are unrelated.
    pub(crate) incarnation: u64,
    /// Last generation on the page.
    pub(crate) generation: u64,
    /// Whether more pages follow.
    pub(crate) more: bool,
    /// Scrapes.
    pub(crate) entries: Vec<NodeEntry>,
}

/// Scrape of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeEntry {
    pub(crate) node: Box<str>,
    /// Age in milliseconds, because clocks of replicas may differ.
    pub(crate) age: u64,
    pub(crate) scrape: Scrape,
}

/// Why a page is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("it is not a page of samples, or has another version")]
    Magic,
    #[error("it is truncated")]
    Short,
    #[error("it has trailing bytes")]
    Long,
    #[error("a number is too large")]
    Number,
    #[error("a name is not valid")]
    Name,
    #[error("a count or length exceeds its limit")]
    Much,
    #[error("an enum value is unknown")]
    Mark,
}

/// Encodes a scrape.
pub(crate) fn scrape(scrape: &Scrape) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + scrape.pods.len() * 64);
    let mut time = 0;
    match &scrape.node {
        Some(node) => {
            out.push(1);
            point(&mut out, node, &mut time);
        }
        None => out.push(0),
    }
    number(&mut out, scrape.pods.len() as u64);
    for pod in &scrape.pods {
        text(&mut out, &pod.namespace);
        text(&mut out, &pod.name);
        number(&mut out, pod.containers.len() as u64);
        for (name, own) in &pod.containers {
            text(&mut out, name);
            point(&mut out, own, &mut time);
        }
    }
    number(&mut out, scrape.incomplete.len() as u64);
    for left in &scrape.incomplete {
        text(&mut out, &left.namespace);
        text(&mut out, &left.name);
        text(&mut out, &left.container);
        out.push(match left.lacks {
            MissingUsage::Cpu => 0,
            MissingUsage::Memory => 1,
            MissingUsage::Both => 2,
        });
    }
    out
}

/// Encodes the head of a page.
pub(crate) fn head(incarnation: u64, generation: u64, more: bool, count: usize) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&incarnation.to_le_bytes());
    number(&mut out, generation);
    out.push(u8::from(more));
    number(&mut out, count as u64);
    out
}

/// Appends an entry with an encoded scrape.
pub(crate) fn entry(out: &mut Vec<u8>, node: &str, age: u64, scrape: &[u8]) {
    text(out, node);
    number(out, age);
    number(out, scrape.len() as u64);
    out.extend_from_slice(scrape);
}

/// Decodes a page. Allocations are bounded by a small multiple of its length.
pub(crate) fn read(bytes: &[u8]) -> Result<SamplesPage, DecodeError> {
    let mut rest = ByteReader(bytes.strip_prefix(MAGIC).ok_or(DecodeError::Magic)?);
    let (incarnation, after) = rest.0.split_first_chunk().ok_or(DecodeError::Short)?;
    rest.0 = after;
    let mut page = SamplesPage {
        incarnation: u64::from_le_bytes(*incarnation),
        generation: rest.number()?,
        ..SamplesPage::default()
    };
    page.more = rest.flag()?;
    let count = rest.number()?;
    if count > MAX_NODES_PER_PAGE {
        return Err(DecodeError::Much);
    }
    for _ in 0..count {
        let node = rest.name()?;
        let age = rest.number()?;
        let length = usize::try_from(rest.number()?).map_err(|_| DecodeError::Number)?;
        if length > MAX_SCRAPE_BYTES {
            return Err(DecodeError::Much);
        }
        let mut inside = ByteReader(rest.take(length)?);
        page.entries.push(NodeEntry { node, age, scrape: inside.scrape()? });
        inside.end()?;
    }
    rest.end()?;
    Ok(page)
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Zigzag encoding: small magnitudes become small numbers.
fn signed(out: &mut Vec<u8>, value: i64) {
    number(out, ((value << 1) ^ (value >> 63)) as u64);
}

fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn point(out: &mut Vec<u8>, point: &MetricsPoint, last: &mut i64) {
    signed(out, point.time.wrapping_sub(*last));
    *last = point.time;
    match point.start {
        Some(start) => {
            out.push(1);
            signed(out, point.time.wrapping_sub(start));
        }
        None => out.push(0),
    }
    number(out, point.cpu);
    number(out, point.memory);
}

/// Remaining input.
struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    fn byte(&mut self) -> Result<u8, DecodeError> {
        let (first, rest) = self.0.split_first().ok_or(DecodeError::Short)?;
        self.0 = rest;
        Ok(*first)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(DecodeError::Number);
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError::Number)
    }

    fn signed(&mut self) -> Result<i64, DecodeError> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn flag(&mut self) -> Result<bool, DecodeError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Mark),
        }
    }

    fn name(&mut self) -> Result<Box<str>, DecodeError> {
        let length = usize::try_from(self.number()?).map_err(|_| DecodeError::Number)?;
        if length == 0 || length > MAX_NAME_BYTES {
            return Err(DecodeError::Name);
        }
        let text = str::from_utf8(self.take(length)?).map_err(|_| DecodeError::Name)?;
        if text.chars().any(char::is_control) { Err(DecodeError::Name) } else { Ok(text.into()) }
    }

    fn point(&mut self, last: &mut i64) -> Result<MetricsPoint, DecodeError> {
        let time = last.wrapping_add(self.signed()?);
        *last = time;
        let start = if self.flag()? { Some(time.wrapping_sub(self.signed()?)) } else { None };
        Ok(MetricsPoint { start, time, cpu: self.number()?, memory: self.number()? })
    }

    fn scrape(&mut self) -> Result<Scrape, DecodeError> {
        let mut scrape = Scrape::default();
        let mut time = 0;
        if self.flag()? {
            scrape.node = Some(self.point(&mut time)?);
        }
        for _ in 0..self.number()? {
            let (namespace, name) = (self.name()?, self.name()?);
            let mut containers = Vec::new();
            for _ in 0..self.number()? {
                containers.push((self.name()?, self.point(&mut time)?));
            }
            scrape.pods.push(PodPoints { namespace, name, containers });
        }
        for _ in 0..self.number()? {
            let (namespace, name, container) = (self.name()?, self.name()?, self.name()?);
            let lacks = match self.byte()? {
                0 => MissingUsage::Cpu,
                1 => MissingUsage::Memory,
                2 => MissingUsage::Both,
                _ => return Err(DecodeError::Mark),
            };
            scrape.incomplete.push(IncompletePod { namespace, name, container, lacks });
        }
        Ok(scrape)
    }

    fn end(&self) -> Result<(), DecodeError> {
        if self.0.is_empty() { Ok(()) } else { Err(DecodeError::Long) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(entries: &[NodeEntry]) -> Vec<u8> {
        let mut out = head(7, 9, true, entries.len());
        for one in entries {
            entry(&mut out, &one.node, one.age, &scrape(&one.scrape));
        }
        out
    }

    fn points() -> impl Strategy<Value = MetricsPoint> {
        (any::<Option<i64>>(), any::<i64>(), any::<u64>(), any::<u64>())
            .prop_map(|(start, time, cpu, memory)| MetricsPoint { start, time, cpu, memory })
    }

    fn names() -> impl Strategy<Value = Box<str>> {
        "[a-z0-9.-]{1,20}".prop_map(String::into_boxed_str)
    }

    fn scrapes() -> impl Strategy<Value = Scrape> {
        let pod = (names(), names(), proptest::collection::vec((names(), points()), 0..3));
        let pod = pod.prop_map(|(namespace, name, containers)| PodPoints { namespace, name, containers });
        let lack = prop_oneof![Just(MissingUsage::Cpu), Just(MissingUsage::Memory), Just(MissingUsage::Both)];
        let left = (names(), names(), names(), lack).prop_map(|(namespace, name, container, lacks)| {
            IncompletePod { namespace, name, container, lacks }
        });
        (
            proptest::option::of(points()),
            proptest::collection::vec(pod, 0..4),
            proptest::collection::vec(left, 0..3),
        )
            .prop_map(|(node, pods, incomplete)| Scrape { node, pods, incomplete })
    }

    fn entries() -> impl Strategy<Value = Vec<NodeEntry>> {
        let one = (names(), any::<u64>(), scrapes()).prop_map(|(node, age, scrape)| NodeEntry {
            node,
            age,
            scrape,
        });
        proptest::collection::vec(one, 0..4)
    }

    #[test]
    fn ordinary_node_encodes_compactly() {
        let time = 1_763_000_000_000_000_000;
        let point = |n: i64| MetricsPoint {
            start: Some(time - 86_400_000_000_000),
            time: time + n * 1_000_000,
            cpu: 3_600_000_000_000,
            memory: 250 << 20,
        };
        let pods = (0..30).map(|n| PodPoints {
            namespace: "default".into(),
            name: format!("web-5d8f7c9b4-x{n:04}").into(),
            containers: vec![("web".into(), point(n)), ("sidecar".into(), point(n))],
        });
        let whole = Scrape { node: Some(point(0)), pods: pods.collect(), incomplete: Vec::new() };
        assert!(scrape(&whole).len() < 30 * 110, "{}", scrape(&whole).len());
    }

    #[test]
    fn malformed_pages_are_rejected() {
        let good = page(&[]);
        assert_eq!(read(b""), Err(DecodeError::Magic));
        assert_eq!(read(b"<html>"), Err(DecodeError::Magic));
        assert_eq!(read(&[&good[..], b"x"].concat()), Err(DecodeError::Long));
        assert_eq!(read(&good[..good.len() - 1]), Err(DecodeError::Short));
        let mut many = head(0, 0, false, 0);
        many.pop();
        number(&mut many, u64::MAX);
        assert_eq!(read(&many), Err(DecodeError::Much));
        let mut nameless = head(0, 0, false, 1);
        entry(&mut nameless, "", 0, &scrape(&Scrape::default()));
        assert_eq!(read(&nameless), Err(DecodeError::Name));
        // A scrape that announces an endless number of pods.
        let mut endless = head(0, 0, false, 1);
        entry(&mut endless, "n", 0, &[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
        assert_eq!(read(&endless), Err(DecodeError::Short));
        let mut large = head(0, 0, false, 1);
        entry(&mut large, "n", 0, &vec![0; MAX_SCRAPE_BYTES + 1]);
        assert_eq!(read(&large), Err(DecodeError::Much));
    }

    proptest! {
        #[test]
        fn pages_round_trip(entries in entries()) {
            let read = read(&page(&entries)).unwrap();
            prop_assert_eq!(read, SamplesPage { incarnation: 7, generation: 9, more: true, entries });
        }

        #[test]
        fn corrupted_pages_do_not_panic(
            entries in entries(),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = page(&entries);
            for (index, byte) in changes {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
            let _ = read(&bytes);
            let _ = read(&bytes[..cut.index(bytes.len())]);
        }

        #[test]
        fn garbage_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&[&MAGIC[..], &bytes].concat());
        }
    }
}
