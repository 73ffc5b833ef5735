//! Protobuf's wire format: numbered items, one after the other.

/// The items of a message that are still to be read.
pub(super) struct Wire<'a> {
    /// What errors call the message.
    name: &'a str,
    rest: &'a [u8],
}

/// What an item holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    Fixed32,
}

const CUT: &str = "unexpected EOF";
/// Where a position after that many bytes is negative in Go.
const BELOW_ZERO: u64 = 1 << 62;

impl<'a> Wire<'a> {
    pub(super) fn new(name: &'a str, rest: &'a [u8]) -> Self {
        Self { name, rest }
    }

    /// The next item and its number.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Item<'a>)>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = varint(&mut self.rest)?;
        let kind = tag & 7;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0);
        let number = number
            .ok_or_else(|| format!("proto: {}: illegal tag {} (wire type {kind})", self.name, tag >> 3))?;
        let item = match kind {
            0 => Item::Varint(varint(&mut self.rest)?),
            1 => Item::Fixed64(*take(&mut self.rest, 8)?.first_chunk().ok_or(CUT)?),
            2 => {
                let length = varint(&mut self.rest)?;
                if length >= BELOW_ZERO {
                    return Err("proto: negative length found during unmarshaling".to_owned());
                }
                Item::Bytes(take(&mut self.rest, usize::try_from(length).map_err(|_| CUT)?)?)
            }
            5 => {
                take(&mut self.rest, 4)?;
                Item::Fixed32
            }
            // Groups are older than Kubernetes.
            4 => return Err(format!("proto: {}: wiretype end group for non-group", self.name)),
            other => return Err(format!("proto: illegal wireType {other}")),
        };
        Ok(Some((number, item)))
    }
}

impl<'a> Item<'a> {
    /// The bytes of a field that holds some.
    pub(super) fn bytes(self, field: &str) -> Result<&'a [u8], String> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(other.wrong(field)),
        }
    }

    /// That it is not what the field holds.
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
    let (taken, left) = rest.split_at_checked(length).ok_or(CUT)?;
    *rest = left;
    Ok(taken)
}

/// Takes a number: seven bits per byte, the lowest first.
pub(super) fn varint(rest: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, left) = rest.split_first().ok_or(CUT)?;
        *rest = left;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("proto: integer overflow".to_owned())
}

/// What is not UTF-8 is replaced, as where a body is JSON.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
