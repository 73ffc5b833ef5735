//! Grammar of one line.

use memchr::memchr2;

use super::LineError;

/// A parsed line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ExpositionLine<'a> {
    /// A comment or an empty line.
    Comment(Comment),
    /// A sample.
    Series(SeriesLine<'a>),
}

/// A line without a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comment {
    /// Empty line or free text.
    Text,
    /// A zero byte at the start of a line ends the text.
    End,
}

/// A sample whose value has not been read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeriesLine<'a> {
    /// From `{` to `}`; empty if there is none.
    pub(super) labels: &'a [u8],
    /// Whether the name is directly followed by the labels.
    joined: bool,
    rest: &'a [u8],
}

/// A value and its timestamp in milliseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SampleValue {
    pub(super) value: f64,
    pub(super) time: Option<i64>,
}

/// Parses a line without its terminator.
pub(super) fn read(text: &[u8]) -> Result<ExpositionLine<'_>, LineError> {
    let text = without_space(text);
    match text.first() {
        None => Ok(ExpositionLine::Comment(Comment::Text)),
        Some(b'#') => comment(text).map(|()| ExpositionLine::Comment(Comment::Text)),
        Some(0) => Ok(ExpositionLine::Comment(Comment::End)),
        Some(_) => {
            let series = head(text)?;
            series.sample()?;
            Ok(ExpositionLine::Series(series))
        }
    }
}

/// Parses name and labels.
pub(super) fn head(text: &[u8]) -> Result<SeriesLine<'_>, LineError> {
    let text = without_space(text);
    let name = identifier(text);
    let after = text.get(name..).unwrap_or_default();
    let spaced = without_space(after);
    if spaced.first() != Some(&b'{') {
        let series = SeriesLine { labels: &[], joined: true, rest: after };
        return if name > 0 { Ok(series) } else { Err(LineError::Start) };
    }
    let length = LabelPairs::end(spaced, name > 0)?;
    let (labels, rest) = spaced.split_at_checked(length).unwrap_or((spaced, &[]));
    Ok(SeriesLine { labels, joined: name > 0 && spaced.len() == after.len(), rest })
}

impl SeriesLine<'_> {
    /// Whether the name is directly followed by the labels; metrics-server ignores other lines.
    pub(super) fn is_joined(&self) -> bool {
        self.joined
    }

    /// Parses value and timestamp.
    pub(super) fn sample(&self) -> Result<SampleValue, LineError> {
        sample(self.rest)
    }
}

/// Parses value and timestamp, which follow name and labels.
pub(super) fn sample(text: &[u8]) -> Result<SampleValue, LineError> {
    let text = without_space(text);
    let end = text.iter().position(|b| matches!(b, b' ' | b'\t' | b'{' | 0)).unwrap_or(text.len());
    let (value, rest) = text.split_at_checked(end).unwrap_or((text, &[]));
    if value.is_empty() {
        return Err(LineError::Value);
    }
    let value = number(value)?;
    let rest = without_space(rest);
    if rest.is_empty() {
        return Ok(SampleValue { value, time: None });
    }
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let (time, rest) = rest.split_at_checked(digits).unwrap_or((rest, &[]));
    let time = whole(time).ok_or(LineError::Time)?;
    if without_space(rest).is_empty() {
        Ok(SampleValue { value, time: Some(time) })
    } else {
        Err(LineError::End)
    }
}

/// Iterates over the labels of a line.
#[derive(Clone, Debug)]
pub(super) struct LabelPairs<'a> {
    text: &'a [u8],
    at: usize,
}

/// One token of the label list.
enum LabelToken<'a> {
    /// Name and value as written, without quotes.
    Label(&'a [u8], &'a [u8]),
    /// The name of the metric.
    Name,
    /// The closing brace.
    End,
}

impl<'a> LabelPairs<'a> {
    /// Labels of a text that starts with `{`.
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 1 }
    }

    /// Next label; `None` after the last one or at a syntax error.
    pub(super) fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        loop {
            match self.part() {
                Ok(LabelToken::Label(name, value)) => return Some((name, value)),
                Ok(LabelToken::Name) => {}
                Ok(LabelToken::End) | Err(_) => return None,
            }
        }
    }

    /// Length of the labels. `named`: the metric name precedes them; otherwise it must be among them.
    fn end(text: &'a [u8], mut named: bool) -> Result<usize, LineError> {
        let mut labels = Self::new(text);
        loop {
            match labels.part()? {
                LabelToken::Label(_, value) => {
                    std::str::from_utf8(value).map_err(|_| LineError::Utf8)?;
                }
                LabelToken::Name if named => return Err(LineError::NamedTwice),
                LabelToken::Name => named = true,
                LabelToken::End if !named => return Err(LineError::NoName),
                LabelToken::End => return Ok(labels.at),
            }
        }
    }

    fn part(&mut self) -> Result<LabelToken<'a>, LineError> {
        let (name, is_quoted) = match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(LabelToken::End);
            }
            Some(b'"') => (self.quoted().ok_or(LineError::LabelName)?, true),
            _ => (self.name().ok_or(LineError::LabelName)?, false),
        };
        match self.peek() {
            Some(b'=') => self.at += 1,
            Some(b',') if is_quoted => {
                self.at += 1;
                return Ok(LabelToken::Name);
            }
            Some(b'}') if is_quoted => return Ok(LabelToken::Name),
            _ => return Err(LineError::Equal),
        }
        self.peek();
        let value = self.quoted().ok_or(LineError::LabelValue)?;
        // Commas are optional, and a trailing comma is allowed.
        if self.peek() == Some(b',') {
            self.at += 1;
        }
        Ok(LabelToken::Label(name, value))
    }

    /// Skips spaces and returns the next byte.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t') = self.text.get(self.at) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn name(&mut self) -> Option<&'a [u8]> {
        let rest = self.text.get(self.at..)?;
        let length = rest.iter().position(|b| !is_of_name(*b) || *b == b':').unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).filter(|name| name.first().is_some_and(|first| !first.is_ascii_digit()))
    }

    fn quoted(&mut self) -> Option<&'a [u8]> {
        let rest = self.text.get(self.at..)?;
        let end = closing_quote(rest)?;
        self.at += end + 1;
        rest.get(1..end)
    }
}

/// Removes leading spaces and tabs.
pub(super) fn without_space(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|b| !matches!(b, b' ' | b'\t')).unwrap_or(text.len());
    text.get(start..).unwrap_or_default()
}

/// Whether a byte is allowed in a metric name.
pub(super) fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':')
}

/// Length of the name at the start; 0 if there is none.
fn identifier(text: &[u8]) -> usize {
    match text.first() {
        Some(first) if is_of_name(*first) && !first.is_ascii_digit() => {
            text.iter().position(|b| !is_of_name(*b)).unwrap_or(text.len())
        }
        _ => 0,
    }
}

/// Position of the closing quote of a quoted text.
fn closing_quote(text: &[u8]) -> Option<usize> {
    if text.first() != Some(&b'"') {
        return None;
    }
    let mut at = 1;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text.get(at) == Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

fn comment(text: &[u8]) -> Result<(), LineError> {
    let Some((b' ' | b'\t', _)) = text.get(1..).and_then(<[u8]>::split_first) else { return Ok(()) };
    let text = without_space(text.get(1..).unwrap_or_default());
    let Some((keyword, rest)) = text.split_at_checked(4) else { return Ok(()) };
    let is_type = keyword == b"TYPE";
    if !(is_type || keyword == b"HELP") || !matches!(rest.first(), Some(b' ' | b'\t')) {
        return Ok(());
    }
    let rest = without_space(rest);
    let name = closing_quote(rest).map_or_else(|| identifier(rest), |end| end + 1);
    if name == 0 {
        return Err(LineError::CommentName);
    }
    let rest = rest.get(name..).unwrap_or_default();
    if !is_type {
        return std::str::from_utf8(rest).map(drop).map_err(|_| LineError::Utf8);
    }
    match rest.get(1..) {
        Some(b"counter" | b"gauge" | b"histogram" | b"summary" | b"untyped") => Ok(()),
        _ => Err(LineError::Type),
    }
}

/// Parses a number as Go does: like Rust, but without a sign before NaN, and overflow is an error.
fn number(text: &[u8]) -> Result<f64, LineError> {
    let text = std::str::from_utf8(text).map_err(|_| LineError::Number)?;
    let value: f64 = text.parse().map_err(|_| LineError::Number)?;
    if value.is_nan() && text.len() > 3 {
        return Err(LineError::Number);
    }
    if value.is_infinite() && text.bytes().any(|b| b.is_ascii_digit()) {
        return Err(LineError::Range);
    }
    Ok(value)
}

/// Parses decimal digits.
fn whole(digits: &[u8]) -> Option<i64> {
    let mut value: i64 = 0;
    for digit in digits {
        value = value.checked_mul(10)?.checked_add(i64::from(digit.checked_sub(b'0')?))?;
    }
    (!digits.is_empty()).then_some(value)
}
