//! splunk-observability: the value of a SignalFlow program of Splunk Observability Cloud.
//!
//! KEDA runs the program for the next `duration` seconds and waits for its points. Here it is run over the past, so that a read takes
//! no longer than a request. The last points arrive late, so the `duration` seconds that count end with the latest point.

mod query;
#[cfg(test)]
mod tests;

use crate::prelude::*;

/// Minimum timeout of a request: programs take longer than the usual requests.
const MIN_TIMEOUT: Duration = Duration::from_secs(15);

/// How long after their time points may arrive.
const MAX_POINT_DELAY: Duration = Duration::from_mins(1);

/// How the points of the duration become one value.
const AGGREGATORS: [&str; 6] = ["min", "max", "avg", "sum", "count", "latest"];

/// The scaler type `splunk-observability`.
pub const TYPE: ScalerType = ScalerType {
    name: "splunk-observability",
    about: "The value of a SignalFlow program of Splunk Observability Cloud.",
    display: "splunkObservabilityScaler",
    parameters: Parameters::PARAMETERS,
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
        /// How many seconds back from the latest point points count.
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

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    let parameters = Parameters::read(trigger)?;
    // Whatever the trigger says, KEDA gives the HPA a value and not an average.
    let value = Trigger { metric_type: "Value".to_owned(), ..trigger.clone() };
    let spec = external(&value, "signalfx", milli(parameters.target));
    let activation = parameters.activation;
    SingleMetricScaler::build(spec, activation, HttpSource::new(parameters, trigger, backends))
}

impl HttpSource<Parameters> {
    async fn points(&self) -> Result<Vec<f64>, ScalerError> {
        let Parameters { access_token, realm, query, duration, .. } = &self.parameters;
        let stop = self.web.now().as_millisecond();
        let span = (*duration as i64).saturating_mul(1000);
        let start = stop.saturating_sub(span).saturating_sub(MAX_POINT_DELAY.as_millis() as i64);
        let call =
            HttpCall::post(query::url(realm, start, stop), query.clone(), self.within.max(MIN_TIMEOUT))
                .header("content-type", "text/plain")?
                .header("x-sf-token", access_token.reveal())?;
        let (status, body) = send(&self.web, call).await?;
        Ok(query::latest(&query::points(status, &body)?, span))
    }
}

impl ValueSource for HttpSource<Parameters> {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let failed =
                |error: ScalerError| error.inside("error getting metrics from Splunk Observability Cloud");
            // It is missing only where KEDA has a default.
            let aggregator = self.parameters.aggregator.as_deref().unwrap_or("avg");
            let points = self.points().await.map_err(failed)?;
            query::aggregated(&points, aggregator).map_err(failed)
        })
    }
}
