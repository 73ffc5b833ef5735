//! Writes our CA as `caBundle` into the webhook configuration and the APIServices.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::lease::Leadership;
use cluster::request::{ApiError, Request, send};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use serve::Keyring;
use serve::admission::set_ca_bundle;

use super::options::OperatorServing;

/// How often the objects are checked.
const CHECK_PERIOD: Duration = Duration::from_secs(30);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The APIServices of external metrics and decisions.
const API_SERVICES: [&str; 2] = [
    "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io",
    "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.operator.plimsoll.dev",
];
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// The CA of the serving certificate.
pub(super) enum ServingCa {
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
pub(super) async fn keep(
    client: Client,
    leadership: Leadership,
    serving: OperatorServing,
    authority: ServingCa,
) {
    loop {
        let Some(pem) = authority.pem() else { return };
        if leadership.is_leader() {
            if let Some(name) = &serving.webhook
                && let Err(error) = webhook(&client, name, &pem).await
            {
                tracing::warn!(%error, name, "failed to write our CA into the webhook configuration");
            }
            for path in API_SERVICES.into_iter().filter(|_| serving.api_service) {
                if let Err(error) = api_service(&client, path, &serving, &pem).await {
                    tracing::warn!(%error, path, "failed to write our CA into an APIService");
                }
            }
        }
        let _ = tokio::time::timeout(CHECK_PERIOD, authority.changed(&pem)).await;
    }
}

async fn webhook(client: &Client, name: &str, authority: &str) -> Result<(), ApiError> {
    let path = format!("{WEBHOOKS}/{name}");
    let Some(mut configuration) = read(client, &path).await? else { return Ok(()) };
    if set_ca_bundle(&mut configuration, authority) {
        write(client, Method::PUT, path, "application/json", &configuration).await?;
        tracing::info!(name, "wrote our CA into the webhook configuration");
    }
    Ok(())
}

/// Writes the CA into an APIService that names our Service; others are not changed.
async fn api_service(
    client: &Client,
    path: &str,
    serving: &OperatorServing,
    authority: &str,
) -> Result<(), ApiError> {
    let Some(found) = read(client, path).await? else { return Ok(()) };
    let service = found.pointer("/spec/service/name").and_then(Value::as_str).unwrap_or_default();
    let ours = serving.names.iter().any(|name| name == service);
    // A user has switched off verification.
    let checks = found.pointer("/spec/insecureSkipTLSVerify").and_then(Value::as_bool) != Some(true);
    let bundle = STANDARD.encode(authority);
    let known = found.pointer("/spec/caBundle").and_then(Value::as_str) == Some(bundle.as_str());
    if ours && checks && !known {
        let patch = json!({"spec": {"caBundle": bundle}});
        write(client, Method::PATCH, path.to_owned(), "application/merge-patch+json", &patch).await?;
        tracing::info!(path, "wrote our CA into an APIService");
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
    send(client, request).await.map(drop)
}
