//! Numbers as quantities, and metrics as an HPA names them.

use api::autoscaling::v2::{ExternalMetricSource, MetricIdentifier, MetricSpec, MetricTarget};
use quantity::{Format, Quantity};

use crate::{Error, Trigger};

/// Below it a whole number of thousandths is exact.
const WHOLE: f64 = 9_007_199_254_740.0;

/// A number to three decimals. What is negative, infinite or none at all is zero, as KEDA has it (docs/spec/keda.md 0): whoever knows
/// better must not ask.
pub fn milli(number: f64) -> Quantity {
    if !number.is_finite() || number <= 0.0 {
        return Quantity::default();
    }
    // Most are whole, and need no digits to be written and read.
    if number.fract() == 0.0 && number < WHOLE {
        return whole(number as i64);
    }
    // A finite number in decimal digits is always a quantity.
    Quantity::parse(&format!("{number:.3}")).unwrap_or_default()
}

/// A whole number.
pub fn whole(number: i64) -> Quantity {
    Quantity::new(number, Format::DecimalSi)
}

/// What kind of target a trigger wants for a metric that is not of pods: `AverageValue` unless it says otherwise.
///
/// Ask this first when a scaler is built; `Utilization` is an error.
pub fn target_type(trigger: &Trigger) -> Result<&str, Error> {
    match &*trigger.metric_type {
        "" => Ok("AverageValue"),
        "Utilization" => Err(Error::new(
            "error getting scaler metric type: 'Utilization' metric type is unsupported for external metrics, \
             allowed values are 'Value' or 'AverageValue'",
        )),
        other => Ok(other),
    }
}

/// A metric `s{index}-{name}` and its target; the characters of the name that cannot stand in a path are replaced.
pub fn external(trigger: &Trigger, name: &str, target: Quantity) -> MetricSpec {
    external_named(trigger, trigger.metric_name(name), target)
}

/// The same with a name that stays as it is.
pub fn external_named(trigger: &Trigger, name: String, target: Quantity) -> MetricSpec {
    let type_ = target_type(trigger).unwrap_or("AverageValue").to_owned();
    let average = type_ == "AverageValue";
    let (value, average_value) = if average { (None, Some(target)) } else { (Some(target), None) };
    let target = MetricTarget { type_, value, average_value, average_utilization: None };
    let metric = MetricIdentifier { name, selector: None };
    MetricSpec {
        type_: "External".to_owned(),
        external: Some(ExternalMetricSource { metric, target }),
        ..MetricSpec::default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_is_what_its_digits_say(number in prop_oneof![
            any::<f64>().prop_map(f64::abs),
            (0.0..1e16_f64).prop_map(f64::trunc),
            0.0..1e6_f64,
        ]) {
            prop_assume!(number.is_finite());
            let read = Quantity::parse(&format!("{number:.3}")).unwrap();
            prop_assert_eq!(milli(number).to_string(), read.to_string());
            prop_assert_eq!(milli(number).as_f64().to_bits(), read.as_f64().to_bits());
            prop_assert_eq!(milli(number), read);
        }
    }
}
