//! What a TriggerAuthentication gives: parameters and an identity (docs/spec/keda.md 1.3).
//!
//! ```text
//! objects    what is read of the cluster: the trait, and the real one         needs a client
//! manifests  the same from manifests
//! steps      the eleven steps, in their order
//! files      files of the operator: credentials, tokens of service accounts
//! identity   what follows from the identity of a cloud
//! vault      HashiCorp Vault                                                 needs a network
//! ```
//!
//! KEDA takes what is missing for empty, and the trouble shows later and elsewhere. Here it is an error that names what is
//! missing, unless KEDA is to be imitated. Errors and results carry the objects that were looked at: when one of them
//! appears or changes, it is time to look again.

mod files;
mod identity;
mod manifests;
pub mod objects;
mod steps;
#[cfg(test)]
mod tests;
mod vault;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::keda::{AuthenticationRef, PodIdentity};
use api::map::StringMap;
use api::provider::Compat;
use keda::environment::{FetchedSources, PodTemplate, SourceData, needed, resolve};
use sources::http::Secret;

pub use keda::environment::{SourceKind, SourceRef};
pub use manifests::ManifestObjects;
pub use objects::{ApiServerObjects, AuthObjects, Fetch, FetchError};

use super::OperatorSettings;

/// SampleQuery credentials are looked up.
#[derive(Clone, Debug)]
pub struct AuthRules {
    /// SampleQuery exactly KEDA is imitated.
    pub compat: Compat,
    /// Where the secrets of ClusterTriggerAuthentications are.
    pub cluster_namespace: String,
    /// Whether secrets are read there only.
    pub restrict_secrets: bool,
    /// Where files of ClusterTriggerAuthentications are.
    pub file_root: Option<PathBuf>,
    /// SampleQuery long tokens of service accounts are asked for.
    pub token_expiry: Duration,
    /// SampleQuery Vault is reached.
    pub vault: VaultRules,
}

/// SampleQuery Vault is reached, unless an object says otherwise.
#[derive(Clone, Debug, Default)]
pub struct VaultRules {
    /// The token for the token login (`VAULT_TOKEN`); goes before that of the object.
    pub token: Option<Secret>,
    /// Authorities that are trusted instead of the system's (`VAULT_CACERT`).
    pub ca_file: Option<PathBuf>,
    /// Whether any certificate will do (`VAULT_SKIP_VERIFY`).
    pub insecure: bool,
}

impl VaultRules {
    /// As the variables of a process say.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let given = |name: &str| variable(name).filter(|text| !text.is_empty());
        let is_yes = |text: String| matches!(text.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True");
        Self {
            token: given("VAULT_TOKEN").map(Secret::new),
            ca_file: given("VAULT_CACERT").map(PathBuf::from),
            insecure: given("VAULT_SKIP_VERIFY").is_some_and(is_yes),
        }
    }
}

impl From<&OperatorSettings> for AuthRules {
    fn from(settings: &OperatorSettings) -> Self {
        Self {
            compat: settings.compat,
            cluster_namespace: settings.cluster_object_namespace.clone(),
            restrict_secrets: settings.restrict_secret_access,
            file_root: settings.file_root.clone(),
            token_expiry: settings.token_expiry,
            vault: VaultRules::default(),
        }
    }
}

/// What is asked for a trigger.
#[derive(Clone, Copy, Debug)]
pub struct AuthQuery<'a> {
    /// The namespace of the ScaledObject or ScaledJob.
    pub namespace: &'a str,
    /// What its trigger refers to.
    pub authentication: Option<&'a AuthenticationRef>,
    /// The pods of its target, if it has any.
    pub template: Option<&'a PodTemplate>,
    /// The container whose variables count; empty means the first.
    pub container: &'a str,
}

/// What a trigger is given.
#[derive(Clone, Default, PartialEq)]
pub struct ResolvedAuth {
    /// Parameters.
    pub parameters: BTreeMap<String, String>,
    /// The identity of a cloud.
    pub identity: PodIdentity,
    /// What it was made of.
    pub seen: Vec<SourceRef>,
}

/// The variables of a container.
#[derive(Clone, Default, PartialEq)]
pub struct ContainerEnvironment {
    /// By name.
    pub variables: BTreeMap<String, String>,
    /// What they were made of.
    pub seen: Vec<SourceRef>,
}

/// Why there is nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct AuthError {
    /// In one sentence, without secrets.
    pub text: String,
    /// What was looked at; the last one is usually the one to wait for.
    pub seen: Vec<SourceRef>,
}

impl fmt::Debug for ResolvedAuth {
    /// Without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.parameters.keys().collect();
        let mut out = f.debug_struct("ResolvedAuth");
        out.field("parameters", &names)
            .field("identity", &self.identity.provider)
            .field("seen", &self.seen)
            .finish()
    }
}

impl fmt::Debug for ContainerEnvironment {
    /// Without values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.variables.keys().collect();
        f.debug_struct("ContainerEnvironment").field("variables", &names).field("seen", &self.seen).finish()
    }
}

/// Looks up what triggers are given.
#[derive(Clone)]
pub struct AuthResolver {
    objects: Arc<dyn AuthObjects>,
    rules: Arc<AuthRules>,
    vaults: vault::Vaults,
}

impl AuthResolver {
    /// Reads these objects by these rules.
    pub fn new(objects: Arc<dyn AuthObjects>, rules: AuthRules) -> Self {
        let vaults = vault::Vaults::new(rules.vault.clone());
        Self { objects, rules: Arc::new(rules), vaults }
    }

    /// Parameters and identity of a trigger.
    pub async fn resolve(&self, asked: AuthQuery<'_>) -> Result<ResolvedAuth, AuthError> {
        let mut seen = Vec::new();
        match steps::resolve(self, asked, &mut seen).await {
            Ok((parameters, identity)) => Ok(ResolvedAuth { parameters, identity, seen }),
            Err(text) => Err(AuthError { text, seen }),
        }
    }

    /// The variables of a container of the target, for parameters that end in `FromEnv`; none if it has no pods.
    pub async fn environment(
        &self,
        namespace: &str,
        template: Option<&PodTemplate>,
        container: &str,
    ) -> Result<ContainerEnvironment, AuthError> {
        let mut seen = Vec::new();
        match self.variables(namespace, template, container, &mut seen).await {
            Ok(variables) => Ok(ContainerEnvironment { variables, seen }),
            Err(error) => {
                Err(AuthError { text: format!("error resolving secrets for ScaleTarget: {error}"), seen })
            }
        }
    }

    async fn variables(
        &self,
        namespace: &str,
        template: Option<&PodTemplate>,
        container: &str,
        seen: &mut Vec<SourceRef>,
    ) -> Result<BTreeMap<String, String>, keda::environment::EnvironmentError> {
        let Some(template) = template else { return Ok(BTreeMap::new()) };
        let Some(container) = template.container(container)? else { return Ok(BTreeMap::new()) };
        let may_read = self.may_read_secrets(namespace);
        let mut fetched = FetchedSources::default();
        for object in needed(container, namespace, may_read) {
            if object.kind == SourceKind::Secret {
                let read = self.objects.secret(namespace, &object.name).await;
                fetched.secrets.insert(object.name.clone(), read.map(texts).map_err(|failure| failure.text));
            } else {
                let read: SourceData =
                    self.objects.config_map(namespace, &object.name).await.map_err(|f| f.text);
                fetched.config_maps.insert(object.name.clone(), read);
            }
            note(seen, object);
        }
        resolve(container, namespace, may_read, &fetched)
    }

    fn may_read_secrets(&self, namespace: &str) -> bool {
        !self.rules.restrict_secrets || namespace == self.rules.cluster_namespace
    }
}

/// Remembers an object once.
fn note(seen: &mut Vec<SourceRef>, object: SourceRef) {
    if !seen.contains(&object) {
        seen.push(object);
    }
}

/// Values as text; what is none is shown as well as it can be.
fn texts(data: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, String> {
    data.into_iter().map(|(key, value)| (key, String::from_utf8_lossy(&value).into_owned())).collect()
}

/// Whether a trigger names variables of its target's container.
pub fn names_variables(metadata: &StringMap) -> bool {
    metadata.keys().any(|key| key.ends_with("FromEnv"))
}
