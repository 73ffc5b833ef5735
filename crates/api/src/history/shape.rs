//! The shape of a JSON text, and the table of shapes and texts that passes share.

use std::collections::HashSet;
use std::sync::Arc;

use super::leaf::{HOLES, Leaf};

/// The largest JSON text of a pass, in bytes. Otherwise a few bytes of a crafted file could repeat a long text in every hole of a shape.
const MAX_JSON_BYTES: usize = 16 << 20;
/// The most leaves of a pass: more than hundreds of metrics have. A pass of a crafted file takes a few bytes and time for each leaf.
pub(super) const MAX_LEAVES: usize = 1 << 16;

/// A JSON text with a hole for each leaf.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    text: Box<[u8]>,
    /// A hash of the path of each leaf, to find the same leaf in another shape.
    paths: Box<[u32]>,
}

/// Shapes and texts that passes of different autoscalers share.
#[derive(Debug, Default)]
pub struct SharedTexts {
    shapes: HashSet<Arc<Shape>>,
    texts: HashSet<Arc<str>>,
    /// How many there may be before unused ones are removed.
    limit: usize,
    bytes: usize,
    /// Buffers for one pass, allocated once.
    pub(super) buffers: SplitBuffers,
}

/// The shapes and texts to which the passes of a chunk refer by index.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    pub(super) shapes: Vec<Arc<Shape>>,
    pub(super) texts: Vec<Arc<str>>,
}

/// Buffers for the shape and the leaves of one pass.
#[derive(Debug, Default)]
pub(super) struct SplitBuffers {
    pub(super) shape: Vec<u8>,
    pub(super) leaves: Vec<Leaf>,
    /// The text of a value that is printed.
    pub(super) printed: String,
}

impl SharedTexts {
    /// The smallest number of entries at which unused ones are looked for.
    const MIN_ENTRIES_BEFORE_SWEEP: usize = 4096;

    /// The shared copy of a text.
    pub fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        self.make_room();
        let new: Arc<str> = text.into();
        self.bytes += weight(new.len());
        self.texts.insert(new.clone());
        new
    }

    pub(super) fn shape(&mut self, text: &[u8]) -> Arc<Shape> {
        self.make_room();
        let new = Shape::new(text);
        if let Some(known) = self.shapes.get(&new) {
            return known.clone();
        }
        let new = Arc::new(new);
        self.bytes += new.weight();
        self.shapes.insert(new.clone());
        new
    }

    /// The approximate memory in bytes.
    pub fn approximate_bytes(&self) -> usize {
        self.bytes + self.shapes.capacity() * 9 + self.texts.capacity() * 17
    }

    /// Removes what nothing refers to, once there is twice as much as after the last time.
    fn make_room(&mut self) {
        if self.shapes.len() + self.texts.len() >= self.limit.max(Self::MIN_ENTRIES_BEFORE_SWEEP) {
            self.remove_unused();
        }
    }

    /// Removes what nothing refers to.
    pub fn remove_unused(&mut self) {
        self.texts.retain(|text| Arc::strong_count(text) > 1);
        self.shapes.retain(|shape| Arc::strong_count(shape) > 1);
        self.limit = (self.shapes.len() + self.texts.len()) * 2;
        self.bytes = self.texts.iter().map(|text| weight(text.len())).sum::<usize>()
            + self.shapes.iter().map(|shape| shape.weight()).sum::<usize>();
    }
}

/// The memory of a shared text.
fn weight(length: usize) -> usize {
    (16 + length).next_multiple_of(16)
}

impl Tables {
    /// The index of a text.
    pub(super) fn text(&mut self, shared: &mut SharedTexts, text: &str) -> u32 {
        let known = self.texts.iter().position(|known| **known == *text);
        known.map_or_else(
            || {
                self.texts.push(shared.text(text));
                self.texts.len() as u32 - 1
            },
            |place| place as u32,
        )
    }

    /// A shape and its index.
    pub(super) fn shape(&mut self, shared: &mut SharedTexts, text: &[u8]) -> Option<(usize, Arc<Shape>)> {
        let known = self.shapes.iter().position(|known| *known.text == *text);
        let index = known.unwrap_or_else(|| {
            self.shapes.push(shared.shape(text));
            self.shapes.len() - 1
        });
        Some((index, self.shapes.get(index)?.clone()))
    }
}

impl Shape {
    pub(super) fn new(text: &[u8]) -> Self {
        Self { text: text.into(), paths: paths(text).into() }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn paths(&self) -> &[u32] {
        &self.paths
    }

    /// The holes, in the order of the leaves.
    pub(super) fn holes(&self) -> impl Iterator<Item = u8> {
        self.text.iter().copied().filter(|byte| HOLES.contains(byte))
    }

    /// The JSON text with these leaves. None if a leaf does not belong to the shape, or the text would be too long.
    pub(super) fn join(&self, leaves: &[Leaf], texts: &[Arc<str>]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(self.text.len() + leaves.len() * 8);
        let mut leaves = leaves.iter();
        for byte in &self.text {
            if !HOLES.contains(byte) {
                out.push(*byte);
                continue;
            }
            match *leaves.next()? {
                Leaf::Text(index) => out.extend_from_slice(texts.get(index as usize)?.as_bytes()),
                leaf => out.extend_from_slice(leaf.print()?.as_bytes()),
            }
            if out.len() > MAX_JSON_BYTES {
                return None;
            }
        }
        Some(out)
    }

    fn weight(&self) -> usize {
        48 + self.text.len().next_multiple_of(16) + (self.paths.len() * 4).next_multiple_of(16)
    }
}

/// The content of the string at the start of `json`, and what follows its closing quote.
fn string(json: &[u8]) -> (&[u8], &[u8]) {
    let mut escaped = false;
    let end = json.iter().skip(1).position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    let end = end.map_or(json.len(), |end| end + 1);
    (json.get(1..end).unwrap_or_default(), json.get(end + 1..).unwrap_or_default())
}

/// A hash of the path of each hole.
fn paths(shape: &[u8]) -> Vec<u32> {
    /// FNV-1a, which needs no table and is the same on every machine.
    fn hash(from: u32, bytes: &[u8]) -> u32 {
        bytes.iter().fold(from, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
    }
    let mut found = Vec::new();
    // Of each open object or array: its own path, the path of the current member, and its index in an array.
    let mut open: Vec<(u32, u32, u32)> = vec![(0x811c_9dc5, 0x811c_9dc5, 0)];
    let mut rest = shape;
    while let Some(first) = rest.first() {
        let path = open.last().map_or(0, |(_, path, _)| *path);
        let mut after = rest.get(1..).unwrap_or_default();
        match first {
            b'{' => open.push((path, path, 0)),
            b'[' => open.push((path, hash(path, &[0]), 0)),
            b'}' | b']' => drop(open.pop()),
            b',' => {
                if let Some((own, path, index)) = open.last_mut() {
                    *index += 1;
                    *path = hash(*own, &index.to_le_bytes());
                }
            }
            b'"' => {
                let (inner, behind) = string(rest);
                if behind.first() == Some(&b':') {
                    if let Some((own, path, _)) = open.last_mut() {
                        *path = hash(*own, inner);
                    }
                } else {
                    found.extend(inner.iter().filter(|byte| HOLES.contains(byte)).map(|_| path));
                }
                after = behind;
            }
            hole if HOLES.contains(hole) => found.push(path),
            _ => {}
        }
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_text_does_not_make_a_pass_of_any_size() {
        let texts: [Arc<str>; 1] = ["a".repeat(1 << 20).into()];
        let length = |holes: usize| {
            let leaves = vec![Leaf::Text(0); holes];
            let shape = Shape::new(&vec![Leaf::Text(0).hole(); holes]);
            shape.join(&leaves, &texts).map(|json| json.len())
        };
        assert_eq!(length(16), Some(16 << 20));
        assert_eq!(length(17), None);
    }
}
