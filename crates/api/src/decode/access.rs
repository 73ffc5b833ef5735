//! The deserializer that walks a JSON value.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

use super::{DecodeError, Keys, Session, types};
use crate::instant;

/// Path of the current field.
pub(super) struct FieldPath<'p> {
    parent: Option<&'p FieldPath<'p>>,
    structure: &'p str,
    field: &'p str,
}

impl FieldPath<'_> {
    pub(super) const ROOT: FieldPath<'static> = FieldPath { parent: None, structure: "", field: "" };

    fn path(&self) -> String {
        match self.parent {
            Some(parent) if parent.parent.is_some() => format!("{}.{}", parent.path(), self.field),
            _ => self.field.to_owned(),
        }
    }

    /// `struct field S.path` or, outside of any structure, `value`.
    fn described(&self) -> String {
        match self.parent {
            None => "value".to_owned(),
            Some(_) => format!("struct field {}.{}", self.structure, self.path()),
        }
    }

    /// Whether values of this field are kept unchanged.
    fn is_opaque(&self) -> bool {
        self.structure == "ManagedFieldsEntry" && self.field == "fieldsV1"
    }
}

/// Decodes one value.
#[derive(Clone, Copy)]
pub(super) struct ValueDeserializer<'v, 's, 'p> {
    pub(super) value: &'v Value,
    pub(super) place: &'p FieldPath<'p>,
    pub(super) session: &'s Session<'s>,
}

impl ValueDeserializer<'_, '_, '_> {
    /// The error of a value with the wrong type.
    fn mistake(&self, found: &str, expected: &str) -> DecodeError {
        DecodeError::new(format!(
            "json: cannot unmarshal {found} into Go {} of type {expected}",
            self.place.described()
        ))
    }

    fn record_mistake(&self, expected: &str) {
        let mistake = self.mistake(types::kind_word(self.value), expected);
        self.session.first_mistake.borrow_mut().get_or_insert(mistake);
    }

    fn expected_type(&self, otherwise: &str) -> String {
        types::field_type(self.place.structure, self.place.field, self.session.package)
            .unwrap_or_else(|| otherwise.to_owned())
    }

    /// The type of a list's or map's elements when the value itself is no list or map.
    fn scalar_type(&self, otherwise: &str) -> String {
        let declared = self.expected_type(otherwise);
        if declared.starts_with(['[', 'm']) { otherwise.to_owned() } else { declared }
    }

    fn integer(&self, go_type: &str, fits: impl Fn(i64) -> bool) -> i64 {
        match self.value {
            Value::Null => 0,
            Value::Number(number) => number.as_i64().filter(|number| fits(*number)).unwrap_or_else(|| {
                let mistake = self.mistake(&format!("number {}", types::number_text(number)), go_type);
                self.session.first_mistake.borrow_mut().get_or_insert(mistake);
                0
            }),
            _ => {
                self.record_mistake(go_type);
                0
            }
        }
    }
}

impl<'de> Deserializer<'de> for ValueDeserializer<'_, '_, '_> {
    type Error = DecodeError;

    /// For values with their own decoder, such as quantities. They get the raw text of a string.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if let Value::String(text) = self.value
            && !self.place.is_opaque()
        {
            let raw = self.value.to_string();
            return visitor.visit_str(if raw.len() == text.len() + 2 { text } else { &raw });
        }
        self.value.clone().deserialize_any(visitor).map_err(|error| DecodeError::new(error.to_string()))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        // A time has its own decoder, so an error in it stops decoding.
        if name == instant::NAME && !self.value.is_string() && !self.value.is_null() {
            return Err(self.mistake(types::kind_word(self.value), "string"));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.value {
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Null => visitor.visit_bool(false),
            _ => {
                self.record_mistake(&self.scalar_type("bool"));
                visitor.visit_bool(false)
            }
        }
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_i64(self.integer("int32", |number| i32::try_from(number).is_ok()))
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_i64(self.integer("int64", |_| true))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.value {
            Value::String(text) => visitor.visit_str(text),
            Value::Null => visitor.visit_str(""),
            _ => {
                self.record_mistake(&self.scalar_type("string"));
                visitor.visit_str("")
            }
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.value {
            Value::Array(items) => visitor.visit_seq(ArrayAccess { items: items.iter(), reader: self }),
            Value::Null => visitor.visit_seq(no_items()),
            _ => {
                self.record_mistake(&self.expected_type("[]interface {}"));
                visitor.visit_seq(no_items())
            }
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.value {
            Value::Object(entries) => {
                visitor.visit_map(ObjectAccess { left: entries.iter(), value: None, reader: self })
            }
            Value::Null => visitor.visit_map(no_entries()),
            _ => {
                self.record_mistake(&self.expected_type("map[string]string"));
                visitor.visit_map(no_entries())
            }
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match self.value {
            Value::Object(entries) => {
                let fields = present_fields(entries, fields, self.session.keys);
                visitor.visit_map(StructAccess {
                    left: fields.into_iter(),
                    value: None,
                    structure: name,
                    reader: self,
                })
            }
            Value::Null => visitor.visit_map(no_entries()),
            _ => {
                self.record_mistake(&types::struct_type(name, self.session.package));
                visitor.visit_map(no_entries())
            }
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct enum
        identifier ignored_any
    }
}

fn no_items<'de>() -> SeqDeserializer<std::iter::Empty<&'de str>, DecodeError> {
    SeqDeserializer::new(std::iter::empty())
}

fn no_entries<'de>() -> MapDeserializer<'de, std::iter::Empty<(&'de str, &'de str)>, DecodeError> {
    MapDeserializer::new(std::iter::empty())
}

/// The known fields in the order of the document; of several keys for one field the last counts.
fn present_fields<'v>(
    entries: &'v Map<String, Value>,
    fields: &'static [&'static str],
    keys: Keys,
) -> Vec<(&'static str, &'v Value)> {
    let mut present: Vec<(&'static str, &Value)> = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let exact = fields.iter().find(|field| *field == key);
        let folded = || fields.iter().find(|field| keys == Keys::AnyCase && same_folded(key, field));
        if let Some(field) = exact.or_else(folded) {
            present.retain(|(earlier, _)| earlier != field);
            present.push((field, value));
        }
    }
    present
}

/// Whether two keys are equal in Go's case folding, in which two non-ASCII letters fold to `s` and `k`.
pub(super) fn same_folded(key: &str, field: &str) -> bool {
    let fold = |c: char| match c {
        'ſ' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    };
    key.chars().map(fold).eq(field.chars().map(fold))
}

struct ArrayAccess<'v, 's, 'p> {
    items: std::slice::Iter<'v, Value>,
    reader: ValueDeserializer<'v, 's, 'p>,
}

impl<'de> SeqAccess<'de> for ArrayAccess<'_, '_, '_> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        self.items
            .next()
            .map(|value| seed.deserialize(ValueDeserializer { value, ..self.reader }))
            .transpose()
    }
}

/// The entries of a map. They are not part of the path, as in Go.
struct ObjectAccess<'v, 's, 'p> {
    left: serde_json::map::Iter<'v>,
    value: Option<&'v Value>,
    reader: ValueDeserializer<'v, 's, 'p>,
}

impl<'de> MapAccess<'de> for ObjectAccess<'_, '_, '_> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DecodeError> {
        let Some((key, value)) = self.left.next() else { return Ok(None) };
        self.value = Some(value);
        seed.deserialize(key.as_str().into_deserializer()).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, DecodeError> {
        seed.deserialize(ValueDeserializer {
            value: self.value.take().unwrap_or(&Value::Null),
            ..self.reader
        })
    }
}

struct StructAccess<'v, 's, 'p> {
    left: std::vec::IntoIter<(&'static str, &'v Value)>,
    value: Option<(&'static str, &'v Value)>,
    structure: &'static str,
    reader: ValueDeserializer<'v, 's, 'p>,
}

impl<'de> MapAccess<'de> for StructAccess<'_, '_, '_> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DecodeError> {
        self.value = self.left.next();
        self.value.map(|(field, _)| seed.deserialize(field.into_deserializer())).transpose()
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, DecodeError> {
        let (field, value) = self.value.take().unwrap_or(("", &Value::Null));
        let place = FieldPath { parent: Some(self.reader.place), structure: self.structure, field };
        seed.deserialize(ValueDeserializer { value, place: &place, session: self.reader.session })
    }
}
