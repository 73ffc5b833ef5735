//! azure-eventhub: the events of an Azure Event Hub that a consumer group has not processed yet.
//!
//! ```text
//! amqp_value   values of AMQP 1.0
//! amqp         frames and messages
//! client       pooled connections, which read the partitions of a hub
//! checkpoint   what a consumer group has processed, in blobs
//! query        connection strings, signatures and counts
//! ```

mod amqp;
mod amqp_value;
mod checkpoint;
mod client;
mod query;
#[cfg(test)]
mod tests;

use std::sync::Mutex;

use api::keda::TriggerBehavior;
use futures::{StreamExt as _, TryStreamExt as _};
use locks::MutexExt as _;

use checkpoint::CheckpointStrategy;
use client::EventHubServer;
use query::{EVENT_HUBS_SCOPE, HubAddress, HubConnection, PartitionInfo, SIGNATURE_TYPE};

use crate::azure_clouds::check_cloud_of;
use crate::azure_storage::{STORAGE_SCOPE, StorageConnection, StorageService, storage_date};
use crate::identity::{AzureIdentity, Identities};
use crate::pool::{Pool, Pools};
use crate::prelude::*;

/// How many checkpoints are read at the same time.
const CONCURRENT_CHECKPOINTS: usize = 8;
/// Minimum validity of a signature, in seconds; reads within the same span share a signature, and so a connection.
const SIGNATURE_SPAN_SECONDS: i64 = 3600;

/// Prefix of errors that are found after the parameters were read.
const PREFIX: &str = "unable to get eventhub metadata";

/// The scaler type `azure-eventhub`.
pub const TYPE: ScalerType = ScalerType {
    name: "azure-eventhub",
    about: "How many events of an Azure Event Hub a consumer group has not processed yet.",
    display: "azureEventHubScaler",
    parameters: Parameters::PARAMETERS,
    unit: |_| "events",
    build,
    samples: &[Sample::tcp(
        &[("consumerGroup", "g")],
        &[
            ("connection", "Endpoint=sb://{}/;SharedAccessKeyName=k;SharedAccessKey=hunter2;EntityPath=hub"),
            ("storageConnection", "AccountName=a;AccountKey=aHVudGVyMg==;BlobEndpoint=http://{}/a"),
        ],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of azure-eventhub.
    pub struct Parameters of "unable to get eventhub metadata: error parsing azure eventhub metadata" {
        /// Target number of unprocessed events per replica.
        threshold: i64 = "unprocessedEventThreshold" in [Metadata], default "64";
        /// The trigger is active above this number of unprocessed events.
        activation: i64 = "activationUnprocessedEventThreshold" in [Metadata], default "0";
        /// Above this number of events the information of a partition is taken to be stale.
        stale_threshold: i64 = "stalePartitionInfoThreshold" in [Metadata], default "10000";
        /// Connection string of the Event Hub.
        connection: Secret = "connection" in [Authentication, Environment];
        /// The Event Hub, if the connection string does not name it.
        hub: String = "eventHubName" in [Metadata, Environment];
        /// The namespace of the Event Hub, for `azure-workload`.
        namespace: String = "eventHubNamespace" in [Metadata, Environment];
        /// Resource URL of Event Hubs in a private cloud.
        resource_url: String = "eventHubResourceURL" in [Metadata];
        /// Suffix of the host names of Event Hubs in a private cloud.
        endpoint_suffix: String = "endpointSuffix" in [Metadata];
        /// Connection string of the storage account with the checkpoints.
        storage_connection: Secret = "storageConnection" in [Authentication, Environment];
        /// The storage account with the checkpoints, for `azure-workload`.
        storage_account: String = "storageAccountName" in [Metadata];
        /// Suffix of the host names of the storage account in a private cloud.
        storage_endpoint_suffix: String = "storageEndpointSuffix" in [Metadata];
        /// The blob container with the checkpoints.
        blob_container: String = "blobContainer" in [Metadata];
        /// Who writes the checkpoints: `azureFunction`, `blobMetadata`, `goSdk` or `dapr`; Event Processor Host if it is missing.
        checkpoint_strategy: String = "checkpointStrategy" in [Metadata];
        /// The consumer group.
        consumer_group: String = "consumerGroup" in [Metadata], default "$Default";
        /// The cloud.
        cloud: String = "cloud" in [Metadata];
        /// Token endpoint of a private cloud.
        active_directory_endpoint: String = "activeDirectoryEndpoint" in [Metadata];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if self.threshold <= 0 {
            return Err("\"unprocessedEventThreshold\" must be a positive number".into());
        }
        Ok(())
    }

    fn check_access(&self, trigger: &Trigger) -> Result<(), ParseError> {
        check_cloud_of(trigger, "endpointSuffix")?;
        let has_identity = trigger.identity.provider == "azure-workload";
        if has_identity && !self.storage_account.is_empty() {
            check_cloud_of(trigger, "storageEndpointSuffix")?;
        }
        let storage = !self.storage_connection.reveal().is_empty();
        match &*trigger.identity.provider {
            "" | "none" if !storage => Err("no storage connection string given".into()),
            "" | "none" if self.connection.reveal().is_empty() => {
                Err("no event hub connection string given".into())
            }
            "" | "none" if self.hub.is_empty() && !names_hub(self.connection.reveal(), trigger.behavior()) => {
                Err("connection string does not contain event hub name, and parameter eventHubName not provided"
                    .into())
            }
            "azure-workload" if !storage && self.storage_account.is_empty() => {
                Err("no storage connection string or storage account name for pod identity based authentication given"
                    .into())
            }
            "azure-workload" if self.namespace.is_empty() => {
                Err("no event hub namespace string given".into())
            }
            "azure-workload" if self.hub.is_empty() => Err("no event hub name string given".into()),
            "" | "none" | "azure-workload" => Ok(()),
            other => Err(format!("event hub does not support pod identity {other}").into()),
        }
    }
}

/// Whether a connection string names the Event Hub. KEDA 2.20 looks for the word anywhere in it, 2.21 for the key.
fn names_hub(connection: &str, behavior: &TriggerBehavior) -> bool {
    if !behavior.eventhub_entity_path_is_a_key {
        return connection.contains("EntityPath");
    }
    connection
        .split(';')
        .filter_map(|pair| pair.split_once('='))
        .any(|(key, value)| key.trim().eq_ignore_ascii_case("EntityPath") && !value.trim().is_empty())
}

/// A consumer group of a hub.
struct EventHub {
    parameters: Parameters,
    strategy: CheckpointStrategy,
    /// The connection to the hub; none if the pod identity is used.
    connection: Option<HubConnection>,
    /// The connection to the storage with the checkpoints; none if the pod identity is used.
    storage: Option<StorageConnection>,
    identity: AzureIdentity,
    identities: Arc<Identities>,
    /// The server without a token.
    server: EventHubServer,
    pools: Arc<Pools<EventHubServer>>,
    /// The pool of the last read, so that its connections stay open. Another token has another pool.
    pool: Mutex<Option<Arc<Pool<EventHubServer>>>>,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

/// The scaler of a trigger, or why it cannot be queried.
struct CheckedEventHub(MetricSpec, Result<EventHub, ScalerError>);

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    parameters.check_access(trigger).map_err(|error| ScalerError::new(error).inside(PREFIX))?;
    let name = format!("azure-eventhub-{}", parameters.consumer_group);
    let spec = external(trigger, &name, whole(parameters.threshold));
    let hub = EventHub::new(parameters, trigger, backends);
    Ok(Arc::new(CheckedEventHub(spec, hub)))
}

impl EventHub {
    fn new(parameters: Parameters, trigger: &Trigger, backends: &Backends) -> Result<Self, ScalerError> {
        let has_identity = trigger.identity.provider == "azure-workload";
        let Parameters { hub, namespace, cloud, blob_container, checkpoint_strategy, .. } = &parameters;
        // The host is checked before a token of the operator is requested.
        let (hub, connection) = if has_identity {
            (query::workload_hub(namespace, hub, cloud)?, None)
        } else {
            let connection = HubConnection::parse(parameters.connection.reveal(), hub)?;
            (connection.hub.clone(), Some(connection))
        };
        let storage = match parameters.storage_connection.reveal() {
            "" => None,
            text => Some(StorageConnection::parse(text, StorageService::Blob)?),
        };
        let server = EventHubServer {
            hub,
            token_type: if has_identity { "jwt" } else { SIGNATURE_TYPE },
            token: Secret::default(),
            authorities: backends.web.settings().authorities.clone(),
            dialer: backends.dialer.clone(),
        };
        Ok(Self {
            strategy: CheckpointStrategy::of(checkpoint_strategy, blob_container),
            parameters,
            connection,
            storage,
            identity: AzureIdentity::of(&trigger.identity),
            identities: backends.state(),
            server,
            pools: backends.state(),
            pool: Mutex::default(),
            within: trigger.http_timeout,
            web: Arc::clone(&backends.web),
        })
    }

    fn hub(&self) -> &HubAddress {
        &self.server.hub
    }

    async fn partitions(&self) -> Result<Vec<PartitionInfo>, ScalerError> {
        let mut server = self.server.clone();
        server.token = if let Some(connection) = &self.connection {
            let now = self.web.now().as_second();
            connection.token((now / SIGNATURE_SPAN_SECONDS + 2) * SIGNATURE_SPAN_SECONDS)
        } else {
            self.identities.azure(&self.identity, EVENT_HUBS_SCOPE, &self.web).await?
        };
        let pool = self.pools.of(&server);
        *self.pool.locked() = Some(Arc::clone(&pool));
        pool.query(&()).await
    }

    async fn storage(&self) -> Result<StorageConnection, ScalerError> {
        if let Some(storage) = &self.storage {
            return Ok(storage.clone());
        }
        let Parameters { storage_account, cloud, .. } = &self.parameters;
        let url = StorageConnection::workload_url(storage_account, cloud, StorageService::Blob)?;
        let token = self.identities.azure(&self.identity, STORAGE_SCOPE, &self.web).await?;
        Ok(StorageConnection::bearer(url, &token))
    }

    /// The number of the last event of a partition that the group has processed; none if there is no checkpoint.
    async fn checkpoint(
        &self,
        storage: &StorageConnection,
        partition: &str,
    ) -> Result<Option<i64>, ScalerError> {
        let Parameters { blob_container, consumer_group, .. } = &self.parameters;
        let path = self.strategy.path(blob_container, self.hub(), consumer_group, partition);
        let date = storage_date(self.web.now());
        let call = storage.request(&path, &[], &date)?.call(&date, self.within)?;
        // Responses that are shared have no headers, which one of the strategies needs.
        let answer = self.web.send(call.alone()).await?;
        self.strategy.number(answer.status.as_u16(), &answer.headers, &answer.body)
    }

    /// The events of a partition that are not processed yet.
    async fn count(
        &self,
        storage: &StorageConnection,
        partition: &PartitionInfo,
    ) -> Result<i64, ScalerError> {
        // An empty partition needs no checkpoint.
        let checkpoint = match partition.last {
            -1 => None,
            _ => self.checkpoint(storage, &partition.id).await?,
        };
        Ok(query::unprocessed(partition, checkpoint, self.parameters.stale_threshold))
    }

    /// The events that are not processed yet, and the number of partitions.
    async fn unprocessed(&self) -> Result<(i64, usize), ScalerError> {
        let partitions = self.partitions().await?;
        let storage = &self.storage().await?;
        let counts: Vec<_> = partitions.iter().map(|partition| self.count(storage, partition)).collect();
        let counts = futures::stream::iter(counts).buffer_unordered(CONCURRENT_CHECKPOINTS);
        let counts: Vec<i64> = counts.try_collect().await?;
        Ok((counts.into_iter().fold(0, i64::saturating_add), partitions.len()))
    }
}

impl Scaler for CheckedEventHub {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(vec![self.0.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            let hub = self.1.as_ref().map_err(Clone::clone)?;
            let (total, partitions) = hub.unprocessed().await?;
            let served = query::served(total, partitions, hub.parameters.threshold);
            Ok(Reading::one(metric, milli(served as f64), total > hub.parameters.activation))
        })
    }
}

/// Decodes bytes of a server, for fuzzing; returns whether they are valid.
#[doc(hidden)]
pub fn is_response(bytes: &[u8]) -> bool {
    let _ = amqp::reply(bytes);
    match amqp::frame(bytes) {
        Ok(amqp::AmqpFrame::Transfer { payload, .. }) => amqp::reply(&payload).is_ok(),
        frame => frame.is_ok(),
    }
}
