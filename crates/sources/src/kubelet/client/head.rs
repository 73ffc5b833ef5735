//! Response head and body framing of HTTP/1.1, as far as kubelets use it. Unknown syntax is an error: the connection
//! is closed, so that bytes are never mistaken for the response to another request.

use memchr::memmem;

/// Size limit of the response head.
pub(super) const MAX_HEAD_BYTES: usize = 64 << 10;
/// Size limits of a chunk-size line and of all trailers together.
const MAX_CHUNK_LINE_BYTES: usize = 4 << 10;
const MAX_TRAILER_BYTES: usize = 16 << 10;

/// A response head.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ResponseHead {
    pub(super) status: u16,
    pub(super) body: BodyFraming,
    /// Whether the connection can be reused.
    pub(super) is_kept: bool,
}

/// Remaining part of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFraming {
    /// This many bytes.
    Length(u64),
    /// A chunk-size line.
    Size,
    /// This many bytes of a chunk.
    Chunk(u64),
    /// The line end after a chunk.
    ChunkEnd,
    /// Trailers; the number counts their bytes so far.
    Trailers(usize),
    /// Everything until the connection is closed.
    UntilClosed,
}

/// What violates the HTTP syntax.
pub(super) type HttpSyntaxError = &'static str;

impl ResponseHead {
    /// Parses the head and returns its length; `None` if it is incomplete. Its end is not within the first `seen`
    /// bytes.
    pub(super) fn read(bytes: &[u8], seen: usize) -> Result<Option<(Self, usize)>, HttpSyntaxError> {
        const START: &[u8] = b"HTTP/1.";
        if !bytes.iter().zip(START).all(|(a, b)| a == b) {
            return Err("it does not start with an HTTP version");
        }
        let from = seen.saturating_sub(3).min(bytes.len());
        let Some(end) = bytes.get(from..).and_then(|rest| memmem::find(rest, b"\r\n\r\n")) else {
            return if bytes.len() > MAX_HEAD_BYTES { Err("its head is too long") } else { Ok(None) };
        };
        let head = bytes.get(..from + end).unwrap_or_default();
        let mut lines = HeadLines(Some(head));
        let (minor, status) =
            status(lines.next().unwrap_or_default()).ok_or("its first line is not a status line")?;
        let mut read = Self { status, body: BodyFraming::UntilClosed, is_kept: minor == b'1' };
        let mut length = None;
        for line in lines {
            let (name, value) = field(line).ok_or("a header line is malformed")?;
            if name.eq_ignore_ascii_case(b"content-length") {
                let announced = number(value, 10).ok_or("its length is not a number")?;
                if length.is_some_and(|length| length != announced) {
                    return Err("it has two lengths");
                }
                length = Some(announced);
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                if minor != b'1' || !value.eq_ignore_ascii_case(b"chunked") || read.body == BodyFraming::Size
                {
                    return Err("its transfer encoding is unknown");
                }
                read.body = BodyFraming::Size;
            } else if name.eq_ignore_ascii_case(b"connection") {
                let closes = |word: &[u8]| word.trim_ascii().eq_ignore_ascii_case(b"close");
                read.is_kept &= !value.split(|&b| b == b',').any(closes);
            }
        }
        read.body = match (read.body, length) {
            _ if status < 200 || status == 204 || status == 304 => BodyFraming::Length(0),
            (BodyFraming::Size, Some(_)) => return Err("it has both a length and chunks"),
            (BodyFraming::UntilClosed, Some(length)) => BodyFraming::Length(length),
            (body, _) => body,
        };
        read.is_kept &= read.body != BodyFraming::UntilClosed;
        Ok(Some((read, from + end + 4)))
    }
}

/// Lines that end with CR LF.
struct HeadLines<'a>(Option<&'a [u8]>);

impl<'a> Iterator for HeadLines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.0?;
        let end = memmem::find(rest, b"\r\n");
        self.0 = end.and_then(|end| rest.get(end + 2..));
        rest.get(..end.unwrap_or(rest.len()))
    }
}

/// Minor version digit and status code.
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

/// Parses digits only.
fn number(digits: &[u8], base: u32) -> Option<u64> {
    let mut value: u64 = 0;
    for &digit in digits {
        let digit = char::from(digit).to_digit(base)?;
        value = value.checked_mul(u64::from(base))?.checked_add(u64::from(digit))?;
    }
    (!digits.is_empty()).then_some(value)
}

impl BodyFraming {
    /// Body length, if it is announced.
    pub(super) fn length(self) -> Option<u64> {
        match self {
            Self::Length(length) => Some(length),
            _ => None,
        }
    }

    /// Whether the body is complete.
    pub(super) fn is_done(self) -> bool {
        self == Self::Length(0)
    }

    /// Next part of the body at the start of `bytes`, which may be empty, and the number of bytes consumed; `None` if
    /// more input is needed.
    pub(super) fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<(&'a [u8], usize)>, HttpSyntaxError> {
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
                // Chunk extensions are ignored.
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
                if all > MAX_TRAILER_BYTES {
                    return Err("its trailers are too long");
                }
                *self = if line.is_empty() { Self::Length(0) } else { Self::Trailers(all) };
                Ok(Some((none, line.len() + 2)))
            }
        }
    }
}

/// First complete line of `bytes`.
fn line(bytes: &[u8]) -> Result<Option<&[u8]>, HttpSyntaxError> {
    let start = bytes.get(..MAX_CHUNK_LINE_BYTES).unwrap_or(bytes);
    match memmem::find(start, b"\r\n") {
        Some(end) => Ok(start.get(..end)),
        None if bytes.len() >= MAX_CHUNK_LINE_BYTES => Err("a line between chunks is too long"),
        None => Ok(None),
    }
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
