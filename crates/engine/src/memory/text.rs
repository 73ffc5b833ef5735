//! The text of a memory: `1;r=8@1763200000,6@+45;u=2@1763200000`.
//!
//! A version, then what is there of `r` (recommendations), `u` (replicas added), `d` (removed) and `g` (last good
//! proposals by metric): counts and when, the first in seconds since 1970, the others in seconds since the one before.
//! There is one text for one memory, and nothing else is read.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

use super::StateSnapshot;
use crate::state::TimestampedReplicas;

/// The longest text that is read, in bytes. What is written is shorter.
pub const MAX_TEXT: usize = 8 * 1024;

/// Why a text is not a memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// It is too long to be one.
    #[error("memory of {0} bytes is longer than {MAX_TEXT}")]
    TooLong(usize),
    /// Somebody else wrote it.
    #[error("memory is of another version than 1")]
    Version,
    /// It is damaged.
    #[error("memory has no {expected} at byte {at}")]
    Syntax {
        /// What should be there.
        expected: &'static str,
        /// Where.
        at: usize,
    },
}

impl StateSnapshot {
    /// The text of it.
    pub fn to_text(&self) -> String {
        self.to_string()
    }

    /// Reads what [`StateSnapshot::to_text`] writes, and nothing else.
    pub fn parse(text: &str) -> Result<Self, SnapshotError> {
        if text.len() > MAX_TEXT {
            return Err(SnapshotError::TooLong(text.len()));
        }
        let mut cursor = Cursor { text, at: 0 };
        if !cursor.skip("1") || !(cursor.is_at_end() || cursor.rest().starts_with(';')) {
            return Err(SnapshotError::Version);
        }
        let memory = Self {
            recommendations: cursor.list(";r=")?,
            ups: cursor.list(";u=")?,
            downs: cursor.list(";d=")?,
            last_good: cursor.names(";g=")?,
        };
        let changes = || memory.ups.iter().chain(&memory.downs);
        match changes().any(|c| c.value == 0) {
            _ if !cursor.is_at_end() => cursor.fail("end"),
            true => cursor.fail("change"),
            false => Ok(memory),
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

/// Bytes of names that stand for themselves; all others are written as in a URL.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" !#$&'()*-./:<>?[]^_{|}".contains(&byte)
}

/// The most bytes that a proposal of this name takes.
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

    /// What a metric proposes can be less than nothing.
    fn proposal(&mut self) -> Result<i32, SnapshotError> {
        if !self.skip("-") {
            return self.count();
        }
        match self.number()? {
            0 => self.fail("count"),
            number => i32::try_from(-number).or_else(|_| self.fail("count")),
        }
    }

    /// The time after a count: `@1763200000`, or `@+45` after another.
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
            Some(Ok(at)) => Ok(TimestampedReplicas { value, at }),
            _ => self.fail("time"),
        }
    }

    /// The entries after `key`; none if it is not there.
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

    /// The entries by name after `key`, in order.
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

    /// `%2C`: two upper-case digits, of a byte that needs it.
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
