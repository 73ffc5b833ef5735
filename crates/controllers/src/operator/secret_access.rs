//! The namespaces whose Secrets are read (`KEDA_RESTRICT_SECRET_ACCESS`). Every read of a Secret for a trigger is checked here.

use super::settings::OperatorSettings;

/// The namespaces whose Secrets are read; by default all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretAccess {
    /// The only namespace, if there is one.
    only: Option<String>,
}

/// A Secret is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Secret {namespace}/{name} is not read: KEDA_RESTRICT_SECRET_ACCESS restricts secrets to namespace {only}"
)]
pub struct RestrictedSecret {
    namespace: String,
    name: String,
    only: String,
}

impl From<&OperatorSettings> for SecretAccess {
    fn from(settings: &OperatorSettings) -> Self {
        let only = settings.restrict_secret_access.then(|| settings.cluster_object_namespace.clone());
        Self { only }
    }
}

impl SecretAccess {
    /// Whether Secrets of a namespace are read.
    pub fn allows(&self, namespace: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == namespace)
    }

    /// Whether a Secret is read.
    pub(crate) fn check(&self, namespace: &str, name: &str) -> Result<(), RestrictedSecret> {
        match &self.only {
            Some(only) if only != namespace => Err(RestrictedSecret {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                only: only.clone(),
            }),
            _ => Ok(()),
        }
    }
}
