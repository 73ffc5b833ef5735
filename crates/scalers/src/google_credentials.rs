//! Credentials of Google Cloud in triggers, without IO.

use crate::parameters::Secret;
use crate::{ParseError, Trigger};

crate::parameters! {
    /// Credentials of Google Cloud.
    pub struct GoogleCredentials {
        /// A service account key or another credential configuration (JSON).
        application: Secret = "GoogleApplicationCredentials" in [Authentication];
        /// The same, from the workload's environment.
        own: Secret = "credentials" in [Environment];
        /// The variable of the workload's environment that has the path of such a file.
        file: String = "credentialsFromEnvFile" in [Metadata];
    }
}

impl GoogleCredentials {
    /// Checks that there are credentials or a pod identity. Like KEDA, an empty variable or
    /// blank credentials are noticed only when the source is queried.
    pub(crate) fn check(&self, trigger: &Trigger) -> Result<(), ParseError> {
        let named = trigger.metadata.get("credentialsFromEnv").is_some_and(|name| !name.trim().is_empty());
        let application = trigger.auth.get("GoogleApplicationCredentials").is_some_and(|key| !key.is_empty());
        let given = application || named || !self.file.is_empty();
        if given || trigger.identity.provider == "gcp" {
            Ok(())
        } else {
            Err("google application credentials not found".into())
        }
    }
}
