//! datadog: the result of a Datadog query, or a metric served by the cluster agent.

mod query;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use sources::http::Auth;

use crate::metric::external_named;
use crate::parameters::NullableNumber;
use crate::parameters::groups::HttpAuth;
use crate::prelude::*;
use query::Aggregator;

/// Prefix of most errors of parameters.
const PREFIX: &str = "error parsing Datadog metadata";

/// The scaler type `datadog`.
pub const TYPE: ScalerType = ScalerType {
    name: "datadog",
    about: "The value of a Datadog query, or of a DatadogMetric that the cluster agent serves.",
    display: "datadogScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::https(
        &[
            ("useClusterAgentProxy", "true"),
            ("datadogMetricName", "m"),
            ("datadogMetricNamespace", "n"),
            ("targetValue", "5"),
        ],
        &[
            ("authMode", "bearer"),
            ("datadogNamespace", "0.1"),
            ("datadogMetricsService", "127.0"),
            ("datadogMetricsServicePort", "{port}"),
            ("token", sample::SECRET),
            ("unsafeSsl", "true"),
        ],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of datadog. With `useClusterAgentProxy` the value is a DatadogMetric read from the cluster agent, otherwise
    /// the result of a query to the Datadog API.
    pub struct Parameters {
        /// Queries the cluster agent instead of the Datadog API, which has a rate limit.
        use_cluster_agent: bool = "useClusterAgentProxy" in [Metadata], default "false";
        /// The query, e.g. `sum:trace.redis.command.hits{env:none}.as_count()`; several are separated by commas.
        query: String = "query" in [Metadata];
        /// How the results of several queries are aggregated.
        aggregator: Option<String> = "queryAggregator" in [Metadata], one_of ["average", "max"];
        /// Target value per replica.
        target: Option<f64> = "targetValue" | "queryValue" in [Metadata];
        /// The trigger is active above this value.
        activation_query_value: f64 = "activationQueryValue" in [Metadata], default "0";
        /// The trigger is active above this value, with the cluster agent.
        activation_target_value: f64 = "activationTargetValue" in [Metadata], default "0";
        /// Length of the queried time window, in seconds.
        age: isize = "age" in [Metadata], default "90";
        /// How many seconds ago the queried time window ends.
        time_window_offset: isize = "timeWindowOffset" in [Metadata], default "0";
        /// How many points before the last one the value is taken from.
        last_available_point_offset: isize = "lastAvailablePointOffset" in [Metadata], default "0";
        /// The value to use if the query returns none, or if Datadog cannot compute the metric (status 422); without it both are errors.
        metric_unavailable_value: NullableNumber = "metricUnavailableValue" in [Metadata];
        /// Replaced by `metricType` of the trigger.
        type_: Option<String> = "type" in [Metadata];
        /// Timeout of the request.
        timeout: Option<Duration> = "timeout" in [Metadata];
        /// API key.
        api_key: Secret = "apiKey" in [Authentication];
        /// Application key.
        app_key: Secret = "appKey" in [Authentication];
        /// The site of Datadog.
        site: String = "datadogSite" in [Authentication], default "datadoghq.com";
        /// The DatadogMetric to read from the cluster agent.
        metric_name: String = "datadogMetricName" in [Metadata];
        /// Its namespace.
        metric_namespace: String = "datadogMetricNamespace" in [Metadata];
        /// The namespace of the cluster agent.
        agent_namespace: String = "datadogNamespace" in [Authentication];
        /// The metrics service of the cluster agent.
        agent_service: String = "datadogMetricsService" in [Authentication];
        /// Its port.
        agent_port: isize = "datadogMetricsServicePort" in [Authentication], default "8443";
        /// Authentication mode for the cluster agent.
        auth_mode: String = "authMode" in [Authentication, Metadata];
        /// The bearer token of `bearer`.
        token: Secret = "token" in [Authentication];
        /// Authentication modes for the cluster agent, like `authMode`.
        auth_modes: Vec<String> = "authModes" in [Metadata, Authentication], since_2_21;
        /// The bearer token of `bearer`; replaces `token`.
        bearer_token: Secret = "bearerToken" in [Authentication], since_2_21;
        /// Accepts any certificate of the cluster agent.
        unsafe_ssl: bool = "unsafeSsl" in [Authentication], default "false";
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        if self.age < 0 {
            return Err("age should not be smaller than 0 seconds".into());
        }
        if self.time_window_offset < 0 {
            return Err("timeWindowOffset should not be smaller than 0 seconds".into());
        }
        if self.last_available_point_offset < 0 {
            return Err("lastAvailablePointOffset should not be smaller than 0".into());
        }
        if !self.query.is_empty() {
            query::metric(&self.query)?;
        }
        self.token = self.agent_token(trigger)?;
        Ok(())
    }

    /// The token for the cluster agent; empty without an authentication mode.
    fn agent_token(&self, trigger: &Trigger) -> Result<Secret, ParseError> {
        if trigger.behavior().checks_auth_modes {
            let auth = HttpAuth::of_newer(trigger, &["bearer"])?;
            return Ok(if auth.has("bearer") { auth.token } else { Secret::default() });
        }
        // KEDA 2.20 reads the mode only from there.
        match trigger.auth.get("authMode").map_or("", |mode| mode.trim()) {
            "" => Ok(Secret::default()),
            "bearer" if self.token.reveal().is_empty() => Err("BearerToken is required".into()),
            "bearer" => Ok(self.token.clone()),
            other => Err(format!("err incorrect value for authMode is given: {other}").into()),
        }
    }
}

struct Datadog {
    parameters: Parameters,
    aggregator: Option<Aggregator>,
    /// Base URL of the Datadog API, or URL of the metric at the cluster agent.
    url: String,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    let agent = parameters.use_cluster_agent;
    let checked = if agent { check_agent(&parameters) } else { check_api(&parameters) };
    checked?;
    // As in KEDA, -1 stands for a target that is missing.
    let target = match parameters.target.filter(|target| *target != -1.0) {
        Some(target) => milli(target),
        None if trigger.feeds_formula => milli(0.0),
        None => bail!("no targetValue or queryValue given"),
    };
    check_type(trigger)?;
    if !agent && parameters.query.is_empty() {
        bail!("{PREFIX}: missing Query");
    }
    let (spec, url, activation) = if agent {
        let name = format!("datadogmetric@{}:{}", parameters.metric_namespace, parameters.metric_name);
        let Parameters { agent_service, agent_namespace, agent_port, metric_namespace, .. } = &parameters;
        let port = i64::try_from(*agent_port).unwrap_or(0);
        let url = query::agent_url(agent_service, agent_namespace, port, metric_namespace, &name);
        (external_named(trigger, name, target), url, parameters.activation_target_value)
    } else {
        let name = query::metric(&parameters.query)?;
        let url = format!("https://api.{}", parameters.site);
        (external(trigger, &format!("datadog-{name}"), target), url, parameters.activation_query_value)
    };
    let aggregator = parameters.aggregator.as_deref().map(|how| match how {
        "average" => Aggregator::Average,
        _ => Aggregator::Max,
    });
    let within = parameters.timeout.filter(|time| !time.is_zero()).unwrap_or(trigger.http_timeout);
    let source = Datadog { parameters, aggregator, url, within, web: Arc::clone(&backends.web) };
    SingleMetricScaler::build(spec, activation, source)
}

/// Checks what `metricType` of the trigger replaces; an empty text is given, too.
fn check_type(trigger: &Trigger) -> Result<(), ScalerError> {
    match trigger.metadata.get("type").map(|text| text.to_lowercase()).as_deref() {
        Some(_) if !trigger.metric_type.is_empty() => {
            Err(scaler_error!("only one of trigger.metadata.type or trigger.metricType should be defined"))
        }
        None | Some("global" | "average") => Ok(()),
        Some(_) => Err(scaler_error!("type has to be global or average")),
    }
}

fn check_api(parameters: &Parameters) -> Result<(), ScalerError> {
    if parameters.app_key.reveal().is_empty() {
        bail!("{PREFIX}: missing AppKey");
    }
    if parameters.api_key.reveal().is_empty() {
        bail!("{PREFIX}: missing APIKey");
    }
    Ok(())
}

fn check_agent(parameters: &Parameters) -> Result<(), ScalerError> {
    let there = [
        (&parameters.agent_service, "datadog metrics service is required"),
        (&parameters.metric_name, "datadog metric name is required"),
        (&parameters.agent_namespace, "datadog namespace is required"),
        (&parameters.metric_namespace, "datadog metric namespace is required"),
    ];
    match there.into_iter().find(|(value, _)| value.is_empty()) {
        Some((_, missing)) => Err(ScalerError::new(missing)),
        None => Ok(()),
    }
}

impl Datadog {
    /// The request at the given time.
    fn call(&self, now: Timestamp) -> Result<HttpCall, ScalerError> {
        let Parameters { api_key, app_key, query, age, time_window_offset, .. } = &self.parameters;
        let to = now.as_second().saturating_sub(*time_window_offset as i64);
        let from = to.saturating_sub(*age as i64);
        let call = HttpCall::get(query::url(&self.url, query, from, to), self.within);
        // The time window moves with every request; requests that differ only in it share a response.
        let same_as = format!("{}#{age}#{time_window_offset}", query::url(&self.url, query, 0, 0));
        let call = call.header("DD-API-KEY", api_key.reveal())?;
        Ok(call.header("DD-APPLICATION-KEY", app_key.reveal())?.same_as(same_as))
    }

    /// Whether `metricUnavailableValue` stands for a response: Datadog answers with this status if it cannot compute the metric.
    fn is_filled(&self, status: u16) -> bool {
        status == 422 && self.parameters.metric_unavailable_value.0.is_some()
    }

    async fn found(&self) -> Result<Option<f64>, ScalerError> {
        let Parameters { use_cluster_agent, unsafe_ssl, token, last_available_point_offset, .. } =
            &self.parameters;
        if *use_cluster_agent {
            let mut call = HttpCall::get(&self.url, self.within).unsafe_ssl(*unsafe_ssl);
            if !token.reveal().is_empty() {
                call.access.auth = Auth::Token(token.clone());
            }
            let (status, body) = send(&self.web, call).await?;
            if self.is_filled(status) {
                return Ok(None);
            }
            return query::agent_value(status, &body);
        }
        let back = usize::try_from(*last_available_point_offset).unwrap_or(0);
        let (status, body) = send(&self.web, self.call(self.web.now())?).await?;
        if self.is_filled(status) {
            return Ok(None);
        }
        query::value(status, &body, self.aggregator, back)
    }
}

impl ValueSource for Datadog {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let none = || scaler_error!("no Datadog metrics returned for the given time window");
            self.found().await?.or(self.parameters.metric_unavailable_value.0).ok_or_else(none)
        })
    }
}
