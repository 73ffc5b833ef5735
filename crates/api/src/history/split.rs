//! Serializes a pass into its shape and its leaves, without the JSON text between them.
//!
//! The shape has what `serde_json` would write, with a hole for each leaf.

mod serializer;

use std::fmt::Display;

use serde::Serialize;
use serde_json::Error;

use super::leaf::{Leaf, escaped};
use super::prediction::LastPass;
use super::shape::{SharedTexts, SplitBuffers, Tables};

/// Splits one pass.
pub(super) struct Splitter<'a> {
    buffers: &'a mut SplitBuffers,
    tables: &'a mut Tables,
    shared: &'a mut SharedTexts,
    /// The pass before, which has most of the texts too.
    last: Option<&'a LastPass>,
    /// Whether the brace of the outermost object is written already, before the spec.
    is_open: bool,
    next: NextValue,
}

/// What the value that is being serialized means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextValue {
    Plain,
    Key,
    /// The nanoseconds of a time, which JSON has as text.
    Time,
    /// The nanoseconds of a duration, which JSON has as text.
    Duration,
}

impl<'a> Splitter<'a> {
    pub(super) fn new(
        buffers: &'a mut SplitBuffers,
        tables: &'a mut Tables,
        shared: &'a mut SharedTexts,
        last: Option<&'a LastPass>,
    ) -> Self {
        buffers.shape.clear();
        buffers.leaves.clear();
        Self { buffers, tables, shared, last, is_open: true, next: NextValue::Plain }
    }

    /// Splits a pass: the JSON text of its spec, which is a leaf as a whole, and an object with the rest.
    pub(super) fn split(mut self, spec: &str, pass: &impl Serialize) -> Result<(), Error> {
        self.write(b"{\"spec\":");
        // The text of a spec is JSON itself, so that nothing is escaped.
        let before = match self.last.and_then(|last| last.leaves.first()) {
            Some(Leaf::Text(index)) => self.tables.texts.get(*index as usize).map(|known| (*index, known)),
            _ => None,
        };
        match before {
            // Mostly it is the same text, of which no byte has to be read.
            Some((index, known)) if std::ptr::eq(&raw const **known, spec) || **known == *spec => {
                self.push(Leaf::Text(index));
            }
            _ => self.text(spec),
        }
        self.write(b",");
        pass.serialize(&mut self)
    }

    fn write(&mut self, shape: &[u8]) {
        self.buffers.shape.extend_from_slice(shape);
    }

    fn push(&mut self, leaf: Leaf) {
        self.buffers.shape.push(leaf.hole());
        self.buffers.leaves.push(leaf);
    }

    /// Adds a text as a leaf.
    fn text(&mut self, text: &str) {
        let index = self.tables.text(self.shared, text);
        self.push(Leaf::Text(index));
    }

    /// Adds a string. Words such as `AbleToScale` are part of the shape: there are few, and autoscalers share them.
    fn string(&mut self, value: &str) {
        self.write(b"\"");
        if let Some(index) = self.text_before(value) {
            self.push(Leaf::Text(index));
        } else {
            self.new_string(value);
        }
        self.write(b"\"");
    }

    /// The text in this place of the pass before, if it is the same. Escapes are not compared.
    fn text_before(&self, value: &str) -> Option<u32> {
        let Leaf::Text(index) = *self.last?.leaves.get(self.buffers.leaves.len())? else { return None };
        let known = self.tables.texts.get(index as usize)?;
        (!self.is_key() && **known == *value && !value.as_bytes().contains(&b'\\')).then_some(index)
    }

    fn new_string(&mut self, value: &str) {
        if value.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            self.write(value.as_bytes());
            return;
        }
        let text = escaped(value);
        if self.is_key() {
            self.write(text.as_bytes());
        } else if let Some(leaf) = Leaf::of_time(&text) {
            self.push(leaf);
        } else if let Some((leaf, suffix)) = Leaf::of_quantity(&text) {
            self.push(leaf);
            self.write(suffix.as_bytes());
        } else {
            self.text(&text);
        }
    }

    /// Adds an integer; one that does not fit is a part of the shape.
    fn integer<T: Copy + Display + TryInto<i64>>(&mut self, value: T) {
        match (value.try_into(), self.next) {
            (Ok(value), NextValue::Plain) => self.push(Leaf::Int(value)),
            (Ok(nanos), NextValue::Time) => self.push(Leaf::Time(nanos)),
            (Ok(nanos), NextValue::Duration) => self.push(Leaf::Span(nanos)),
            _ => {
                let text = value.to_string();
                self.quoted_key(text.as_bytes());
            }
        }
    }

    fn is_key(&self) -> bool {
        self.next == NextValue::Key
    }

    /// Serializes a value with another meaning.
    fn serialize_as(&mut self, next: NextValue, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.next = next;
        let result = value.serialize(&mut *self);
        self.next = NextValue::Plain;
        result
    }

    /// Writes a value as it is; as a key, in quotes.
    fn quoted_key(&mut self, text: &[u8]) {
        let quote: &[u8] = if self.is_key() { b"\"" } else { b"" };
        self.write(quote);
        self.write(text);
        self.write(quote);
    }

    /// Adds the name of a field or variant, which needs no escapes. A call for each field keeps the code of a pass small.
    #[inline(never)]
    fn key(&mut self, is_first: bool, key: &'static str) {
        let Self { buffers: SplitBuffers { shape, .. }, .. } = self;
        shape.reserve(key.len() + 4);
        if !is_first {
            shape.push(b',');
        }
        shape.push(b'"');
        shape.extend_from_slice(key.as_bytes());
        shape.extend_from_slice(b"\":");
    }
}
