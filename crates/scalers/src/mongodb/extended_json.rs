//! Filters in MongoDB Extended JSON (version 2), both canonical and relaxed.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};

use super::bson::{Bson, Document};
use crate::ParseError;

/// Parses a filter: a document with at least one field.
pub(super) fn filter(text: &str) -> Result<Document, ParseError> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| ParseError::from(format!("query is not JSON: {error}")))?;
    match value {
        Value::Object(fields) if fields.is_empty() => Err("query must be a document with a field".into()),
        Value::Object(fields) => document(&fields),
        _ => Err("query must be a document".into()),
    }
}

fn document(fields: &Map<String, Value>) -> Result<Document, ParseError> {
    fields.iter().map(|(name, value)| Ok((name.clone(), bson(value)?))).collect()
}

fn bson(value: &Value) -> Result<Bson, ParseError> {
    Ok(match value {
        Value::Null => Bson::Null,
        Value::Bool(value) => Bson::Bool(*value),
        Value::String(text) => Bson::String(text.clone()),
        Value::Array(items) => Bson::Array(items.iter().map(bson).collect::<Result<_, _>>()?),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => i32::try_from(whole).map_or(Bson::Int64(whole), Bson::Int32),
            (None, Some(number)) => Bson::Double(number),
            _ => return Err(format!("{number} is out of range").into()),
        },
        Value::Object(fields) => match special(fields)? {
            Some(value) => value,
            None => Bson::Document(document(fields)?),
        },
    })
}

/// A value that is written as an object with one or two keys that begin with `$`.
fn special(fields: &Map<String, Value>) -> Result<Option<Bson>, ParseError> {
    let mut keys = fields.iter();
    let (Some((key, value)), None) = (keys.next(), keys.next()) else { return Ok(None) };
    let wrong = || ParseError::from(format!("the value of {key} in query is not valid"));
    let text = || value.as_str().ok_or_else(wrong);
    let part = |name: &str| value.get(name).and_then(Value::as_str).ok_or_else(wrong);
    let number = |name: &str| {
        let number = value.get(name).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(wrong)
    };
    Ok(Some(match &**key {
        "$oid" => Bson::ObjectId(object_id(text()?).ok_or_else(wrong)?),
        "$date" => Bson::DateTime(date(value).ok_or_else(wrong)?),
        "$numberInt" => Bson::Int32(text()?.parse().map_err(|_| wrong())?),
        "$numberLong" => Bson::Int64(text()?.parse().map_err(|_| wrong())?),
        "$numberDouble" => Bson::Double(match text()? {
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            text => text.parse().map_err(|_| wrong())?,
        }),
        "$binary" => {
            let subtype = u8::from_str_radix(part("subType")?, 16).map_err(|_| wrong())?;
            Bson::Binary(subtype, BASE64_STANDARD.decode(part("base64")?).map_err(|_| wrong())?)
        }
        "$uuid" => {
            let hex: String = text()?.chars().filter(|c| *c != '-').collect();
            Bson::Binary(4, bytes(&hex).filter(|bytes| bytes.len() == 16).ok_or_else(wrong)?)
        }
        "$regularExpression" => Bson::Regex(part("pattern")?.to_owned(), part("options")?.to_owned()),
        "$timestamp" => Bson::Timestamp(number("t")?, number("i")?),
        "$minKey" => Bson::MinKey,
        "$maxKey" => Bson::MaxKey,
        "$numberDecimal" | "$code" | "$symbol" | "$undefined" | "$dbPointer" => {
            return Err(format!("{key} cannot be used in query").into());
        }
        _ => return Ok(None),
    }))
}

fn object_id(hex: &str) -> Option<[u8; 12]> {
    bytes(hex)?.try_into().ok()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = hex.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits?;
    let pairs = digits.chunks_exact(2);
    pairs
        .remainder()
        .is_empty()
        .then(|| pairs.map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
}

/// Milliseconds since 1970: a text in ISO 8601, a number, or `$numberLong`.
fn date(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond),
        Value::Number(number) => number.as_i64(),
        Value::Object(fields) => fields.get("$numberLong")?.as_str()?.parse().ok(),
        _ => None,
    }
}
