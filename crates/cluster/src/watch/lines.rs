//! Splits the bytes of a watch into lines.

use bytes::{Buf as _, BytesMut};

use super::failure::{MAX_OBJECT_BYTES, WatchFailure};

/// Bytes of incomplete lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: BytesMut,
    /// No line ends before this position.
    seen: usize,
}

impl Lines {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether no bytes are left.
    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The next complete line. Bytes that are left at the end of the body are an incomplete line.
    pub(super) fn next(&mut self) -> Result<Option<BytesMut>, WatchFailure> {
        loop {
            let new = self.buffer.get(self.seen..).unwrap_or_default();
            let Some(end) = memchr::memchr(b'\n', new).map(|offset| self.seen + offset) else {
                self.seen = self.buffer.len();
                let long = self.seen > MAX_OBJECT_BYTES;
                return if long { Err(WatchFailure::too_long()) } else { Ok(None) };
            };
            if end > MAX_OBJECT_BYTES {
                return Err(WatchFailure::too_long());
            }
            self.seen = 0;
            let line = self.buffer.split_to(end);
            self.buffer.advance(1);
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(lines: &mut Lines) -> Option<Vec<u8>> {
        lines.next().unwrap().map(|line| line.to_vec())
    }

    #[test]
    fn lines_are_complete_for_any_chunks() {
        for size in 1..9 {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for chunk in b"one\n\ntwo three\r\n\nfour".chunks(size) {
                lines.push(chunk);
                while let Some(line) = next(&mut lines) {
                    found.push(line);
                }
            }
            assert_eq!(found, [b"one".to_vec(), b"two three\r".to_vec()], "in pieces of {size}");
        }
    }

    #[test]
    fn an_endless_line_is_an_error() {
        let mut lines = Lines::default();
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..32 {
            lines.push(&chunk);
            assert_eq!(next(&mut lines), None);
        }
        lines.push(b"x");
        assert!(lines.next().is_err());
    }
}
