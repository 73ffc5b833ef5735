//! Constructors and accessors of messages.

use tonic::Status;

use crate::protocol::{MetricSpec, MetricValue, ScaledObjectRef};

/// The largest integer that `f64` represents exactly.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

impl ScaledObjectRef {
    /// A value of the trigger's metadata; an error that names the key if it is missing.
    pub fn text(&self, key: &str) -> Result<&str, Status> {
        self.value(key)
            .ok_or_else(|| Status::invalid_argument(format!("the trigger has no {key} in its metadata")))
    }

    /// A number of the trigger's metadata; an error that names the key if it is missing.
    pub fn number(&self, key: &str) -> Result<f64, Status> {
        let text = self.text(key)?;
        number(text).ok_or_else(|| {
            Status::invalid_argument(format!(
                "{key} in the trigger's metadata is {text:?}, which is no number"
            ))
        })
    }

    /// A number of the trigger's metadata, or a default if it is missing.
    pub fn number_or(&self, key: &str, otherwise: f64) -> Result<f64, Status> {
        if self.value(key).is_none() { Ok(otherwise) } else { self.number(key) }
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.scaler_metadata.get(key).map(|text| text.trim()).filter(|text| !text.is_empty())
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

impl MetricSpec {
    /// A metric with its target value per replica.
    pub fn new(name: impl Into<String>, target: f64) -> Self {
        Self { metric_name: name.into(), target_size: whole(target), target_size_float: target }
    }

    /// The target per replica: the float if it is above zero, otherwise the integer.
    pub fn target(&self) -> f64 {
        if self.target_size_float > 0.0 { self.target_size_float } else { self.target_size as f64 }
    }
}

impl MetricValue {
    /// A value of a metric.
    pub fn new(name: impl Into<String>, value: f64) -> Self {
        Self { metric_name: name.into(), metric_value: whole(value), metric_value_float: value }
    }

    /// The value: the float if it is above zero, otherwise the integer.
    pub fn amount(&self) -> f64 {
        if self.metric_value_float > 0.0 { self.metric_value_float } else { self.metric_value as f64 }
    }
}

/// The integer for clients that do not read the float.
fn whole(number: f64) -> i64 {
    number.round().clamp(-MAX_EXACT_INTEGER, MAX_EXACT_INTEGER) as i64
}
