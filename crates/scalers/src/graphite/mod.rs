//! graphite: the newest value of a series.

mod query;
#[cfg(test)]
mod tests;

use crate::parameters::groups::HttpAuth;
use crate::prelude::*;

/// The scaler type `graphite`.
pub const TYPE: ScalerType = ScalerType {
    name: "graphite",
    about: "The newest value that Graphite renders for a query.",
    display: "graphiteScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[("serverAddress", "http://{}"), ("query", "q"), ("queryTime", "-5min"), ("threshold", "5")],
        &[],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of graphite.
    pub struct Parameters of "error parsing graphite metadata: error parsing graphite metadata" {
        /// URL of Graphite, e.g. `http://graphite.monitoring.svc`.
        server_address: String = "serverAddress" in [Metadata], required;
        /// The target to render, e.g. `stats.counters.http.hello.rate`; it must return one series.
        query: String = "query" in [Metadata], required;
        /// Target value per replica.
        threshold: f64 = "threshold" in [Metadata], default "100";
        /// The trigger is active above this value.
        activation_threshold: f64 = "activationThreshold" in [Metadata], default "0";
        /// Start of the time range, e.g. `-10Minutes`. The value is 0 if no series matches; it is an error if the series has only
        /// nulls in the range.
        query_time: String = "queryTime" in [Metadata], required;
        /// HTTP authentication.
        auth_mode: Option<String> = "authMode" in [Metadata];
        /// HTTP authentication, like `authMode`.
        auth_modes: Vec<String> = "authModes" in [Metadata, Authentication], since_2_21;
        /// User name.
        username: Option<String> = "username" in [Authentication];
        /// Password.
        password: Secret = "password" in [Authentication];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        if trigger.behavior().checks_auth_modes {
            return HttpAuth::of_newer(trigger, &["basic"]).map(|_| ());
        }
        match &self.auth_mode {
            Some(mode) if !mode.split(',').all(|mode| mode.trim() == "basic") => {
                let mode = api::gotext::quote(mode);
                let text = format!("parameter \"authMode\" value {mode} must be one of [basic]");
                Err(ParseError::of("authMode", text))
            }
            Some(_) if self.username.is_none() => Err("username is required when authMode is 'basic'".into()),
            _ => Ok(()),
        }
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let spec = external(trigger, "graphite", milli(parameters.threshold));
    let activation = parameters.activation_threshold;
    let source = HttpSource::new(parameters, trigger, backends);
    SingleMetricScaler::build(spec, activation, source)
}

impl ValueSource for HttpSource<Parameters> {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { server_address, query, query_time, username, password, .. } = &self.parameters;
            let mut call = HttpCall::get(query::url(server_address, query, query_time), self.within);
            if let Some(user) = username {
                call = call.basic(user, password);
            }
            let (status, body) = send(&self.web, call).await?;
            Ok(query::value(status, &body)?.unwrap_or(0.0))
        })
    }
}
