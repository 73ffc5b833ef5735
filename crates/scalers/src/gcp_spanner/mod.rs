//! gcp-spanner: the number returned by a query of Google Cloud Spanner.

use crate::google_credentials::GoogleCredentials;
use crate::parameters::KedaProfile;
use crate::prelude::*;

/// The scaler type `gcp-spanner`.
pub const TYPE: ScalerType = ScalerType {
    name: "gcp-spanner",
    about: "The number in the first column of the first row of a Google Cloud Spanner query.",
    display: "spannerScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
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

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let inside = |error: ParseError| ScalerError::new(error).inside("error parsing Spanner metadata");
    parameters.credentials.check(trigger).map_err(inside)?;
    let Parameters { instance, database, project, target, .. } = &parameters;
    let name = format!("gcp-spanner-{instance}-{database}-{project}");
    UnqueriedScaler::build(trigger, [external(trigger, &name, milli(*target))])
}
