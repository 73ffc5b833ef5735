//! Decodes a protobuf message to JSON.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Number, Value, json};

use super::table::{Cardinality, FieldType, JsonForm, MessageField, MessageType, TABLE};
use super::wire::{self, WireError, WireReader, WireValue};

/// The maximum nesting of messages, as for JSON.
const MAX_NESTING: usize = 100;

/// Decodes a message.
pub(super) fn read(name: &str, bytes: &[u8]) -> Result<Value, WireError> {
    MessageDecoder { depth: 0 }.message(name, bytes, None)
}

#[derive(Clone, Copy)]
struct MessageDecoder {
    depth: usize,
}

impl MessageDecoder {
    /// Decodes a message into an earlier value of the same field, if there is one.
    fn message(self, name: &str, bytes: &[u8], old: Option<Value>) -> Result<Value, WireError> {
        if self.depth > MAX_NESTING {
            return Err(WireError::TooDeep);
        }
        let message = TABLE.get(name).ok_or_else(|| WireError::NoMessage(name.to_owned()))?;
        let mut map = match old {
            Some(Value::Object(map)) if message.form == JsonForm::Structure => map,
            _ => Map::new(),
        };
        Self { depth: self.depth + 1 }.fill(name, message, bytes, &mut map)?;
        finish(message.form, map)
    }

    /// Decodes the fields of a message.
    fn fill(
        self,
        name: &str,
        message: &MessageType,
        bytes: &[u8],
        map: &mut Map<String, Value>,
    ) -> Result<(), WireError> {
        let mut wire = WireReader::new(name.rsplit('.').next().unwrap_or_default(), bytes);
        while let Some((number, item)) = wire.next()? {
            // Unknown fields are skipped, as in Go.
            let Some(field) = message.fields.get(&number) else { continue };
            match (field.cardinality, &field.kind, item) {
                (Cardinality::One, FieldType::Message(inside), WireValue::Bytes(bytes))
                    if field.name.is_empty() =>
                {
                    let message = TABLE.get(inside).ok_or_else(|| WireError::NoMessage(inside.clone()))?;
                    self.fill(inside, message, bytes, map)?;
                }
                (Cardinality::One, _, _) => {
                    let value = self.value(field, item, map.shift_remove(&field.name))?;
                    if !value.is_null() && (field.shows_zero || !is_zero(&field.kind, &value)) {
                        map.insert(field.name.clone(), value);
                    }
                }
                (Cardinality::List, FieldType::Int32 | FieldType::Int64, WireValue::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        let item = WireValue::Varint(wire::varint(&mut packed)?);
                        append(map, &field.name, self.value(field, item, None)?);
                    }
                }
                (Cardinality::List, _, _) => append(map, &field.name, self.value(field, item, None)?),
                (Cardinality::Map, _, item) => {
                    let (key, value) = self.entry(field, item.bytes(&go_name(field))?)?;
                    let entry = map.entry(field.name.clone()).or_insert_with(|| json!({}));
                    if let Value::Object(entries) = entry {
                        entries.insert(key, value);
                    }
                }
            }
        }
        for field in message.fields.values().filter(|field| field.cardinality == Cardinality::Map) {
            if let Some(Value::Object(entries)) = map.get_mut(&field.name) {
                entries.sort_keys();
            }
        }
        Ok(())
    }

    /// Decodes a map entry: a message with key and value.
    fn entry(self, field: &MessageField, bytes: &[u8]) -> Result<(String, Value), WireError> {
        let mut key = String::new();
        let mut value = None;
        let mut wire = WireReader::new(&field.name, bytes);
        while let Some((number, item)) = wire.next()? {
            match (number, item) {
                (1, WireValue::Bytes(bytes)) => key = wire::text(bytes),
                (2, item) => value = Some(self.value(field, item, None)?),
                _ => {}
            }
        }
        // A missing value is an empty one.
        let value = value.map_or_else(|| self.value(field, WireValue::Bytes(&[]), None), Ok)?;
        Ok((key, value))
    }

    /// Decodes one value of a field.
    fn value(
        self,
        field: &MessageField,
        item: WireValue<'_>,
        old: Option<Value>,
    ) -> Result<Value, WireError> {
        Ok(match (&field.kind, item) {
            (FieldType::Text, WireValue::Bytes(bytes)) => wire::text(bytes).into(),
            (FieldType::Bytes, WireValue::Bytes(bytes)) => BASE64_STANDARD.encode(bytes).into(),
            (FieldType::Json, WireValue::Bytes([])) => Value::Null,
            (FieldType::Json, WireValue::Bytes(bytes)) => {
                serde_json::from_slice(bytes).map_err(|error| WireError::Json(error.to_string()))?
            }
            (FieldType::Message(name), WireValue::Bytes(bytes)) => self.message(name, bytes, old)?,
            (FieldType::Bool, WireValue::Varint(number)) => (number != 0).into(),
            (FieldType::Int32, WireValue::Varint(number)) => low_half(number).into(),
            (FieldType::Int64, WireValue::Varint(number)) => number.cast_signed().into(),
            (FieldType::Double, WireValue::Fixed64(bytes)) => double(f64::from_le_bytes(bytes)),
            (_, item) => return Err(item.wrong(&go_name(field))),
        })
    }
}

fn append(map: &mut Map<String, Value>, name: &str, value: Value) {
    match map.get_mut(name) {
        Some(Value::Array(items)) => items.push(value),
        _ => drop(map.insert(name.to_owned(), json!([value]))),
    }
}

/// The Go name of a field, guessed from its JSON name.
fn go_name(field: &MessageField) -> String {
    if field.name == "metadata" {
        return "ObjectMeta".to_owned();
    }
    let mut letters = field.name.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// The lower 32 bits: Go ignores the others.
fn low_half(number: u64) -> i32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Go writes a whole number without a fraction.
fn double(number: f64) -> Value {
    let written = number.to_string();
    let whole = written.parse::<i64>().ok().map(Number::from);
    whole.or_else(|| Number::from_f64(number)).map_or(Value::Null, Value::Number)
}

fn is_zero(kind: &FieldType, value: &Value) -> bool {
    match kind {
        FieldType::Text | FieldType::Bytes => value == "",
        FieldType::Bool => *value == false,
        FieldType::Int32 | FieldType::Int64 | FieldType::Double => *value == 0,
        FieldType::Json | FieldType::Message(_) => false,
    }
}

/// The JSON form of a message.
fn finish(form: JsonForm, mut map: Map<String, Value>) -> Result<Value, WireError> {
    let number =
        |map: &Map<String, Value>, name: &str| map.get(name).and_then(Value::as_i64).unwrap_or_default();
    let text = |map: &Map<String, Value>, name: &str| {
        map.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    Ok(match form {
        JsonForm::Structure => map.into(),
        JsonForm::Inside(names) => names.iter().find_map(|name| map.shift_remove(*name)).unwrap_or_default(),
        JsonForm::Quantity => {
            Some(text(&map, "string")).filter(|text| !text.is_empty()).unwrap_or("0".to_owned()).into()
        }
        JsonForm::IntOrString if number(&map, "type") == 0 => number(&map, "intVal").into(),
        JsonForm::IntOrString => text(&map, "strVal").into(),
        JsonForm::Time | JsonForm::MicroTime => {
            let (seconds, nanos) = (number(&map, "seconds"), number(&map, "nanos"));
            if (seconds, nanos) == (0, 0) {
                return Ok(Value::Null);
            }
            let nanos = i32::try_from(nanos).unwrap_or_default();
            let instant =
                Timestamp::new(seconds, nanos).map_err(|error| WireError::Time(error.to_string()))?;
            if form == JsonForm::Time {
                api::instant::format(instant).into()
            } else {
                instant.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string().into()
            }
        }
    })
}
