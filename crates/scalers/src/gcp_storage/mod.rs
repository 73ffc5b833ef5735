//! gcp-storage: the number of objects in a bucket of Google Cloud Storage.

use crate::google_credentials::GoogleCredentials;
use crate::prelude::*;

/// What stands in front of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing GCP storage metadata";

/// The scaler type `gcp-storage`.
pub const TYPE: ScalerType = ScalerType {
    name: "gcp-storage",
    about: "How many objects are in a bucket of Google Cloud Storage.",
    display: "gcsScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
    unit: |_| "objects",
    build,
    samples: &[Sample::fixed(&[("bucketName", "b")], sample::GOOGLE_KEY)],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of gcp-storage.
    pub struct Parameters of "error parsing GCP storage metadata: error parsing gcs metadata" {
        /// The bucket.
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

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    parameters.credentials.check(trigger).map_err(|error| ScalerError::new(error).inside(PREFIX))?;
    let name = format!("gcp-storage-{}", parameters.bucket);
    UnqueriedScaler::build(trigger, [external(trigger, &name, whole(parameters.target))])
}
