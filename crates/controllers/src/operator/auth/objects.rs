//! Reads of the cluster for credentials.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use api::keda::TriggerAuthentication;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::request::{Request, path, send};
use http::Method;
use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::FetchError;

/// Time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// A pending read.
pub type Fetch<'a, T> = Pin<Box<dyn Future<Output = Result<T, FetchError>> + Send + 'a>>;

/// Reads of the cluster for credentials. An implementation may answer from a cache.
pub trait AuthObjects: Send + Sync {
    /// Keys and values of a Secret.
    fn secret<'a>(&'a self, namespace: &'a str, name: &'a str) -> Fetch<'a, BTreeMap<String, Vec<u8>>>;

    /// Keys and values of a ConfigMap.
    fn config_map<'a>(&'a self, namespace: &'a str, name: &'a str) -> Fetch<'a, BTreeMap<String, String>>;

    /// Annotations of a ServiceAccount.
    fn service_account<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> Fetch<'a, BTreeMap<String, String>>;

    /// A TriggerAuthentication, or without a namespace a ClusterTriggerAuthentication.
    fn authentication<'a>(
        &'a self,
        namespace: Option<&'a str>,
        name: &'a str,
    ) -> Fetch<'a, TriggerAuthentication>;

    /// A token of a ServiceAccount for this audience, or for the API server, with this lifetime.
    fn token<'a>(
        &'a self,
        namespace: &'a str,
        account: &'a str,
        audience: Option<&'a str>,
        lasting: Duration,
    ) -> Fetch<'a, String>;
}

/// Reads everything from the API server.
#[derive(Clone)]
pub struct ApiServerObjects {
    client: Client,
    deadline: Duration,
}

impl ApiServerObjects {
    /// Uses this client.
    pub fn new(client: Client) -> Self {
        Self { client, deadline: REQUEST_TIMEOUT }
    }

    /// Reads an object of the core group.
    async fn core<T: DeserializeOwned>(
        &self,
        namespace: &str,
        resource: &str,
        name: &str,
    ) -> Result<T, FetchError> {
        let uri = path(["api", "v1", "namespaces", namespace, resource, name]);
        self.read(Request::get(uri, resource, self.deadline).named(name)).await
    }

    async fn read<T: DeserializeOwned>(&self, request: Request) -> Result<T, FetchError> {
        let object = format!("{} {:?}", request.resource, request.name);
        let body = send(&self.client, request).await?;
        serde_json::from_slice(&body).map_err(|error| {
            // The text of the error is left out, since it may quote a secret.
            FetchError::Undecodable { object, position: (error.line(), error.column()) }
        })
    }
}

#[derive(Deserialize)]
struct SecretData {
    data: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigData {
    data: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Annotated {
    metadata: Annotations,
}

#[derive(Deserialize)]
struct Annotations {
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct TokenRequest {
    status: TokenStatus,
}

#[derive(Deserialize)]
struct TokenStatus {
    token: String,
}

impl AuthObjects for ApiServerObjects {
    fn secret<'a>(&'a self, namespace: &'a str, name: &'a str) -> Fetch<'a, BTreeMap<String, Vec<u8>>> {
        Box::pin(async move {
            let secret: SecretData = self.core(namespace, "secrets", name).await?;
            decoded(name, secret.data.unwrap_or_default())
        })
    }

    fn config_map<'a>(&'a self, namespace: &'a str, name: &'a str) -> Fetch<'a, BTreeMap<String, String>> {
        Box::pin(async move {
            let map: ConfigData = self.core(namespace, "configmaps", name).await?;
            Ok(map.data.unwrap_or_default())
        })
    }

    fn service_account<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> Fetch<'a, BTreeMap<String, String>> {
        Box::pin(async move {
            let account: Annotated = self.core(namespace, "serviceaccounts", name).await?;
            Ok(account.metadata.annotations.unwrap_or_default())
        })
    }

    fn authentication<'a>(
        &'a self,
        namespace: Option<&'a str>,
        name: &'a str,
    ) -> Fetch<'a, TriggerAuthentication> {
        let (uri, resource) = match namespace {
            Some(namespace) => {
                let resource = "triggerauthentications";
                (path(["apis", "keda.sh", "v1alpha1", "namespaces", namespace, resource, name]), resource)
            }
            None => {
                let resource = "clustertriggerauthentications";
                (path(["apis", "keda.sh", "v1alpha1", resource, name]), resource)
            }
        };
        let request = Request::get(uri, format!("{resource}.keda.sh"), self.deadline).named(name);
        Box::pin(self.read(request))
    }

    fn token<'a>(
        &'a self,
        namespace: &'a str,
        account: &'a str,
        audience: Option<&'a str>,
        lasting: Duration,
    ) -> Fetch<'a, String> {
        Box::pin(async move {
            let uri = path(["api", "v1", "namespaces", namespace, "serviceaccounts", account, "token"]);
            let mut spec = json!({"expirationSeconds": lasting.as_secs()});
            if let (Some(audience), Some(spec)) = (audience, spec.as_object_mut()) {
                spec.insert("audiences".to_owned(), json!([audience]));
            }
            let body =
                json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
            let mut request = Request::get(uri, "serviceaccounts", self.deadline).named(account);
            request.method = Method::POST;
            request.body = Some(("application/json", body.to_string().into_bytes()));
            let response: TokenRequest = self.read(request).await?;
            Ok(response.status.token)
        })
    }
}

/// Decodes the base64 values of the Secret `name`.
pub(in crate::operator) fn decoded(
    name: &str,
    data: BTreeMap<String, String>,
) -> Result<BTreeMap<String, Vec<u8>>, FetchError> {
    let decode = |(key, text): (String, String)| match STANDARD.decode(text) {
        Ok(value) => Ok((key, value)),
        Err(_) => Err(FetchError::NotBase64 { name: name.to_owned(), key }),
    };
    data.into_iter().map(decode).collect()
}
