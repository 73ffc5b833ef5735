//! prometheus: the result of a PromQL query.

pub mod query;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use api::autoscaling::v2::{ExternalMetricSource, MetricSpec};
use http::HeaderMap;
use jiff::Timestamp;
use query::Address;
use sources::http::Endpoint;

use crate::backends::Backends;
use crate::metric::{external, milli, target_type};
use crate::parameters::Pairs;
use crate::parameters::groups::HttpAuth;
use crate::table::Type;
use crate::web::{Call, Web};
use crate::{Answer, Error, Reading, Scaler, Trigger};

/// prometheus.
pub const TYPE: Type = Type {
    name: "prometheus",
    about: "The result of a PromQL query, from Prometheus or anything that speaks its HTTP API.",
    display: "prometheusScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What prometheus accepts.
    pub struct Parameters of "error parsing prometheus metadata" {
        /// Where Prometheus is, e.g. `http://prometheus.monitoring.svc:9090`.
        server_address: String = "serverAddress" in [Metadata], required;
        /// The query; its result must be one element.
        query: String = "query" in [Metadata], required;
        /// Parameters that go with the query, e.g. `dedup=true`.
        query_parameters: Option<Pairs> = "queryParameters" in [Metadata];
        /// The result that one replica is for.
        threshold: f64 = "threshold" in [Metadata], required;
        /// The trigger is active above it.
        activation_threshold: f64 = "activationThreshold" in [Metadata], default "0";
        /// The namespace that the query may see, for servers that have tenants.
        namespace: Option<String> = "namespace" in [Metadata];
        /// Headers that go with the query, e.g. `X-Scope-OrgID=shop`.
        custom_headers: Option<Pairs> = "customHeaders" in [Metadata];
        /// Whether no result means 0; otherwise it is an error.
        ignore_null_values: bool = "ignoreNullValues" in [Metadata], default "true";
        /// Accepts any certificate of the server.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// The region of Amazon's managed Prometheus.
        aws_region: Option<String> = "awsRegion" in [Metadata, Authentication];
        /// Whose identity asks Amazon's: `operator` or `pod`.
        identity_owner: Option<String> = "identityOwner" in [Metadata];
        /// How long the answer may take.
        timeout: Option<Duration> = "timeout" in [Metadata];
        /// How to show who we are.
        auth: HttpAuth;
    }
}

/// There may be ten thousand of these: it has what is needed to ask, and not what that was made of.
struct Prometheus {
    metric: Box<ExternalMetricSource>,
    query: Box<str>,
    address: Address,
    /// Trust, credentials and headers where there are any, or why it cannot be asked.
    access: Result<Option<Box<(Endpoint, HeaderMap)>>, Error>,
    activation_threshold: f64,
    ignore_null_values: bool,
    within: Duration,
    web: Arc<Web>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    const PREFIX: &str = "error parsing prometheus metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    let identity = match &*trigger.identity.provider {
        "" | "none" => None,
        _ if parameters.auth.is_enabled() => {
            return Err(Error::new("pod identity cannot be enabled with other auth types").inside(PREFIX));
        }
        other => Some(other),
    };
    let metric = external(trigger, "prometheus", milli(parameters.threshold));
    Ok(Arc::new(Prometheus {
        metric: Box::new(metric.external.unwrap_or_default()),
        address: Address::of(&parameters),
        access: access(&parameters, identity),
        activation_threshold: parameters.activation_threshold,
        ignore_null_values: parameters.ignore_null_values,
        within: parameters.timeout.filter(|time| !time.is_zero()).unwrap_or(trigger.http_timeout),
        query: parameters.query.into(),
        web: Arc::clone(&backends.web),
    }))
}

/// What goes with every question, where there is anything.
fn access(
    parameters: &Parameters,
    identity: Option<&str>,
) -> Result<Option<Box<(Endpoint, HeaderMap)>>, Error> {
    if let Some(identity) = identity {
        return Err(Error::new(format!("identity {identity} cannot be used for prometheus yet")));
    }
    let Parameters { auth, custom_headers, unsafe_ssl, aws_region, .. } = parameters;
    if aws_region.is_some() && !auth.is_enabled() {
        return Err(Error::new("Amazon's managed Prometheus (awsRegion) cannot be asked yet"));
    }
    let mut call = auth.sign(Call::get("", Duration::ZERO), *unsafe_ssl)?;
    for (name, value) in custom_headers.iter().flat_map(|headers| &headers.0) {
        call = call.header(name, value)?;
    }
    let is_any = call.access != Endpoint::default() || !call.headers.is_empty();
    Ok(is_any.then(|| Box::new((call.access, call.headers))))
}

impl Prometheus {
    fn call(&self, now: Timestamp) -> Result<Call, Error> {
        // The time is when it is asked, which does not make it another question.
        let mut call = Call::get(self.address.at(now), self.within).same_as(self.address.whenever());
        if let Some(access) = self.access.as_ref().map_err(Clone::clone)? {
            (call.access, call.headers) = (access.0.clone(), access.1.clone());
        }
        Ok(call)
    }
}

impl Scaler for Prometheus {
    fn specs(&self) -> Answer<'_, Vec<MetricSpec>> {
        let external = Some((*self.metric).clone());
        Box::pin(async {
            Ok(vec![MetricSpec { type_: "External".into(), external, ..MetricSpec::default() }])
        })
    }

    fn read<'a>(&'a self, metric: &'a str) -> Answer<'a, Reading> {
        Box::pin(async move {
            let answer = self.web.ask(self.call(Timestamp::now())?).await;
            let answer = answer.map_err(|error| Error::new(error.to_string()))?;
            let (status, mut empty) = (answer.status.as_u16(), crate::web::empty);
            let value = query::find(status, &answer.body, &self.query, self.ignore_null_values, &mut empty)?;
            Ok(Reading::one(metric, milli(value), value > self.activation_threshold))
        })
    }
}
