//! Objects from manifests: to check a ScaledObject without a cluster, and to replay recordings.

use std::collections::BTreeMap;
use std::time::Duration;

use api::keda::TriggerAuthentication;
use serde::Deserialize as _;
use serde_json::Value;

use super::FetchError;
use super::objects::{AuthObjects, Fetch, decoded};

/// Objects from manifests; there are no tokens.
#[derive(Clone, Default)]
pub struct ManifestObjects(Vec<Value>);

impl ManifestObjects {
    /// Uses these objects.
    pub fn new(objects: Vec<Value>) -> Self {
        Self(objects)
    }

    fn find(&self, kind: &str, namespace: Option<&str>, name: &str) -> Option<&Value> {
        let text =
            |object: &'_ Value, at: &str| object.pointer(at).and_then(Value::as_str).map(str::to_owned);
        self.0.iter().find(|object| {
            text(object, "/kind").as_deref() == Some(kind)
                && text(object, "/metadata/name").as_deref() == Some(name)
                && namespace
                    .is_none_or(|wanted| text(object, "/metadata/namespace").as_deref() == Some(wanted))
        })
    }

    fn core(&self, kind: &str, resource: &str, namespace: &str, name: &str) -> Result<&Value, FetchError> {
        self.find(kind, Some(namespace), name).ok_or_else(|| FetchError::not_found(resource, name))
    }
}

fn texts(object: &Value, at: &str) -> BTreeMap<String, String> {
    let given = object.pointer(at).and_then(|texts| BTreeMap::deserialize(texts).ok());
    given.unwrap_or_default()
}

impl AuthObjects for ManifestObjects {
    fn secret<'a>(&'a self, namespace: &'a str, name: &'a str) -> Fetch<'a, BTreeMap<String, Vec<u8>>> {
        let found = self.core("Secret", "secrets", namespace, name).and_then(|secret| {
            let mut data = decoded(name, texts(secret, "/data"))?;
            let plain = texts(secret, "/stringData");
            data.extend(plain.into_iter().map(|(key, value)| (key, value.into_bytes())));
            Ok(data)
        });
        Box::pin(std::future::ready(found))
    }

    fn config_map<'a>(&'a self, namespace: &'a str, name: &'a str) -> Fetch<'a, BTreeMap<String, String>> {
        let found = self.core("ConfigMap", "configmaps", namespace, name);
        Box::pin(std::future::ready(found.map(|map| texts(map, "/data"))))
    }

    fn service_account<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> Fetch<'a, BTreeMap<String, String>> {
        let found = self.core("ServiceAccount", "serviceaccounts", namespace, name);
        Box::pin(std::future::ready(found.map(|account| texts(account, "/metadata/annotations"))))
    }

    fn authentication<'a>(
        &'a self,
        namespace: Option<&'a str>,
        name: &'a str,
    ) -> Fetch<'a, TriggerAuthentication> {
        let (kind, resource) = match namespace {
            Some(_) => ("TriggerAuthentication", "triggerauthentications.keda.sh"),
            None => ("ClusterTriggerAuthentication", "clustertriggerauthentications.keda.sh"),
        };
        let found = self.find(kind, namespace, name).ok_or_else(|| FetchError::not_found(resource, name));
        let read = found.and_then(|object| {
            TriggerAuthentication::deserialize(object).map_err(|error| FetchError::Manifest {
                kind,
                name: name.to_owned(),
                error: error.to_string(),
            })
        });
        Box::pin(std::future::ready(read))
    }

    fn token<'a>(
        &'a self,
        _: &'a str,
        account: &'a str,
        _: Option<&'a str>,
        _: Duration,
    ) -> Fetch<'a, String> {
        Box::pin(std::future::ready(Err(FetchError::NoTokens(account.to_owned()))))
    }
}
