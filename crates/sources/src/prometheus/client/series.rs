//! Series responses, decoded while they arrive: only metric and label names are kept, each combination once.
//!
//! A Prometheus server may have millions of series, so neither the response nor the list of series is held in memory.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use crate::http::StreamedResponse;

use super::PrometheusError;
use super::json::{JsonCursor, JsonError};
use super::reply::{Envelope, is_of_prometheus};

/// Size limit of one series or member in bytes.
const MAX_VALUE_BYTES: usize = 1 << 20;
/// Bytes of an error response that are read for the error text.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

/// Shape of a series: its name and label names, without values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeriesShape {
    /// Metric name; empty if the series has none.
    pub name: Arc<str>,
    /// Other label names, in the order of the response.
    pub labels: Vec<Arc<str>>,
}

/// Series that a selector matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesResult {
    /// Distinct shapes, in the order of the response.
    pub shapes: Vec<SeriesShape>,
    /// Number of series.
    pub series: u64,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// Reads a response.
pub(super) async fn read(
    answer: &mut StreamedResponse,
    max_series: usize,
) -> Result<SeriesResult, PrometheusError> {
    let status = answer.status;
    if !is_of_prometheus(status) {
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BODY_BYTES
            && let Some(piece) = answer.chunk().await?
        {
            body.extend_from_slice(&piece);
        }
        return Err(PrometheusError::Code { code: status.as_u16(), body: PrometheusError::excerpt(&body) });
    }
    let mut reader = SeriesReader::new(max_series);
    while let Some(piece) = answer.chunk().await? {
        reader.feed(&piece)?;
    }
    reader.finish()
}

/// Incremental parser of a response.
pub(super) struct SeriesReader {
    phase: ParsePhase,
    /// Start of a value that is not complete yet.
    begun: Vec<u8>,
    scanner: Scanner,
    /// Start of the response, for error texts.
    first: Vec<u8>,
    data: DataField,
    tally: ShapeCollector,
    status: String,
    kind: String,
    message: String,
}

/// Position in the response.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ParsePhase {
    Start,
    /// Before a key or the end of the object.
    Key {
        comma: bool,
    },
    InKey,
    Colon(String),
    Value(String),
    InValue(String),
    /// Before a series or the end of the list.
    Element {
        comma: bool,
    },
    InElement,
    End,
}

/// Type of the `data` member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DataField {
    Missing,
    Null,
    Wrong,
    Listed,
}

impl SeriesReader {
    pub(super) fn new(max_series: usize) -> Self {
        Self {
            phase: ParsePhase::Start,
            begun: Vec::new(),
            scanner: Scanner::default(),
            first: Vec::new(),
            data: DataField::Missing,
            tally: ShapeCollector::new(max_series),
            status: String::new(),
            kind: String::new(),
            message: String::new(),
        }
    }

    fn wrong(&self, what: &'static str) -> PrometheusError {
        PrometheusError::malformed(&JsonError { what }, &self.first)
    }

    /// Parses the next chunk.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Result<(), PrometheusError> {
        if self.first.len() < 128 {
            self.first.extend(piece.iter().take(128));
        }
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            if matches!(self.phase, ParsePhase::InKey | ParsePhase::InValue(_) | ParsePhase::InElement) {
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
                            // The buffer is reused.
                            whole.clear();
                            self.begun = whole;
                        }
                    }
                    None => {
                        if self.begun.len() + rest.len() > MAX_VALUE_BYTES {
                            return Err(self.wrong("a value is too large"));
                        }
                        self.begun.extend_from_slice(rest);
                        break;
                    }
                }
                continue;
            }
            if self.phase == ParsePhase::End {
                break;
            }
            let blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            at += if blank { 1 } else { self.between(byte)? };
        }
        Ok(())
    }

    /// Handles a byte between values; returns the number of consumed bytes.
    fn between(&mut self, byte: u8) -> Result<usize, PrometheusError> {
        let (next, consumed) = match (std::mem::replace(&mut self.phase, ParsePhase::End), byte) {
            (ParsePhase::Start, b'{') | (ParsePhase::Key { comma: true }, b',') => {
                (ParsePhase::Key { comma: false }, 1)
            }
            (ParsePhase::Key { .. }, b'}') => (ParsePhase::End, 1),
            (ParsePhase::Key { comma: false }, b'"') => (ParsePhase::InKey, 0),
            (ParsePhase::Colon(key), b':') => (ParsePhase::Value(key), 1),
            (ParsePhase::Value(key), b'[') if key == "data" => {
                self.data = DataField::Listed;
                (ParsePhase::Element { comma: false }, 1)
            }
            (ParsePhase::Value(key), _) => (ParsePhase::InValue(key), 0),
            (ParsePhase::Element { comma: true }, b',') => (ParsePhase::Element { comma: false }, 1),
            (ParsePhase::Element { .. }, b']') => (ParsePhase::Key { comma: true }, 1),
            (ParsePhase::Element { comma: false }, _) => (ParsePhase::InElement, 0),
            _ => return Err(self.wrong("not a series response")),
        };
        self.phase = next;
        self.scanner = Scanner::default();
        Ok(consumed)
    }

    /// Handles a complete key, member value or series.
    fn complete(&mut self, text: &[u8]) -> Result<(), PrometheusError> {
        let malformed = |error: JsonError, first: &[u8]| PrometheusError::malformed(&error, first);
        let next = match std::mem::replace(&mut self.phase, ParsePhase::End) {
            ParsePhase::InKey => {
                let key = JsonCursor::new(text).string().map_err(|error| malformed(error, &self.first))?;
                ParsePhase::Colon(key.into_owned())
            }
            ParsePhase::InValue(key) => {
                self.member(&key, text).map_err(|error| malformed(error, &self.first))?;
                ParsePhase::Key { comma: true }
            }
            ParsePhase::InElement => {
                match self.tally.series(text) {
                    Ok(true) => {}
                    Ok(false) => return Err(too_many(self.tally.max_series)),
                    Err(error) => return Err(malformed(error, &self.first)),
                }
                ParsePhase::Element { comma: true }
            }
            other => other,
        };
        self.phase = next;
        Ok(())
    }

    fn member(&mut self, key: &str, text: &[u8]) -> Result<(), JsonError> {
        let mut envelope = Envelope::default();
        let mut cursor = JsonCursor::new(text);
        envelope.member(key, &mut cursor)?;
        match key {
            "data" if text == b"null" => self.data = DataField::Null,
            "data" => self.data = DataField::Wrong,
            "status" => self.status = envelope.status.into_owned(),
            "errorType" => self.kind = envelope.error_type.into_owned(),
            "error" => self.message = envelope.error.into_owned(),
            "warnings" => self.tally.found.warnings = envelope.warnings,
            _ => {}
        }
        Ok(())
    }

    /// Ends the response.
    pub(super) fn finish(self) -> Result<SeriesResult, PrometheusError> {
        if self.phase != ParsePhase::End {
            return Err(self.wrong("the response ended too early"));
        }
        if self.status == "error" {
            return Err(PrometheusError::Prometheus { kind: self.kind, message: self.message });
        }
        match self.data {
            DataField::Listed => Ok(self.tally.found),
            DataField::Null => Err(self.wrong("no data (null) for the selector")),
            DataField::Missing => Err(self.wrong("no data")),
            DataField::Wrong => Err(self.wrong("data is not a list")),
        }
    }
}

fn too_many(max_series: usize) -> PrometheusError {
    PrometheusError::TooLarge(format!(
        "the selector selects more than {max_series} different combinations of metric and label names"
    ))
}

/// Finds the end of a value without parsing it.
#[derive(Debug, Default)]
struct Scanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl Scanner {
    /// Number of bytes up to the end of the value, if it is in the input.
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

/// Counts series and collects their shapes.
struct ShapeCollector {
    found: SeriesResult,
    max_series: usize,
    /// Indices of `found.shapes` by hash; on a collision the next free hash is used.
    indices: HashMap<u64, usize>,
    names: HashMap<Box<str>, Arc<str>>,
}

impl ShapeCollector {
    fn new(max_series: usize) -> Self {
        Self { found: SeriesResult::default(), max_series, indices: HashMap::new(), names: HashMap::new() }
    }

    /// Adds a series; false if there are too many shapes.
    fn series(&mut self, text: &[u8]) -> Result<bool, JsonError> {
        self.found.series += 1;
        let mut name = std::borrow::Cow::Borrowed("");
        let mut labels = Vec::with_capacity(16);
        let mut cursor = JsonCursor::new(text);
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
        while let Some(shape) = self.indices.get(&hash).and_then(|index| self.found.shapes.get(*index)) {
            let same = *shape.name == *name
                && shape.labels.len() == labels.len()
                && shape.labels.iter().zip(&labels).all(|(own, other)| **own == **other);
            if same {
                return Ok(true);
            }
            hash = hash.wrapping_add(1);
        }
        if self.found.shapes.len() >= self.max_series {
            return Ok(false);
        }
        self.indices.insert(hash, self.found.shapes.len());
        let shape = SeriesShape {
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
