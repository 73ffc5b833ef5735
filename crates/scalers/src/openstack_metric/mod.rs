//! openstack-metric: the newest measure of a metric of OpenStack Gnocchi.

mod query;
#[cfg(test)]
mod tests;

use crate::keystone::{KeystoneClient, KeystoneLogin, KeystoneSession, timeout};
use crate::prelude::*;

/// The scaler type `openstack-metric`.
pub const TYPE: ScalerType = ScalerType {
    name: "openstack-metric",
    about: "The newest measure of a metric of OpenStack Gnocchi.",
    display: "openstackMetricScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[
            ("metricsURL", "http://{}/v1/metric"),
            ("metricID", "m"),
            ("aggregationMethod", "mean"),
            ("granularity", "300"),
            ("threshold", "5"),
            ("timeout", "1"),
        ],
        &[("authURL", "http://{}"), ("userID", "u"), ("password", sample::SECRET)],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of openstack-metric.
    pub struct Parameters of "error parsing openstack Metric metadata: error parsing openstack metric metadata" {
        /// URL of the metrics of Gnocchi, e.g. `http://gnocchi.example:8041/v1/metric`.
        metrics_url: String = "metricsURL" in [Metadata], required;
        /// The metric.
        metric_id: String = "metricID" in [Metadata], required;
        /// How measures are aggregated, e.g. `mean`.
        aggregation_method: String = "aggregationMethod" in [Metadata], required;
        /// Distance of measures, in seconds. Measures of about this time back are read; if there is none, the value is 0, as in KEDA.
        granularity: isize = "granularity" in [Metadata], required;
        /// Target value per replica.
        threshold: f64 = "threshold" in [Metadata];
        /// The trigger is active above this value.
        activation: f64 = "activationThreshold" in [Metadata], default "0";
        /// Timeout of requests, in seconds; 30 if it is missing.
        timeout: isize = "timeout" in [Metadata];
        /// URL of Keystone.
        auth_url: String = "authURL" in [Authentication];
        /// The user.
        user_id: String = "userID" in [Authentication];
        /// Password of the user.
        password: Secret = "password" in [Authentication];
        /// An application credential, instead of a user.
        credential_id: String = "appCredentialID" in [Authentication];
        /// Secret of the application credential.
        credential_secret: Secret = "appCredentialSecret" in [Authentication];
    }
}

impl Parameters {
    /// Checks the credentials as KEDA does: blanks count as given here.
    fn check_access(trigger: &Trigger) -> Result<(), ParseError> {
        let given = |key: &str| trigger.auth.get(key).is_some_and(|value| !value.is_empty());
        if !given("authURL") {
            return Err("authURL doesn't exist in the authParams".into());
        }
        if given("userID") {
            return if given("password") {
                Ok(())
            } else {
                Err("password doesn't exist in the authParams".into())
            };
        }
        if !given("appCredentialSecret") {
            return Err("neither userID or appCredentialSecretID exist in the authParams".into());
        }
        // KEDA logs in with the secret as the id, which no Keystone accepts.
        if !given("appCredentialID") {
            return Err("appCredentialID doesn't exist in the authParams".into());
        }
        Ok(())
    }

    fn login(&self) -> KeystoneLogin<'_> {
        let Self { user_id, password, credential_id, credential_secret, .. } = self;
        if user_id.is_empty() {
            return KeystoneLogin::ApplicationCredential { id: credential_id, secret: credential_secret };
        }
        KeystoneLogin::Password { user_id, password, project_id: "" }
    }
}

/// A metric and the login for it.
struct GnocchiMetric {
    parameters: Parameters,
    keystone: KeystoneClient,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let inside = |error: ParseError| {
        ScalerError::new(error).inside("error parsing openstack metric authentication metadata")
    };
    Parameters::check_access(trigger).map_err(inside)?;
    let name = format!("openstack-metric-{}", parameters.metric_id);
    let spec = external(trigger, &name, milli(parameters.threshold));
    let (activation, within) = (parameters.activation, timeout(parameters.timeout));
    let keystone = KeystoneClient::new(&parameters.auth_url, parameters.login(), ("metric", ""), within);
    let web = Arc::clone(&backends.web);
    SingleMetricScaler::build(spec, activation, GnocchiMetric { parameters, keystone, within, web })
}

impl ValueSource for GnocchiMetric {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { metrics_url, metric_id, aggregation_method, granularity, .. } = &self.parameters;
            let start = query::start(*granularity, self.web.now())?;
            let url = query::url(metrics_url, metric_id, (aggregation_method, *granularity), &start);
            let request = |session: &KeystoneSession| {
                HttpCall::get(&*url, self.within).header("x-auth-token", session.token.reveal())
            };
            let answer = self.keystone.send(&self.web, request).await?;
            query::value(answer.status.as_u16(), &answer.body)
        })
    }
}
