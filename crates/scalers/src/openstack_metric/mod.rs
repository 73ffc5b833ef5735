//! openstack-metric: the newest measure of a metric of OpenStack Gnocchi.

use crate::prelude::*;

/// The scaler type `openstack-metric`.
pub const TYPE: ScalerType = ScalerType {
    name: "openstack-metric",
    about: "The newest measure of a metric of OpenStack Gnocchi.",
    display: "openstackMetricScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
    build,
    samples: &[Sample::http(
        &[
            ("metricsURL", "http://{}/v1/metric"),
            ("metricID", "m"),
            ("aggregationMethod", "mean"),
            ("granularity", "300"),
            ("threshold", "5"),
        ],
        &[("authURL", "http://{}"), ("userID", "u"), ("password", sample::SECRET)],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of openstack-metric.
    pub struct Parameters of "error parsing openstack Metric metadata: error parsing openstack metric metadata" {
        /// URL of the metrics of Gnocchi.
        metrics_url: String = "metricsURL" in [Metadata], required;
        /// The metric.
        metric_id: String = "metricID" in [Metadata], required;
        /// How measures are aggregated, e.g. `mean`.
        aggregation_method: String = "aggregationMethod" in [Metadata], required;
        /// Distance of measures, in seconds.
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
    fn check_access(&self) -> Result<(), ParseError> {
        if self.auth_url.is_empty() {
            return Err("authURL doesn't exist in the authParams".into());
        }
        if !self.user_id.is_empty() {
            return match self.password.reveal() {
                "" => Err("password doesn't exist in the authParams".into()),
                _ => Ok(()),
            };
        }
        if self.credential_id.is_empty() {
            return Err("neither userID or appCredentialSecretID exist in the authParams".into());
        }
        if self.credential_secret.reveal().is_empty() {
            return Err("appCredentialSecret doesn't exist in the authParams".into());
        }
        Ok(())
    }
}

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let inside = |error: ParseError| {
        ScalerError::new(error).inside("error parsing openstack metric authentication metadata")
    };
    parameters.check_access().map_err(inside)?;
    let name = format!("openstack-metric-{}", parameters.metric_id);
    UnqueriedScaler::build(trigger, [external(trigger, &name, milli(parameters.threshold))])
}
