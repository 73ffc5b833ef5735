//! From a message to the JSON of the same object.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Number, Value, json};

use super::table::{Field, Form, Kind, Message, Shape, TABLE};
use super::wire::{self, Item, Wire};

/// How deep messages may be inside each other; JSON is not read any deeper.
const DEEPEST: usize = 100;

/// Reads a message.
pub(super) fn read(name: &str, bytes: &[u8]) -> Result<Value, String> {
    Reader { depth: 0 }.message(name, bytes, None)
}

#[derive(Clone, Copy)]
struct Reader {
    depth: usize,
}

impl Reader {
    /// Reads a message, into an earlier one of the same field if there is one.
    fn message(self, name: &str, bytes: &[u8], old: Option<Value>) -> Result<Value, String> {
        if self.depth > DEEPEST {
            return Err("proto: messages are nested too deeply".to_owned());
        }
        let message = TABLE.get(name).ok_or_else(|| format!("there is no message {name}"))?;
        let mut map = match old {
            Some(Value::Object(map)) if message.form == Form::Structure => map,
            _ => Map::new(),
        };
        Self { depth: self.depth + 1 }.fill(name, message, bytes, &mut map)?;
        finish(message.form, map)
    }

    /// Reads the fields of a message.
    fn fill(
        self,
        name: &str,
        message: &Message,
        bytes: &[u8],
        map: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let mut wire = Wire::new(name.rsplit('.').next().unwrap_or_default(), bytes);
        while let Some((number, item)) = wire.next()? {
            // Those of later versions are skipped, as Go does.
            let Some(field) = message.fields.get(&number) else { continue };
            match (field.shape, &field.kind, item) {
                (Shape::One, Kind::Message(inside), Item::Bytes(bytes)) if field.name.is_empty() => {
                    let message = TABLE.get(inside).ok_or_else(|| format!("there is no message {inside}"))?;
                    self.fill(inside, message, bytes, map)?;
                }
                (Shape::One, _, _) => {
                    let value = self.value(field, item, map.shift_remove(&field.name))?;
                    if !value.is_null() && (field.shows_zero || !is_zero(&field.kind, &value)) {
                        map.insert(field.name.clone(), value);
                    }
                }
                (Shape::List, Kind::Int32 | Kind::Int64, Item::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        let item = Item::Varint(wire::varint(&mut packed)?);
                        append(map, &field.name, self.value(field, item, None)?);
                    }
                }
                (Shape::List, _, _) => append(map, &field.name, self.value(field, item, None)?),
                (Shape::Map, _, item) => {
                    let (key, value) = self.entry(field, item.bytes(&go_name(field))?)?;
                    let entry = map.entry(field.name.clone()).or_insert_with(|| json!({}));
                    if let Value::Object(entries) = entry {
                        entries.insert(key, value);
                    }
                }
            }
        }
        for field in message.fields.values().filter(|field| field.shape == Shape::Map) {
            if let Some(Value::Object(entries)) = map.get_mut(&field.name) {
                entries.sort_keys();
            }
        }
        Ok(())
    }

    /// Reads an entry of a map: a message of a key and a value.
    fn entry(self, field: &Field, bytes: &[u8]) -> Result<(String, Value), String> {
        let mut key = String::new();
        let mut value = None;
        let mut wire = Wire::new(&field.name, bytes);
        while let Some((number, item)) = wire.next()? {
            match (number, item) {
                (1, Item::Bytes(bytes)) => key = wire::text(bytes),
                (2, item) => value = Some(self.value(field, item, None)?),
                _ => {}
            }
        }
        // One without a value has an empty one.
        let value = value.map_or_else(|| self.value(field, Item::Bytes(&[]), None), Ok)?;
        Ok((key, value))
    }

    /// Reads one value of a field.
    fn value(self, field: &Field, item: Item<'_>, old: Option<Value>) -> Result<Value, String> {
        Ok(match (&field.kind, item) {
            (Kind::Text, Item::Bytes(bytes)) => wire::text(bytes).into(),
            (Kind::Bytes, Item::Bytes(bytes)) => BASE64_STANDARD.encode(bytes).into(),
            (Kind::Json, Item::Bytes([])) => Value::Null,
            (Kind::Json, Item::Bytes(bytes)) => {
                serde_json::from_slice(bytes).map_err(|error| format!("invalid JSON inside: {error}"))?
            }
            (Kind::Message(name), Item::Bytes(bytes)) => self.message(name, bytes, old)?,
            (Kind::Bool, Item::Varint(number)) => (number != 0).into(),
            (Kind::Int32, Item::Varint(number)) => low_half(number).into(),
            (Kind::Int64, Item::Varint(number)) => number.cast_signed().into(),
            (Kind::Double, Item::Fixed64(bytes)) => double(f64::from_le_bytes(bytes)),
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

/// Go's name of a field, as far as it can be guessed.
fn go_name(field: &Field) -> String {
    if field.name == "metadata" {
        return "ObjectMeta".to_owned();
    }
    let mut letters = field.name.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// A number of 32 bits comes in up to 64; Go ignores the higher half.
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

fn is_zero(kind: &Kind, value: &Value) -> bool {
    match kind {
        Kind::Text | Kind::Bytes => value == "",
        Kind::Bool => *value == false,
        Kind::Int32 | Kind::Int64 | Kind::Double => *value == 0,
        Kind::Json | Kind::Message(_) => false,
    }
}

/// What a message is in JSON.
fn finish(form: Form, mut map: Map<String, Value>) -> Result<Value, String> {
    let number =
        |map: &Map<String, Value>, name: &str| map.get(name).and_then(Value::as_i64).unwrap_or_default();
    let text = |map: &Map<String, Value>, name: &str| {
        map.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    Ok(match form {
        Form::Structure => map.into(),
        Form::Inside(names) => names.iter().find_map(|name| map.shift_remove(*name)).unwrap_or_default(),
        Form::Quantity => {
            Some(text(&map, "string")).filter(|text| !text.is_empty()).unwrap_or("0".to_owned()).into()
        }
        Form::IntOrString if number(&map, "type") == 0 => number(&map, "intVal").into(),
        Form::IntOrString => text(&map, "strVal").into(),
        Form::Time | Form::MicroTime => {
            let (seconds, nanos) = (number(&map, "seconds"), number(&map, "nanos"));
            if (seconds, nanos) == (0, 0) {
                return Ok(Value::Null);
            }
            let nanos = i32::try_from(nanos).unwrap_or_default();
            let instant = Timestamp::new(seconds, nanos).map_err(|error| format!("invalid time: {error}"))?;
            if form == Form::Time {
                api::instant::format(instant).into()
            } else {
                instant.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string().into()
            }
        }
    })
}
