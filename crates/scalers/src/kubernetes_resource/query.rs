//! The number in a text.

use quantity::Quantity;
use serde_json::Value;

use super::Parameters;
use crate::Error;
use crate::answers::{json, kind, parsed};
use crate::metrics_api::query::json::{find, walk};
use crate::metrics_api::query::yaml;

/// The number in what stands under the key. The text is not repeated in errors: it may be from a Secret.
pub(super) fn value(bytes: &[u8], parameters: &Parameters) -> Result<f64, Error> {
    let Parameters { format, value_location, value_type, .. } = parameters;
    let location = value_location.as_deref().unwrap_or_default();
    let text = std::str::from_utf8(bytes).map_err(|_| Error::new("the value is not text"))?;
    let nowhere = || Error::new(format!("valueLocation {location:?} not found"));
    match &**format {
        "json" => {
            let tree = json(bytes).map_err(|_| Error::new("the value is not JSON"))?;
            number(find(&tree, location)?.ok_or_else(nowhere)?.as_ref(), value_type, location)
        }
        "yaml" => {
            let tree = yaml(text).map_err(|_| Error::new("the value is not YAML"))?;
            number(walk(&tree, location).ok_or_else(nowhere)?, value_type, location)
        }
        _ => read(text.trim(), value_type)
            .ok_or_else(|| Error::new(format!("the value is not a {value_type}"))),
    }
}

fn number(value: &Value, type_: &str, location: &str) -> Result<f64, Error> {
    let found = match value {
        Value::String(text) => read(text.trim(), type_),
        Value::Number(number) => read(&number.to_string(), type_),
        _ => None,
    };
    found.ok_or_else(|| {
        let kind = kind(Some(value));
        Error::new(format!("valueLocation {location:?} must point to a {type_}, but there is {kind}"))
    })
}

/// A number as its type writes it.
fn read(text: &str, type_: &str) -> Option<f64> {
    match type_ {
        "int64" => text.parse::<i64>().ok().map(|number| number as f64),
        "quantity" => Quantity::parse(text).ok().map(|quantity| quantity.as_f64()),
        _ => parsed(text),
    }
}
