//! azure-queue: the number of messages in a storage queue.

mod query;
#[cfg(test)]
mod tests;

use query::{MAX_PEEKED_MESSAGES, QueueConnection};

use crate::azure_clouds::check_cloud_of;
use crate::azure_storage::{STORAGE_SCOPE, StorageConnection, StorageRequest, StorageService, storage_date};
use crate::identity::{AzureIdentity, Identities};
use crate::prelude::*;

/// The scaler type `azure-queue`.
pub const TYPE: ScalerType = ScalerType {
    name: "azure-queue",
    about: "How many messages are in a queue of Azure Storage.",
    display: "azureQueueScaler",
    parameters: Parameters::PARAMETERS,
    build,
    unit: |_| "messages",
    samples: &[Sample::http(
        &[("queueName", "q")],
        &[("connection", "AccountName=a;AccountKey=aHVudGVyMg==;QueueEndpoint=http://{}/a")],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of azure-queue.
    pub struct Parameters of "error parsing azure queue metadata: error parsing azure queue metadata" {
        /// The trigger is active above this number of messages.
        activation_queue_length: i64 = "activationQueueLength" in [Metadata], default "0";
        /// The queue.
        queue_name: String = "queueName" in [Metadata], required;
        /// Target number of messages per replica.
        queue_length: i64 = "queueLength" in [Metadata], default "5";
        /// The connection string.
        connection: Secret = "connection" in [Authentication, Metadata, Environment];
        /// The account, for `azure-workload`.
        account_name: String = "accountName" in [Metadata];
        /// Suffix of the host names of a private cloud.
        endpoint_suffix: String = "endpointSuffix" in [Metadata];
        /// The cloud.
        cloud: String = "cloud" in [Metadata];
        /// Which messages count: `visibleonly` counts only visible messages, as long as there are fewer than 32.
        strategy: String = "queueLengthStrategy" in [Metadata], default "all", one_of ["all", "visibleonly"];
    }
}

impl Parameters {
    /// The connection; none if a pod identity is used.
    fn identity(&self, trigger: &Trigger) -> Result<Option<QueueConnection>, ScalerError> {
        const PREFIX: &str = "error parsing azure queue metadata";
        let wrong = |text: String| Err(ScalerError::new(text).inside(PREFIX));
        check_cloud_of(trigger, "endpointSuffix").map_err(|error| ScalerError::new(error).inside(PREFIX))?;
        match (&*trigger.identity.provider, self.connection.reveal()) {
            ("" | "none", "") => wrong("no connection setting given".to_owned()),
            ("" | "none", text) => query::connection(text).map(Some).map_err(|error| {
                error.inside("error creating azure queue client: failed to create hub client")
            }),
            ("azure-workload", _) if self.account_name.is_empty() => wrong("no accountName given".to_owned()),
            ("azure-workload", _) => Ok(None),
            (other, _) => wrong(format!("pod identity {other} not supported for azure storage queues")),
        }
    }
}

struct AzureQueueSource {
    parameters: Parameters,
    /// The connection; none if the pod identity is used.
    connection: Option<QueueConnection>,
    identity: AzureIdentity,
    identities: Arc<Identities>,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let connection = parameters.identity(trigger)?;
    let name = format!("azure-queue-{}", parameters.queue_name);
    let spec = external(trigger, &name, whole(parameters.queue_length));
    let activation = parameters.activation_queue_length as f64;
    let (within, web) = (trigger.http_timeout, Arc::clone(&backends.web));
    let (identity, identities) = (AzureIdentity::of(&trigger.identity), backends.state());
    let source = AzureQueueSource { parameters, connection, identity, identities, within, web };
    SingleMetricScaler::build(spec, activation, source)
}

impl AzureQueueSource {
    async fn connection(&self) -> Result<QueueConnection, ScalerError> {
        if let Some(connection) = &self.connection {
            return Ok(connection.clone());
        }
        let Parameters { account_name, cloud, .. } = &self.parameters;
        // The host comes first: a token of the operator is not even requested if it would be sent elsewhere.
        let url = StorageConnection::workload_url(account_name, cloud, StorageService::Queue)?;
        let token = self.identities.azure(&self.identity, STORAGE_SCOPE, &self.web).await?;
        Ok(QueueConnection(StorageConnection::bearer(url, &token)))
    }

    fn call(&self, request: StorageRequest, date: &str) -> Result<HttpCall, ScalerError> {
        // The count is in a response header, so the response cannot be shared.
        request.call(date, self.within).map(HttpCall::alone)
    }
}

impl ValueSource for AzureQueueSource {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { queue_name, strategy, .. } = &self.parameters;
            let connection = self.connection().await?;
            let date = storage_date(self.web.now());
            if strategy == "visibleonly" {
                let call = self.call(connection.peek(queue_name, &date)?, &date)?;
                let answer = self.web.send(call).await?;
                let seen = query::peeked(answer.status.as_u16(), &answer.body)?;
                if seen < MAX_PEEKED_MESSAGES {
                    return Ok(seen as f64);
                }
            }
            let call = self.call(connection.count(queue_name, &date)?, &date)?;
            let answer = self.web.send(call).await?;
            let header = answer.headers.get("x-ms-approximate-messages-count");
            let header = header.and_then(|value| value.to_str().ok());
            query::counted(answer.status.as_u16(), header, &answer.body)
        })
    }
}
