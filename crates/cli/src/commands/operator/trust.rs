//! Tells the cluster whom to trust: our authority, in the webhook's configuration and in the APIService.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::lease::Leadership;
use cluster::request::{ApiError, Request, send};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use serve::admission::trust;

use super::options::Serving;

/// How often it is looked whether somebody wrote something else.
const EVERY: Duration = Duration::from_secs(30);
const DEADLINE: Duration = Duration::from_secs(10);
const API_SERVICE: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// Keeps telling, for as long as we lead and have an authority of our own. Objects that are not there are not made: whoever
/// does not want the webhook leaves its configuration out.
pub(super) async fn keep(
    client: Client,
    leadership: Leadership,
    serving: Serving,
    authority: Option<String>,
) {
    let Some(authority) = authority else { return };
    loop {
        if leadership.leads() {
            if let Some(name) = &serving.webhook
                && let Err(error) = webhook(&client, name, &authority).await
            {
                tracing::warn!(%error, name, "the webhook's configuration does not know our authority");
            }
            if serving.api_service
                && let Err(error) = api_service(&client, &serving, &authority).await
            {
                tracing::warn!(%error, "the APIService does not know our authority");
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

async fn webhook(client: &Client, name: &str, authority: &str) -> Result<(), ApiError> {
    let path = format!("{WEBHOOKS}/{name}");
    let Some(mut configuration) = read(client, &path).await? else { return Ok(()) };
    if trust(&mut configuration, authority) {
        write(client, Method::PUT, path, "application/json", &configuration).await?;
        tracing::info!(name, "the webhook's configuration knows our authority now");
    }
    Ok(())
}

/// Only an APIService that names a Service of ours is touched.
async fn api_service(client: &Client, serving: &Serving, authority: &str) -> Result<(), ApiError> {
    let Some(found) = read(client, API_SERVICE).await? else { return Ok(()) };
    let service = found.pointer("/spec/service/name").and_then(Value::as_str).unwrap_or_default();
    let ours = serving.names.iter().any(|name| name == service);
    // Whoever checks no certificates was told so by somebody.
    let checks = found.pointer("/spec/insecureSkipTLSVerify").and_then(Value::as_bool) != Some(true);
    let bundle = STANDARD.encode(authority);
    let known = found.pointer("/spec/caBundle").and_then(Value::as_str) == Some(bundle.as_str());
    if ours && checks && !known {
        let patch = json!({"spec": {"caBundle": bundle}});
        write(client, Method::PATCH, API_SERVICE.to_owned(), "application/merge-patch+json", &patch).await?;
        tracing::info!("the APIService knows our authority now");
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
