//! azure-eventhub: the events of an Azure Event Hub that a consumer group has not processed yet.

#[cfg(test)]
mod tests;

use crate::azure_clouds::check_cloud;
use crate::prelude::*;
use api::keda::TriggerBehavior;

/// What stands in front of errors that are found after the parameters were read.
const PREFIX: &str = "unable to get eventhub metadata";

/// The scaler type `azure-eventhub`.
pub const TYPE: ScalerType = ScalerType {
    name: "azure-eventhub",
    about: "How many events of an Azure Event Hub a consumer group has not processed yet.",
    display: "azureEventHubScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
    unit: |_| "events",
    build,
    samples: &[Sample::tcp(
        &[("consumerGroup", "g")],
        &[
            (
                "connection",
                "Endpoint=sb://127.0.0.1:1/;SharedAccessKeyName=k;SharedAccessKey=hunter2;EntityPath=hub",
            ),
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
        storage_account: String = "storageAccountName" in [Metadata, Environment];
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
        check_cloud(&self.cloud, "endpointSuffix", &self.endpoint_suffix)?;
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
                Err("no storage connection string given".into())
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

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    parameters.check_access(trigger).map_err(|error| ScalerError::new(error).inside(PREFIX))?;
    let name = format!("azure-eventhub-{}", parameters.consumer_group);
    UnqueriedScaler::build(trigger, [external(trigger, &name, whole(parameters.threshold))])
}
