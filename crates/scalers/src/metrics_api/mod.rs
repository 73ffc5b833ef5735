//! metrics-api: a number in the response of an HTTP server.

pub mod query;
#[cfg(test)]
mod tests;

use futures::stream::{self, StreamExt as _};
use query::{Format, Service};
use sources::http::{Auth, HttpError, HttpErrorCause};

use api::map::StringMap;

use crate::backends::Cluster;
use crate::off_thread::decode_elsewhere;
use crate::parameters::groups::HttpAuth;
use crate::prelude::*;

/// Maximum number of concurrent requests to the endpoints of a service.
const MAX_CONCURRENT_REQUESTS: usize = 5;

/// The scaler type `metrics-api`.
pub const TYPE: ScalerType = ScalerType {
    name: "metrics-api",
    about: "A number in the answer of any HTTP server: JSON, YAML, XML or the text format of Prometheus.",
    display: "metricsAPIScaler",
    parameters: Parameters::PARAMETERS,
    build,
    unit,
    samples: &[Sample::http(&[("url", "http://{}/m"), ("valueLocation", "a.b"), ("targetValue", "5")], &[])],
    ..ScalerType::DEFAULT
};

/// The last name in `valueLocation`, if it is a plural noun.
fn unit(metadata: &StringMap) -> &str {
    let location = metadata.get("valueLocation").map_or("", String::as_str);
    let word = location.rsplit('.').next().unwrap_or_default();
    let is_noun = word.len() > 2 && word.ends_with('s') && word.bytes().all(|b| b.is_ascii_lowercase());
    if is_noun { word } else { "" }
}

crate::parameters! {
    /// Parameters of metrics-api.
    pub struct Parameters of "error parsing metrics API metadata" {
        /// Target value per replica. Optional if the trigger is part of a formula, which has its own target.
        target_value: f64 = "targetValue" in [Metadata], default "0";
        /// The trigger is active above this value.
        activation_target_value: f64 = "activationTargetValue" in [Metadata], default "0";
        /// URL of the metric.
        url: String = "url" in [Metadata], required;
        /// Format of the response.
        format: String = "format" in [Metadata], default "json", one_of ["prometheus", "json", "xml", "yaml"];
        /// Location of the number in the response: a path such as `tasks.0.waiting` (GJSON syntax for JSON, names and indexes
        /// separated by dots for YAML and XML), for `prometheus` a metric such as
        /// `waiting{queue="mail"}`.
        value_location: String = "valueLocation" in [Metadata], required;
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// Queries every endpoint of the service in the URL and aggregates their numbers.
        aggregate: bool = "aggregateFromKubeServiceEndpoints" in [Metadata], default "false";
        /// How the numbers of several endpoints are aggregated.
        aggregation: String = "aggregationType" in [Metadata], default "average",
            one_of ["average", "sum", "max", "min"];
        /// Timeout of the request.
        timeout: Option<Duration> = "timeout" in [Metadata];
        /// HTTP authentication; `custom` and `oauth` have no effect here, and KEDA 2.21 refuses them.
        auth: HttpAuth;
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        if !trigger.behavior().checks_auth_modes {
            return Ok(());
        }
        self.auth.check_supported(&["apiKey", "basic", "tls", "bearer"])
    }
}

struct MetricsApi {
    spec: MetricSpec,
    /// The namespace of the object with the trigger.
    namespace: String,
    parameters: Parameters,
    format: Format,
    within: Duration,
    web: Arc<SharedHttpClient>,
    cluster: Arc<dyn Cluster>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    const PREFIX: &str = "error parsing metric API metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    if parameters.target_value == 0.0 && !trigger.feeds_formula {
        return Err(scaler_error!("no targetValue given in metadata").inside(PREFIX));
    }
    let name = format!("metric-api-{}", parameters.value_location);
    Ok(Arc::new(MetricsApi {
        spec: external(trigger, &name, milli(parameters.target_value)),
        namespace: trigger.owner.namespace.clone(),
        format: Format::named(&parameters.format),
        within: parameters.timeout.filter(|time| !time.is_zero()).unwrap_or(trigger.http_timeout),
        parameters,
        web: Arc::clone(&backends.web),
        cluster: Arc::clone(&backends.cluster),
    }))
}

impl MetricsApi {
    fn call(&self, url: String) -> Result<HttpCall, ScalerError> {
        let Parameters { auth, unsafe_ssl, .. } = &self.parameters;
        let mut call = HttpCall::get(url, self.within);
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

    /// The number of one server.
    async fn one(&self, url: String) -> Result<f64, ScalerError> {
        let path = query::path(&url).to_owned();
        let answer = self.web.send(self.call(url)?).await.map_err(ScalerError::from)?;
        if answer.status != 200 {
            bail!("{path}: api returned {}", answer.status.as_u16());
        }
        decode_elsewhere(query::max_decoded_bytes(self.format, &answer.body)).await;
        query::read(self.format, &answer.body, &self.parameters.value_location)
    }

    /// The number of one endpoint of a service. A tenant chooses the namespace of the service, and the operator may read all of them,
    /// so that errors do not show what it has read in others.
    async fn endpoint(&self, service: &Service, url: String) -> Result<f64, ScalerError> {
        let number = self.one(url).await;
        if service.namespace == self.namespace {
            return number;
        }
        number.map_err(|error| without_address(error, service))
    }

    /// The aggregate of all endpoints of a service. Endpoints that fail are ignored unless all fail.
    async fn all(&self) -> Result<f64, ScalerError> {
        let service = Service::of(&self.parameters.url)?;
        let endpoints = self.cluster.endpoints(&service.namespace, &service.name).await?;
        let urls: Vec<String> = query::endpoints(&service, endpoints);
        if urls.is_empty() {
            bail!("service {}/{} has no endpoints", service.namespace, service.name);
        }
        let answers: Vec<_> = stream::iter(urls)
            .map(|url| self.endpoint(&service, url))
            .buffer_unordered(MAX_CONCURRENT_REQUESTS)
            .collect()
            .await;
        query::aggregated(&self.parameters.aggregation, answers)
    }
}

/// The error of a request to an endpoint, without the address of the endpoint.
fn without_address(error: ScalerError, service: &Service) -> ScalerError {
    let Some(cause) = error.cause::<HttpError>().map(|error| error.cause.clone()) else { return error };
    let Service { name, namespace, .. } = service;
    let is_shown = matches!(
        cause,
        HttpErrorCause::Refused
            | HttpErrorCause::TimedOut(_)
            | HttpErrorCause::UnknownAuthority
            | HttpErrorCause::NotTls
            | HttpErrorCause::TooLarge(_)
            | HttpErrorCause::RateLimited { .. }
    );
    if !is_shown {
        return scaler_error!(
            "an endpoint of service {namespace}/{name} cannot be requested; the cause is not shown for services of another namespace"
        );
    }
    let message = format!("an endpoint of service {namespace}/{name}: {cause}");
    ScalerError::caused_by(message, HttpError { server: String::new(), cause })
}

impl Scaler for MetricsApi {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(vec![self.spec.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            let Parameters { aggregate, url, activation_target_value, .. } = &self.parameters;
            let value = if *aggregate { self.all().await } else { self.one(url.clone()).await };
            let value = value.map_err(|error| error.inside("error requesting metrics endpoint"))?;
            Ok(Reading::one(metric, milli(value), value > *activation_target_value))
        })
    }
}
