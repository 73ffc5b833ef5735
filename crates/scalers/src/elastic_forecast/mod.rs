//! elastic-forecast: the value that a forecast job of Elasticsearch expects.
//!
//! ```text
//! query       requests and responses, without IO
//! forecasts   the forecasts that were created, shared by all triggers of a job
//! ```

mod forecasts;
mod query;
#[cfg(test)]
mod tests;

use forecasts::{ForecastKey, Forecasts};
use sources::http::{Auth, Endpoint};

use crate::elasticsearch::query::cloud;
use crate::prelude::*;
use crate::search::SearchAccess;

/// The scaler type `elastic-forecast`.
pub const TYPE: ScalerType = ScalerType {
    name: "elastic-forecast",
    about: "The value that a machine learning job of Elasticsearch forecasts for a moment ahead.",
    display: "elasticForecastScaler",
    parameters: Parameters::PARAMETERS,
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
        api_key: Secret = "apiKey" in [Authentication, Metadata];
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
        /// The indexes with the results of the job, without `.ml-anomalies-`.
        index: String = "index" in [Metadata], default "*";
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
        let (cloud, addresses) = (id || key, !self.addresses.is_empty());
        let text = if cloud && addresses {
            "cannot provide both cloud config (cloudID/apiKey) and endpoint addresses"
        } else if id != key {
            "cloudID and apiKey must both be provided together"
        } else if !addresses && (user || password) {
            "username and password provided but no addresses specified"
        } else if !cloud && !addresses {
            "must provide either cloud config (cloudID + apiKey) or endpoint addresses"
        } else if addresses && !(user && password) {
            "username and password must both be provided when addresses is used"
        } else if self.look_ahead.is_zero() {
            "lookAhead must be positive"
        } else if self.target <= 0.0 {
            "targetValue must be greater than 0"
        } else {
            return Ok(());
        };
        Err(text.into())
    }
}

/// A job and its cluster.
struct ElasticForecast {
    parameters: Parameters,
    access: SearchAccess,
    key: ForecastKey,
    forecasts: Arc<Forecasts>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let name = format!("elastic-forecast-{}", parameters.job_id);
    let spec = external(trigger, &name, milli(parameters.target));
    let activation = parameters.activation;
    let source = ElasticForecast {
        access: parameters.access(trigger, backends),
        key: parameters.key(),
        forecasts: backends.state(),
        parameters,
    };
    SingleMetricScaler::build(spec, activation, source)
}

impl Parameters {
    fn access(&self, trigger: &Trigger, backends: &Backends) -> SearchAccess {
        let (addresses, authorization, auth) = match &*self.cloud_id {
            "" => {
                let (user, password) = (self.username.clone(), self.password.clone());
                (Ok(self.addresses.clone()), None, Auth::Basic { user, password })
            }
            id => {
                let authorization = format!("ApiKey {}", self.api_key.reveal());
                (cloud(id).map(|address| vec![address]), Some(authorization), Auth::None)
            }
        };
        SearchAccess {
            product: "elasticsearch",
            addresses,
            endpoint: Endpoint { insecure: self.unsafe_ssl, auth, ..Endpoint::default() },
            authorization,
            within: trigger.http_timeout,
            web: Arc::clone(&backends.web),
        }
    }

    fn key(&self) -> ForecastKey {
        let (user, secret) = match &*self.cloud_id {
            "" => (self.username.clone(), self.password.clone()),
            _ => (String::new(), self.api_key.clone()),
        };
        let addresses = [&*self.addresses, std::slice::from_ref(&self.cloud_id)].concat();
        ForecastKey { addresses, user, secret, job: self.job_id.clone(), look_ahead: self.look_ahead }
    }
}

impl ElasticForecast {
    async fn create(&self) -> Result<String, ScalerError> {
        let Parameters { job_id, look_ahead, .. } = &self.parameters;
        let (path, body) = query::forecast_request(job_id, *look_ahead);
        let (status, body) = self.access.post(&path, &body).await?;
        query::forecast_id(status, &body)
    }

    async fn predicted(&self, forecast: &str) -> Result<Option<f64>, ScalerError> {
        let (path, body) = query::search_request(&self.parameters, forecast, self.access.web.now());
        let (status, body) = self.access.post(&path, &body).await?;
        query::prediction(status, &body)
    }
}

impl ValueSource for ElasticForecast {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let forecasts = self.forecasts.of(&self.key, self.create()).await?;
            for forecast in forecasts {
                if let Some(value) = self.predicted(&forecast).await? {
                    return Ok(value);
                }
            }
            // KEDA serves 0 meanwhile, which would scale the target in after each restart of the operator.
            Err(scaler_error!(
                "the forecast of job {} has no value yet for the moment that is looked ahead to: it is still being computed",
                self.parameters.job_id
            ))
        })
    }
}
