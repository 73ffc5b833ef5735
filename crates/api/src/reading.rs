//! What a scaler returns for one metric of a trigger.

use quantity::Quantity;

/// One value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadingValue {
    /// The metric's name, as requested.
    pub name: String,
    /// The value.
    pub value: Quantity,
}

/// The values of one metric and whether its trigger is active.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Its values; the HPA adds them up.
    pub values: Vec<ReadingValue>,
    /// Whether the trigger is active.
    pub active: bool,
}

impl Reading {
    /// One value.
    pub fn one(name: &str, value: Quantity, active: bool) -> Self {
        Self { values: vec![ReadingValue { name: name.to_owned(), value }], active }
    }
}
