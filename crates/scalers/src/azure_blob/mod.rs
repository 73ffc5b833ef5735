//! azure-blob: the number of blobs in a container of Azure Storage.

mod glob;
#[cfg(test)]
mod tests;

use crate::azure_clouds::check_cloud;
use crate::azure_queue::check_storage_connection;
use crate::prelude::*;

/// What stands in front of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing azure blob metadata";

/// The scaler type `azure-blob`.
pub const TYPE: ScalerType = ScalerType {
    name: "azure-blob",
    about: "How many blobs are in a container of Azure Storage.",
    display: "azureBlobScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
    unit: |_| "blobs",
    build,
    samples: &[Sample::http(
        &[("blobContainerName", "c")],
        &[("connection", "AccountName=a;AccountKey=aHVudGVyMg==;BlobEndpoint=http://{}/a")],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of azure-blob.
    pub struct Parameters of "error parsing azure blob metadata: error parsing azure blob metadata" {
        /// The container.
        container: String = "blobContainerName" in [Metadata], required;
        /// Target number of blobs per replica.
        blob_count: i64 = "blobCount" in [Metadata], default "5";
        /// The trigger is active above this number of blobs.
        activation: i64 = "activationBlobCount" in [Metadata], default "0";
        /// Separates the levels of names.
        delimiter: String = "blobDelimiter" in [Metadata], default "/";
        /// Only blobs whose name begins so count.
        prefix: String = "blobPrefix" in [Metadata];
        /// Counts blobs of all levels.
        recursive: bool = "recursive" in [Metadata];
        /// Only blobs whose name matches this pattern count.
        glob: String = "globPattern" in [Metadata];
        /// The account, for `azure-workload`.
        account_name: String = "accountName" in [Metadata];
        /// The connection string.
        connection: Secret = "connection" in [Authentication, Environment];
        /// Suffix of the host names of a private cloud.
        endpoint_suffix: String = "endpointSuffix" in [Metadata];
        /// The cloud.
        cloud: String = "cloud" in [Metadata];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        glob::check(&self.glob, trigger.behavior().azure_blob_globs_are_strict).map_err(|why| {
            let pattern = api::gotext::quote(&self.glob);
            format!("invalid glob pattern {pattern}: {why}").into()
        })
    }

    fn check_access(&self, trigger: &Trigger) -> Result<(), ScalerError> {
        let wrong = |text: String| Err(ScalerError::new(text).inside(PREFIX));
        if let Err(error) = check_cloud(&self.cloud, "endpointSuffix", &self.endpoint_suffix) {
            return wrong(error.into());
        }
        // Like KEDA, a variable that is named but missing is noticed by the client.
        let named = trigger.metadata.get("connectionFromEnv").is_some_and(|name| !name.is_empty());
        match (&*trigger.identity.provider, self.connection.reveal()) {
            ("" | "none", "") if !named => {
                wrong("connection string is required when not using pod identity)".to_owned())
            }
            ("" | "none", text) => check_storage_connection(text).map_err(|error| {
                error.inside("error creating azure blob client: failed to create hub client")
            }),
            ("azure-workload", _) if self.account_name.is_empty() => {
                wrong("accountName is required when using Azure Workload Identity".to_owned())
            }
            ("azure-workload", _) => Ok(()),
            (other, _) => wrong(format!(
                "pod identity provider \"{other}\" is not supported for Azure Storage Blobs (supported: none, \
                 azure-workload)"
            )),
        }
    }
}

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    parameters.check_access(trigger)?;
    let name = format!("azure-blob-{}", parameters.container);
    UnqueriedScaler::build(trigger, [external(trigger, &name, whole(parameters.blob_count))])
}
