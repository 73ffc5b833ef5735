//! gcp-spanner: the number returned by a query of Google Cloud Spanner.

mod query;
#[cfg(test)]
mod tests;

use tokio::sync::Mutex;

use crate::google_client::GoogleClient;
use crate::google_credentials::GoogleCredentials;
use crate::parameters::KedaProfile;
use crate::prelude::*;

/// Scope of tokens.
const SCOPE: &str = "https://www.googleapis.com/auth/spanner.data";

/// The scaler type `gcp-spanner`.
pub const TYPE: ScalerType = ScalerType {
    name: "gcp-spanner",
    about: "The number in the first column of the first row of a Google Cloud Spanner query.",
    display: "spannerScaler",
    parameters: Parameters::PARAMETERS,
    since: KedaProfile::V2_21,
    build,
    samples: &[Sample::fixed(
        &[("projectId", "p"), ("instanceId", "i"), ("databaseId", "d"), ("query", "SELECT 1")],
        sample::GOOGLE_KEY,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of gcp-spanner.
    pub struct Parameters of "error parsing Spanner metadata" {
        /// The project.
        project: String = "projectId" in [Metadata], required;
        /// The instance.
        instance: String = "instanceId" in [Metadata], required;
        /// The database.
        database: String = "databaseId" in [Metadata], required;
        /// The query; the first column of its first row must be an INT64.
        query: String = "query" in [Metadata], required;
        /// Target value per replica.
        target: f64 = "targetValue" in [Metadata], default "5";
        /// The trigger is active above this value.
        activation: f64 = "activationValue" in [Metadata], default "0";
        /// Credentials.
        credentials: GoogleCredentials;
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if self.target <= 0.0 {
            return Err(format!("targetValue must be greater than 0, got {}", self.target).into());
        }
        Ok(())
    }
}

struct Spanner {
    parameters: Parameters,
    client: GoogleClient,
    /// Id of the session; none before the first query.
    session: Mutex<Option<String>>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let inside = |error: ParseError| ScalerError::new(error).inside("error parsing Spanner metadata");
    parameters.credentials.check(trigger).map_err(inside)?;
    let Parameters { instance, database, project, target, .. } = &parameters;
    let name = format!("gcp-spanner-{instance}-{database}-{project}");
    let spec = external(trigger, &name, milli(*target));
    let client = GoogleClient::new(&parameters.credentials, SCOPE, trigger, backends);
    let activation = parameters.activation;
    SingleMetricScaler::build(spec, activation, Spanner { parameters, client, session: Mutex::default() })
}

impl Spanner {
    /// The session of this trigger, which is created if there is none.
    async fn session(&self) -> Result<String, ScalerError> {
        let mut kept = self.session.lock().await;
        if let Some(session) = &*kept {
            return Ok(session.clone());
        }
        let (status, body) = self.client.post(query::sessions_url(&self.parameters), "{}".to_owned()).await?;
        let session = query::session(status, &body)?;
        *kept = Some(session.clone());
        Ok(session)
    }

    async fn newest(&self) -> Result<f64, ScalerError> {
        let mut may_retry = true;
        loop {
            let session = self.session().await?;
            let url = query::query_url(&self.parameters, &session);
            let (status, body) = self.client.post(url, query::request_body(&self.parameters.query)).await?;
            // Spanner ends sessions after an hour without queries.
            if status == 404 && may_retry {
                may_retry = false;
                let mut kept = self.session.lock().await;
                *kept = kept.take().filter(|kept| *kept != session);
                continue;
            }
            return query::value(status, &body);
        }
    }
}

impl ValueSource for Spanner {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async { self.newest().await.map_err(|error| error.inside("querying Spanner")) })
    }
}
