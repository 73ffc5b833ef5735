//! The number in a value.

use quantity::Quantity;
use serde_json::Value;

use super::Parameters;
use crate::ScalerError;
use crate::metrics_api::query::json::walk;
use crate::metrics_api::query::{stream, yaml};
use crate::responses::{kind, parsed};

/// The number in the value of the key. Errors do not quote the value, because it may come from a Secret.
pub(super) fn value(bytes: &[u8], parameters: &Parameters) -> Result<f64, ScalerError> {
    let Parameters { format, value_location, value_type, .. } = parameters;
    let location = value_location.as_deref().unwrap_or_default();
    let text = std::str::from_utf8(bytes).map_err(|_| scaler_error!("the value is not text"))?;
    let nowhere = || scaler_error!("valueLocation {location:?} not found");
    match &**format {
        "json" => {
            let found = stream::find(bytes, location)
                .map_err(|error| error.described(|_| "the value is not JSON".to_owned()))?;
            number(&found.ok_or_else(nowhere)?, value_type, location)
        }
        "yaml" => {
            let tree = yaml(text).map_err(|_| scaler_error!("the value is not YAML"))?;
            number(walk(&tree, location).ok_or_else(nowhere)?, value_type, location)
        }
        _ => read(text.trim(), value_type).ok_or_else(|| scaler_error!("the value is not a {value_type}")),
    }
}

fn number(value: &Value, type_: &str, location: &str) -> Result<f64, ScalerError> {
    let found = match value {
        Value::String(text) => read(text.trim(), type_),
        Value::Number(number) => read(&number.to_string(), type_),
        _ => None,
    };
    found.ok_or_else(|| {
        let kind = kind(Some(value));
        scaler_error!("valueLocation {location:?} must point to a {type_}, but there is {kind}")
    })
}

/// Parses a number of the given type.
fn read(text: &str, type_: &str) -> Option<f64> {
    match type_ {
        "int64" => text.parse::<i64>().ok().map(|number| number as f64),
        "quantity" => Quantity::parse(text).ok().map(|quantity| quantity.as_f64()),
        _ => parsed(text),
    }
}
