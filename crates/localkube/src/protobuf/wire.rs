//! Protobuf's wire format.

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

const UNEXPECTED_EOF: &str = "unexpected EOF";
/// The length from which Go's position overflows.
const MIN_NEGATIVE_LENGTH: u64 = 1 << 62;

impl<'a> WireReader<'a> {
    pub(super) fn new(name: &'a str, rest: &'a [u8]) -> Self {
        Self { name, rest }
    }

    /// The next field number and value.
    pub(super) fn next(&mut self) -> Result<Option<(u32, WireValue<'a>)>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = varint(&mut self.rest)?;
        let kind = tag & 7;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0);
        let number = number
            .ok_or_else(|| format!("proto: {}: illegal tag {} (wire type {kind})", self.name, tag >> 3))?;
        let item = match kind {
            0 => WireValue::Varint(varint(&mut self.rest)?),
            1 => WireValue::Fixed64(*take(&mut self.rest, 8)?.first_chunk().ok_or(UNEXPECTED_EOF)?),
            2 => {
                let length = varint(&mut self.rest)?;
                if length >= MIN_NEGATIVE_LENGTH {
                    return Err("proto: negative length found during unmarshaling".to_owned());
                }
                WireValue::Bytes(take(&mut self.rest, usize::try_from(length).map_err(|_| UNEXPECTED_EOF)?)?)
            }
            5 => {
                take(&mut self.rest, 4)?;
                WireValue::Fixed32
            }
            // Kubernetes does not use groups.
            4 => return Err(format!("proto: {}: wiretype end group for non-group", self.name)),
            other => return Err(format!("proto: illegal wireType {other}")),
        };
        Ok(Some((number, item)))
    }
}

impl<'a> WireValue<'a> {
    /// The bytes of a length-delimited field.
    pub(super) fn bytes(self, field: &str) -> Result<&'a [u8], String> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(other.wrong(field)),
        }
    }

    /// The error for a wrong wire type.
    pub(super) fn wrong(self, field: &str) -> String {
        let kind = match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32 => 5,
        };
        format!("proto: wrong wireType = {kind} for field {field}")
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (taken, left) = rest.split_at_checked(length).ok_or(UNEXPECTED_EOF)?;
    *rest = left;
    Ok(taken)
}

/// Reads a varint: seven bits per byte, the lowest first.
pub(super) fn varint(rest: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, left) = rest.split_first().ok_or(UNEXPECTED_EOF)?;
        *rest = left;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("proto: integer overflow".to_owned())
}

/// Invalid UTF-8 is replaced, as in JSON bodies.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
