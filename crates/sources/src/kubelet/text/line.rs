//! The grammar of one line.

use memchr::memchr2;

use super::Flaw;

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Line<'a> {
    /// Nothing that counts.
    Comment(Comment),
    /// A sample.
    Series(Series<'a>),
}

/// A line without a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comment {
    /// Nothing, or something for people.
    Text,
    /// A zero byte where a line starts is the end of the text.
    End,
}

/// A sample whose value has not been read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Series<'a> {
    /// From `{` to `}`; empty if there is none.
    pub(super) labels: &'a [u8],
    /// Whether the name stands before the labels, without space between them.
    joined: bool,
    rest: &'a [u8],
}

/// A value and when it was measured, in milliseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) value: f64,
    pub(super) time: Option<i64>,
}

/// Reads a line without its end.
pub(super) fn read(text: &[u8]) -> Result<Line<'_>, Flaw> {
    let text = without_space(text);
    match text.first() {
        None => Ok(Line::Comment(Comment::Text)),
        Some(b'#') => comment(text).map(|()| Line::Comment(Comment::Text)),
        Some(0) => Ok(Line::Comment(Comment::End)),
        Some(_) => {
            let series = head(text)?;
            series.sample()?;
            Ok(Line::Series(series))
        }
    }
}

/// Reads name and labels.
pub(super) fn head(text: &[u8]) -> Result<Series<'_>, Flaw> {
    let text = without_space(text);
    let name = identifier(text);
    let after = text.get(name..).unwrap_or_default();
    let spaced = without_space(after);
    if spaced.first() != Some(&b'{') {
        let series = Series { labels: &[], joined: true, rest: after };
        return if name > 0 { Ok(series) } else { Err(Flaw::Start) };
    }
    let labels = Labels::end(spaced)?;
    if name == 0 && !labels.named {
        return Err(Flaw::NoName);
    }
    let (labels, rest) = spaced.split_at_checked(labels.length).unwrap_or((spaced, &[]));
    Ok(Series { labels, joined: name > 0 && spaced.len() == after.len(), rest })
}

impl Series<'_> {
    /// Whether the name stands before the labels, without space between them: others are not recognised by metrics-server.
    pub(super) fn is_joined(&self) -> bool {
        self.joined
    }

    /// Reads value and time.
    pub(super) fn sample(&self) -> Result<Sample, Flaw> {
        sample(self.rest)
    }
}

/// Reads value and time, which follow name and labels.
pub(super) fn sample(text: &[u8]) -> Result<Sample, Flaw> {
    let text = without_space(text);
    let end = text.iter().position(|b| matches!(b, b' ' | b'\t' | b'{' | 0)).unwrap_or(text.len());
    let (value, rest) = text.split_at_checked(end).unwrap_or((text, &[]));
    if value.is_empty() {
        return Err(Flaw::Value);
    }
    let value = number(value)?;
    let rest = without_space(rest);
    if rest.is_empty() {
        return Ok(Sample { value, time: None });
    }
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let (time, rest) = rest.split_at_checked(digits).unwrap_or((rest, &[]));
    let time = whole(time).ok_or(Flaw::Time)?;
    if without_space(rest).is_empty() { Ok(Sample { value, time: Some(time) }) } else { Err(Flaw::End) }
}

/// The labels of a line, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Labels<'a> {
    text: &'a [u8],
    at: usize,
}

/// Where labels end.
#[derive(Clone, Copy, Debug)]
struct End {
    length: usize,
    /// Whether the name of the metric is among them.
    named: bool,
}

/// A part of labels.
enum Part<'a> {
    /// Name and value as they are written, without quotes.
    Label(&'a [u8], &'a [u8]),
    /// The name of the metric.
    Name,
    /// The closing brace.
    End,
}

impl<'a> Labels<'a> {
    /// Those of a text that starts with `{`.
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 1 }
    }

    /// The next label; none after the last, or if there is something else.
    pub(super) fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        loop {
            match self.part() {
                Ok(Part::Label(name, value)) => return Some((name, value)),
                Ok(Part::Name) => {}
                Ok(Part::End) | Err(_) => return None,
            }
        }
    }

    fn end(text: &'a [u8]) -> Result<End, Flaw> {
        let mut labels = Self::new(text);
        let mut named = false;
        loop {
            match labels.part()? {
                Part::Label(_, value) => {
                    std::str::from_utf8(value).map_err(|_| Flaw::Utf8)?;
                }
                Part::Name => named = true,
                Part::End => return Ok(End { length: labels.at, named }),
            }
        }
    }

    fn part(&mut self) -> Result<Part<'a>, Flaw> {
        let (name, is_quoted) = match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(Part::End);
            }
            Some(b'"') => (self.quoted().ok_or(Flaw::LabelName)?, true),
            _ => (self.name().ok_or(Flaw::LabelName)?, false),
        };
        match self.peek() {
            Some(b'=') => self.at += 1,
            Some(b',') if is_quoted => {
                self.at += 1;
                return Ok(Part::Name);
            }
            Some(b'}') if is_quoted => return Ok(Part::Name),
            _ => return Err(Flaw::Equal),
        }
        self.peek();
        let value = self.quoted().ok_or(Flaw::LabelValue)?;
        // Commas may be left out, and one may stand after the last label.
        if self.peek() == Some(b',') {
            self.at += 1;
        }
        Ok(Part::Label(name, value))
    }

    /// The next byte that is not space.
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

/// The text without space before it.
pub(super) fn without_space(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|b| !matches!(b, b' ' | b'\t')).unwrap_or(text.len());
    text.get(start..).unwrap_or_default()
}

/// Whether a byte may be in the name of a metric.
pub(super) fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':')
}

/// The length of the name at the start; 0 if there is none.
fn identifier(text: &[u8]) -> usize {
    match text.first() {
        Some(first) if is_of_name(*first) && !first.is_ascii_digit() => {
            text.iter().position(|b| !is_of_name(*b)).unwrap_or(text.len())
        }
        _ => 0,
    }
}

/// Where a text that starts with a quote has its other quote.
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

fn comment(text: &[u8]) -> Result<(), Flaw> {
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
        return Err(Flaw::CommentName);
    }
    let rest = rest.get(name..).unwrap_or_default();
    if !is_type {
        return std::str::from_utf8(rest).map(drop).map_err(|_| Flaw::Utf8);
    }
    match rest.get(1..) {
        Some(b"counter" | b"gauge" | b"histogram" | b"summary" | b"untyped") => Ok(()),
        _ => Err(Flaw::Type),
    }
}

/// A number as Go reads it: like Rust, but there are no signs before NaN, and what is too large is an error.
fn number(text: &[u8]) -> Result<f64, Flaw> {
    let text = std::str::from_utf8(text).map_err(|_| Flaw::Number)?;
    let value: f64 = text.parse().map_err(|_| Flaw::Number)?;
    if value.is_nan() && text.len() > 3 {
        return Err(Flaw::Number);
    }
    if value.is_infinite() && text.bytes().any(|b| b.is_ascii_digit()) {
        return Err(Flaw::Range);
    }
    Ok(value)
}

/// A whole number from digits alone.
fn whole(digits: &[u8]) -> Option<i64> {
    let mut value: i64 = 0;
    for digit in digits {
        value = value.checked_mul(10)?.checked_add(i64::from(digit.checked_sub(b'0')?))?;
    }
    (!digits.is_empty()).then_some(value)
}
