//! gcp-cloudtasks: the depth of a queue of Google Cloud Tasks.

#[cfg(test)]
mod tests;

use crate::google_credentials::GoogleCredentials;
use crate::google_monitoring::{MonitoringClient, SeriesFilter};
use crate::prelude::*;

/// Prefix of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing Cloud Tasks metadata";

/// The scaler type `gcp-cloudtasks`.
pub const TYPE: ScalerType = ScalerType {
    name: "gcp-cloudtasks",
    about: "How many tasks are in a queue of Google Cloud Tasks.",
    display: "gcpCloudTasksScaler",
    parameters: Parameters::PARAMETERS,
    unit: |_| "tasks",
    build,
    samples: &[Sample::fixed(&[("projectID", "p"), ("queueName", "q")], sample::GOOGLE_KEY)],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of gcp-cloudtasks.
    pub struct Parameters of "error parsing Cloud Tasks metadata: error parsing Gcp cloud task metadata" {
        /// Target number of tasks per replica.
        value: f64 = "value" in [Metadata], default "100";
        /// The trigger is active above this number of tasks.
        activation: f64 = "activationValue" in [Metadata], default "0";
        /// How many minutes back points of Cloud Monitoring count; 2 if it is missing.
        filter_duration: i64 = "filterDuration" in [Metadata];
        /// The queue.
        queue: String = "queueName" in [Metadata], required;
        /// The project.
        project: String = "projectID" in [Metadata], required,
            deprecated "This scaler is deprecated. More info -> 'https://keda.sh/blog/2025-09-15-gcp-deprecations'";
        /// Credentials.
        credentials: GoogleCredentials;
    }
}

struct CloudTasks {
    parameters: Parameters,
    client: MonitoringClient,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    parameters.credentials.check(trigger).map_err(|error| ScalerError::new(error).inside(PREFIX))?;
    let name = format!("gcp-ct-{}", parameters.queue);
    let spec = external(trigger, &name, milli(parameters.value));
    let client = MonitoringClient::new(&parameters.credentials, trigger, backends);
    SingleMetricScaler::build(spec, parameters.activation, CloudTasks { parameters, client })
}

/// The filter of the time series of a queue, whose name is quoted.
fn filter(queue: &str) -> String {
    let queue = queue.replace('\\', r"\\").replace('"', r#"\""#);
    format!(r#"metric.type="cloudtasks.googleapis.com/queue/depth" AND resource.labels.queue_id="{queue}""#)
}

impl ValueSource for CloudTasks {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { project, queue, filter_duration, .. } = &self.parameters;
            let filter = filter(queue);
            let series =
                SeriesFilter { project, filter: &filter, minutes: *filter_duration, alignment: None };
            let found = self.client.newest(&series).await?;
            found.ok_or_else(|| scaler_error!("could not find stackdriver metric with filter {filter}"))
        })
    }
}
