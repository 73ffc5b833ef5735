//! Writes our CA as `caBundle` into the webhook configuration and the APIServices.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::lease::Leadership;
use cluster::request::{ApiError, Request, below, send, send_leading};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use serve::Keyring;
use serve::admission::set_ca_bundle;

/// How often the objects are checked.
const CHECK_PERIOD: Duration = Duration::from_secs(30);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// The objects that name our CA.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CaBundleObjects {
    /// The ValidatingWebhookConfiguration.
    pub(crate) webhook: Option<String>,
    /// The APIServices, such as `v1beta1.metrics.k8s.io`.
    pub(crate) api_services: Vec<String>,
    /// The names of our certificate; an APIService is ours if it names one of them.
    pub(crate) names: Vec<String>,
}

/// The CA of the serving certificate.
pub(crate) enum ServingCa {
    /// Unknown, or fixed.
    Fixed(Option<String>),
    /// That of a keyring, which may change.
    Shared(Keyring),
}

impl ServingCa {
    fn pem(&self) -> Option<String> {
        match self {
            Self::Fixed(pem) => pem.clone(),
            Self::Shared(keyring) => Some(keyring.authorities()),
        }
    }

    async fn changed(&self, from: &str) {
        match self {
            Self::Fixed(_) => std::future::pending().await,
            Self::Shared(keyring) => keyring.other_authorities(from).await,
        }
    }
}

/// Keeps the `caBundle`s up to date while this replica is the leader and its CA is known. Missing objects are not created:
/// a user who does not want the webhook leaves its configuration out.
pub(crate) async fn keep(
    client: Client,
    leadership: Leadership,
    objects: CaBundleObjects,
    authority: ServingCa,
) {
    loop {
        let Some(pem) = authority.pem() else { return };
        if leadership.is_leader() {
            if let Some(name) = &objects.webhook
                && let Err(error) = webhook(&client, &leadership, name, &pem).await
            {
                tracing::warn!(%error, name, "failed to write our CA into the webhook configuration");
            }
            for name in &objects.api_services {
                if let Err(error) = api_service(&client, &leadership, name, &objects.names, &pem).await {
                    tracing::warn!(%error, name, "failed to write our CA into an APIService");
                }
            }
        }
        let _ = tokio::time::timeout(CHECK_PERIOD, authority.changed(&pem)).await;
    }
}

async fn webhook(
    client: &Client,
    leadership: &Leadership,
    name: &str,
    authority: &str,
) -> Result<(), ApiError> {
    let path = below(WEBHOOKS, [name]);
    let Some(mut configuration) = read(client, &path).await? else { return Ok(()) };
    if set_ca_bundle(&mut configuration, authority) {
        write(client, leadership, Method::PUT, path, "application/json", &configuration).await?;
        tracing::info!(name, "wrote our CA into the webhook configuration");
    }
    Ok(())
}

/// Writes the CA into an APIService that names our Service; others are not changed.
async fn api_service(
    client: &Client,
    leadership: &Leadership,
    name: &str,
    names: &[String],
    authority: &str,
) -> Result<(), ApiError> {
    let path = below(API_SERVICES, [name]);
    let Some(found) = read(client, &path).await? else { return Ok(()) };
    let text = |field: &str| found.pointer(field).and_then(Value::as_str).unwrap_or_default();
    let served = format!("{}.{}.svc", text("/spec/service/name"), text("/spec/service/namespace"));
    let ours = names.contains(&served);
    // A user has switched off verification.
    let checks = found.pointer("/spec/insecureSkipTLSVerify").and_then(Value::as_bool) != Some(true);
    let bundle = STANDARD.encode(authority);
    let known = found.pointer("/spec/caBundle").and_then(Value::as_str) == Some(bundle.as_str());
    if ours && checks && !known {
        let patch = json!({"spec": {"caBundle": bundle}});
        write(client, leadership, Method::PATCH, path, "application/merge-patch+json", &patch).await?;
        tracing::info!(name, "wrote our CA into an APIService");
    }
    Ok(())
}

async fn read(client: &Client, path: &str) -> Result<Option<Value>, ApiError> {
    match send(client, Request::get(path.to_owned(), "", REQUEST_TIMEOUT)).await {
        Ok(body) => Ok(serde_json::from_slice(&body).ok()),
        Err(error) if error.code == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn write(
    client: &Client,
    leadership: &Leadership,
    method: Method,
    path: String,
    content: &'static str,
    body: &Value,
) -> Result<(), ApiError> {
    let request = Request {
        method,
        body: Some((content, body.to_string().into_bytes())),
        ..Request::get(path, "", REQUEST_TIMEOUT)
    };
    send_leading(client, request, leadership).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn create(client: &Client, name: &str, spec: Value) {
        let object = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": name}, "spec": spec});
        write(
            client,
            &Leadership::without_election(),
            Method::POST,
            API_SERVICES.to_owned(),
            "application/json",
            &object,
        )
        .await
        .unwrap();
    }

    fn spec(group: &str, namespace: &str, service: &str) -> Value {
        json!({"group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"namespace": namespace, "name": service, "port": 443}})
    }

    #[tokio::test]
    async fn only_our_own_api_services_get_our_ca() {
        let options = localkube::Options { workloads: false, ..Default::default() };
        let running = localkube::Cluster::start(options).await.unwrap();
        let client = running.client();
        create(&client, "v1.ours.dev", spec("ours.dev", "default", "it")).await;
        create(&client, "v1.theirs.dev", spec("theirs.dev", "default", "other")).await;
        create(&client, "v1.elsewhere.dev", spec("elsewhere.dev", "kube-system", "it")).await;
        let mut unverified = spec("unverified.dev", "default", "it");
        unverified["insecureSkipTLSVerify"] = json!(true);
        create(&client, "v1.unverified.dev", unverified).await;
        let names = ["localhost".to_owned(), "it.default.svc".to_owned()];
        let bundle = async |name: &str| {
            api_service(&client, &Leadership::without_election(), name, &names, "our CA").await.unwrap();
            let found = read(&client, &below(API_SERVICES, [name])).await.unwrap();
            found.and_then(|found| Some(found.pointer("/spec/caBundle")?.as_str()?.to_owned()))
        };
        assert_eq!(bundle("v1.ours.dev").await, Some(STANDARD.encode("our CA")));
        assert_eq!(bundle("v1.theirs.dev").await, None);
        assert_eq!(bundle("v1.elsewhere.dev").await, None);
        assert_eq!(bundle("v1.unverified.dev").await, None);
        assert_eq!(bundle("v1.missing.dev").await, None);
    }
}
