//! AdmissionReviews, which anybody in the cluster may send. The response is a review or an HTTP error below 500.

use std::sync::Arc;

use api::provider::Compat;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use keda::admission::{
    AdmissionInput, AdmissionKind, AdmissionRules, ClusterSnapshot, Denial, Operation, Verdict, review,
};
use serve::admission::{AdmissionHandler, AdmissionRequest, AdmissionResponse, Reviewers, WEBHOOKS, routes};
use serve::{App, InProcessServer, Status};

use super::requests::respond;

/// Applies the admission rules of KEDA to an empty cluster.
struct Rules;

impl AdmissionHandler for Rules {
    fn admit(&self, request: AdmissionRequest) -> BoxFuture<'_, AdmissionResponse> {
        let (kind, operation) = (AdmissionKind::parse(&request.kind), Operation::parse(&request.operation));
        let response = match kind.zip(operation) {
            None => AdmissionResponse::allow(Vec::new()),
            Some((kind, operation)) => {
                let input = AdmissionInput {
                    operation,
                    kind,
                    dry_run: request.dry_run,
                    object: &request.object,
                    old: request.old.as_ref(),
                };
                match review(&input, &ClusterSnapshot::default(), &AdmissionRules::of(Compat::Better)) {
                    Verdict::Allowed(allowed) => AdmissionResponse::allow(allowed.warnings),
                    Verdict::Denied(Denial { code, reason, message, .. }) => {
                        AdmissionResponse::refuse(Status::new(code, reason, message, None))
                    }
                }
            }
        };
        async move { response }.boxed()
    }
}

/// The first byte of the input selects the webhook, the rest is the body of the request.
pub fn run(data: &[u8]) {
    let Some((which, body)) = data.split_first() else { return };
    let Some(webhook) = WEBHOOKS.get(usize::from(*which) % WEBHOOKS.len()) else { return };
    let admit: Arc<dyn AdmissionHandler> = Arc::new(Rules);
    let server =
        InProcessServer::new(App { routes: routes(&admit, &Reviewers::default()), ..App::default() });
    let request = http::Request::post(webhook.path).header("content-type", "application/json");
    let (status, response) = respond(&server, request, body);
    assert!(status < 500, "{status}: {}", String::from_utf8_lossy(&response));
}
