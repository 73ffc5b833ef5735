//! Credentials of Google Cloud in triggers, without IO.

use crate::identity::GoogleIdentity;
use crate::parameters::Secret;
use crate::{ParseError, ScalerError, Trigger};

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
        let named = trigger.metadata.get("credentialsFromEnv").is_some_and(|name| !name.is_empty());
        let application = trigger.auth.get("GoogleApplicationCredentials").is_some_and(|key| !key.is_empty());
        let given = application || named || !self.file.is_empty();
        if given || trigger.identity.provider == "gcp" {
            Ok(())
        } else {
            Err("google application credentials not found".into())
        }
    }

    /// The identity: that of the operator only with pod identity `gcp`, which was checked when the TriggerAuthentication was read.
    pub(crate) fn identity(&self, trigger: &Trigger) -> Result<GoogleIdentity, ScalerError> {
        if trigger.identity.provider == "gcp" {
            return Ok(GoogleIdentity::Operator);
        }
        for key in [&self.application, &self.own] {
            if !key.reveal().is_empty() {
                return Ok(GoogleIdentity::Key(key.clone()));
            }
        }
        // The file would be one of the operator's pod, not of the workload's.
        if !self.file.is_empty() {
            bail!(
                "credentialsFromEnvFile names a file, and triggers cannot read files of the operator: give the key itself in a \
                 TriggerAuthentication or with credentialsFromEnv"
            );
        }
        Err(scaler_error!("google application credentials not found"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::texts;

    #[test]
    fn identities_of_triggers() {
        let identity = |trigger: &Trigger| GoogleCredentials::read(trigger).unwrap().identity(trigger);
        let key = |text: &str| Ok(GoogleIdentity::Key(Secret::new(text)));
        let mut trigger =
            Trigger { metadata: texts(&[("credentialsFromEnvFile", "F")]), ..Trigger::default() };
        assert!(identity(&trigger).unwrap_err().message.contains("cannot read files of the operator"));
        trigger.metadata = texts(&[("credentialsFromEnv", "V")]);
        assert_eq!(identity(&trigger).unwrap_err().message, "google application credentials not found");
        trigger.environment = texts(&[("V", "own")]);
        assert_eq!(identity(&trigger), key("own"));
        trigger.auth = texts(&[("GoogleApplicationCredentials", "given")]);
        assert_eq!(identity(&trigger), key("given"));
        trigger.identity.provider = "gcp".to_owned();
        assert_eq!(identity(&trigger), Ok(GoogleIdentity::Operator));
    }
}
