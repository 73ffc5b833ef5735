//! Reads objects for credentials: TriggerAuthentications from the store, all others from the API server.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::keda::{AuthenticationRef, TriggerAuthentication};
use keda::environment::{SourceKind, SourceRef};
use locks::MutexExt as _;
use serde::Deserialize;

use super::auth::objects::decoded;
use super::auth::{ApiServerObjects, AuthObjects, Fetch, FetchError};
use super::leader_client::{LeaderClient, ResourcePath};
use super::secret_access::SecretAccess;
use super::store::Store;

/// Versions that are remembered.
const MAX_REMEMBERED_VERSIONS: usize = 65_536;

/// Reads objects for credentials, and remembers their versions. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CredentialReader {
    client: LeaderClient,
    server: ApiServerObjects,
    store: Arc<Mutex<Store>>,
    secrets: SecretAccess,
    /// `resourceVersion` of Secrets, ConfigMaps and ServiceAccounts when they were last read; empty if they did not exist.
    versions: Arc<Mutex<HashMap<SourceRef, String>>>,
}

#[derive(Deserialize)]
struct KeyedObject {
    metadata: VersionMetadata,
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct ObjectWithMetadata {
    metadata: VersionMetadata,
}

#[derive(Deserialize)]
struct AnnotatedObject {
    metadata: AnnotatedMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnnotatedMetadata {
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VersionMetadata {
    #[serde(default)]
    resource_version: String,
}

impl CredentialReader {
    pub(crate) fn new(client: LeaderClient, store: Arc<Mutex<Store>>, secrets: SecretAccess) -> Self {
        let server = ApiServerObjects::new(client.kube.clone());
        Self { client, server, store, secrets, versions: Arc::default() }
    }

    /// A TriggerAuthentication from the store.
    pub(crate) fn known_authentication(
        &self,
        namespace: &str,
        of: &AuthenticationRef,
    ) -> Option<Arc<TriggerAuthentication>> {
        self.store.locked().authentication(namespace, of)
    }

    /// The version in which an object was last read; empty if it did not exist.
    pub(crate) fn version(&self, object: &SourceRef) -> String {
        let versions = self.versions.locked();
        versions.get(object).cloned().unwrap_or_default()
    }

    /// The current version of an object, empty if it does not exist; none if it cannot be read. That of a ServiceAccount which was
    /// not read is none, too: a token is requested without reading its account.
    pub(crate) async fn current_version(&self, object: &SourceRef) -> Option<String> {
        let plural = match object.kind {
            SourceKind::Secret if !self.secrets.allows(&object.namespace) => return None,
            SourceKind::Secret => "secrets",
            SourceKind::ConfigMap => "configmaps",
            SourceKind::ServiceAccount if !self.versions.locked().contains_key(object) => return None,
            SourceKind::ServiceAccount => "serviceaccounts",
            // These are watched.
            SourceKind::TriggerAuthentication | SourceKind::ClusterTriggerAuthentication => return None,
        };
        let path = ResourcePath::core(plural, &object.namespace, &object.name);
        match self.client.get_metadata::<ObjectWithMetadata>(path).await {
            Ok(found) => Some(found.metadata.resource_version),
            Err(error) if error.is_not_found() => Some(String::new()),
            Err(_) => None,
        }
    }

    async fn keyed(
        &self,
        kind: SourceKind,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Result<BTreeMap<String, String>, FetchError> {
        let read = self.client.get::<KeyedObject>(ResourcePath::core(plural, namespace, name)).await;
        let object = SourceRef { kind, namespace: namespace.to_owned(), name: name.to_owned() };
        let version = match &read {
            Ok(keyed) => keyed.metadata.resource_version.clone(),
            Err(_) => String::new(),
        };
        self.remember(object, version);
        Ok(read?.data.unwrap_or_default())
    }

    async fn annotations(
        &self,
        namespace: &str,
        account: &str,
    ) -> Result<BTreeMap<String, String>, FetchError> {
        let path = ResourcePath::core("serviceaccounts", namespace, account);
        let read = self.client.get::<AnnotatedObject>(path).await;
        let (kind, namespace) = (SourceKind::ServiceAccount, namespace.to_owned());
        let version = match &read {
            Ok(found) => found.metadata.resource_version.clone(),
            Err(_) => String::new(),
        };
        self.remember(SourceRef { kind, namespace, name: account.to_owned() }, version);
        Ok(read?.metadata.annotations.unwrap_or_default())
    }

    fn remember(&self, object: SourceRef, version: String) {
        let mut versions = self.versions.locked();
        if versions.len() >= MAX_REMEMBERED_VERSIONS {
            versions.clear();
        }
        versions.insert(object, version);
    }
}

impl AuthObjects for CredentialReader {
    fn secret<'a>(&'a self, namespace: &'a str, name: &'a str) -> Fetch<'a, BTreeMap<String, Vec<u8>>> {
        Box::pin(async move {
            self.secrets.check(namespace, name)?;
            let data = self.keyed(SourceKind::Secret, "secrets", namespace, name).await?;
            decoded(name, data)
        })
    }

    fn config_map<'a>(&'a self, namespace: &'a str, name: &'a str) -> Fetch<'a, BTreeMap<String, String>> {
        Box::pin(self.keyed(SourceKind::ConfigMap, "configmaps", namespace, name))
    }

    fn service_account<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> Fetch<'a, BTreeMap<String, String>> {
        Box::pin(self.annotations(namespace, name))
    }

    fn authentication<'a>(
        &'a self,
        namespace: Option<&'a str>,
        name: &'a str,
    ) -> Fetch<'a, TriggerAuthentication> {
        let (kind, resource) = match namespace {
            Some(_) => ("", "triggerauthentications.keda.sh"),
            None => ("ClusterTriggerAuthentication", "clustertriggerauthentications.keda.sh"),
        };
        let of = AuthenticationRef { name: name.to_owned(), kind: kind.to_owned() };
        let found = self.known_authentication(namespace.unwrap_or_default(), &of);
        let found = found.map(|found| (*found).clone()).ok_or_else(|| FetchError::not_found(resource, name));
        Box::pin(std::future::ready(found))
    }

    fn token<'a>(
        &'a self,
        namespace: &'a str,
        account: &'a str,
        audience: Option<&'a str>,
        lasting: Duration,
    ) -> Fetch<'a, String> {
        self.server.token(namespace, account, audience, lasting)
    }
}
