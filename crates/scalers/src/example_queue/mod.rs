//! example-queue: the number of messages in a queue.

mod query;
#[cfg(test)]
mod tests;

use crate::prelude::*;

/// The scaler type `example-queue`.
pub const TYPE: ScalerType = ScalerType {
    name: "example-queue",
    about: "The number of messages in a queue.",
    // The label `scaler` of exported metrics.
    display: "exampleQueueScaler",
    parameters: Parameters::PARAMETERS,
    // `plimsoll why` shows the unit of values.
    unit: |_| "messages",
    build,
    // A valid trigger, whose parameters are varied by the tests of all types; `{}` is the address of their server.
    samples: &[Sample::http(&[("serverAddress", "http://{}"), ("queueName", "q")], sample::TOKEN)],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of example-queue.
    pub struct Parameters of "error parsing example-queue metadata" {
        /// URL of the server, e.g. `http://queues:8080`.
        server_address: String = "serverAddress" in [Metadata], required;
        /// The queue.
        queue_name: String = "queueName" in [Metadata, Authentication], required;
        /// Target number of messages per replica.
        target: i64 = "queueLength" in [Metadata], default "5";
        /// The trigger is active above this number of messages.
        activation: f64 = "activationQueueLength" in [Metadata], default "0";
        /// API token.
        token: Secret = "token" in [Authentication], required;
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let name = format!("{}-{}", TYPE.name, parameters.queue_name);
    let spec = external(trigger, &name, whole(parameters.target));
    let activation = parameters.activation;
    SingleMetricScaler::build(spec, activation, HttpSource::new(parameters, trigger, backends))
}

impl ValueSource for HttpSource<Parameters> {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { server_address, queue_name, token, .. } = &self.parameters;
            let call = HttpCall::get(query::url(server_address, queue_name), self.within);
            let call = call.header("authorization", &format!("Bearer {}", token.reveal()))?;
            let (status, body) = send(&self.web, call).await?;
            query::length(status, &body)
        })
    }
}
