//! prometheus: the result of a PromQL query.

pub mod query;
#[cfg(test)]
mod tests;

use api::autoscaling::v2::ExternalMetricSource;
use http::HeaderMap;
use jiff::Timestamp;
use query::PrometheusAddress;
use sources::http::Endpoint;

use crate::parameters::Pairs;
use crate::parameters::groups::HttpAuth;
use crate::prelude::*;

/// The scaler type `prometheus`.
pub const TYPE: ScalerType = ScalerType {
    name: "prometheus",
    about: "The result of a PromQL query, from Prometheus or anything that speaks its HTTP API.",
    display: "prometheusScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(&[("serverAddress", "http://{}"), ("query", "q"), ("threshold", "5")], &[])],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of prometheus.
    pub struct Parameters of "error parsing prometheus metadata" {
        /// URL of Prometheus, e.g. `http://prometheus.monitoring.svc:9090`.
        server_address: String = "serverAddress" in [Metadata], required;
        /// The query; its result must have one element.
        query: String = "query" in [Metadata], required;
        /// Additional query parameters, e.g. `dedup=true`.
        query_parameters: Option<Pairs> = "queryParameters" in [Metadata];
        /// Target value per replica.
        threshold: f64 = "threshold" in [Metadata], required;
        /// The trigger is active above this value.
        activation_threshold: f64 = "activationThreshold" in [Metadata], default "0";
        /// The namespace of the query, for multi-tenant servers.
        namespace: Option<String> = "namespace" in [Metadata];
        /// Additional headers, e.g. `X-Scope-OrgID=shop`.
        custom_headers: Option<Pairs> = "customHeaders" in [Metadata];
        /// Treats an empty result as 0 instead of an error.
        ignore_null_values: bool = "ignoreNullValues" in [Metadata], default "true";
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// The region of Amazon Managed Service for Prometheus.
        aws_region: Option<String> = "awsRegion" in [Metadata, Authentication];
        /// Identity for Amazon Managed Service for Prometheus: `operator` or `pod`.
        identity_owner: Option<String> = "identityOwner" in [Metadata];
        /// Timeout of the request.
        timeout: Option<Duration> = "timeout" in [Metadata];
        /// HTTP authentication.
        auth: HttpAuth;
    }
}

/// A query ready to send. It keeps only what a request needs, because there may be ten thousand of them.
struct Prometheus {
    metric: Box<ExternalMetricSource>,
    query: Box<str>,
    address: PrometheusAddress,
    /// TLS settings, credentials and headers, if any; an error if they are invalid.
    access: Result<Option<Box<(Endpoint, HeaderMap)>>, ScalerError>,
    activation_threshold: f64,
    ignore_null_values: bool,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    const PREFIX: &str = "error parsing prometheus metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    let identity = match &*trigger.identity.provider {
        "" | "none" => None,
        _ if parameters.auth.is_enabled() => {
            return Err(scaler_error!("pod identity cannot be enabled with other auth types").inside(PREFIX));
        }
        other => Some(other),
    };
    let metric = external(trigger, "prometheus", milli(parameters.threshold));
    Ok(Arc::new(Prometheus {
        metric: Box::new(metric.external.unwrap_or_default()),
        address: PrometheusAddress::of(&parameters),
        access: access(&parameters, identity),
        activation_threshold: parameters.activation_threshold,
        ignore_null_values: parameters.ignore_null_values,
        within: parameters.timeout.filter(|time| !time.is_zero()).unwrap_or(trigger.http_timeout),
        query: parameters.query.into(),
        web: Arc::clone(&backends.web),
    }))
}

/// TLS settings, credentials and headers of every request; none if there are none.
fn access(
    parameters: &Parameters,
    identity: Option<&str>,
) -> Result<Option<Box<(Endpoint, HeaderMap)>>, ScalerError> {
    if let Some(identity) = identity {
        bail!("identity {identity} cannot be used for prometheus yet");
    }
    let Parameters { auth, custom_headers, unsafe_ssl, aws_region, .. } = parameters;
    if aws_region.is_some() && !auth.is_enabled() {
        bail!("Amazon's managed Prometheus (awsRegion) cannot be asked yet");
    }
    let mut call = auth.sign(HttpCall::get("", Duration::ZERO), *unsafe_ssl)?;
    for (name, value) in custom_headers.iter().flat_map(|headers| &headers.0) {
        call = call.header(name, value)?;
    }
    let is_any = call.access != Endpoint::default() || !call.headers.is_empty();
    Ok(is_any.then(|| Box::new((call.access, call.headers))))
}

impl Prometheus {
    fn call(&self, now: Timestamp) -> Result<HttpCall, ScalerError> {
        // The time window moves with every request; requests that differ only in it share a response.
        let mut call = HttpCall::get(self.address.at(now), self.within).same_as(self.address.whenever());
        if let Some(access) = self.access.as_ref().map_err(Clone::clone)? {
            (call.access, call.headers) = (access.0.clone(), access.1.clone());
        }
        Ok(call)
    }
}

impl Scaler for Prometheus {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        let external = Some((*self.metric).clone());
        Box::pin(async {
            Ok(vec![MetricSpec { type_: "External".into(), external, ..MetricSpec::default() }])
        })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            let answer = self.web.send(self.call(self.web.now())?).await;
            let answer = answer.map_err(ScalerError::from)?;
            let (status, mut empty) = (answer.status.as_u16(), crate::web::count_empty_response);
            let value = query::find(status, &answer.body, &self.query, self.ignore_null_values, &mut empty)?;
            Ok(Reading::one(metric, milli(value), value > self.activation_threshold))
        })
    }
}
