//! Conversion of numbers to quantities, and metric specs.

use api::autoscaling::v2::{ExternalMetricSource, MetricIdentifier, MetricSpec, MetricTarget};
use quantity::{Format, Quantity};

use crate::{ScalerError, Trigger};

/// Whole numbers below this are exact in thousandths.
const MAX_EXACT_WHOLE: f64 = 9_007_199_254_740.0;

/// A number rounded to three decimals. Negative, infinite and NaN values become 0, as in KEDA (docs/spec/keda.md 0); callers that
/// must not serve 0 for them check first.
pub fn milli(number: f64) -> Quantity {
    if !number.is_finite() || number <= 0.0 {
        return Quantity::default();
    }
    // Fast path for whole numbers, without formatting and parsing.
    if number.fract() == 0.0 && number < MAX_EXACT_WHOLE {
        return whole(number as i64);
    }
    // Every finite number in decimal notation is a valid quantity.
    Quantity::parse(&format!("{number:.3}")).unwrap_or_default()
}

/// A whole number.
pub fn whole(number: i64) -> Quantity {
    Quantity::new(number, Format::DecimalSi)
}

/// The target type of a trigger's external metric: `AverageValue` by default.
///
/// Scalers call this first when they are built: `Utilization` is an error.
pub fn target_type(trigger: &Trigger) -> Result<&str, ScalerError> {
    match &*trigger.metric_type {
        "" => Ok("AverageValue"),
        "Utilization" => Err(ScalerError::new(
            "error getting scaler metric type: 'Utilization' metric type is unsupported for external metrics, \
             allowed values are 'Value' or 'AverageValue'",
        )),
        other => Ok(other),
    }
}

/// The spec of metric `s{index}-{name}`; characters that are invalid in a URL path are replaced.
pub fn external(trigger: &Trigger, name: &str, target: Quantity) -> MetricSpec {
    external_named(trigger, trigger.metric_name(name), target)
}

/// The spec of a metric whose name is used unchanged.
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn milli_equals_parsed_decimal(number in prop_oneof![
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
