//! splunk-observability: the value of a SignalFlow program of Splunk Observability Cloud.

use crate::prelude::*;

/// How the points of the duration become one value.
const AGGREGATORS: [&str; 6] = ["min", "max", "avg", "sum", "count", "latest"];

/// The scaler type `splunk-observability`.
pub const TYPE: ScalerType = ScalerType {
    name: "splunk-observability",
    about: "The value of a SignalFlow program of Splunk Observability Cloud.",
    display: "splunkObservabilityScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
    build,
    samples: &[Sample::fixed(
        &[
            ("query", "data('x').publish()"),
            ("duration", "10"),
            ("targetValue", "5"),
            ("queryAggregator", "avg"),
            ("activationTargetValue", "1"),
        ],
        &[("accessToken", sample::SECRET), ("realm", "us1")],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of splunk-observability.
    pub struct Parameters of "error parsing Splunk metadata: error parsing splunk observability metadata" {
        /// Access token.
        access_token: Secret = "accessToken" in [Authentication], required;
        /// The realm, e.g. `us1`.
        realm: String = "realm" in [Authentication], required;
        /// The SignalFlow program.
        query: String = "query" in [Metadata], required;
        /// How many seconds back points count.
        duration: isize = "duration" in [Metadata], required;
        /// Target value.
        target: f64 = "targetValue" in [Metadata], required;
        /// How the points of the duration become one value: `min`, `max` or `avg`; since KEDA 2.21 also `sum`, `count` or `latest`,
        /// and `avg` if it is missing.
        aggregator: Option<String> = "queryAggregator" in [Metadata];
        /// The trigger is active above this value.
        activation: f64 = "activationTargetValue" in [Metadata], required;
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        match (&self.aggregator, trigger.behavior().splunk_aggregator_is_optional) {
            (None, false) => {
                let text = "missing required parameter \"queryAggregator\" in [triggerMetadata]";
                Err(ParseError::of("queryAggregator", text))
            }
            (Some(given), true) if !given.split(',').all(|one| AGGREGATORS.contains(&one.trim())) => {
                let (given, list) = (api::gotext::quote(given), AGGREGATORS.join(" "));
                let text = format!("parameter \"queryAggregator\" value {given} must be one of [{list}]");
                Err(ParseError::of("queryAggregator", text))
            }
            _ => Ok(()),
        }
    }
}

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    let parameters = Parameters::read(trigger)?;
    // Whatever the trigger says, KEDA gives the HPA a value and not an average.
    let value = Trigger { metric_type: "Value".to_owned(), ..trigger.clone() };
    UnqueriedScaler::build(trigger, [external(&value, "signalfx", milli(parameters.target))])
}
