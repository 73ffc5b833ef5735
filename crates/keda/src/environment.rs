//! What the variables of a container are (docs/spec/keda.md 1.3).
//!
//! First [`needed`] says which objects must be read; then [`resolve`] makes the variables of them.

mod expand;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

pub use expand::expand;
use expand::expand_within;

/// What kind of object something was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
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

impl Kind {
    /// As it is written in manifests.
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

/// An object that parameters of a trigger are made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; empty if it is in none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.kind.as_str(), self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind.as_str(), self.name),
        }
    }
}

/// The pods of a workload, as far as credentials care.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodTemplate {
    /// The containers; those that only initialise do not count.
    #[serde(deserialize_with = "null_is_default")]
    pub containers: Vec<Container>,
    /// Who the pods are; empty means `default`.
    #[serde(deserialize_with = "null_is_default")]
    pub service_account_name: String,
}

impl PodTemplate {
    /// The template of a workload of any kind; none if it has none that can be read.
    pub fn of_workload(workload: &Value) -> Option<Self> {
        Self::of_job(workload.get("spec")?)
    }

    /// The template in the spec of a Job.
    pub fn of_job(spec: &Value) -> Option<Self> {
        Self::deserialize(spec.get("template")?.get("spec")?).ok()
    }

    /// The container of this name, or the first if no name is given.
    pub fn container(&self, name: &str) -> Result<Option<&Container>, Error> {
        if name.is_empty() || self.containers.is_empty() {
            return Ok(self.containers.first());
        }
        let found = self.containers.iter().find(|container| container.name == name);
        found.map(Some).ok_or_else(|| Error::NoContainer(name.to_owned()))
    }
}

impl fmt::Debug for PodTemplate {
    /// Without variables, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.containers.iter().map(|container| &*container.name).collect();
        f.debug_struct("PodTemplate").field("containers", &names).finish_non_exhaustive()
    }
}

/// A container, as far as its environment goes.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// Its name.
    #[serde(deserialize_with = "null_is_default")]
    pub name: String,
    /// Single variables, in order.
    #[serde(deserialize_with = "null_is_default")]
    pub env: Vec<Variable>,
    /// Whole objects whose keys become variables.
    #[serde(deserialize_with = "null_is_default")]
    pub env_from: Vec<EnvFrom>,
}

/// One variable.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Variable {
    /// Its name.
    #[serde(deserialize_with = "null_is_default")]
    pub name: String,
    /// Its value, in which `$(NAME)` stands for variables before it.
    #[serde(deserialize_with = "null_is_default")]
    pub value: String,
    /// Where its value is.
    pub value_from: Option<ValueFrom>,
}

/// Where a value is; nothing of it is set for what only a running pod knows.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ValueFrom {
    /// In a secret.
    pub secret_key_ref: Option<KeyRef>,
    /// In a config map.
    pub config_map_key_ref: Option<KeyRef>,
}

/// A key of an object.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct KeyRef {
    /// The object.
    #[serde(deserialize_with = "null_is_default")]
    pub name: String,
    /// The key.
    #[serde(deserialize_with = "null_is_default")]
    pub key: String,
    /// Whether it may be missing.
    pub optional: Option<bool>,
}

/// An object whose keys become variables.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EnvFrom {
    /// Goes in front of every key.
    #[serde(deserialize_with = "null_is_default")]
    pub prefix: String,
    /// A secret.
    pub secret_ref: Option<Whole>,
    /// A config map.
    pub config_map_ref: Option<Whole>,
}

/// An object as a whole.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Whole {
    /// Its name.
    #[serde(deserialize_with = "null_is_default")]
    pub name: String,
    /// Whether it may be missing.
    pub optional: Option<bool>,
}

fn null_is_default<'de, D, T>(input: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(input).map(Option::unwrap_or_default)
}

/// What was read of an object: its keys, or why it was not read.
pub type Read = Result<BTreeMap<String, String>, String>;

/// The objects that were read for a container, all in one namespace.
#[derive(Clone, Default)]
pub struct Fetched {
    /// Secrets by name, their values as text.
    pub secrets: BTreeMap<String, Read>,
    /// Config maps by name.
    pub config_maps: BTreeMap<String, Read>,
}

/// Why there are no variables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no container of this name.
    #[error("couldn't find container with name {0} on Target object")]
    NoContainer(String),
    /// An object that must be there is not; in KEDA's words.
    #[error("{0}")]
    Unreadable(String),
    /// What variables are made of makes too much of them.
    #[error("the variables of container {0:?} are larger than {LARGEST} bytes")]
    TooLarge(String),
}

/// So much all variables of a container may take.
const LARGEST: usize = 8 << 20;

/// The objects that must be read for a container; without secrets where they may not be read.
pub fn needed(container: &Container, namespace: &str, secrets: bool) -> Vec<ObjectRef> {
    let mut found = Vec::new();
    let mut add = |kind, name: &str| {
        let object = ObjectRef { kind, namespace: namespace.to_owned(), name: name.to_owned() };
        if (kind != Kind::Secret || secrets) && !found.contains(&object) {
            found.push(object);
        }
    };
    for from in &container.env_from {
        if let Some(map) = &from.config_map_ref {
            add(Kind::ConfigMap, &map.name);
        } else if let Some(secret) = &from.secret_ref {
            add(Kind::Secret, &secret.name);
        }
    }
    for from in
        container.env.iter().filter(|variable| variable.value.is_empty()).flat_map(|own| &own.value_from)
    {
        if let Some(secret) = &from.secret_key_ref {
            add(Kind::Secret, &secret.name);
        } else if let Some(map) = &from.config_map_key_ref {
            add(Kind::ConfigMap, &map.name);
        }
    }
    found
}

/// The variables of a container, made of the objects it [`needed`]; without what is in secrets where they may not be read.
pub fn resolve(
    container: &Container,
    namespace: &str,
    secrets: bool,
    fetched: &Fetched,
) -> Result<BTreeMap<String, String>, Error> {
    let mut variables = BTreeMap::new();
    let mut left = LARGEST;
    let mut spend = |bytes: usize| -> Result<usize, Error> {
        left = left.checked_sub(bytes).ok_or_else(|| Error::TooLarge(container.name.clone()))?;
        Ok(left)
    };
    let size = |read: Option<&Read>| -> usize {
        let keys = read.and_then(|read| read.as_ref().ok());
        keys.into_iter().flatten().map(|(key, value)| key.len() + value.len()).sum()
    };
    for from in &container.env_from {
        if let Some(map) = &from.config_map_ref {
            let read = fetched.config_maps.get(&map.name);
            let what = "config ref &ConfigMapEnvSource";
            spend(size(read))?;
            take_all(&mut variables, &from.prefix, map, read, what, namespace)?;
        } else if let Some(secret) = &from.secret_ref
            && secrets
        {
            let read = fetched.secrets.get(&secret.name);
            let what = "secret ref &SecretEnvSource";
            spend(size(read))?;
            take_all(&mut variables, &from.prefix, secret, read, what, namespace)?;
        }
    }
    for Variable { name, value, value_from } in &container.env {
        if !value.is_empty() || value_from.is_none() {
            let value = expand_within(value, &variables, spend(name.len())?);
            let value = value.ok_or_else(|| Error::TooLarge(container.name.clone()))?;
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
            let what = "config name &ConfigMapKeySelector";
            take_one(key, fetched.config_maps.get(&key.name), what, name, namespace)?
        } else {
            continue;
        };
        let value = value.unwrap_or_default();
        spend(name.len() + value.len())?;
        variables.insert(name.clone(), value);
    }
    Ok(variables)
}

fn take_all(
    variables: &mut BTreeMap<String, String>,
    prefix: &str,
    object: &Whole,
    read: Option<&Read>,
    what: &str,
    namespace: &str,
) -> Result<(), Error> {
    match read {
        Some(Ok(keys)) => {
            variables.extend(keys.iter().map(|(key, value)| (format!("{prefix}{key}"), value.clone())));
        }
        _ if object.optional == Some(true) => {}
        failed => {
            let (name, optional) = (&object.name, optional(object.optional));
            let reason = reason(failed);
            return Err(Error::Unreadable(format!(
                "error reading {what}{{LocalObjectReference:LocalObjectReference{{Name:{name},}},\
                 Optional:{optional},}} on namespace {namespace}/: {reason}"
            )));
        }
    }
    Ok(())
}

/// The value of a key; none if the key is missing, or the object is and may be.
fn take_one(
    key: &KeyRef,
    read: Option<&Read>,
    what: &str,
    variable: &str,
    namespace: &str,
) -> Result<Option<String>, Error> {
    match read {
        Some(Ok(keys)) => Ok(keys.get(&key.key).cloned()),
        _ if key.optional == Some(true) => Ok(None),
        _ => {
            let (name, optional, key) = (&key.name, optional(key.optional), &key.key);
            Err(Error::Unreadable(format!(
                "error resolving {what}{{LocalObjectReference:LocalObjectReference{{Name:{name},}},Key:{key},\
                 Optional:{optional},}} for env {variable} in namespace {namespace}"
            )))
        }
    }
}

fn reason(read: Option<&Read>) -> &str {
    match read {
        Some(Err(reason)) => reason,
        _ => "it was not read",
    }
}

/// As Go shows it.
fn optional(optional: Option<bool>) -> String {
    optional.map_or_else(|| "nil".to_owned(), |optional| format!("*{optional}"))
}
