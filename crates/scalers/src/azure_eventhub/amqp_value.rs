//! Values of AMQP 1.0: encoding and decoding, without IO.

/// Maximum depth of nested values.
const MAX_DEPTH: usize = 8;

/// The bytes are no valid frame or message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server does not speak AMQP 1.0")]
pub(super) struct InvalidAmqp;

/// A value. Types that are not used here are decoded as null.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AmqpValue {
    Null,
    Bool(bool),
    Ubyte(u8),
    /// An unsigned number of 32 bits.
    Uint(u32),
    /// Any other whole number.
    Number(i64),
    Text(String),
    Symbol(String),
    Binary(Vec<u8>),
    List(Vec<AmqpValue>),
    Map(Vec<(AmqpValue, AmqpValue)>),
    /// A value whose type has this number.
    Described(u64, Box<AmqpValue>),
}

impl AmqpValue {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn described(kind: u64, fields: Vec<Self>) -> Self {
        Self::Described(kind, Box::new(Self::List(fields)))
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Symbol(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_number(&self) -> Option<i64> {
        match self {
            Self::Ubyte(number) => Some(i64::from(*number)),
            Self::Uint(number) => Some(i64::from(*number)),
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The elements of a list; none for other values.
    pub(super) fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// A field of a described list.
    pub(super) fn field(&self, index: usize) -> Option<&Self> {
        self.items().get(index).filter(|value| **value != Self::Null)
    }

    /// The value of a key in a map.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Map(pairs) = self else { return None };
        pairs.iter().find(|(name, _)| name.as_text() == Some(key)).map(|(_, value)| value)
    }

    /// Appends the encoding of the value.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let sized = |out: &mut Vec<u8>, code: u8, bytes: &[u8]| {
            out.push(code);
            out.extend((bytes.len() as u32).to_be_bytes());
            out.extend(bytes);
        };
        match self {
            Self::Null => out.push(0x40),
            Self::Bool(yes) => out.push(if *yes { 0x41 } else { 0x42 }),
            Self::Ubyte(number) => out.extend([0x50, *number]),
            Self::Uint(number) => {
                out.push(0x70);
                out.extend(number.to_be_bytes());
            }
            Self::Number(number) => {
                out.push(0x81);
                out.extend(number.to_be_bytes());
            }
            Self::Text(text) => sized(out, 0xb1, text.as_bytes()),
            Self::Symbol(text) => sized(out, 0xb3, text.as_bytes()),
            Self::Binary(bytes) => sized(out, 0xb0, bytes),
            Self::List(items) => {
                let mut body = (items.len() as u32).to_be_bytes().to_vec();
                for item in items {
                    item.encode(&mut body);
                }
                sized(out, 0xd0, &body);
            }
            Self::Map(pairs) => {
                let mut body = (2 * pairs.len() as u32).to_be_bytes().to_vec();
                for (key, value) in pairs {
                    key.encode(&mut body);
                    value.encode(&mut body);
                }
                sized(out, 0xd1, &body);
            }
            Self::Described(kind, value) => {
                out.extend([0, 0x80]);
                out.extend(kind.to_be_bytes());
                value.encode(out);
            }
        }
    }

    /// Decodes the first value; the slice begins behind it then.
    pub(super) fn decode(bytes: &mut &[u8]) -> Result<Self, InvalidAmqp> {
        value(bytes, 0)
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], InvalidAmqp> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or(InvalidAmqp)?;
    *bytes = rest;
    Ok(taken)
}

fn number(bytes: &mut &[u8], length: usize) -> Result<u64, InvalidAmqp> {
    Ok(take(bytes, length)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn value(bytes: &mut &[u8], depth: usize) -> Result<AmqpValue, InvalidAmqp> {
    if depth > MAX_DEPTH {
        return Err(InvalidAmqp);
    }
    match number(bytes, 1)? as u8 {
        0 => {
            // Types are named by numbers here; other names are of types that are not used.
            let kind = match value(bytes, depth + 1)? {
                AmqpValue::Number(kind) => kind as u64,
                AmqpValue::Uint(kind) => u64::from(kind),
                _ => 0,
            };
            Ok(AmqpValue::Described(kind, Box::new(value(bytes, depth + 1)?)))
        }
        code => plain(code, bytes, depth),
    }
}

/// A value with this constructor.
fn plain(code: u8, bytes: &mut &[u8], depth: usize) -> Result<AmqpValue, InvalidAmqp> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(match code {
        0x40 => AmqpValue::Null,
        0x41 => AmqpValue::Bool(true),
        0x42 => AmqpValue::Bool(false),
        0x56 => AmqpValue::Bool(number(bytes, 1)? != 0),
        0x43 => AmqpValue::Uint(0),
        0x52 => AmqpValue::Uint(number(bytes, 1)? as u32),
        0x70 => AmqpValue::Uint(number(bytes, 4)? as u32),
        0x50 => AmqpValue::Ubyte(number(bytes, 1)? as u8),
        0x44 => AmqpValue::Number(0),
        0x53 => AmqpValue::Number(number(bytes, 1)? as i64),
        0x51 | 0x54 | 0x55 => AmqpValue::Number(i64::from(number(bytes, 1)? as i8)),
        0x60 => AmqpValue::Number(number(bytes, 2)? as i64),
        0x61 => AmqpValue::Number(i64::from(number(bytes, 2)? as i16)),
        0x71 => AmqpValue::Number(i64::from(number(bytes, 4)? as i32)),
        // Numbers of 64 bits and timestamps.
        0x80 | 0x81 | 0x83 => AmqpValue::Number(number(bytes, 8)? as i64),
        // Floats, decimals, characters and ids.
        0x72..=0x74 => skipped(bytes, 4)?,
        0x82 | 0x84 => skipped(bytes, 8)?,
        0x94 | 0x98 => skipped(bytes, 16)?,
        0xa0 | 0xb0 => AmqpValue::Binary(sized(code, bytes)?.to_vec()),
        0xa1 | 0xb1 => AmqpValue::Text(text(sized(code, bytes)?)),
        0xa3 | 0xb3 => AmqpValue::Symbol(text(sized(code, bytes)?)),
        0x45 => AmqpValue::List(Vec::new()),
        0xc0 | 0xd0 => AmqpValue::List(items(&mut sized(code, bytes)?, code, depth)?),
        0xc1 | 0xd1 => {
            let mut items = items(&mut sized(code, bytes)?, code, depth)?.into_iter();
            let mut pairs = Vec::new();
            while let Some(key) = items.next() {
                pairs.push((key, items.next().ok_or(InvalidAmqp)?));
            }
            AmqpValue::Map(pairs)
        }
        0xe0 | 0xf0 => AmqpValue::List(array(&mut sized(code, bytes)?, code, depth)?),
        _ => return Err(InvalidAmqp),
    })
}

fn skipped(bytes: &mut &[u8], length: usize) -> Result<AmqpValue, InvalidAmqp> {
    take(bytes, length)?;
    Ok(AmqpValue::Null)
}

/// Bytes after their length, which has one byte in constructors of the first kind and four in those of the second.
fn sized<'a>(code: u8, bytes: &mut &'a [u8]) -> Result<&'a [u8], InvalidAmqp> {
    let length = number(bytes, length_bytes(code))? as usize;
    take(bytes, length)
}

fn length_bytes(code: u8) -> usize {
    if matches!(code >> 4, 0xa | 0xc | 0xe) { 1 } else { 4 }
}

fn items(bytes: &mut &[u8], code: u8, depth: usize) -> Result<Vec<AmqpValue>, InvalidAmqp> {
    let count = number(bytes, length_bytes(code))? as usize;
    // Each element has at least one byte, so the count is not used for an allocation.
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(value(bytes, depth + 1)?);
    }
    Ok(items)
}

fn array(bytes: &mut &[u8], code: u8, depth: usize) -> Result<Vec<AmqpValue>, InvalidAmqp> {
    let count = number(bytes, length_bytes(code))? as usize;
    // Elements of arrays may have no bytes at all; no array that is used here has such elements.
    if count > bytes.len() || depth > MAX_DEPTH {
        return Err(InvalidAmqp);
    }
    let constructor = number(bytes, 1)? as u8;
    (0..count).map(|_| plain(constructor, bytes, depth + 1)).collect()
}
