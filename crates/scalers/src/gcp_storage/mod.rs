//! gcp-storage: the number of objects in a bucket of Google Cloud Storage.

mod query;
#[cfg(test)]
mod tests;

use crate::google_client::GoogleClient;
use crate::google_credentials::GoogleCredentials;
use crate::prelude::*;

/// Scope of tokens.
const SCOPE: &str = "https://www.googleapis.com/auth/devstorage.read_only";
/// Maximum number of pages of a list.
const MAX_PAGES: usize = 500;

/// Prefix of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing GCP storage metadata";

/// The scaler type `gcp-storage`.
pub const TYPE: ScalerType = ScalerType {
    name: "gcp-storage",
    about: "How many objects are in a bucket of Google Cloud Storage.",
    display: "gcsScaler",
    parameters: Parameters::PARAMETERS,
    unit: |_| "objects",
    build,
    samples: &[Sample::fixed(&[("bucketName", "b")], sample::GOOGLE_KEY)],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of gcp-storage.
    pub struct Parameters of "error parsing GCP storage metadata: error parsing gcs metadata" {
        /// The bucket. One that does not exist is an error (0 in KEDA).
        bucket: String = "bucketName" in [Metadata], required;
        /// Target number of objects per replica.
        target: i64 = "targetObjectCount" in [Metadata], default "100";
        /// The trigger is active above this number of objects.
        activation: i64 = "activationTargetObjectCount" in [Metadata], default "0";
        /// Objects beyond this number are not counted.
        max_items: i64 = "maxBucketItemsToScan" in [Metadata], default "1000";
        /// Only objects whose name has no such delimiter after the prefix count.
        delimiter: String = "blobDelimiter" in [Metadata];
        /// Only objects whose name begins so count.
        prefix: String = "blobPrefix" in [Metadata];
        /// Credentials.
        credentials: GoogleCredentials;
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if self.target <= 0 {
            return Err("targetObjectCount must be a positive number".into());
        }
        if self.activation < 0 {
            return Err("activationTargetObjectCount must be a positive number".into());
        }
        if self.max_items <= 0 {
            return Err("maxBucketItemsToScan must be a positive number".into());
        }
        Ok(())
    }
}

struct Bucket {
    parameters: Parameters,
    client: GoogleClient,
    /// Whether KEDA's behavior is reproduced exactly.
    is_strict: bool,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    parameters.credentials.check(trigger).map_err(|error| ScalerError::new(error).inside(PREFIX))?;
    let name = format!("gcp-storage-{}", parameters.bucket);
    let spec = external(trigger, &name, whole(parameters.target));
    let client = GoogleClient::new(&parameters.credentials, SCOPE, trigger, backends);
    let is_strict = backends.compat.is_strict();
    let activation = parameters.activation as f64;
    SingleMetricScaler::build(spec, activation, Bucket { parameters, client, is_strict })
}

impl ValueSource for Bucket {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let most = self.parameters.max_items;
            let (mut count, mut token) = (0, String::new());
            for _ in 0..MAX_PAGES {
                let (status, body) = self.client.get(query::url(&self.parameters, &token), None).await?;
                // KEDA takes a bucket that does not exist for an empty one.
                if status == 404 && self.is_strict {
                    return Ok(0.0);
                }
                let page = query::page(status, &body)?;
                count = page.count.saturating_add(count).min(most);
                if page.next.is_empty() || count == most {
                    return Ok(count as f64);
                }
                token = page.next;
            }
            Err(scaler_error!(
                "the bucket has more than {MAX_PAGES} pages of objects: narrow them down with blobPrefix"
            ))
        })
    }
}
