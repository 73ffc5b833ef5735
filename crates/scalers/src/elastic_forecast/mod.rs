//! elastic-forecast: the value that a forecast job of Elasticsearch expects.

use crate::prelude::*;

/// The scaler type `elastic-forecast`.
pub const TYPE: ScalerType = ScalerType {
    name: "elastic-forecast",
    about: "The value that a machine learning job of Elasticsearch forecasts for a moment ahead.",
    display: "elasticForecastScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
    build,
    samples: &[Sample::http(
        &[("addresses", "http://{}"), ("jobID", "j"), ("targetValue", "5"), ("username", "u")],
        sample::PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of elastic-forecast: addresses with user and password, or a cloud id with an API key.
    pub struct Parameters of "error parsing elastic-forecast metadata" {
        /// URLs of Elasticsearch; the first that responds is used.
        addresses: Vec<String> = "addresses" in [Authentication, Metadata];
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// User name.
        username: String = "username" in [Authentication, Metadata];
        /// Password.
        password: Secret = "password" in [Authentication, Environment, Metadata];
        /// The id of a deployment in Elastic Cloud.
        cloud_id: String = "cloudID" in [Authentication, Metadata];
        /// Its API key.
        api_key: Secret = "apiKey" in [Authentication, Environment, Metadata];
        /// The anomaly detection job.
        job_id: String = "jobID" in [Metadata], required;
        /// How far ahead the forecast looks.
        look_ahead: Duration = "lookAhead" in [Metadata], default "10m";
        /// Value of the job's `by` field.
        by_field_value: String = "byFieldValue" in [Metadata];
        /// Value of the job's `over` field.
        over_field_value: String = "overFieldValue" in [Metadata];
        /// Value of the job's `partition` field.
        partition_field_value: String = "partitionFieldValue" in [Metadata];
        /// The indexes with the results of the job.
        index: String = "index" in [Metadata], default ".ml-anomalies-*";
        /// Target value per replica.
        target: f64 = "targetValue" in [Metadata], required;
        /// The trigger is active above this value.
        activation: f64 = "activationTargetValue" in [Metadata], default "0";
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        let (user, password) = (!self.username.is_empty(), !self.password.reveal().is_empty());
        let (id, key) = (!self.cloud_id.is_empty(), !self.api_key.reveal().is_empty());
        let text = match (id || key, !self.addresses.is_empty()) {
            (true, true) => "can't provide both cloud config and endpoint addresses",
            (true, false) if !id || !key => "cloudID and apiKey must both be provided",
            (false, true) if !user || !password => {
                "username and password must both be provided when addresses is used"
            }
            (false, false) if user || password => "username and password provided but no addresses specified",
            (false, false) => "must provide either cloud config or endpoint addresses",
            _ if self.target <= 0.0 => "targetValue must be greater than 0",
            _ => return Ok(()),
        };
        Err(text.into())
    }
}

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let name = format!("elastic-forecast-{}", parameters.job_id);
    UnqueriedScaler::build(trigger, [external(trigger, &name, milli(parameters.target))])
}
