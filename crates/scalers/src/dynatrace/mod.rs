//! dynatrace: the value of a metric selector, or of a DQL query.

mod query;
#[cfg(test)]
mod tests;

use query::QueryProgress;

use crate::prelude::*;

/// The scaler type `dynatrace`.
pub const TYPE: ScalerType = ScalerType {
    name: "dynatrace",
    about: "The value of a Dynatrace metric selector, or of a query in DQL.",
    display: "dynatraceScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[("host", "http://{}"), ("metricSelector", "m"), ("threshold", "5")],
        sample::TOKEN,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of dynatrace.
    pub struct Parameters of "error parsing dynatrace metadata: error parsing dynatrace metadata" {
        /// URL of Dynatrace, e.g. `https://abc12345.live.dynatrace.com` (with `query`: `https://abc12345.apps.dynatrace.com`).
        host: String = "host" in [Metadata, Authentication], required;
        /// The token: an API token for `metricSelector`, a platform token for `query`.
        token: Secret = "token" in [Authentication], required;
        /// The metric selector; its first value is used, so it should return one value.
        metric_selector: Option<String> = "metricSelector" in [Metadata];
        /// Start of the time range of the metric selector; `now-2h` if it is missing.
        from: String = "from" in [Metadata];
        /// The query in DQL; its first record must have a number `r`.
        query: Option<String> = "query" in [Metadata];
        /// Maximum execution time of the query, in seconds.
        query_timeout_seconds: isize = "queryTimeoutSeconds" in [Metadata], default "10";
        /// Pause between two requests for the result.
        query_polling_wait: Duration = "queryPollingWait" in [Metadata], default "1s";
        /// Maximum number of requests for the result.
        query_polling_tries: isize = "queryPollingTries" in [Metadata], default "5";
        /// Target value per replica.
        threshold: f64 = "threshold" in [Metadata], required;
        /// The trigger is active above this value.
        activation_threshold: f64 = "activationThreshold" in [Metadata], default "0";
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        match (&self.metric_selector, &self.query) {
            (None, None) => return Err("either 'metricSelector' or 'query' must be provided".into()),
            (Some(_), Some(_)) => {
                return Err(
                    "'metricSelector' and 'query' are mutually exclusive; only one can be provided".into()
                );
            }
            (None, Some(_)) if !self.from.is_empty() => {
                return Err("'from' can't be used with query, set time range in the DQL query itself".into());
            }
            (Some(_), None) if self.from.is_empty() => "now-2h".clone_into(&mut self.from),
            _ => {}
        }
        Ok(())
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let spec = external(trigger, "dynatrace", milli(parameters.threshold));
    let activation = parameters.activation_threshold;
    let source = HttpSource::new(parameters, trigger, backends);
    SingleMetricScaler::build(spec, activation, source)
}

impl HttpSource<Parameters> {
    async fn selected(&self, selector: &str) -> Result<f64, ScalerError> {
        let Parameters { host, token, from, .. } = &self.parameters;
        let call = HttpCall::get(query::selector_url(host, selector, from), self.within);
        let call = call.header("authorization", &format!("Api-Token {}", token.reveal()))?;
        let (status, body) = send(&self.web, call).await?;
        query::selected(status, &body)
    }

    async fn executed(&self, query: &str) -> Result<f64, ScalerError> {
        let Parameters {
            host, token, query_timeout_seconds, query_polling_wait, query_polling_tries, ..
        } = &self.parameters;
        let seconds = u64::try_from(*query_timeout_seconds).unwrap_or(1).max(1);
        let bearer = format!("Bearer {}", token.reveal());
        let call = HttpCall::post(query::execute_url(host), query::body(query, seconds), self.within);
        let call = call.header("content-type", "application/json")?.header("authorization", &bearer)?;
        let (status, body) = send(&self.web, call).await?;
        let mut request = match query::progress(status, &body)? {
            QueryProgress::Done(value) => return Ok(value),
            QueryProgress::Running(Some(request)) => request,
            QueryProgress::Running(None) => {
                bail!("the query runs, but there is no token to ask for it");
            }
        };
        for again in 0..*query_polling_tries {
            if again > 0 {
                tokio::time::sleep(*query_polling_wait).await;
            }
            let url = query::poll_url(host, &request);
            // Polls have equal URLs but must not share a response.
            let same_as = format!("{url}#{again}");
            let call = HttpCall::get(url, self.within).header("authorization", &bearer)?.same_as(same_as);
            let (status, body) = send(&self.web, call).await?;
            match query::progress(status, &body)? {
                QueryProgress::Done(value) => return Ok(value),
                QueryProgress::Running(next) => request = next.unwrap_or(request),
            }
        }
        Err(scaler_error!("the query has no result after {query_polling_tries} tries"))
    }
}

impl ValueSource for HttpSource<Parameters> {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            match &self.parameters {
                Parameters { metric_selector: Some(selector), .. } => self.selected(selector).await,
                Parameters { query: Some(query), .. } => self.executed(query).await,
                _ => Err(scaler_error!("there is nothing to ask")),
            }
        })
    }
}
