//! JSON as the Kubernetes API reads and writes it.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::{ParseError, Quantity};

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads strings (trimmed), numbers and null, which is zero.
///
/// Unlike [`Quantity::from_json_text`] this sees strings unescaped and fractional numbers as floats: `1e3`
/// and `1000.0` are both read as `1000`.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl<'de> Visitor<'de> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as 100m or 1.5Gi")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        Quantity::parse(text.trim()).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Quantity, E> {
        // Where Go's JSON encoder switches to exponents.
        let plain = number == 0.0 || (1e-6..1e21).contains(&number.abs());
        self.visit_str(&if plain { number.to_string() } else { format!("{number:e}") })
    }

    fn visit_unit<E: de::Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::default())
    }

    fn visit_none<E: de::Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Quantity, D::Error> {
        deserializer.deserialize_any(self)
    }

    // Kubernetes parses the raw text of other JSON values as a quantity; the error is the same.

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Quantity, E> {
        Err(E::custom(ParseError::FORM))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Quantity, A::Error> {
        Err(de::Error::custom(ParseError::FORM))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Quantity, A::Error> {
        Err(de::Error::custom(ParseError::FORM))
    }
}

#[cfg(test)]
mod tests;
