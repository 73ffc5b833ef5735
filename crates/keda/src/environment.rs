//! Environment variables of a container (docs/spec/keda.md 1.3).
//!
//! First [`needed`] lists the objects to read; then [`resolve`] builds the variables.

mod expand;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

pub use expand::expand;
use expand::expand_within;

use crate::OperationError;

/// Kind of a referenced object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// Secret.
    Secret,
    /// ConfigMap.
    ConfigMap,
    /// ServiceAccount.
    ServiceAccount,
    /// TriggerAuthentication.
    TriggerAuthentication,
    /// ClusterTriggerAuthentication; it has no namespace.
    ClusterTriggerAuthentication,
}

impl SourceKind {
    /// The kind in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::ServiceAccount => "ServiceAccount",
            Self::TriggerAuthentication => "TriggerAuthentication",
            Self::ClusterTriggerAuthentication => "ClusterTriggerAuthentication",
        }
    }
}

/// A reference to an object that parameters of a trigger are read from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceRef {
    /// Its kind.
    pub kind: SourceKind,
    /// Its namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for SourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.kind.as_str(), self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind.as_str(), self.name),
        }
    }
}

/// The fields of a pod template that credentials use.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodTemplate {
    /// The containers without init containers.
    #[serde(deserialize_with = "null_is_default")]
    pub containers: Vec<Container>,
    /// Service account; empty means `default`.
    #[serde(deserialize_with = "null_is_default")]
    pub service_account_name: String,
}

impl PodTemplate {
    /// The pod template of a workload of any kind, if it can be decoded.
    pub fn of_workload(workload: &Value) -> Option<Self> {
        Self::of_job(workload.get("spec")?)
    }

    /// The template in the spec of a Job.
    pub fn of_job(spec: &Value) -> Option<Self> {
        Self::deserialize(spec.get("template")?.get("spec")?).ok()
    }

    /// The container of this name, or the first if no name is given.
    pub fn container(&self, name: &str) -> Result<Option<&Container>, EnvironmentError> {
        if name.is_empty() || self.containers.is_empty() {
            return Ok(self.containers.first());
        }
        let found = self.containers.iter().find(|container| container.name == name);
        found.map(Some).ok_or_else(|| EnvironmentError::NoContainer(name.to_owned()))
    }
}

impl fmt::Debug for PodTemplate {
    /// Prints no variables, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.containers.iter().map(|container| &*container.name).collect();
        f.debug_struct("PodTemplate").field("containers", &names).finish_non_exhaustive()
    }
}

/// The environment of a container.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// Its name.
    #[serde(deserialize_with = "null_is_default")]
    pub name: String,
    /// Single variables, in order.
    #[serde(deserialize_with = "null_is_default")]
    pub env: Vec<EnvVar>,
    /// Whole objects whose keys become variables.
    #[serde(deserialize_with = "null_is_default")]
    pub env_from: Vec<EnvFrom>,
}

/// One variable.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EnvVar {
    /// Its name.
    #[serde(deserialize_with = "null_is_default")]
    pub name: String,
    /// Its value, in which `$(NAME)` refers to earlier variables.
    #[serde(deserialize_with = "null_is_default")]
    pub value: String,
    /// The source of its value.
    pub value_from: Option<ValueFrom>,
}

/// The source of a value; all fields are unset for fields of the running pod.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ValueFrom {
    /// In a secret.
    pub secret_key_ref: Option<KeySelector>,
    /// In a config map.
    pub config_map_key_ref: Option<KeySelector>,
}

/// A key of an object.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct KeySelector {
    /// The object.
    #[serde(deserialize_with = "null_is_default")]
    pub name: String,
    /// The key.
    #[serde(deserialize_with = "null_is_default")]
    pub key: String,
    /// Whether it is optional.
    pub optional: Option<bool>,
}

/// An object whose keys become variables.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EnvFrom {
    /// Prefix of every key.
    #[serde(deserialize_with = "null_is_default")]
    pub prefix: String,
    /// A secret.
    pub secret_ref: Option<WholeSource>,
    /// A config map.
    pub config_map_ref: Option<WholeSource>,
}

/// A reference to a whole object.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct WholeSource {
    /// Its name.
    #[serde(deserialize_with = "null_is_default")]
    pub name: String,
    /// Whether it is optional.
    pub optional: Option<bool>,
}

fn null_is_default<'de, D, T>(input: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(input).map(Option::unwrap_or_default)
}

/// The keys of an object, or why it could not be read.
pub type SourceData = Result<BTreeMap<String, String>, OperationError>;

/// The objects read for a container, all in one namespace.
#[derive(Clone, Default)]
pub struct FetchedSources {
    /// Secrets by name, their values as text.
    pub secrets: BTreeMap<String, SourceData>,
    /// Config maps by name.
    pub config_maps: BTreeMap<String, SourceData>,
}

/// Why the variables cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// There is no container of this name.
    #[error("couldn't find container with name {0} on Target object")]
    NoContainer(String),
    /// A required object is missing; the text is KEDA's.
    #[error("{0}")]
    Unreadable(String),
    /// The expanded variables are too large.
    #[error("the variables of container {0:?} are larger than {MAX_ENVIRONMENT_BYTES} bytes")]
    TooLarge(String),
    /// The variables come from too many objects.
    #[error(
        "the variables of container {0:?} come from more than {MAX_ENVIRONMENT_SOURCES} Secrets and ConfigMaps"
    )]
    TooManySources(String),
}

/// Maximum total size of a container's variables, in bytes.
const MAX_ENVIRONMENT_BYTES: usize = 8 << 20;
/// Maximum number of objects that a container's variables come from: each may cost one request.
pub const MAX_ENVIRONMENT_SOURCES: usize = 1_000;

/// The objects to read for a container; without secrets if they must not be read.
pub fn needed(container: &Container, namespace: &str, secrets: bool) -> Vec<SourceRef> {
    let (mut found, mut known) = (Vec::new(), HashSet::new());
    let mut add = |kind, name: &str| {
        let object = SourceRef { kind, namespace: namespace.to_owned(), name: name.to_owned() };
        if (kind != SourceKind::Secret || secrets) && known.insert(object.clone()) {
            found.push(object);
        }
    };
    for from in &container.env_from {
        if let Some(map) = &from.config_map_ref {
            add(SourceKind::ConfigMap, &map.name);
        } else if let Some(secret) = &from.secret_ref {
            add(SourceKind::Secret, &secret.name);
        }
    }
    for from in
        container.env.iter().filter(|variable| variable.value.is_empty()).flat_map(|own| &own.value_from)
    {
        if let Some(secret) = &from.secret_key_ref {
            add(SourceKind::Secret, &secret.name);
        } else if let Some(map) = &from.config_map_key_ref {
            add(SourceKind::ConfigMap, &map.name);
        }
    }
    found
}

/// What has been read for a container so far, in a limited number of bytes: an object may have a megabyte, and a container may name a
/// thousand objects.
#[derive(Default)]
pub struct SourcesOfContainer {
    /// The objects, with the keys that the container uses.
    pub fetched: FetchedSources,
    bytes: usize,
}

impl SourcesOfContainer {
    /// Adds an object that was read, with the keys that the container uses: all of them, if it takes the whole object.
    pub fn add(
        &mut self,
        container: &Container,
        object: &SourceRef,
        mut read: SourceData,
    ) -> Result<(), EnvironmentError> {
        if let Ok(keys) = &mut read {
            if let Some(used) = keys_used(container, object) {
                keys.retain(|key, _| used.contains(&**key));
            }
            self.bytes += keys.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        }
        if self.bytes > MAX_ENVIRONMENT_BYTES {
            return Err(EnvironmentError::TooLarge(container.name.clone()));
        }
        let objects = match object.kind {
            SourceKind::Secret => &mut self.fetched.secrets,
            _ => &mut self.fetched.config_maps,
        };
        objects.insert(object.name.clone(), read);
        Ok(())
    }
}

/// The keys of an object that single variables of a container come from; none if it takes the whole object.
fn keys_used<'a>(container: &'a Container, object: &SourceRef) -> Option<HashSet<&'a str>> {
    let is_secret = object.kind == SourceKind::Secret;
    let takes_all = container.env_from.iter().any(|from| {
        let whole = if is_secret { &from.secret_ref } else { &from.config_map_ref };
        whole.as_ref().is_some_and(|whole| whole.name == object.name)
    });
    if takes_all {
        return None;
    }
    let references = container.env.iter().flat_map(|variable| &variable.value_from);
    let keys =
        references.flat_map(|from| if is_secret { &from.secret_key_ref } else { &from.config_map_key_ref });
    Some(keys.filter(|key| key.name == object.name).map(|key| &*key.key).collect())
}

/// Resolves the variables of a container from the [`needed`] objects; without secrets if they must not be read.
pub fn resolve(
    container: &Container,
    namespace: &str,
    secrets: bool,
    fetched: &FetchedSources,
) -> Result<BTreeMap<String, String>, EnvironmentError> {
    let mut variables = BTreeMap::new();
    let mut left = MAX_ENVIRONMENT_BYTES;
    let mut spend = |bytes: usize| -> Result<usize, EnvironmentError> {
        left = left.checked_sub(bytes).ok_or_else(|| EnvironmentError::TooLarge(container.name.clone()))?;
        Ok(left)
    };
    let size = |read: Option<&SourceData>| -> usize {
        let keys = read.and_then(|read| read.as_ref().ok());
        keys.into_iter().flatten().map(|(key, value)| key.len() + value.len()).sum()
    };
    for from in &container.env_from {
        if let Some(map) = &from.config_map_ref {
            let read = fetched.config_maps.get(&map.name);
            let what = ("config ref &ConfigMapEnvSource", "/");
            spend(size(read))?;
            take_all(&mut variables, &from.prefix, map, read, what, namespace)?;
        } else if let Some(secret) = &from.secret_ref
            && secrets
        {
            let read = fetched.secrets.get(&secret.name);
            let what = ("secret ref &SecretEnvSource", "");
            spend(size(read))?;
            take_all(&mut variables, &from.prefix, secret, read, what, namespace)?;
        }
    }
    for EnvVar { name, value, value_from } in &container.env {
        if !value.is_empty() || value_from.is_none() {
            let value = expand_within(value, &variables, spend(name.len())?);
            let value = value.ok_or_else(|| EnvironmentError::TooLarge(container.name.clone()))?;
            spend(value.len())?;
            variables.insert(name.clone(), value);
            continue;
        }
        let Some(from) = value_from else { continue };
        let value = if let Some(key) = &from.secret_key_ref {
            if !secrets {
                continue;
            }
            take_one(key, fetched.secrets.get(&key.name), "secret name &SecretKeySelector", name, namespace)?
        } else if let Some(key) = &from.config_map_key_ref {
            let what = "config &ConfigMapKeySelector";
            take_one(key, fetched.config_maps.get(&key.name), what, name, namespace)?
        } else {
            continue;
        };
        // As in a container, an optional object that is missing does not hide a variable of the same name.
        let Some(value) = value else { continue };
        spend(name.len() + value.len())?;
        variables.insert(name.clone(), value);
    }
    Ok(variables)
}

/// Adds all keys of an object. Its error has the kind of the object, and what KEDA prints after the namespace.
fn take_all(
    variables: &mut BTreeMap<String, String>,
    prefix: &str,
    object: &WholeSource,
    read: Option<&SourceData>,
    (what, mark): (&str, &str),
    namespace: &str,
) -> Result<(), EnvironmentError> {
    match read {
        Some(Ok(keys)) => {
            variables.extend(keys.iter().map(|(key, value)| (format!("{prefix}{key}"), value.clone())));
        }
        _ if object.optional == Some(true) => {}
        failed => {
            let (name, optional) = (&object.name, optional(object.optional));
            let reason = reason(failed);
            return Err(EnvironmentError::Unreadable(format!(
                "error reading {what}{{LocalObjectReference:LocalObjectReference{{Name:{name},}},\
                 Optional:{optional},}} on namespace {namespace}{mark}: {reason}"
            )));
        }
    }
    Ok(())
}

/// The value of a key, empty if the key is missing; none if an optional object is missing.
fn take_one(
    key: &KeySelector,
    read: Option<&SourceData>,
    what: &str,
    variable: &str,
    namespace: &str,
) -> Result<Option<String>, EnvironmentError> {
    match read {
        Some(Ok(keys)) => Ok(Some(keys.get(&key.key).cloned().unwrap_or_default())),
        _ if key.optional == Some(true) => Ok(None),
        _ => {
            let (name, optional, key) = (&key.name, optional(key.optional), &key.key);
            Err(EnvironmentError::Unreadable(format!(
                "error resolving {what}{{LocalObjectReference:LocalObjectReference{{Name:{name},}},Key:{key},\
                 Optional:{optional},}} for env {variable} in namespace {namespace}"
            )))
        }
    }
}

fn reason(read: Option<&SourceData>) -> &str {
    match read {
        Some(Err(reason)) => reason.as_str(),
        _ => "it was not read",
    }
}

/// Formats an optional bool as Go does.
fn optional(optional: Option<bool>) -> String {
    optional.map_or_else(|| "nil".to_owned(), |optional| format!("*{optional}"))
}
