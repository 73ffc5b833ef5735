//! The text form of a snapshot: `1;r=8@1763200000,6@+45;u=2@1763200000`.
//!
//! It has a version, then `r` (recommendations), `u` (replicas added), `d` (removed) and `g` (last good proposals by
//! metric) as far as they are not empty. Each entry is a count and a time: the first time in seconds since 1970, the
//! others in seconds since the previous one. A snapshot has exactly one text, and the parser accepts no other.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

use super::StateSnapshot;
use crate::state::TimestampedReplicas;

/// The longest text in bytes that is parsed. Texts that are written are shorter.
pub const MAX_TEXT_BYTES: usize = 8 * 1024;

/// Why a text is not a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The text is too long.
    #[error("state snapshot of {0} bytes is longer than {MAX_TEXT_BYTES}")]
    TooLong(usize),
    /// The version is unknown.
    #[error("state snapshot has another version than 1")]
    Version,
    /// The syntax is wrong.
    #[error("state snapshot has no {expected} at byte {at}")]
    Syntax {
        /// The expected element.
        expected: &'static str,
        /// Byte offset.
        at: usize,
    },
}

impl StateSnapshot {
    /// The text form.
    pub fn to_text(&self) -> String {
        self.to_string()
    }

    /// Parses a text that [`StateSnapshot::to_text`] wrote.
    pub fn parse(text: &str) -> Result<Self, SnapshotError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(SnapshotError::TooLong(text.len()));
        }
        let mut cursor = Cursor { text, at: 0 };
        if !cursor.skip("1") || !(cursor.is_at_end() || cursor.rest().starts_with(';')) {
            return Err(SnapshotError::Version);
        }
        let snapshot = Self {
            recommendations: cursor.list(";r=")?,
            ups: cursor.list(";u=")?,
            downs: cursor.list(";d=")?,
            last_good: cursor.names(";g=")?,
        };
        let changes = || snapshot.ups.iter().chain(&snapshot.downs);
        match changes().any(|c| c.value == 0) {
            _ if !cursor.is_at_end() => cursor.fail("end"),
            true => cursor.fail("change"),
            false => Ok(snapshot),
        }
    }
}

impl fmt::Display for StateSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("1")?;
        write_list(f, "r", &self.recommendations)?;
        write_list(f, "u", &self.ups)?;
        write_list(f, "d", &self.downs)?;
        let mut before = ";g=";
        for (name, good) in &self.last_good {
            f.write_str(before)?;
            write_name(f, name)?;
            write!(f, "={}@{}", good.value, good.at.as_second())?;
            before = ",";
        }
        Ok(())
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, key: &str, list: &[TimestampedReplicas]) -> fmt::Result {
    let mut last = None;
    for TimestampedReplicas { value, at } in list {
        let at = at.as_second();
        match last {
            None => write!(f, ";{key}={value}@{at}")?,
            Some(last) => write!(f, ",{value}@+{}", at - last)?,
        }
        last = Some(at);
    }
    Ok(())
}

/// Bytes of names that are written as they are; all others are percent-encoded.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" !#$&'()*-./:<>?[]^_{|}".contains(&byte)
}

/// Upper bound of the bytes that a proposal with this name needs.
pub(super) fn size_of_name(name: &str) -> usize {
    let number_and_time = 25;
    name.bytes().map(|b| if is_plain(b) { 1 } else { 3 }).sum::<usize>() + number_and_time
}

fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    for byte in name.bytes() {
        if is_plain(byte) {
            write!(f, "{}", char::from(byte))?;
        } else {
            write!(f, "%{byte:02X}")?;
        }
    }
    Ok(())
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    fn fail<T>(&self, expected: &'static str) -> Result<T, SnapshotError> {
        Err(SnapshotError::Syntax { expected, at: self.at })
    }

    fn skip(&mut self, part: &str) -> bool {
        let found = self.rest().starts_with(part);
        self.at += if found { part.len() } else { 0 };
        found
    }

    fn expect(&mut self, part: &'static str) -> Result<(), SnapshotError> {
        if self.skip(part) { Ok(()) } else { self.fail(part) }
    }

    /// A number without sign and without leading zeros.
    fn number(&mut self) -> Result<i64, SnapshotError> {
        let rest = self.rest();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = rest.get(..digits).unwrap_or_default();
        let plain = number == "0" || !number.starts_with('0');
        match number.parse() {
            Ok(value) if plain => {
                self.at += digits;
                Ok(value)
            }
            _ => self.fail("number"),
        }
    }

    fn count(&mut self) -> Result<i32, SnapshotError> {
        let number = self.number()?;
        i32::try_from(number).or_else(|_| self.fail("count"))
    }

    /// A proposal, which unlike other counts can be negative.
    fn proposal(&mut self) -> Result<i32, SnapshotError> {
        if !self.skip("-") {
            return self.count();
        }
        match self.number()? {
            0 => self.fail("count"),
            number => i32::try_from(-number).or_else(|_| self.fail("count")),
        }
    }

    /// Parses the time after a count: `@1763200000`, or `@+45` relative to the previous one.
    fn stamp(
        &mut self,
        value: i32,
        previous: Option<Timestamp>,
    ) -> Result<TimestampedReplicas, SnapshotError> {
        self.expect("@")?;
        if previous.is_some() {
            self.expect("+")?;
        }
        let start = previous.map_or(0, Timestamp::as_second);
        let second = start.checked_add(self.number()?);
        match second.map(Timestamp::from_second) {
            Some(Ok(at)) => Ok(TimestampedReplicas { value: value.into(), at }),
            _ => self.fail("time"),
        }
    }

    /// Parses the entries after `key`; empty if the key is absent.
    fn list(&mut self, key: &str) -> Result<Vec<TimestampedReplicas>, SnapshotError> {
        let mut list: Vec<TimestampedReplicas> = Vec::new();
        let mut more = self.skip(key);
        while more {
            let count = self.count()?;
            list.push(self.stamp(count, list.last().map(|last| last.at))?);
            more = self.skip(",");
        }
        Ok(list)
    }

    /// Parses the entries by name after `key`, which must be sorted.
    fn names(&mut self, key: &str) -> Result<BTreeMap<String, TimestampedReplicas>, SnapshotError> {
        let mut names: BTreeMap<String, TimestampedReplicas> = BTreeMap::new();
        let mut more = self.skip(key);
        while more {
            let name = self.name()?;
            if names.last_key_value().is_some_and(|(last, _)| *last >= name) {
                return self.fail("later name");
            }
            self.expect("=")?;
            let proposal = self.proposal()?;
            names.insert(name, self.stamp(proposal, None)?);
            more = self.skip(",");
        }
        Ok(names)
    }

    fn name(&mut self) -> Result<String, SnapshotError> {
        let mut name = Vec::new();
        while let Some(byte) = self.rest().bytes().next() {
            if is_plain(byte) {
                name.push(byte);
                self.at += 1;
            } else if byte == b'%' {
                name.push(self.escape()?);
            } else {
                break;
            }
        }
        String::from_utf8(name).or_else(|_| self.fail("name"))
    }

    /// Parses `%2C`: two upper-case hex digits of a byte that needs an escape.
    fn escape(&mut self) -> Result<u8, SnapshotError> {
        let digits =
            self.rest().get(1..3).filter(|d| d.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F')));
        match digits.and_then(|d| u8::from_str_radix(d, 16).ok()).filter(|byte| !is_plain(*byte)) {
            Some(byte) => {
                self.at += 3;
                Ok(byte)
            }
            None => self.fail("escape"),
        }
    }
}
