//! Resolves a TriggerAuthentication to parameters and a pod identity (docs/spec/keda.md 1.3).
//!
//! ```text
//! error            why a resolution failed
//! objects          reads the cluster: the trait, and its implementation      needs a client
//! manifests        the same trait on manifests
//! object_cache     the objects of one resolution, each read once
//! steps            the twelve steps, in order
//! files            files of the operator: credentials, tokens of service accounts
//! identity         parameters of a cloud identity
//! vault            HashiCorp Vault                                           needs a network
//! secret_managers  secret managers of clouds                                 needs a network
//! ```
//!
//! Which credentials of the operator go where is decided by `operator_identity` (docs/security.md).
//!
//! KEDA takes a missing value as empty, and the scaler fails later. Here it is an error that names what is missing, unless KEDA is
//! imitated exactly. Errors and results list the objects that were read: when one of them changes, the scaler is rebuilt.

mod error;
mod files;
mod identity;
mod manifests;
mod object_cache;
pub mod objects;
mod secret_managers;
mod steps;
#[cfg(test)]
mod tests;
mod vault;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::keda::{AuthenticationRef, KedaProfile, PodIdentity};
use api::map::StringMap;
use api::provider::Compat;
use cluster::Clock;
use keda::OperationError;
use keda::environment::{
    EnvironmentError, MAX_ENVIRONMENT_SOURCES, PodTemplate, SourcesOfContainer, needed, resolve,
};
use scalers::backends::Backends;
use scalers::secret_managers::SecretManagers;
use scalers::web::HttpSettings;
use sources::dial::Dialer;
use sources::http::{ProxyRules, Secret};
use tokio::time::timeout;

use object_cache::ObjectCache;

pub use error::{AuthError, AuthFailure, FetchError, FileError, VaultError};
pub use keda::environment::{SourceKind, SourceRef};
pub use manifests::ManifestObjects;
pub use objects::{ApiServerObjects, AuthObjects, Fetch};

use super::OperatorSettings;
use super::operator_identity::IdentityRules;
use super::secret_access::SecretAccess;

/// Time limit of one resolution: a tenant may name many secrets, at a slow server.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(25);

/// How credentials are resolved.
#[derive(Clone, Debug)]
pub struct AuthRules {
    /// Whether KEDA's behaviour is imitated exactly.
    pub compat: Compat,
    /// The release of KEDA that is imitated.
    pub profile: KedaProfile,
    /// Namespace of the Secrets of ClusterTriggerAuthentications.
    pub cluster_namespace: String,
    /// The namespaces whose Secrets are read.
    pub secrets: SecretAccess,
    /// Folder of the files of ClusterTriggerAuthentications.
    pub file_root: Option<PathBuf>,
    /// Lifetime of requested service account tokens.
    pub token_expiry: Duration,
    /// How Vault is reached.
    pub vault: VaultRules,
    /// Which objects may use credentials of the operator, and for which destinations.
    pub identity: IdentityRules,
}

/// How Vault is reached, unless the object overrides it.
#[derive(Clone, Debug, Default)]
pub struct VaultRules {
    /// The token for the token login (`VAULT_TOKEN`); at servers that an administrator listed it precedes that of the object.
    pub token: Option<Secret>,
    /// Certificate authorities that replace those of the system (`VAULT_CACERT`).
    pub ca_file: Option<PathBuf>,
    /// Whether certificates are not verified (`VAULT_SKIP_VERIFY`).
    pub insecure: bool,
    /// Opens connections to addresses of objects.
    pub dialer: Dialer,
    /// Which servers are reached through which proxy.
    pub proxies: ProxyRules,
}

impl VaultRules {
    /// Reads environment variables.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let given = |name: &str| variable(name).filter(|text| !text.is_empty());
        let is_yes = |text: String| matches!(text.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True");
        Self {
            token: given("VAULT_TOKEN").map(Secret::new),
            ca_file: given("VAULT_CACERT").map(PathBuf::from),
            insecure: given("VAULT_SKIP_VERIFY").is_some_and(is_yes),
            dialer: Dialer::default(),
            proxies: ProxyRules::from_environment(&variable),
        }
    }
}

impl From<&OperatorSettings> for AuthRules {
    fn from(settings: &OperatorSettings) -> Self {
        Self {
            compat: settings.compat,
            profile: settings.profile,
            cluster_namespace: settings.cluster_object_namespace.clone(),
            secrets: SecretAccess::from(settings),
            file_root: settings.file_root.clone(),
            token_expiry: settings.token_expiry,
            vault: VaultRules::default(),
            identity: settings.identity.clone(),
        }
    }
}

/// The input of a resolution.
#[derive(Clone, Copy, Debug)]
pub struct AuthQuery<'a> {
    /// The namespace of the ScaledObject or ScaledJob.
    pub namespace: &'a str,
    /// The `authenticationRef` of the trigger.
    pub authentication: Option<&'a AuthenticationRef>,
    /// The pod template of the target, if it has one.
    pub template: Option<&'a PodTemplate>,
    /// The container whose environment variables count; empty for the first.
    pub container: &'a str,
}

/// The result of a resolution.
#[derive(Clone, Default, PartialEq)]
pub struct ResolvedAuth {
    /// Parameters.
    pub parameters: BTreeMap<String, String>,
    /// The cloud identity.
    pub identity: PodIdentity,
    /// The objects that were read.
    pub seen: Vec<SourceRef>,
}

/// The environment variables of a container.
#[derive(Clone, Default, PartialEq)]
pub struct ContainerEnvironment {
    /// Values by name.
    pub variables: BTreeMap<String, String>,
    /// The objects that were read.
    pub seen: Vec<SourceRef>,
}

impl fmt::Debug for ResolvedAuth {
    /// Without the values of parameters.
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
    /// Without the values of variables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.variables.keys().collect();
        f.debug_struct("ContainerEnvironment").field("variables", &names).field("seen", &self.seen).finish()
    }
}

/// Resolves credentials of triggers.
#[derive(Clone)]
pub struct AuthResolver {
    objects: Arc<dyn AuthObjects>,
    rules: Arc<AuthRules>,
    vaults: vault::Vaults,
    managers: SecretManagers,
    clock: Clock,
}

impl AuthResolver {
    /// Reads these objects by these rules.
    pub fn new(objects: Arc<dyn AuthObjects>, rules: AuthRules) -> Self {
        let vaults = vault::Vaults::new(rules.vault.clone());
        let VaultRules { dialer, proxies, .. } = rules.vault.clone();
        let web = HttpSettings { dialer, proxies, ..HttpSettings::default() };
        let managers = SecretManagers::of(&Backends::without_cluster(web, rules.compat));
        Self { objects, rules: Arc::new(rules), vaults, managers, clock: Clock::system() }
    }

    /// The same with secret managers that share the identities and the HTTP client of triggers.
    #[must_use]
    pub fn with_secret_managers(mut self, managers: SecretManagers) -> Self {
        self.managers = managers;
        self
    }

    /// The same with another clock, by which tokens expire.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Parameters and identity of a trigger.
    pub async fn resolve(&self, query: AuthQuery<'_>) -> Result<ResolvedAuth, AuthError> {
        let mut seen = Vec::new();
        // In a box, because it is much larger than the rest of the future.
        let resolving = Box::pin(steps::resolve(self, query, &mut seen));
        let resolved = timeout(RESOLVE_TIMEOUT, resolving).await;
        match resolved.unwrap_or(Err(AuthFailure::TimedOut(RESOLVE_TIMEOUT))) {
            Ok((parameters, identity)) => Ok(ResolvedAuth { parameters, identity, seen }),
            Err(cause @ AuthFailure::TimedOut(_)) => {
                // The first object that was read is the TriggerAuthentication.
                let cause = match seen.first().cloned() {
                    Some(object) => AuthFailure::Of { object, source: Box::new(cause) },
                    None => cause,
                };
                Err(AuthError { cause, seen })
            }
            Err(cause) => Err(AuthError { cause, seen }),
        }
    }

    /// The environment variables of a container of the target, for parameters that end in `FromEnv`; none if it has no pods.
    pub async fn environment(
        &self,
        namespace: &str,
        template: Option<&PodTemplate>,
        container: &str,
    ) -> Result<ContainerEnvironment, AuthError> {
        let mut seen = Vec::new();
        let objects = ObjectCache::new(&*self.objects);
        match self.variables(&objects, namespace, template, container, &mut seen).await {
            Ok(variables) => Ok(ContainerEnvironment { variables, seen }),
            Err(error) => Err(AuthError { cause: AuthFailure::TargetEnvironment(error), seen }),
        }
    }

    async fn variables(
        &self,
        objects: &ObjectCache<'_>,
        namespace: &str,
        template: Option<&PodTemplate>,
        container: &str,
        seen: &mut Vec<SourceRef>,
    ) -> Result<BTreeMap<String, String>, EnvironmentError> {
        let Some(template) = template else { return Ok(BTreeMap::new()) };
        let Some(container) = template.container(container)? else { return Ok(BTreeMap::new()) };
        let may_read = self.rules.secrets.allows(namespace);
        let mut read = SourcesOfContainer::default();
        let sources = needed(container, namespace, may_read);
        if sources.len() > MAX_ENVIRONMENT_SOURCES {
            return Err(EnvironmentError::TooManySources(container.name.clone()));
        }
        for object in sources {
            // Noted before it can be too large: the scaler is rebuilt when the object changes.
            note(seen, object.clone());
            let data = if object.kind == SourceKind::Secret {
                objects.secret(namespace, &object.name).await.map(|data| texts(&data))
            } else {
                objects.config_map(namespace, &object.name).await.map(|data| BTreeMap::clone(&data))
            };
            read.add(container, &object, data.map_err(OperationError::from_error))?;
        }
        resolve(container, namespace, may_read, &read.fetched)
    }
}

/// Adds an object once.
fn note(seen: &mut Vec<SourceRef>, object: SourceRef) {
    if !seen.contains(&object) {
        seen.push(object);
    }
}

/// Values as text; bytes that are not UTF-8 are replaced.
fn texts(data: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, String> {
    data.iter().map(|(key, value)| (key.clone(), String::from_utf8_lossy(value).into_owned())).collect()
}

/// Whether a trigger refers to environment variables of its target's container.
pub fn names_variables(metadata: &StringMap) -> bool {
    metadata.keys().any(|key| key.ends_with("FromEnv"))
}
