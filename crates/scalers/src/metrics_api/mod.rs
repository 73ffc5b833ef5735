//! metrics-api: a number in the answer of any HTTP server.

pub mod query;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use api::autoscaling::v2::MetricSpec;
use futures::stream::{self, StreamExt as _};
use query::{Format, Service};
use sources::http::Auth;

use crate::backends::{Backends, Cluster};
use crate::metric::{external, milli, target_type};
use crate::parameters::groups::HttpAuth;
use crate::table::Type;
use crate::web::{Call, Web};
use crate::{Answer, Error, Reading, Scaler, Trigger};

/// How many endpoints of a service are asked at a time.
const AT_ONCE: usize = 5;

/// metrics-api.
pub const TYPE: Type = Type {
    name: "metrics-api",
    about: "A number in the answer of any HTTP server: JSON, YAML, XML or the text format of Prometheus.",
    display: "metricsAPIScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What metrics-api accepts.
    pub struct Parameters of "error parsing metrics API metadata" {
        /// The number that one replica is for; not needed if a formula has its own target.
        target_value: f64 = "targetValue" in [Metadata], default "0";
        /// The trigger is active above it.
        activation_target_value: f64 = "activationTargetValue" in [Metadata], default "0";
        /// Where to ask.
        url: String = "url" in [Metadata], required;
        /// What the answer is.
        format: String = "format" in [Metadata], default "json", one_of ["prometheus", "json", "xml", "yaml"];
        /// Where in the answer the number is: a path such as `tasks.0.waiting`, for `prometheus` a metric such as
        /// `waiting{queue="mail"}`.
        value_location: String = "valueLocation" in [Metadata], required;
        /// Accepts any certificate of the server.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// Asks every endpoint of the service that the URL names, and aggregates their numbers.
        aggregate: bool = "aggregateFromKubeServiceEndpoints" in [Metadata], default "false";
        /// How the numbers of several endpoints become one.
        aggregation: String = "aggregationType" in [Metadata], default "average",
            one_of ["average", "sum", "max", "min"];
        /// How long the answer may take.
        timeout: Option<Duration> = "timeout" in [Metadata];
        /// How to show who we are; `custom` and `oauth` say nothing here.
        auth: HttpAuth;
    }
}

struct MetricsApi {
    spec: MetricSpec,
    parameters: Parameters,
    format: Format,
    within: Duration,
    web: Arc<Web>,
    cluster: Arc<dyn Cluster>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    const PREFIX: &str = "error parsing metric API metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    if parameters.target_value == 0.0 && !trigger.feeds_formula {
        return Err(Error::new("no targetValue given in metadata").inside(PREFIX));
    }
    let name = format!("metric-api-{}", parameters.value_location);
    Ok(Arc::new(MetricsApi {
        spec: external(trigger, &name, milli(parameters.target_value)),
        format: Format::named(&parameters.format),
        within: parameters.timeout.filter(|time| !time.is_zero()).unwrap_or(trigger.http_timeout),
        parameters,
        web: Arc::clone(&backends.web),
        cluster: Arc::clone(&backends.cluster),
    }))
}

impl MetricsApi {
    fn call(&self, url: String) -> Result<Call, Error> {
        let Parameters { auth, unsafe_ssl, .. } = &self.parameters;
        let mut call = Call::get(url, self.within);
        call.access = auth.trust(*unsafe_ssl);
        let named = |default: &str| match &*auth.key_param_name {
            "" => default.to_owned(),
            name => name.to_owned(),
        };
        if auth.has("apiKey") {
            if auth.method == "query" {
                call.url = query::with_parameter(&call.url, &named("api_key"), auth.api_key.reveal());
            } else {
                call = call.header(&named("X-API-KEY"), auth.api_key.reveal())?;
            }
        }
        if auth.has("basic") {
            call = call.basic(&auth.username, &auth.password);
        } else if auth.has("bearer") {
            call.access.auth = Auth::Token(auth.token.clone());
        }
        Ok(call)
    }

    /// The number that one server says.
    async fn one(&self, url: String) -> Result<f64, Error> {
        let path = query::path(&url).to_owned();
        let answer = self.web.ask(self.call(url)?).await.map_err(|error| Error::new(error.to_string()))?;
        if answer.status != 200 {
            return Err(Error::new(format!("{path}: api returned {}", answer.status.as_u16())));
        }
        query::read(self.format, &answer.body, &self.parameters.value_location)
    }

    /// The numbers of all endpoints of a service, as one. Those that fail do not count unless all do.
    async fn all(&self) -> Result<f64, Error> {
        let service = Service::of(&self.parameters.url)?;
        let endpoints = self.cluster.endpoints(&service.namespace, &service.name).await;
        let endpoints = endpoints.map_err(Error::new)?;
        let urls: Vec<String> = query::endpoints(&service, endpoints);
        if urls.is_empty() {
            return Err(Error::new(format!(
                "service {}/{} has no endpoints",
                service.namespace, service.name
            )));
        }
        let answers: Vec<_> =
            stream::iter(urls).map(|url| self.one(url)).buffer_unordered(AT_ONCE).collect().await;
        query::aggregated(&self.parameters.aggregation, answers)
    }
}

impl Scaler for MetricsApi {
    fn specs(&self) -> Answer<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(vec![self.spec.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> Answer<'a, Reading> {
        Box::pin(async move {
            let Parameters { aggregate, url, activation_target_value, .. } = &self.parameters;
            let value = if *aggregate { self.all().await } else { self.one(url.clone()).await };
            let value = value.map_err(|error| error.inside("error requesting metrics endpoint"))?;
            Ok(Reading::one(metric, milli(value), value > *activation_target_value))
        })
    }
}
