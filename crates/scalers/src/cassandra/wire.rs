//! Frames of Cassandra's native protocol, versions 3 and 4, without IO.

/// Size of the header of a frame, in bytes.
pub(super) const HEADER_BYTES: usize = 9;
/// Kinds of frames.
const ERROR: u8 = 0;
const STARTUP: u8 = 1;
const READY: u8 = 2;
const AUTHENTICATE: u8 = 3;
const QUERY: u8 = 7;
const RESULT: u8 = 8;
const AUTH_CHALLENGE: u8 = 0x0e;
const AUTH_RESPONSE: u8 = 0x0f;
const AUTH_SUCCESS: u8 = 0x10;
/// Responses have this bit in their version.
const RESPONSE: u8 = 0x80;
/// Flags of responses, for data that precedes their content.
const TRACED: u8 = 2;
const WITH_PAYLOAD: u8 = 4;
const WITH_WARNINGS: u8 = 8;
/// Rows per page. Aggregates are computed in pages of this size, so it is the usual one although one row is needed.
const PAGE_ROWS: u32 = 5000;
/// The query has a page size.
const WITH_PAGE_SIZE: u8 = 4;
/// Flags of the metadata of a result.
const ONE_TABLE: u32 = 1;
const MORE_PAGES: u32 = 2;
const NO_METADATA: u32 = 4;
/// Maximum depth of the type of a column.
const MAX_TYPE_DEPTH: usize = 8;

/// The bytes are no valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server does not speak the native protocol of Cassandra")]
pub(super) struct InvalidCqlFrame;

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CqlResponse {
    Ready,
    /// The server requires a password, for this authenticator class.
    Authenticate(String),
    Challenge,
    LoggedIn,
    Result(CqlField),
    Error {
        code: u32,
        message: String,
    },
}

/// The first field of the first row of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CqlField {
    NoRow,
    Null,
    Number(i64),
    /// A value of a type that is no whole number.
    Other,
}

/// Reads fields of a frame; numbers are big-endian.
struct CqlFields<'a>(&'a [u8]);

impl<'a> CqlFields<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], InvalidCqlFrame> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(InvalidCqlFrame)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self, length: usize) -> Result<u32, InvalidCqlFrame> {
        Ok(self.take(length)?.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    fn text(&mut self) -> Result<String, InvalidCqlFrame> {
        let length = self.number(2)? as usize;
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    /// Bytes after their length; none if the length is negative.
    fn bytes(&mut self) -> Result<Option<&'a [u8]>, InvalidCqlFrame> {
        match usize::try_from(self.number(4)? as i32) {
            Ok(length) => self.take(length).map(Some),
            Err(_) => Ok(None),
        }
    }
}

/// The size of the content of a response with this header, in bytes.
pub(super) fn content_bytes(header: [u8; HEADER_BYTES], version: u8) -> Result<usize, InvalidCqlFrame> {
    let [received_version, _, _, _, _, a, b, c, d] = header;
    // A server that does not know the version answers with its own.
    if received_version & RESPONSE == 0 || !(3..=version.max(5)).contains(&(received_version & !RESPONSE)) {
        return Err(InvalidCqlFrame);
    }
    Ok(u32::from_be_bytes([a, b, c, d]) as usize)
}

fn frame(version: u8, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![version, 0, 0, 0, kind];
    out.extend((content.len() as u32).to_be_bytes());
    out.extend(content);
    out
}

/// The first frame.
pub(super) fn startup(version: u8) -> Vec<u8> {
    let mut content = vec![0, 1];
    for text in ["CQL_VERSION", "3.0.0"] {
        content.extend((text.len() as u16).to_be_bytes());
        content.extend(text.as_bytes());
    }
    frame(version, STARTUP, &content)
}

/// User and password.
pub(super) fn login(version: u8, user: &str, password: &str) -> Vec<u8> {
    let token = [&[0], user.as_bytes(), &[0], password.as_bytes()].concat();
    let mut content = (token.len() as u32).to_be_bytes().to_vec();
    content.extend(token);
    frame(version, AUTH_RESPONSE, &content)
}

/// A query.
pub(super) fn query(version: u8, query: &str, consistency: u16) -> Vec<u8> {
    let mut content = (query.len() as u32).to_be_bytes().to_vec();
    content.extend(query.as_bytes());
    content.extend(consistency.to_be_bytes());
    content.push(WITH_PAGE_SIZE);
    content.extend(PAGE_ROWS.to_be_bytes());
    frame(version, QUERY, &content)
}

/// The number of a consistency level. A name that KEDA's client does not know ends KEDA's operator; here it is an error of the trigger.
pub(super) fn consistency(name: &str) -> Option<u16> {
    let names = [
        "ANY",
        "ONE",
        "TWO",
        "THREE",
        "QUORUM",
        "ALL",
        "LOCAL_QUORUM",
        "EACH_QUORUM",
        "SERIAL",
        "LOCAL_SERIAL",
        "LOCAL_ONE",
    ];
    names.iter().position(|known| known.eq_ignore_ascii_case(name)).map(|number| number as u16)
}

/// Decodes a response.
pub(super) fn response(header: [u8; HEADER_BYTES], content: &[u8]) -> Result<CqlResponse, InvalidCqlFrame> {
    let [_, flags, _, _, kind, ..] = header;
    let mut fields = CqlFields(content);
    if flags & TRACED != 0 {
        fields.take(16)?;
    }
    if flags & WITH_WARNINGS != 0 {
        for _ in 0..fields.number(2)? {
            fields.text()?;
        }
    }
    if flags & WITH_PAYLOAD != 0 {
        for _ in 0..fields.number(2)? {
            fields.text()?;
            fields.bytes()?;
        }
    }
    // Compression was not requested.
    if flags & !(TRACED | WITH_WARNINGS | WITH_PAYLOAD) != 0 {
        return Err(InvalidCqlFrame);
    }
    match kind {
        ERROR => Ok(CqlResponse::Error { code: fields.number(4)?, message: fields.text()? }),
        READY => Ok(CqlResponse::Ready),
        AUTHENTICATE => fields.text().map(CqlResponse::Authenticate),
        AUTH_CHALLENGE => Ok(CqlResponse::Challenge),
        AUTH_SUCCESS => Ok(CqlResponse::LoggedIn),
        RESULT => result(&mut fields).map(CqlResponse::Result),
        _ => Err(InvalidCqlFrame),
    }
}

fn result(fields: &mut CqlFields<'_>) -> Result<CqlField, InvalidCqlFrame> {
    match fields.number(4)? {
        2 => {}
        // No result, a keyspace, a change of the schema.
        1 | 3 | 5 => return Ok(CqlField::NoRow),
        _ => return Err(InvalidCqlFrame),
    }
    let (flags, columns) = (fields.number(4)?, fields.number(4)?);
    if flags & MORE_PAGES != 0 {
        fields.bytes()?;
    }
    if flags & NO_METADATA != 0 || columns == 0 {
        return Err(InvalidCqlFrame);
    }
    if flags & ONE_TABLE != 0 {
        fields.text()?;
        fields.text()?;
    }
    let mut first = None;
    for _ in 0..columns {
        if flags & ONE_TABLE == 0 {
            fields.text()?;
            fields.text()?;
        }
        fields.text()?;
        let type_ = type_of(fields, 0)?;
        first.get_or_insert(type_);
    }
    if fields.number(4)? == 0 {
        return Ok(CqlField::NoRow);
    }
    let Some(value) = fields.bytes()? else { return Ok(CqlField::Null) };
    // The type must have the size that belongs to it, except for numbers of any size.
    Ok(match (first, value.len()) {
        (Some(0x02 | 0x05), 8)
        | (Some(0x09), 4)
        | (Some(0x13), 2)
        | (Some(0x14), 1)
        | (Some(0x0e), 1..=8) => CqlField::Number(signed(value)),
        (Some(0x02 | 0x05 | 0x09 | 0x13 | 0x14 | 0x0e), 0) => CqlField::Null,
        _ => CqlField::Other,
    })
}

fn signed(bytes: &[u8]) -> i64 {
    let begin = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) { -1 } else { 0 };
    bytes.iter().fold(begin, |number, byte| number << 8 | i64::from(*byte))
}

/// The id of a type, whose parameters are skipped.
fn type_of(fields: &mut CqlFields<'_>, depth: usize) -> Result<u32, InvalidCqlFrame> {
    if depth > MAX_TYPE_DEPTH {
        return Err(InvalidCqlFrame);
    }
    let type_ = fields.number(2)?;
    match type_ {
        0x00 => {
            fields.text()?;
        }
        0x20 | 0x22 => {
            type_of(fields, depth + 1)?;
        }
        0x21 => {
            type_of(fields, depth + 1)?;
            type_of(fields, depth + 1)?;
        }
        0x30 => {
            fields.text()?;
            fields.text()?;
            for _ in 0..fields.number(2)? {
                fields.text()?;
                type_of(fields, depth + 1)?;
            }
        }
        0x31 => {
            for _ in 0..fields.number(2)? {
                type_of(fields, depth + 1)?;
            }
        }
        _ => {}
    }
    Ok(type_)
}
