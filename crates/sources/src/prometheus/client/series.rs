//! Answers about series, read while they come: only the names of metrics and labels are kept, each combination once.
//!
//! A Prometheus may have millions of series, so neither the answer nor a list of series is ever in memory.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use crate::http::Streamed;

use super::Error;
use super::json::{Cursor, Malformed};
use super::reply::{Envelope, is_of_prometheus};

/// A series or another member of an answer that is larger than this is refused.
const LARGEST_VALUE: usize = 1 << 20;
/// This much of an answer that is not about series is read, to say what it was.
const LARGEST_COMPLAINT: usize = 64 << 10;

/// What matters of a series: its name and the names of its labels. Values are never kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    /// Name of the metric; empty if the series has none.
    pub name: Arc<str>,
    /// Names of all other labels, in the order of the answer.
    pub labels: Vec<Arc<str>>,
}

/// What a selector selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Every combination of names once, in the order in which they came.
    pub shapes: Vec<Shape>,
    /// How many series there are.
    pub series: u64,
    /// What Prometheus warns of.
    pub warnings: Vec<String>,
}

/// Reads an answer.
pub(super) async fn read(answer: &mut Streamed, most: usize) -> Result<Found, Error> {
    let status = answer.status;
    if !is_of_prometheus(status) {
        let mut body = Vec::new();
        while body.len() < LARGEST_COMPLAINT
            && let Some(piece) = answer.piece().await?
        {
            body.extend_from_slice(&piece);
        }
        return Err(Error::Code { code: status.as_u16(), body: Error::excerpt(&body) });
    }
    let mut reader = Reader::new(most);
    while let Some(piece) = answer.piece().await? {
        reader.feed(&piece)?;
    }
    reader.finish()
}

/// Takes an answer apart as it comes.
pub(super) struct Reader {
    phase: Phase,
    /// The part of a value that came already.
    begun: Vec<u8>,
    scanner: Scanner,
    /// The beginning of the answer, to say what it was.
    first: Vec<u8>,
    data: Data,
    tally: Tally,
    status: String,
    kind: String,
    message: String,
}

/// Where in the answer we are.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Start,
    /// Before a key, or the end.
    Key {
        comma: bool,
    },
    InKey,
    Colon(String),
    Value(String),
    InValue(String),
    /// Before a series, or the end of the list.
    Element {
        comma: bool,
    },
    InElement,
    End,
}

/// What was said about the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    Missing,
    Null,
    Wrong,
    Listed,
}

impl Reader {
    pub(super) fn new(most: usize) -> Self {
        Self {
            phase: Phase::Start,
            begun: Vec::new(),
            scanner: Scanner::default(),
            first: Vec::new(),
            data: Data::Missing,
            tally: Tally::new(most),
            status: String::new(),
            kind: String::new(),
            message: String::new(),
        }
    }

    fn wrong(&self, what: &'static str) -> Error {
        Error::garbled(&Malformed { what }, &self.first)
    }

    /// Takes the next piece.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Result<(), Error> {
        if self.first.len() < 128 {
            self.first.extend(piece.iter().take(128));
        }
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            if matches!(self.phase, Phase::InKey | Phase::InValue(_) | Phase::InElement) {
                let rest = piece.get(at..).unwrap_or_default();
                match self.scanner.scan(rest) {
                    Some(length) => {
                        at += length;
                        let here = rest.get(..length).unwrap_or_default();
                        if self.begun.is_empty() {
                            self.complete(here)?;
                        } else {
                            let mut whole = std::mem::take(&mut self.begun);
                            whole.extend_from_slice(here);
                            self.complete(&whole)?;
                            // The room is used again.
                            whole.clear();
                            self.begun = whole;
                        }
                    }
                    None => {
                        if self.begun.len() + rest.len() > LARGEST_VALUE {
                            return Err(self.wrong("a value that is too large"));
                        }
                        self.begun.extend_from_slice(rest);
                        break;
                    }
                }
                continue;
            }
            if self.phase == Phase::End {
                break;
            }
            let blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            at += if blank { 1 } else { self.between(byte)? };
        }
        Ok(())
    }

    /// A byte between values; says how many bytes are consumed.
    fn between(&mut self, byte: u8) -> Result<usize, Error> {
        let (next, consumed) = match (std::mem::replace(&mut self.phase, Phase::End), byte) {
            (Phase::Start, b'{') | (Phase::Key { comma: true }, b',') => (Phase::Key { comma: false }, 1),
            (Phase::Key { .. }, b'}') => (Phase::End, 1),
            (Phase::Key { comma: false }, b'"') => (Phase::InKey, 0),
            (Phase::Colon(key), b':') => (Phase::Value(key), 1),
            (Phase::Value(key), b'[') if key == "data" => {
                self.data = Data::Listed;
                (Phase::Element { comma: false }, 1)
            }
            (Phase::Value(key), _) => (Phase::InValue(key), 0),
            (Phase::Element { comma: true }, b',') => (Phase::Element { comma: false }, 1),
            (Phase::Element { .. }, b']') => (Phase::Key { comma: true }, 1),
            (Phase::Element { comma: false }, _) => (Phase::InElement, 0),
            _ => return Err(self.wrong("not an answer about series")),
        };
        self.phase = next;
        self.scanner = Scanner::default();
        Ok(consumed)
    }

    /// A key, a member's value or a series is complete.
    fn complete(&mut self, text: &[u8]) -> Result<(), Error> {
        let garbled = |error: Malformed, first: &[u8]| Error::garbled(&error, first);
        let next = match std::mem::replace(&mut self.phase, Phase::End) {
            Phase::InKey => {
                let key = Cursor::new(text).string().map_err(|error| garbled(error, &self.first))?;
                Phase::Colon(key.into_owned())
            }
            Phase::InValue(key) => {
                self.member(&key, text).map_err(|error| garbled(error, &self.first))?;
                Phase::Key { comma: true }
            }
            Phase::InElement => {
                match self.tally.series(text) {
                    Ok(true) => {}
                    Ok(false) => return Err(too_many(self.tally.most)),
                    Err(error) => return Err(garbled(error, &self.first)),
                }
                Phase::Element { comma: true }
            }
            other => other,
        };
        self.phase = next;
        Ok(())
    }

    fn member(&mut self, key: &str, text: &[u8]) -> Result<(), Malformed> {
        let mut envelope = Envelope::default();
        let mut cursor = Cursor::new(text);
        envelope.member(key, &mut cursor)?;
        match key {
            "data" if text == b"null" => self.data = Data::Null,
            "data" => self.data = Data::Wrong,
            "status" => self.status = envelope.status.into_owned(),
            "errorType" => self.kind = envelope.error_type.into_owned(),
            "error" => self.message = envelope.error.into_owned(),
            "warnings" => self.tally.found.warnings = envelope.warnings,
            _ => {}
        }
        Ok(())
    }

    /// The answer is over.
    pub(super) fn finish(self) -> Result<Found, Error> {
        if self.phase != Phase::End {
            return Err(self.wrong("the answer ended too early"));
        }
        if self.status == "error" {
            return Err(Error::Prometheus { kind: self.kind, message: self.message });
        }
        match self.data {
            Data::Listed => Ok(self.tally.found),
            Data::Null => Err(self.wrong("no data (null) for the selector")),
            Data::Missing => Err(self.wrong("no data")),
            Data::Wrong => Err(self.wrong("data that is no list")),
        }
    }
}

fn too_many(most: usize) -> Error {
    Error::TooMuch(format!(
        "the selector selects more than {most} different combinations of metric and label names"
    ))
}

/// Finds the end of a value without understanding it.
#[derive(Debug, Default)]
struct Scanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl Scanner {
    /// How many bytes belong to the value, if its end is among them.
    fn scan(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if self.in_string {
                if self.escaped {
                    self.escaped = false;
                    at += 1;
                    continue;
                }
                let rest = bytes.get(at..).unwrap_or_default();
                at += memchr::memchr2(b'"', b'\\', rest)?;
                if bytes.get(at) == Some(&b'\\') {
                    self.escaped = true;
                } else {
                    self.in_string = false;
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                at += 1;
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth == 0 => return Some(at),
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                b',' | b' ' | b'\t' | b'\n' | b'\r' if self.depth == 0 && self.begun => return Some(at),
                _ => {}
            }
            self.begun = true;
            at += 1;
        }
        None
    }
}

/// Counts series and keeps their shapes.
struct Tally {
    found: Found,
    most: usize,
    /// Places in `found.shapes` by hash; the rare ones with equal hashes take the next free number.
    places: HashMap<u64, usize>,
    names: HashMap<Box<str>, Arc<str>>,
}

impl Tally {
    fn new(most: usize) -> Self {
        Self { found: Found::default(), most, places: HashMap::new(), names: HashMap::new() }
    }

    /// Takes one series; false if there are too many shapes.
    fn series(&mut self, text: &[u8]) -> Result<bool, Malformed> {
        self.found.series += 1;
        let mut name = std::borrow::Cow::Borrowed("");
        let mut labels = Vec::with_capacity(16);
        let mut cursor = Cursor::new(text);
        if !cursor.null() {
            cursor.object(|cursor, key| {
                let value = cursor.string()?;
                if key == "__name__" {
                    name = value;
                } else {
                    labels.push(key);
                }
                Ok(())
            })?;
        }
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        labels.hash(&mut hasher);
        let mut hash = hasher.finish();
        while let Some(shape) = self.places.get(&hash).and_then(|place| self.found.shapes.get(*place)) {
            let same = *shape.name == *name
                && shape.labels.len() == labels.len()
                && shape.labels.iter().zip(&labels).all(|(own, other)| **own == **other);
            if same {
                return Ok(true);
            }
            hash = hash.wrapping_add(1);
        }
        if self.found.shapes.len() >= self.most {
            return Ok(false);
        }
        self.places.insert(hash, self.found.shapes.len());
        let shape = Shape {
            name: Arc::from(&*name),
            labels: labels.iter().map(|label| interned(&mut self.names, label)).collect(),
        };
        self.found.shapes.push(shape);
        Ok(true)
    }
}

fn interned(names: &mut HashMap<Box<str>, Arc<str>>, name: &str) -> Arc<str> {
    if let Some(known) = names.get(name) {
        return Arc::clone(known);
    }
    let new: Arc<str> = Arc::from(name);
    names.insert(Box::from(name), Arc::clone(&new));
    new
}
