//! Validating webhooks.

mod call;
mod matching;
mod review;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;

use locks::MutexExt as _;
use serde_json::Value;

use self::call::WebhookVerdict;
use self::matching::Webhook;
pub(crate) use self::review::AdmissionRequest;
use crate::access::PkiError;
use crate::peer::PeerClient;
use crate::status::{About, Cause, Status};

/// Finds the address of a service by namespace, name and port.
pub(crate) type ResolveService<'a> = dyn Fn(&str, &str, u16) -> Option<SocketAddr> + Sync + 'a;

/// Identifies a connection to a webhook: address, host and port of its name, CA bundle.
type PeerKey = (Option<SocketAddr>, String, Vec<u8>);

/// A webhook gave no usable response; the texts are those of the real API server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum WebhookError {
    #[error("failed to call webhook: {0}")]
    Call(String),
    #[error("received invalid webhook response: {0}")]
    Response(String),
}

/// The webhooks that were called before, with their connections.
#[derive(Default)]
pub(crate) struct Webhooks {
    peers: Mutex<BTreeMap<PeerKey, PeerClient>>,
}

/// Calls all matching webhooks at the same time; each may deny the write or add warnings.
pub(crate) async fn ask(
    configurations: &[Value],
    review: &AdmissionRequest,
    resolve: &ResolveService<'_>,
) -> Result<Vec<String>, Status> {
    Webhooks::default().ask(configurations, review, resolve).await
}

impl Webhooks {
    /// The same as [`ask`], over connections that are kept.
    pub(crate) async fn ask(
        &self,
        configurations: &[Value],
        review: &AdmissionRequest,
        resolve: &ResolveService<'_>,
    ) -> Result<Vec<String>, Status> {
        let webhooks = matching::matching(configurations, review);
        if webhooks.is_empty() {
            return Ok(Vec::new());
        }
        let body = review.to_json().to_string();
        let asked = webhooks.iter().map(|webhook| self.call(webhook, &review.uid, &body, resolve));
        let answers = futures::future::join_all(asked).await;
        let mut warnings = Vec::new();
        for (webhook, answer) in webhooks.iter().zip(answers) {
            match answer {
                Ok(answer) => {
                    warnings.extend(answer.warnings.iter().cloned());
                    if !answer.allowed {
                        return Err(denied(&webhook.name, &answer));
                    }
                }
                Err(_) if webhook.optional => {}
                Err(error) => return Err(failed(&webhook.name, &error)),
            }
        }
        Ok(warnings)
    }

    /// The client for a webhook; an existing one is reused.
    fn peer(
        &self,
        webhook: &Webhook,
        address: Option<SocketAddr>,
        host: String,
    ) -> Result<PeerClient, PkiError> {
        let mut peers = self.peers.locked();
        let key = (address, host, webhook.bundle.clone());
        if let Some(peer) = peers.get(&key) {
            return Ok(peer.clone());
        }
        let peer = call::peer(webhook, address)?;
        peers.insert(key, peer.clone());
        Ok(peer)
    }
}

fn denied(webhook: &str, answer: &WebhookVerdict) -> Status {
    let webhook = api::gotext::quote(webhook);
    let why = [&answer.message, &answer.reason].into_iter().find(|text| !text.is_empty());
    let message = match why {
        Some(why) => format!("admission webhook {webhook} denied the request: {why}"),
        None => format!("admission webhook {webhook} denied the request without explanation"),
    };
    let about = (!answer.causes.is_empty()).then(|| Box::new(About::default()));
    Status {
        code: answer.code,
        reason: known(&answer.reason),
        message,
        about,
        causes: answer.causes.clone(),
        retry_after: None,
    }
}

fn failed(webhook: &str, error: &WebhookError) -> Status {
    let text = format!("failed calling webhook {}: {error}", api::gotext::quote(webhook));
    let cause = Cause { reason: String::new(), message: text.clone(), field: String::new() };
    Status {
        code: 500,
        reason: "InternalError",
        message: format!("Internal error occurred: {text}"),
        about: Some(Box::new(About::default())),
        causes: vec![cause],
        retry_after: None,
    }
}

/// A known reason of the API; other reasons are dropped.
fn known(reason: &str) -> &'static str {
    const REASONS: &[&str] = &[
        "Unauthorized",
        "Forbidden",
        "NotFound",
        "AlreadyExists",
        "Conflict",
        "Gone",
        "Invalid",
        "ServerTimeout",
        "StoreReadError",
        "Timeout",
        "TooManyRequests",
        "BadRequest",
        "MethodNotAllowed",
        "NotAcceptable",
        "RequestEntityTooLarge",
        "UnsupportedMediaType",
        "InternalError",
        "Expired",
        "ServiceUnavailable",
    ];
    REASONS.iter().find(|known| **known == reason).copied().unwrap_or_default()
}
