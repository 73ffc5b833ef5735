//! Answers the webhook.

use controllers::operator::Admission;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use keda::admission::{Denial, Kind, Operation, Request, Verdict};
use serve::Status;
use serve::admission::{Admit, Review, Ruling};

/// The rules, as the server asks them.
pub(super) struct Webhook(pub(super) Admission);

impl Admit for Webhook {
    fn admit(&self, review: Review) -> BoxFuture<'_, Ruling> {
        async move {
            // What is not ours to judge goes on.
            let (Some(kind), Some(operation)) =
                (Kind::parse(&review.kind), Operation::parse(&review.operation))
            else {
                return Ruling::allow(Vec::new());
            };
            let request = Request {
                operation,
                kind,
                dry_run: review.dry_run,
                object: &review.object,
                old: review.old.as_ref(),
            };
            match self.0.judge(&request).await {
                Verdict::Allowed(allowed) => Ruling::allow(allowed.warnings),
                Verdict::Denied(Denial { code, reason, message, .. }) => {
                    Ruling::refuse(Status::new(code, reason, message, None))
                }
            }
        }
        .boxed()
    }
}
