//! Requests and responses as a broker sees them.

/// A request that is being decoded.
pub(super) struct RequestReader<'a> {
    pub(super) rest: &'a [u8],
    pub(super) compact: bool,
}

impl<'a> RequestReader<'a> {
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn int8(&mut self) -> Option<i8> {
        Some(self.take(1)?[0] as i8)
    }

    pub(super) fn int16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    pub(super) fn int32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn int64(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A compact length: one more than the number, in bytes of seven bits.
    pub(super) fn compact_length(&mut self) -> Option<i64> {
        let (mut number, mut shift) = (0_i64, 0);
        loop {
            let byte = self.take(1)?[0];
            number |= i64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number - 1);
            }
            shift += 7;
        }
    }

    pub(super) fn string(&mut self) -> Option<String> {
        let length = if self.compact { self.compact_length()? } else { i64::from(self.int16()?) };
        String::from_utf8(self.take(usize::try_from(length).ok()?)?.to_vec()).ok()
    }

    /// An array; `Some(None)` if it is null.
    #[allow(clippy::option_option)]
    pub(super) fn array<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Option<Vec<T>>> {
        let length = if self.compact { self.compact_length()? } else { i64::from(self.int32()?) };
        let Ok(length) = usize::try_from(length) else { return Some(None) };
        (0..length).map(|_| item(self)).collect::<Option<Vec<T>>>().map(Some)
    }

    pub(super) fn no_tags(&mut self) -> Option<()> {
        if self.compact {
            assert_eq!(self.take(1)?, [0]);
        }
        Some(())
    }
}

/// A response that is being encoded.
pub(super) struct Answer {
    pub(super) bytes: Vec<u8>,
    pub(super) compact: bool,
}

impl Answer {
    pub(super) fn int8(&mut self, number: i8) {
        self.bytes.extend(number.to_be_bytes());
    }

    pub(super) fn int16(&mut self, number: i16) {
        self.bytes.extend(number.to_be_bytes());
    }

    pub(super) fn int32(&mut self, number: i32) {
        self.bytes.extend(number.to_be_bytes());
    }

    pub(super) fn int64(&mut self, number: i64) {
        self.bytes.extend(number.to_be_bytes());
    }

    pub(super) fn compact_length(&mut self, length: usize) {
        let mut number = length + 1;
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    pub(super) fn string(&mut self, text: &str) {
        if self.compact {
            self.compact_length(text.len());
        } else {
            self.int16(text.len() as i16);
        }
        self.bytes.extend(text.as_bytes());
    }

    pub(super) fn array(&mut self, length: usize) {
        if self.compact {
            self.compact_length(length);
        } else {
            self.int32(length as i32);
        }
    }

    pub(super) fn no_tags(&mut self) {
        if self.compact {
            self.bytes.push(0);
        }
    }
}
