//! Primitive types of the Kafka protocol, in both encodings: fixed lengths, and the compact one of flexible versions (KIP-482).

use std::sync::Arc;

/// Maximum length of the name of a topic in Kafka, in bytes.
pub(super) const MAX_TOPIC_BYTES: usize = 249;

/// The bytes are no valid response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server does not speak the Kafka protocol")]
pub(super) struct InvalidResponse;

/// Encodes a request.
pub(super) struct RequestWriter {
    bytes: Vec<u8>,
    flexible: bool,
}

/// Decodes a response.
pub(super) struct ResponseReader<'a> {
    rest: &'a [u8],
    flexible: bool,
}

impl RequestWriter {
    /// A writer of fixed or compact encoding.
    pub(super) fn new(flexible: bool) -> Self {
        Self { bytes: Vec::new(), flexible }
    }

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

    /// A string, which has at most 32767 bytes in fixed encoding; parameters are shorter than that or refused by the server.
    pub(super) fn string(&mut self, text: &str) {
        let cut = text.get(..text.floor_char_boundary(i16::MAX as usize)).unwrap_or_default();
        if self.flexible {
            self.varint(cut.len() as u64 + 1);
        } else {
            self.int16(cut.len() as i16);
        }
        self.bytes.extend(cut.as_bytes());
    }

    /// A string of the request header, which has fixed encoding in every version.
    pub(super) fn header_string(&mut self, text: &str) {
        self.int16(text.len() as i16);
        self.bytes.extend(text.as_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        if self.flexible {
            self.varint(bytes.len() as u64 + 1);
        } else {
            self.int32(bytes.len() as i32);
        }
        self.bytes.extend(bytes);
    }

    /// The length of an array; its items follow.
    pub(super) fn array(&mut self, length: usize) {
        if self.flexible {
            self.varint(length as u64 + 1);
        } else {
            self.int32(length as i32);
        }
    }

    /// An array that is null.
    pub(super) fn null_array(&mut self) {
        if self.flexible {
            self.varint(0);
        } else {
            self.int32(-1);
        }
    }

    /// No tagged fields; nothing in fixed encoding.
    pub(super) fn no_tags(&mut self) {
        if self.flexible {
            self.varint(0);
        }
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// The frame: length and bytes.
    pub(super) fn frame(self) -> Vec<u8> {
        let mut frame = (self.bytes.len() as u32).to_be_bytes().to_vec();
        frame.extend(self.bytes);
        frame
    }
}

impl<'a> ResponseReader<'a> {
    /// A reader of fixed or compact encoding.
    pub(super) fn new(rest: &'a [u8], flexible: bool) -> Self {
        Self { rest, flexible }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], InvalidResponse> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(InvalidResponse)?;
        self.rest = rest;
        Ok(taken)
    }

    fn fixed<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], InvalidResponse> {
        self.take(LENGTH)?.try_into().map_err(|_| InvalidResponse)
    }

    pub(super) fn int8(&mut self) -> Result<i8, InvalidResponse> {
        self.fixed().map(i8::from_be_bytes)
    }

    pub(super) fn int16(&mut self) -> Result<i16, InvalidResponse> {
        self.fixed().map(i16::from_be_bytes)
    }

    pub(super) fn int32(&mut self) -> Result<i32, InvalidResponse> {
        self.fixed().map(i32::from_be_bytes)
    }

    pub(super) fn int64(&mut self) -> Result<i64, InvalidResponse> {
        self.fixed().map(i64::from_be_bytes)
    }

    /// A string; null is empty.
    pub(super) fn string(&mut self) -> Result<String, InvalidResponse> {
        let length = if self.flexible { self.varint()? as i64 - 1 } else { self.int16()?.into() };
        let bytes = self.take(usize::try_from(length.max(0)).map_err(|_| InvalidResponse)?)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| InvalidResponse)
    }

    /// The name of a topic, which all its partitions share.
    pub(super) fn topic(&mut self) -> Result<Arc<str>, InvalidResponse> {
        let name = self.string()?;
        if name.len() > MAX_TOPIC_BYTES { Err(InvalidResponse) } else { Ok(name.into()) }
    }

    /// Bytes; null is empty.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], InvalidResponse> {
        let length = if self.flexible { self.varint()? as i64 - 1 } else { self.int32()?.into() };
        self.take(usize::try_from(length.max(0)).map_err(|_| InvalidResponse)?)
    }

    /// An array; null is empty. Every item has at least one byte, which bounds the length.
    pub(super) fn array<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, InvalidResponse>,
    ) -> Result<Vec<T>, InvalidResponse> {
        let length = if self.flexible { self.varint()? as i64 - 1 } else { self.int32()?.into() };
        let length = usize::try_from(length.max(0)).map_err(|_| InvalidResponse)?;
        if length > self.rest.len() {
            return Err(InvalidResponse);
        }
        (0..length).map(|_| item(self)).collect()
    }

    /// Skips tagged fields; nothing in fixed encoding.
    pub(super) fn tags(&mut self) -> Result<(), InvalidResponse> {
        if !self.flexible {
            return Ok(());
        }
        for _ in 0..self.varint()? {
            self.varint()?;
            let length = self.varint()?;
            self.take(usize::try_from(length).map_err(|_| InvalidResponse)?)?;
        }
        Ok(())
    }

    /// An unsigned variable-length number of at most 32 bits.
    fn varint(&mut self) -> Result<u64, InvalidResponse> {
        let mut number = 0_u64;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.fixed()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(InvalidResponse)
    }
}
