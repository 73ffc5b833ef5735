//! Tells the cluster whom to trust: our authority, in the webhook's configuration and in the APIServices.

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

use super::options::Serving;

/// How often it is looked whether somebody wrote something else.
const EVERY: Duration = Duration::from_secs(30);
const DEADLINE: Duration = Duration::from_secs(10);
/// External metrics, and what was decided.
const API_SERVICES: [&str; 2] = [
    "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io",
    "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.operator.plimsoll.dev",
];
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// Who signs what we serve with.
pub(super) enum Authority {
    /// Somebody we do not know, or the same for ever.
    Fixed(Option<String>),
    /// Whoever it is at this moment.
    Shared(Keyring),
}

impl Authority {
    fn pem(&self) -> Option<String> {
        match self {
            Self::Fixed(pem) => pem.clone(),
            Self::Shared(keyring) => Some(keyring.authorities()),
        }
    }

    async fn another(&self, than: &str) {
        match self {
            Self::Fixed(_) => std::future::pending().await,
            Self::Shared(keyring) => keyring.other_authorities(than).await,
        }
    }
}

/// Keeps telling, for as long as we lead and have an authority of our own. Objects that are not there are not made: whoever
/// does not want the webhook leaves its configuration out.
pub(super) async fn keep(client: Client, leadership: Leadership, serving: Serving, authority: Authority) {
    loop {
        let Some(pem) = authority.pem() else { return };
        if leadership.is_leader() {
            if let Some(name) = &serving.webhook
                && let Err(error) = webhook(&client, name, &pem).await
            {
                tracing::warn!(%error, name, "the webhook's configuration does not know our authority");
            }
            for path in API_SERVICES.into_iter().filter(|_| serving.api_service) {
                if let Err(error) = api_service(&client, path, &serving, &pem).await {
                    tracing::warn!(%error, path, "an APIService does not know our authority");
                }
            }
        }
        let _ = tokio::time::timeout(EVERY, authority.another(&pem)).await;
    }
}

async fn webhook(client: &Client, name: &str, authority: &str) -> Result<(), ApiError> {
    let path = format!("{WEBHOOKS}/{name}");
    let Some(mut configuration) = read(client, &path).await? else { return Ok(()) };
    if set_ca_bundle(&mut configuration, authority) {
        write(client, Method::PUT, path, "application/json", &configuration).await?;
        tracing::info!(name, "the webhook's configuration knows our authority now");
    }
    Ok(())
}

/// Only an APIService that names a Service of ours is touched.
async fn api_service(
    client: &Client,
    path: &str,
    serving: &Serving,
    authority: &str,
) -> Result<(), ApiError> {
    let Some(found) = read(client, path).await? else { return Ok(()) };
    let service = found.pointer("/spec/service/name").and_then(Value::as_str).unwrap_or_default();
    let ours = serving.names.iter().any(|name| name == service);
    // Whoever checks no certificates was told so by somebody.
    let checks = found.pointer("/spec/insecureSkipTLSVerify").and_then(Value::as_bool) != Some(true);
    let bundle = STANDARD.encode(authority);
    let known = found.pointer("/spec/caBundle").and_then(Value::as_str) == Some(bundle.as_str());
    if ours && checks && !known {
        let patch = json!({"spec": {"caBundle": bundle}});
        write(client, Method::PATCH, path.to_owned(), "application/merge-patch+json", &patch).await?;
        tracing::info!(path, "an APIService knows our authority now");
    }
    Ok(())
}

async fn read(client: &Client, path: &str) -> Result<Option<Value>, ApiError> {
    match send(client, Request::get(path.to_owned(), "", DEADLINE)).await {
        Ok(body) => Ok(serde_json::from_slice(&body).ok()),
        Err(error) if error.code == 404 => Ok(None),
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
        ..Request::get(path, "", DEADLINE)
    };
    send(client, request).await.map(drop)
}
