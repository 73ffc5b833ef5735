//! azure-blob: the number of blobs in a container of Azure Storage.

mod glob;
mod query;
#[cfg(test)]
mod tests;

use regex::Regex;

use crate::azure_clouds::check_cloud_of;
use crate::azure_storage::{STORAGE_SCOPE, StorageConnection, StorageService, storage_date};
use crate::identity::{AzureIdentity, Identities};
use crate::prelude::*;
use query::BlobFilter;

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 500;

/// Prefix of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing azure blob metadata";

/// The scaler type `azure-blob`.
pub const TYPE: ScalerType = ScalerType {
    name: "azure-blob",
    about: "How many blobs are in a container of Azure Storage.",
    display: "azureBlobScaler",
    parameters: Parameters::PARAMETERS,
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
        connection: Secret = "connection" in [Authentication, Environment, Metadata];
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

    /// Which blobs are listed. All levels are with a pattern, which is applied to the whole name.
    fn filter(&self) -> BlobFilter {
        let delimiter = if self.recursive { "" } else { &*self.delimiter };
        let prefix = match &*self.prefix {
            "" => String::new(),
            prefix => format!("{prefix}{delimiter}"),
        };
        let delimiter = if self.glob.is_empty() { delimiter.to_owned() } else { String::new() };
        BlobFilter { container: self.container.clone(), prefix, delimiter }
    }

    /// The connection; none if a pod identity is used.
    fn access(&self, trigger: &Trigger) -> Result<Option<StorageConnection>, ScalerError> {
        let wrong = |text: String| Err(ScalerError::new(text).inside(PREFIX));
        check_cloud_of(trigger, "endpointSuffix").map_err(|error| ScalerError::new(error).inside(PREFIX))?;
        // Like KEDA, a variable that is named but missing is noticed by the client.
        let named = trigger.metadata.get("connectionFromEnv").is_some_and(|name| !name.is_empty());
        match (&*trigger.identity.provider, self.connection.reveal()) {
            ("" | "none", "") if !named => {
                wrong("connection string is required when not using pod identity)".to_owned())
            }
            ("" | "none", text) => {
                StorageConnection::parse(text, StorageService::Blob).map(Some).map_err(|error| {
                    error.inside("error creating azure blob client: failed to create hub client")
                })
            }
            ("azure-workload", _) if self.account_name.is_empty() => {
                wrong("accountName is required when using Azure Workload Identity".to_owned())
            }
            ("azure-workload", _) => Ok(None),
            (other, _) => wrong(format!(
                "pod identity provider \"{other}\" is not supported for Azure Storage Blobs (supported: none, \
                 azure-workload)"
            )),
        }
    }
}

struct Blobs {
    filter: BlobFilter,
    /// The compiled pattern, if there is one.
    pattern: Option<Result<Regex, ScalerError>>,
    /// The connection; none if the pod identity is used.
    connection: Option<StorageConnection>,
    account: String,
    cloud: String,
    identity: AzureIdentity,
    identities: Arc<Identities>,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let connection = parameters.access(trigger)?;
    let name = format!("azure-blob-{}", parameters.container);
    let spec = external(trigger, &name, whole(parameters.blob_count));
    let source = Blobs {
        filter: parameters.filter(),
        pattern: Some(&parameters.glob).filter(|glob| !glob.is_empty()).map(|glob| glob::compile(glob)),
        connection,
        account: parameters.account_name,
        cloud: parameters.cloud,
        identity: AzureIdentity::of(&trigger.identity),
        identities: backends.state(),
        within: trigger.http_timeout,
        web: Arc::clone(&backends.web),
    };
    SingleMetricScaler::build(spec, parameters.activation as f64, source)
}

impl Blobs {
    async fn connection(&self) -> Result<StorageConnection, ScalerError> {
        if let Some(connection) = &self.connection {
            return Ok(connection.clone());
        }
        // The host comes first: a token of the operator is not even requested if it would be sent elsewhere.
        let url = StorageConnection::workload_url(&self.account, &self.cloud, StorageService::Blob)?;
        let token = self.identities.azure(&self.identity, STORAGE_SCOPE, &self.web).await?;
        Ok(StorageConnection::bearer(url, &token))
    }
}

impl ValueSource for Blobs {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let pattern = self.pattern.as_ref().map(Result::as_ref).transpose().map_err(Clone::clone)?;
            let connection = self.connection().await?;
            let (mut count, mut marker) = (0, String::new());
            for _ in 0..MAX_PAGES {
                let date = storage_date(self.web.now());
                let request = self.filter.page(&connection, &marker, &date)?;
                let (status, body) = send(&self.web, request.call(&date, self.within)?).await?;
                let page = query::page(status, &body, pattern)?;
                count += page.count;
                if page.next.is_empty() {
                    return Ok(count as f64);
                }
                marker = page.next;
            }
            Err(scaler_error!(
                "the container has more than {MAX_PAGES} pages of blobs: narrow them down with blobPrefix"
            ))
        })
    }
}
