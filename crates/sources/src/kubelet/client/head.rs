//! The head of an answer, and how its body is cut into pieces: as much of HTTP/1.1 as servers of kubelets speak.
//! Whatever is odd is an error: the connection is closed then, and nothing is ever taken for the answer to another
//! question.

use memchr::memmem;

/// The head of an answer may be so long.
pub(super) const LONGEST: usize = 64 << 10;
/// A line between chunks may be so long, and all trailers together.
const LINE: usize = 4 << 10;
const TRAILERS: usize = 16 << 10;

/// The head of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) body: Framing,
    /// Whether the connection can be used again.
    pub(super) is_kept: bool,
}

/// What is still to come of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes.
    Length(u64),
    /// A line with the size of a chunk.
    Size,
    /// So many bytes of a chunk.
    Chunk(u64),
    /// The end of the line after a chunk.
    ChunkEnd,
    /// Trailers, of which there were so many bytes.
    Trailers(usize),
    /// All until the connection is closed.
    UntilClosed,
}

/// What is not HTTP.
pub(super) type Flaw = &'static str;

impl Head {
    /// Reads the head and tells its length; none if its end has not come yet. Its end is not in the first `seen` bytes.
    pub(super) fn read(bytes: &[u8], seen: usize) -> Result<Option<(Self, usize)>, Flaw> {
        const START: &[u8] = b"HTTP/1.";
        if !bytes.iter().zip(START).all(|(a, b)| a == b) {
            return Err("it does not begin with a version of HTTP");
        }
        let from = seen.saturating_sub(3).min(bytes.len());
        let Some(end) = bytes.get(from..).and_then(|rest| memmem::find(rest, b"\r\n\r\n")) else {
            return if bytes.len() > LONGEST { Err("its head is too long") } else { Ok(None) };
        };
        let head = bytes.get(..from + end).unwrap_or_default();
        let mut lines = Lines(Some(head));
        let (minor, status) =
            status(lines.next().unwrap_or_default()).ok_or("its first line is no status")?;
        let mut read = Self { status, body: Framing::UntilClosed, is_kept: minor == b'1' };
        let mut length = None;
        for line in lines {
            let (name, value) = field(line).ok_or("a line of its head is no field")?;
            if name.eq_ignore_ascii_case(b"content-length") {
                let told = number(value, 10).ok_or("its length is no number")?;
                if length.is_some_and(|length| length != told) {
                    return Err("it has two lengths");
                }
                length = Some(told);
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                if minor != b'1' || !value.eq_ignore_ascii_case(b"chunked") || read.body == Framing::Size {
                    return Err("its encoding is not known");
                }
                read.body = Framing::Size;
            } else if name.eq_ignore_ascii_case(b"connection") {
                let closes = |word: &[u8]| word.trim_ascii().eq_ignore_ascii_case(b"close");
                read.is_kept &= !value.split(|&b| b == b',').any(closes);
            }
        }
        read.body = match (read.body, length) {
            _ if status < 200 || status == 204 || status == 304 => Framing::Length(0),
            (Framing::Size, Some(_)) => return Err("it has a length, and chunks too"),
            (Framing::UntilClosed, Some(length)) => Framing::Length(length),
            (body, _) => body,
        };
        read.is_kept &= read.body != Framing::UntilClosed;
        Ok(Some((read, from + end + 4)))
    }
}

/// Lines that end with CR and LF.
struct Lines<'a>(Option<&'a [u8]>);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.0?;
        let end = memmem::find(rest, b"\r\n");
        self.0 = end.and_then(|end| rest.get(end + 2..));
        rest.get(..end.unwrap_or(rest.len()))
    }
}

/// The last digit of the version, and the status.
fn status(line: &[u8]) -> Option<(u8, u16)> {
    let (minor, rest) = line.strip_prefix(b"HTTP/1.")?.split_first()?;
    let (digits, reason) = rest.strip_prefix(b" ")?.split_at_checked(3)?;
    let status = u16::try_from(number(digits, 10)?).ok().filter(|status| *status >= 100)?;
    let good = matches!(minor, b'0' | b'1') && (reason.is_empty() || reason.starts_with(b" "));
    good.then_some((*minor, status))
}

fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    let (name, value) = (line.get(..colon)?, line.get(colon + 1..)?.trim_ascii());
    let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    let is_value = value.iter().all(|b| !matches!(b, b'\r' | b'\n' | 0));
    (is_name && is_value).then_some((name, value))
}

/// Digits and nothing else.
fn number(digits: &[u8], base: u32) -> Option<u64> {
    let mut value: u64 = 0;
    for &digit in digits {
        let digit = char::from(digit).to_digit(base)?;
        value = value.checked_mul(u64::from(base))?.checked_add(u64::from(digit))?;
    }
    (!digits.is_empty()).then_some(value)
}

impl Framing {
    /// How long the body is, if that is told before it comes.
    pub(super) fn length(self) -> Option<u64> {
        match self {
            Self::Length(length) => Some(length),
            _ => None,
        }
    }

    /// Whether all has come.
    pub(super) fn is_done(self) -> bool {
        self == Self::Length(0)
    }

    /// The next piece of the body that `bytes` begin with, which may be empty, and how many bytes that takes; none if
    /// more must come first.
    pub(super) fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<(&'a [u8], usize)>, Flaw> {
        let none: &[u8] = &[];
        let whole =
            |left: u64| usize::try_from(left).map_or(bytes, |left| bytes.get(..left).unwrap_or(bytes));
        match *self {
            Self::Length(left) | Self::Chunk(left) if left > 0 => {
                let piece = whole(left);
                let left = left - piece.len() as u64;
                *self = match self {
                    Self::Length(_) => Self::Length(left),
                    _ if left == 0 => Self::ChunkEnd,
                    _ => Self::Chunk(left),
                };
                Ok((!piece.is_empty()).then_some((piece, piece.len())))
            }
            Self::Length(_) => Ok(None),
            Self::UntilClosed => Ok((!bytes.is_empty()).then_some((bytes, bytes.len()))),
            Self::Size | Self::Chunk(_) => {
                let Some(line) = line(bytes)? else { return Ok(None) };
                // What follows a semicolon says nothing to us.
                let digits = line.split(|&b| b == b';').next().unwrap_or_default().trim_ascii_end();
                let size = number(digits, 16).ok_or("a chunk has no size")?;
                *self = if size == 0 { Self::Trailers(0) } else { Self::Chunk(size) };
                Ok(Some((none, line.len() + 2)))
            }
            Self::ChunkEnd => match bytes {
                [b'\r', b'\n', ..] => {
                    *self = Self::Size;
                    Ok(Some((none, 2)))
                }
                [] | [b'\r'] => Ok(None),
                _ => Err("a chunk is longer than its size"),
            },
            Self::Trailers(before) => {
                let Some(line) = line(bytes)? else { return Ok(None) };
                let all = before + line.len() + 2;
                if all > TRAILERS {
                    return Err("there is too much after the last chunk");
                }
                *self = if line.is_empty() { Self::Length(0) } else { Self::Trailers(all) };
                Ok(Some((none, line.len() + 2)))
            }
        }
    }
}

/// The line that these bytes begin with, if it has ended.
fn line(bytes: &[u8]) -> Result<Option<&[u8]>, Flaw> {
    let start = bytes.get(..LINE).unwrap_or(bytes);
    match memmem::find(start, b"\r\n") {
        Some(end) => Ok(start.get(..end)),
        None if bytes.len() >= LINE => Err("a line between chunks is too long"),
        None => Ok(None),
    }
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
