//! How messages are made and read.

use tonic::Status;

use crate::protocol::{MetricSpec, MetricValue, ScaledObjectRef};

/// Floats are exact up to here, and so is the integer beside them.
const LARGEST: f64 = 9_007_199_254_740_992.0;

impl ScaledObjectRef {
    /// What the trigger says about a key; an error that names the key if it says nothing.
    pub fn text(&self, key: &str) -> Result<&str, Status> {
        self.said(key)
            .ok_or_else(|| Status::invalid_argument(format!("the trigger has no {key} in its metadata")))
    }

    /// A number of the trigger; an error that names the key if there is none.
    pub fn number(&self, key: &str) -> Result<f64, Status> {
        let text = self.text(key)?;
        number(text).ok_or_else(|| {
            Status::invalid_argument(format!(
                "{key} in the trigger's metadata is {text:?}, which is no number"
            ))
        })
    }

    /// A number of the trigger, or this one if it says nothing.
    pub fn number_or(&self, key: &str, otherwise: f64) -> Result<f64, Status> {
        if self.said(key).is_none() { Ok(otherwise) } else { self.number(key) }
    }

    fn said(&self, key: &str) -> Option<&str> {
        self.scaler_metadata.get(key).map(|text| text.trim()).filter(|text| !text.is_empty())
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

impl MetricSpec {
    /// A metric of which one replica is to have so much.
    pub fn new(name: impl Into<String>, target: f64) -> Self {
        Self { metric_name: name.into(), target_size: whole(target), target_size_float: target }
    }

    /// What one replica is to have: the float if it is above zero, otherwise the integer.
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

/// For those who read only the integer.
fn whole(number: f64) -> i64 {
    number.round().clamp(-LARGEST, LARGEST) as i64
}
