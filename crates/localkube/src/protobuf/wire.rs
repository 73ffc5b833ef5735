//! Protobuf's wire format.

/// Why a message cannot be decoded, with the texts of Go's decoder where it has them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// There is no body.
    #[error("empty data")]
    EmptyData,
    /// Nothing follows the prefix.
    #[error("empty body")]
    EmptyBody,
    /// The prefix is missing.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    /// The message ends within a field.
    #[error("unexpected EOF")]
    UnexpectedEof,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length is too large.
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    /// A field number is invalid.
    #[error("proto: {name}: illegal tag {tag} (wire type {kind})")]
    IllegalTag {
        /// The message.
        name: String,
        /// The field number.
        tag: u64,
        /// The wire type.
        kind: u64,
    },
    /// A group ends in this message, though Kubernetes does not use groups.
    #[error("proto: {0}: wiretype end group for non-group")]
    EndGroup(String),
    /// There is no such wire type.
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u64),
    /// A field has another wire type.
    #[error("proto: wrong wireType = {kind} for field {field}")]
    WrongWireType {
        /// The wire type.
        kind: u8,
        /// The Go name of the field.
        field: String,
    },
    /// Messages are nested too deeply.
    #[error("proto: messages are nested too deeply")]
    TooDeep,
    /// There is no message of this name.
    #[error("there is no message {0}")]
    NoMessage(String),
    /// A field with JSON is invalid.
    #[error("invalid JSON inside: {0}")]
    Json(String),
    /// A time is out of range.
    #[error("invalid time: {0}")]
    Time(String),
}

/// Reads the fields of a message.
pub(super) struct WireReader<'a> {
    /// The message's name in errors.
    name: &'a str,
    rest: &'a [u8],
}

/// The value of a field on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireValue<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    Fixed32,
}

/// The length from which Go's position overflows.
const MIN_NEGATIVE_LENGTH: u64 = 1 << 62;

impl<'a> WireReader<'a> {
    pub(super) fn new(name: &'a str, rest: &'a [u8]) -> Self {
        Self { name, rest }
    }

    /// The next field number and value.
    pub(super) fn next(&mut self) -> Result<Option<(u32, WireValue<'a>)>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = varint(&mut self.rest)?;
        let kind = tag & 7;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0);
        let number = number.ok_or_else(|| WireError::IllegalTag {
            name: self.name.to_owned(),
            tag: tag >> 3,
            kind,
        })?;
        let item = match kind {
            0 => WireValue::Varint(varint(&mut self.rest)?),
            1 => WireValue::Fixed64(*take(&mut self.rest, 8)?.first_chunk().ok_or(WireError::UnexpectedEof)?),
            2 => {
                let length = varint(&mut self.rest)?;
                if length >= MIN_NEGATIVE_LENGTH {
                    return Err(WireError::NegativeLength);
                }
                WireValue::Bytes(take(
                    &mut self.rest,
                    usize::try_from(length).map_err(|_| WireError::UnexpectedEof)?,
                )?)
            }
            5 => {
                take(&mut self.rest, 4)?;
                WireValue::Fixed32
            }
            4 => return Err(WireError::EndGroup(self.name.to_owned())),
            other => return Err(WireError::IllegalWireType(other)),
        };
        Ok(Some((number, item)))
    }
}

impl<'a> WireValue<'a> {
    /// The bytes of a length-delimited field.
    pub(super) fn bytes(self, field: &str) -> Result<&'a [u8], WireError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(other.wrong(field)),
        }
    }

    /// The error for a wrong wire type.
    pub(super) fn wrong(self, field: &str) -> WireError {
        let kind = match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32 => 5,
        };
        WireError::WrongWireType { kind, field: field.to_owned() }
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], WireError> {
    let (taken, left) = rest.split_at_checked(length).ok_or(WireError::UnexpectedEof)?;
    *rest = left;
    Ok(taken)
}

/// Reads a varint: seven bits per byte, the lowest first.
pub(super) fn varint(rest: &mut &[u8]) -> Result<u64, WireError> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, left) = rest.split_first().ok_or(WireError::UnexpectedEof)?;
        *rest = left;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(WireError::Overflow)
}

/// Invalid UTF-8 is replaced, as in JSON bodies.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
