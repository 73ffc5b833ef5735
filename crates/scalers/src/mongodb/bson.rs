//! BSON documents (bsonspec.org): those that commands and their answers have.

/// Maximum depth of a document.
const MAX_DEPTH: usize = 100;

/// The bytes are no valid document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server does not speak the MongoDB protocol")]
pub(super) struct InvalidBson;

/// A document; fields keep their order.
pub(super) type Document = Vec<(String, Bson)>;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Bson {
    Double(f64),
    String(String),
    Document(Document),
    Array(Vec<Bson>),
    /// Subtype and bytes.
    Binary(u8, Vec<u8>),
    ObjectId([u8; 12]),
    Bool(bool),
    /// Milliseconds since 1970.
    DateTime(i64),
    Null,
    /// Pattern and options.
    Regex(String, String),
    Int32(i32),
    /// Seconds and ordinal.
    Timestamp(u32, u32),
    Int64(i64),
    MinKey,
    MaxKey,
    /// A value of a type that answers have and requests have not.
    Other(u8),
}

impl Bson {
    fn tag(&self) -> u8 {
        match self {
            Self::Double(_) => 1,
            Self::String(_) => 2,
            Self::Document(_) => 3,
            Self::Array(_) => 4,
            Self::Binary(..) => 5,
            Self::ObjectId(_) => 7,
            Self::Bool(_) => 8,
            Self::DateTime(_) => 9,
            Self::Null => 10,
            Self::Regex(..) => 11,
            Self::Int32(_) => 16,
            Self::Timestamp(..) => 17,
            Self::Int64(_) => 18,
            Self::MinKey => 0xff,
            Self::MaxKey => 0x7f,
            Self::Other(tag) => *tag,
        }
    }

    /// A number of any type.
    pub(super) fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Double(number) => Some(*number),
            Self::Int32(number) => Some(f64::from(*number)),
            Self::Int64(number) => Some(*number as f64),
            _ => None,
        }
    }

    /// A text.
    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }
}

/// The value of a field, with dots between the names of nested fields and indexes.
pub(super) fn field<'a>(document: &'a Document, path: &str) -> Option<&'a Bson> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let (_, value) = document.iter().find(|(known, _)| known == name)?;
    match (rest, value) {
        (None, value) => Some(value),
        (Some(rest), Bson::Document(document)) => field(document, rest),
        (Some(rest), Bson::Array(items)) => {
            let (index, rest) =
                rest.split_once('.').map_or((rest, None), |(index, rest)| (index, Some(rest)));
            match (items.get(index.parse::<usize>().ok()?)?, rest) {
                (item, None) => Some(item),
                (Bson::Document(document), Some(rest)) => field(document, rest),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Encodes a document.
pub(super) fn encode(document: &Document) -> Vec<u8> {
    let fields = document.iter().map(|(name, value)| (name.clone(), value));
    encoded(fields)
}

fn encoded<'a>(fields: impl Iterator<Item = (String, &'a Bson)>) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in fields {
        body.push(value.tag());
        c_string(&mut body, &name);
        put(&mut body, value);
    }
    let mut out = (body.len() as i32 + 5).to_le_bytes().to_vec();
    out.extend(body);
    out.push(0);
    out
}

fn put(out: &mut Vec<u8>, value: &Bson) {
    match value {
        Bson::Double(number) => out.extend(number.to_le_bytes()),
        Bson::String(text) => {
            out.extend((text.len() as i32 + 1).to_le_bytes());
            out.extend(text.as_bytes());
            out.push(0);
        }
        Bson::Document(document) => out.extend(encode(document)),
        Bson::Array(items) => {
            out.extend(encoded(items.iter().enumerate().map(|(index, item)| (index.to_string(), item))));
        }
        Bson::Binary(subtype, bytes) => {
            out.extend((bytes.len() as i32).to_le_bytes());
            out.push(*subtype);
            out.extend(bytes);
        }
        Bson::ObjectId(id) => out.extend(id),
        Bson::Bool(value) => out.push(u8::from(*value)),
        Bson::DateTime(number) | Bson::Int64(number) => out.extend(number.to_le_bytes()),
        Bson::Regex(pattern, options) => {
            c_string(out, pattern);
            c_string(out, options);
        }
        Bson::Int32(number) => out.extend(number.to_le_bytes()),
        Bson::Timestamp(seconds, ordinal) => {
            out.extend(ordinal.to_le_bytes());
            out.extend(seconds.to_le_bytes());
        }
        Bson::Null | Bson::MinKey | Bson::MaxKey | Bson::Other(_) => {}
    }
}

/// A text that ends with a zero byte; zero bytes in it are left out.
fn c_string(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}

/// Decodes a document.
pub(super) fn decode(bytes: &[u8]) -> Result<Document, InvalidBson> {
    document(&mut BsonReader(bytes), 0)
}

struct BsonReader<'a>(&'a [u8]);

impl<'a> BsonReader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], InvalidBson> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(InvalidBson)?;
        self.0 = rest;
        Ok(taken)
    }

    fn fixed<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], InvalidBson> {
        self.take(LENGTH)?.try_into().map_err(|_| InvalidBson)
    }

    fn length(&mut self) -> Result<usize, InvalidBson> {
        usize::try_from(i32::from_le_bytes(self.fixed()?)).map_err(|_| InvalidBson)
    }

    fn c_string(&mut self) -> Result<String, InvalidBson> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(InvalidBson)?;
        let text = String::from_utf8_lossy(self.take(end)?).into_owned();
        self.take(1)?;
        Ok(text)
    }

    fn string(&mut self) -> Result<String, InvalidBson> {
        let length = self.length()?;
        let (_, text) = self.take(length)?.split_last().ok_or(InvalidBson)?;
        Ok(String::from_utf8_lossy(text).into_owned())
    }
}

fn document(reader: &mut BsonReader<'_>, depth: usize) -> Result<Document, InvalidBson> {
    let length = reader.length()?.checked_sub(4).ok_or(InvalidBson)?;
    let (_, body) = reader.take(length)?.split_last().ok_or(InvalidBson)?;
    if depth > MAX_DEPTH {
        return Err(InvalidBson);
    }
    let mut reader = BsonReader(body);
    let mut fields = Vec::new();
    while !reader.0.is_empty() {
        let [tag] = reader.fixed()?;
        let name = reader.c_string()?;
        fields.push((name, value(&mut reader, tag, depth + 1)?));
    }
    Ok(fields)
}

fn value(reader: &mut BsonReader<'_>, tag: u8, depth: usize) -> Result<Bson, InvalidBson> {
    Ok(match tag {
        1 => Bson::Double(f64::from_le_bytes(reader.fixed()?)),
        2 => Bson::String(reader.string()?),
        3 => Bson::Document(document(reader, depth)?),
        4 => Bson::Array(document(reader, depth)?.into_iter().map(|(_, item)| item).collect()),
        5 => {
            let length = reader.length()?;
            let [subtype] = reader.fixed()?;
            Bson::Binary(subtype, reader.take(length)?.to_vec())
        }
        7 => Bson::ObjectId(reader.fixed()?),
        8 => Bson::Bool(reader.fixed::<1>()? != [0]),
        9 => Bson::DateTime(i64::from_le_bytes(reader.fixed()?)),
        10 => Bson::Null,
        11 => Bson::Regex(reader.c_string()?, reader.c_string()?),
        13 | 14 => {
            reader.string()?;
            Bson::Other(tag)
        }
        16 => Bson::Int32(i32::from_le_bytes(reader.fixed()?)),
        17 => {
            let ordinal = u32::from_le_bytes(reader.fixed()?);
            Bson::Timestamp(u32::from_le_bytes(reader.fixed()?), ordinal)
        }
        18 => Bson::Int64(i64::from_le_bytes(reader.fixed()?)),
        19 => {
            reader.take(16)?;
            Bson::Other(tag)
        }
        0xff => Bson::MinKey,
        0x7f => Bson::MaxKey,
        _ => return Err(InvalidBson),
    })
}
