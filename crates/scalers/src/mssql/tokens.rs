//! The tokens of a response: errors, redirections, columns and the first field of the first row, without IO.

use super::wire::{InvalidTds, TdsFields, utf16};

/// Maximum number of columns of a result.
const MAX_COLUMNS: usize = 4096;
/// The change of the environment that names another server.
const ROUTING: u8 = 20;

/// The first field of the first row of a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum MssqlField {
    /// There is no row.
    #[default]
    NoRow,
    Null,
    Number(f64),
    Text(String),
    /// A value of a type that is no number.
    Other,
}

/// An error that the server reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MssqlError {
    pub(super) number: u32,
    pub(super) message: String,
}

/// The content of a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TdsResponse {
    /// The first error.
    pub(super) error: Option<MssqlError>,
    /// Whether the login is accepted.
    pub(super) logged_in: bool,
    /// The server that the login is redirected to.
    pub(super) route: Option<(String, u16)>,
    pub(super) first: MssqlField,
    /// Whether the end of the response was received.
    pub(super) done: bool,
}

/// The response has a column whose values this client does not know the length of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TdsTokenError {
    #[error(transparent)]
    Invalid(#[from] InvalidTds),
    #[error("the result has a column of type {0:#04x}, which is not supported: select the number only")]
    UnsupportedColumn(u8),
}

/// How the length of a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueSize {
    Fixed(usize),
    /// A length of this number of bytes; zero is NULL, and so is the greatest one for two bytes.
    Prefixed(usize),
    /// Pieces with lengths of their own.
    Pieces,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MssqlColumn {
    kind: u8,
    size: ValueSize,
    /// Digits after the point of a decimal.
    scale: u8,
}

/// Decodes a response. The rows after the first one are read for the errors behind them.
pub(super) fn response(message: &[u8]) -> Result<TdsResponse, TdsTokenError> {
    let mut fields = TdsFields(message);
    let mut response = TdsResponse::default();
    let mut columns: Vec<MssqlColumn> = Vec::new();
    // Only the rows of the first result count.
    let mut results = 0;
    while !fields.0.is_empty() {
        match fields.number(1)? as u8 {
            0x81 => {
                results += 1;
                columns = self::columns(&mut fields)?;
            }
            token @ (0xd1 | 0xd2) => {
                let field = row(&mut fields, &columns, token == 0xd2)?;
                if results == 1 && response.first == MssqlField::NoRow {
                    response.first = field;
                }
            }
            0xaa => {
                let error = error(sized(&mut fields)?)?;
                response.error.get_or_insert(error);
            }
            0xad => {
                sized(&mut fields)?;
                response.logged_in = true;
            }
            0xe3 => response.route = route(sized(&mut fields)?)?.or(response.route),
            // Order, table names, column information, information, SSPI.
            0xa9 | 0xa4 | 0xa5 | 0xab | 0xed => {
                sized(&mut fields)?;
            }
            0xae => features(&mut fields)?,
            // Session state, and where to get tokens.
            0xe4 | 0xee => {
                let length = fields.number(4)? as usize;
                fields.take(length)?;
            }
            0x79 => {
                fields.take(4)?;
            }
            0xfd..=0xff => {
                fields.take(12)?;
                response.done = true;
            }
            _ => return Err(InvalidTds.into()),
        }
    }
    Ok(response)
}

/// The content of a token that begins with its length.
fn sized<'a>(fields: &mut TdsFields<'a>) -> Result<&'a [u8], InvalidTds> {
    let length = fields.number(2)? as usize;
    fields.take(length)
}

fn error(token: &[u8]) -> Result<MssqlError, InvalidTds> {
    let mut fields = TdsFields(token);
    let number = fields.number(4)? as u32;
    fields.take(2)?;
    Ok(MssqlError { number, message: fields.text(2)? })
}

fn route(token: &[u8]) -> Result<Option<(String, u16)>, InvalidTds> {
    let mut fields = TdsFields(token);
    if fields.number(1)? as u8 != ROUTING {
        return Ok(None);
    }
    fields.take(2)?;
    // Only TCP is known.
    if fields.number(1)? != 0 {
        return Err(InvalidTds);
    }
    let port = fields.number(2)? as u16;
    Ok(Some((fields.text(2)?, port)))
}

fn features(fields: &mut TdsFields<'_>) -> Result<(), InvalidTds> {
    while fields.number(1)? != 0xff {
        let length = fields.number(4)? as usize;
        fields.take(length)?;
    }
    Ok(())
}

fn columns(fields: &mut TdsFields<'_>) -> Result<Vec<MssqlColumn>, TdsTokenError> {
    let count = fields.number(2)? as usize;
    if count == 0xffff {
        return Ok(Vec::new());
    }
    if count > MAX_COLUMNS {
        return Err(InvalidTds.into());
    }
    let mut columns = Vec::new();
    for _ in 0..count {
        // User type and flags.
        fields.take(6)?;
        columns.push(column(fields)?);
        fields.text(1)?;
    }
    Ok(columns)
}

fn column(fields: &mut TdsFields<'_>) -> Result<MssqlColumn, TdsTokenError> {
    let kind = fields.number(1)? as u8;
    let mut scale = 0;
    let size = match kind {
        // The type without a value, 0x1f, is unsupported: a row of such columns takes one byte, and reading it as many steps as columns.
        0x30 | 0x32 => ValueSize::Fixed(1),
        0x34 => ValueSize::Fixed(2),
        0x38 | 0x3a | 0x3b | 0x7a => ValueSize::Fixed(4),
        0x3c..=0x3e | 0x7f => ValueSize::Fixed(8),
        // Numbers, bits, money, times and ids that may be NULL.
        0x24 | 0x26 | 0x68 | 0x6d..=0x6f | 0x29..=0x2b => {
            fields.take(1)?;
            ValueSize::Prefixed(1)
        }
        0x28 => ValueSize::Prefixed(1),
        0x6a | 0x6c => {
            fields.take(2)?;
            scale = fields.number(1)? as u8;
            ValueSize::Prefixed(1)
        }
        // Binary and text; text has a collation.
        0xa5 | 0xad | 0xa7 | 0xaf | 0xe7 | 0xef => {
            let most = fields.number(2)?;
            if !matches!(kind, 0xa5 | 0xad) {
                fields.take(5)?;
            }
            if most == 0xffff { ValueSize::Pieces } else { ValueSize::Prefixed(2) }
        }
        0x62 => {
            fields.take(4)?;
            ValueSize::Prefixed(4)
        }
        other => return Err(TdsTokenError::UnsupportedColumn(other)),
    };
    Ok(MssqlColumn { kind, size, scale })
}

/// Reads a row; returns its first field.
fn row(
    fields: &mut TdsFields<'_>,
    columns: &[MssqlColumn],
    has_null_bits: bool,
) -> Result<MssqlField, InvalidTds> {
    let nulls = if has_null_bits { fields.take(columns.len().div_ceil(8))? } else { &[] };
    let mut first = None;
    for (index, column) in columns.iter().enumerate() {
        let is_null = nulls.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1);
        let value = if is_null { None } else { value(fields, column.size)? };
        if index == 0 {
            first = Some(value.map_or(MssqlField::Null, |bytes| decoded(*column, &bytes)));
        }
    }
    first.ok_or(InvalidTds)
}

/// The bytes of a value; none for NULL.
fn value(fields: &mut TdsFields<'_>, size: ValueSize) -> Result<Option<Vec<u8>>, InvalidTds> {
    let length = match size {
        ValueSize::Fixed(length) => length,
        ValueSize::Prefixed(2) => match fields.number(2)? {
            0xffff => return Ok(None),
            length => length as usize,
        },
        ValueSize::Prefixed(bytes) => match fields.number(bytes)? {
            0 => return Ok(None),
            length => length as usize,
        },
        ValueSize::Pieces => {
            if fields.number(8)? == u64::MAX {
                return Ok(None);
            }
            let mut all = Vec::new();
            loop {
                match fields.number(4)? as usize {
                    0 => return Ok(Some(all)),
                    length => all.extend(fields.take(length)?),
                }
            }
        }
    };
    Ok(Some(fields.take(length)?.to_vec()))
}

fn decoded(column: MssqlColumn, bytes: &[u8]) -> MssqlField {
    let little =
        |bytes: &[u8]| bytes.iter().rev().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    // Sign-extended, except for one byte, which has no sign.
    let signed = |bytes: &[u8]| match bytes.len() {
        length @ 2..=8 => (little(bytes) as i64) << (64 - 8 * length) >> (64 - 8 * length),
        _ => little(bytes) as i64,
    };
    match (column.kind, bytes.len()) {
        (0x30 | 0x34 | 0x38 | 0x7f | 0x26, 1 | 2 | 4 | 8) => MssqlField::Number(signed(bytes) as f64),
        (0x3b | 0x6d, 4) => MssqlField::Number(f64::from(f32::from_bits(little(bytes) as u32))),
        (0x3e | 0x6d, 8) => MssqlField::Number(f64::from_bits(little(bytes) as u64)),
        (0x7a | 0x6e, 4) => MssqlField::Number(signed(bytes) as f64 / 1e4),
        // The high half comes first.
        (0x3c | 0x6e, 8) => {
            let (high, low) = bytes.split_at_checked(4).unwrap_or_default();
            MssqlField::Number((signed(high) << 32 | little(low) as i64) as f64 / 1e4)
        }
        (0x6a | 0x6c, 2..=17) => {
            let (sign, digits) = bytes.split_first().unwrap_or((&1, &[]));
            decimal(*sign == 1, little(digits), column.scale)
        }
        (0xa7 | 0xaf, _) => MssqlField::Text(String::from_utf8_lossy(bytes).into_owned()),
        (0xe7 | 0xef, _) => MssqlField::Text(utf16(bytes)),
        _ => MssqlField::Other,
    }
}

/// A decimal as text, so that it is rounded once.
fn decimal(positive: bool, digits: u128, scale: u8) -> MssqlField {
    let sign = if positive { "" } else { "-" };
    MssqlField::Text(format!("{sign}{digits}e-{scale}"))
}
