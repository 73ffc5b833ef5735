//! How samples travel between replicas: small, versioned, and refused as a whole if anything in it is wrong.
//!
//! ```text
//! page    "plS1" incarnation generation more count entry…
//! entry   node age(ms) length scrape
//! scrape  point? pods… left out…
//! ```
//! Numbers are variable-length, times are differences to the one before, texts have their length in front.

use crate::kubelet::{Lack, LeftOut, PodPoints, Point, Scrape};

/// What a page begins with; the digit is the version.
const MAGIC: &[u8; 4] = b"plS1";
/// Bytes of a name at most, as Kubernetes has it.
const NAME: usize = 253;
/// Nodes on one page, and bytes of one node.
const NODES: u64 = 20_000;
pub(crate) const SCRAPE: usize = 4 << 20;

/// What a replica tells another at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// Which run of the replica this is; generations of two runs have nothing to do with each other.
    pub(crate) incarnation: u64,
    /// The last generation that is on it.
    pub(crate) generation: u64,
    /// Whether there is another page after it.
    pub(crate) more: bool,
    /// What was scraped.
    pub(crate) entries: Vec<Entry>,
}

/// What was scraped from one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) node: Box<str>,
    /// How long ago, in milliseconds: clocks of replicas may differ.
    pub(crate) age: u64,
    pub(crate) scrape: Scrape,
}

/// Why a page is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    #[error("it is not a page of samples, or of another version")]
    Magic,
    #[error("it ends too early")]
    Short,
    #[error("it does not end where it should")]
    Long,
    #[error("a number is too large")]
    Number,
    #[error("a name is no name")]
    Name,
    #[error("there is too much of something")]
    Much,
    #[error("a mark is unknown")]
    Mark,
}

/// Writes a scrape.
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
    number(&mut out, scrape.left_out.len() as u64);
    for left in &scrape.left_out {
        text(&mut out, &left.namespace);
        text(&mut out, &left.name);
        text(&mut out, &left.container);
        out.push(match left.lacks {
            Lack::Cpu => 0,
            Lack::Memory => 1,
            Lack::Both => 2,
        });
    }
    out
}

/// Writes the beginning of a page.
pub(crate) fn head(incarnation: u64, generation: u64, more: bool, count: usize) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&incarnation.to_le_bytes());
    number(&mut out, generation);
    out.push(u8::from(more));
    number(&mut out, count as u64);
    out
}

/// Writes an entry whose scrape is already written.
pub(crate) fn entry(out: &mut Vec<u8>, node: &str, age: u64, scrape: &[u8]) {
    text(out, node);
    number(out, age);
    number(out, scrape.len() as u64);
    out.extend_from_slice(scrape);
}

/// Reads a page; whatever it is, no more is allocated than a few times its length.
pub(crate) fn read(bytes: &[u8]) -> Result<Page, Broken> {
    let mut rest = Reader(bytes.strip_prefix(MAGIC).ok_or(Broken::Magic)?);
    let (incarnation, after) = rest.0.split_first_chunk().ok_or(Broken::Short)?;
    rest.0 = after;
    let mut page =
        Page { incarnation: u64::from_le_bytes(*incarnation), generation: rest.number()?, ..Page::default() };
    page.more = rest.flag()?;
    let count = rest.number()?;
    if count > NODES {
        return Err(Broken::Much);
    }
    for _ in 0..count {
        let node = rest.name()?;
        let age = rest.number()?;
        let length = usize::try_from(rest.number()?).map_err(|_| Broken::Number)?;
        if length > SCRAPE {
            return Err(Broken::Much);
        }
        let mut inside = Reader(rest.take(length)?);
        page.entries.push(Entry { node, age, scrape: inside.scrape()? });
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

/// Small positive and negative numbers become small ones.
fn signed(out: &mut Vec<u8>, value: i64) {
    number(out, ((value << 1) ^ (value >> 63)) as u64);
}

fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn point(out: &mut Vec<u8>, point: &Point, last: &mut i64) {
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

/// What is left to read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8, Broken> {
        let (first, rest) = self.0.split_first().ok_or(Broken::Short)?;
        self.0 = rest;
        Ok(*first)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Broken> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Broken::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, Broken> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Broken::Number);
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Broken::Number)
    }

    fn signed(&mut self) -> Result<i64, Broken> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn flag(&mut self) -> Result<bool, Broken> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Broken::Mark),
        }
    }

    fn name(&mut self) -> Result<Box<str>, Broken> {
        let length = usize::try_from(self.number()?).map_err(|_| Broken::Number)?;
        if length == 0 || length > NAME {
            return Err(Broken::Name);
        }
        let text = str::from_utf8(self.take(length)?).map_err(|_| Broken::Name)?;
        if text.chars().any(char::is_control) { Err(Broken::Name) } else { Ok(text.into()) }
    }

    fn point(&mut self, last: &mut i64) -> Result<Point, Broken> {
        let time = last.wrapping_add(self.signed()?);
        *last = time;
        let start = if self.flag()? { Some(time.wrapping_sub(self.signed()?)) } else { None };
        Ok(Point { start, time, cpu: self.number()?, memory: self.number()? })
    }

    fn scrape(&mut self) -> Result<Scrape, Broken> {
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
                0 => Lack::Cpu,
                1 => Lack::Memory,
                2 => Lack::Both,
                _ => return Err(Broken::Mark),
            };
            scrape.left_out.push(LeftOut { namespace, name, container, lacks });
        }
        Ok(scrape)
    }

    fn end(&self) -> Result<(), Broken> {
        if self.0.is_empty() { Ok(()) } else { Err(Broken::Long) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    fn page(entries: &[Entry]) -> Vec<u8> {
        let mut out = head(7, 9, true, entries.len());
        for one in entries {
            entry(&mut out, &one.node, one.age, &scrape(&one.scrape));
        }
        out
    }

    fn points() -> impl Strategy<Value = Point> {
        (any::<Option<i64>>(), any::<i64>(), any::<u64>(), any::<u64>())
            .prop_map(|(start, time, cpu, memory)| Point { start, time, cpu, memory })
    }

    fn names() -> impl Strategy<Value = Box<str>> {
        "[a-z0-9.-]{1,20}".prop_map(String::into_boxed_str)
    }

    fn scrapes() -> impl Strategy<Value = Scrape> {
        let pod = (names(), names(), proptest::collection::vec((names(), points()), 0..3));
        let pod = pod.prop_map(|(namespace, name, containers)| PodPoints { namespace, name, containers });
        let lack = prop_oneof![Just(Lack::Cpu), Just(Lack::Memory), Just(Lack::Both)];
        let left = (names(), names(), names(), lack)
            .prop_map(|(namespace, name, container, lacks)| LeftOut { namespace, name, container, lacks });
        (
            proptest::option::of(points()),
            proptest::collection::vec(pod, 0..4),
            proptest::collection::vec(left, 0..3),
        )
            .prop_map(|(node, pods, left_out)| Scrape { node, pods, left_out })
    }

    fn entries() -> impl Strategy<Value = Vec<Entry>> {
        let one =
            (names(), any::<u64>(), scrapes()).prop_map(|(node, age, scrape)| Entry { node, age, scrape });
        proptest::collection::vec(one, 0..4)
    }

    #[test]
    fn an_ordinary_node_is_small() {
        let time = 1_763_000_000_000_000_000;
        let point = |n: i64| Point {
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
        let whole = Scrape { node: Some(point(0)), pods: pods.collect(), left_out: Vec::new() };
        assert!(scrape(&whole).len() < 30 * 110, "{}", scrape(&whole).len());
    }

    #[test]
    fn what_is_broken_is_refused() {
        let good = page(&[]);
        assert_eq!(read(b""), Err(Broken::Magic));
        assert_eq!(read(b"<html>"), Err(Broken::Magic));
        assert_eq!(read(&[&good[..], b"x"].concat()), Err(Broken::Long));
        assert_eq!(read(&good[..good.len() - 1]), Err(Broken::Short));
        let mut many = head(0, 0, false, 0);
        many.pop();
        number(&mut many, u64::MAX);
        assert_eq!(read(&many), Err(Broken::Much));
        let mut nameless = head(0, 0, false, 1);
        entry(&mut nameless, "", 0, &scrape(&Scrape::default()));
        assert_eq!(read(&nameless), Err(Broken::Name));
        // A scrape that claims endless pods.
        let mut endless = head(0, 0, false, 1);
        entry(&mut endless, "n", 0, &[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
        assert_eq!(read(&endless), Err(Broken::Short));
        let mut large = head(0, 0, false, 1);
        entry(&mut large, "n", 0, &vec![0; SCRAPE + 1]);
        assert_eq!(read(&large), Err(Broken::Much));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(entries in entries()) {
            let read = read(&page(&entries)).unwrap();
            prop_assert_eq!(read, Page { incarnation: 7, generation: 9, more: true, entries });
        }

        #[test]
        fn nothing_breaks_the_reader(
            entries in entries(),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = page(&entries);
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
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
