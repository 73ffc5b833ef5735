//! dynatrace: a metric selector, or a query in DQL.

mod query;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::backends::Backends;
use crate::metric::{external, milli, target_type};
use crate::parameters::Secret;
use crate::single::{Single, Source, ask};
use crate::table::Type;
use crate::web::{Call, Web};
use crate::{Answer, Error, Scaler, Trigger};
use query::Progress;

/// dynatrace.
pub const TYPE: Type = Type {
    name: "dynatrace",
    about: "The value of a Dynatrace metric selector, or of a query in DQL.",
    display: "dynatraceScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What dynatrace accepts.
    pub struct Parameters of "error parsing dynatrace metadata" {
        /// Where Dynatrace is, e.g. `https://abc12345.live.dynatrace.com` (with `query`: `https://abc12345.apps.dynatrace.com`).
        host: String = "host" in [Metadata, Authentication], required;
        /// The token: an API token for `metricSelector`, a platform token for `query`.
        token: Secret = "token" in [Authentication], required;
        /// The metric selector; its first value counts, so let it have one.
        metric_selector: Option<String> = "metricSelector" in [Metadata];
        /// Since when values count for the metric selector.
        from: String = "from" in [Metadata], default "now-2h";
        /// The query in DQL; its result must be one record with a number `r`.
        query: Option<String> = "query" in [Metadata];
        /// How many seconds the query may take.
        query_timeout_seconds: isize = "queryTimeoutSeconds" in [Metadata], default "10";
        /// How long to wait before the result is asked for again.
        query_polling_wait: Duration = "queryPollingWait" in [Metadata], default "1s";
        /// How often the result is asked for.
        query_polling_tries: isize = "queryPollingTries" in [Metadata], default "5";
        /// The value that one replica is for.
        threshold: f64 = "threshold" in [Metadata, Authentication], required;
        /// The trigger is active above it.
        activation_threshold: f64 = "activationThreshold" in [Metadata], default "0";
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), String> {
        match (&self.metric_selector, &self.query) {
            (None, None) => Err("either 'metricSelector' or 'query' must be provided".to_owned()),
            (Some(_), Some(_)) => Err("only one of 'metricSelector' and 'query' can be provided".to_owned()),
            _ => Ok(()),
        }
    }
}

struct Dynatrace {
    parameters: Parameters,
    within: Duration,
    web: Arc<Web>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    target_type(trigger)?;
    let parameters =
        Parameters::read(trigger).map_err(|error| error.inside("error parsing dynatrace metadata"))?;
    let spec = external(trigger, "dynatrace", milli(parameters.threshold));
    let activation = parameters.activation_threshold;
    let source = Dynatrace { parameters, within: trigger.http_timeout, web: Arc::clone(&backends.web) };
    Ok(Arc::new(Single { spec, activation, source }))
}

impl Dynatrace {
    async fn selected(&self, selector: &str) -> Result<f64, Error> {
        let Parameters { host, token, from, .. } = &self.parameters;
        let call = Call::get(query::selector_url(host, selector, from), self.within);
        let call = call.header("authorization", &format!("Api-Token {}", token.reveal()))?;
        let (status, body) = ask(&self.web, call).await?;
        query::selected(status, &body)
    }

    async fn executed(&self, query: &str) -> Result<f64, Error> {
        let Parameters {
            host, token, query_timeout_seconds, query_polling_wait, query_polling_tries, ..
        } = &self.parameters;
        let seconds = u64::try_from(*query_timeout_seconds).unwrap_or(1).max(1);
        let bearer = format!("Bearer {}", token.reveal());
        let call = Call::post(query::execute_url(host), query::body(query, seconds), self.within);
        let call = call.header("content-type", "application/json")?.header("authorization", &bearer)?;
        let (status, body) = ask(&self.web, call).await?;
        let mut request = match query::progress(status, &body)? {
            Progress::Done(value) => return Ok(value),
            Progress::Running(Some(request)) => request,
            Progress::Running(None) => {
                return Err(Error::new("the query runs, but there is no token to ask for it"));
            }
        };
        for again in 0..*query_polling_tries {
            tokio::time::sleep(*query_polling_wait).await;
            let url = query::poll_url(host, &request);
            // Each look is another question, even if it is asked in the same words.
            let same_as = format!("{url}#{again}");
            let call = Call::get(url, self.within).header("authorization", &bearer)?.same_as(same_as);
            let (status, body) = ask(&self.web, call).await?;
            match query::progress(status, &body)? {
                Progress::Done(value) => return Ok(value),
                Progress::Running(next) => request = next.unwrap_or(request),
            }
        }
        Err(Error::new(format!("the query has no result after {query_polling_tries} tries")))
    }
}

impl Source for Dynatrace {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            match &self.parameters {
                Parameters { metric_selector: Some(selector), .. } => self.selected(selector).await,
                Parameters { query: Some(query), .. } => self.executed(query).await,
                _ => Err(Error::new("there is nothing to ask")),
            }
        })
    }
}
