//! The admission webhook and its metrics (docs/spec/keda.md 8.3).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use controllers::metrics::MetricsWriter;
use controllers::operator::Admission;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use keda::admission::{AdmissionInput, AdmissionKind, Denial, Operation, Verdict};
use locks::MutexExt as _;
use serde_json::Value;
use serve::Status;
use serve::admission::{AdmissionHandler, AdmissionRequest, AdmissionResponse};

/// Bounds the namespaces in labels, because users choose their names.
const MAX_COUNTED_NAMESPACES: usize = 10_000;

/// Applies the admission rules to requests of the server.
pub(super) struct AdmissionWebhook {
    pub(super) rules: Admission,
    pub(super) judged: Arc<AdmissionCounts>,
}

/// Counts of admission results.
#[derive(Debug, Default)]
pub(super) struct AdmissionCounts(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// By namespace and action.
    all: BTreeMap<(String, String), u64>,
    /// By reason as well.
    refused: BTreeMap<(String, String, &'static str), u64>,
}

impl AdmissionCounts {
    fn count(&self, kind: AdmissionKind, namespace: &str, action: &str, label: Option<&'static str>) {
        let mut counts = self.0.locked();
        let key = (namespace.to_owned(), action.to_lowercase());
        // KEDA counts ScaledJobs only when they are refused.
        if kind == AdmissionKind::ScaledObject
            && (counts.all.len() < MAX_COUNTED_NAMESPACES || counts.all.contains_key(&key))
        {
            *counts.all.entry(key.clone()).or_default() += 1;
        }
        let Some(label) = label else { return };
        let key = (key.0, key.1, label);
        if counts.refused.len() < MAX_COUNTED_NAMESPACES || counts.refused.contains_key(&key) {
            *counts.refused.entry(key).or_default() += 1;
        }
    }

    /// Exports the counts.
    pub(super) fn write_metrics(&self, page: &mut MetricsWriter) {
        let counts = self.0.locked();
        page.family(
            "counter",
            "keda_webhook_scaled_object_validations_total",
            "Total number of scaled object validations.",
        );
        for ((namespace, action), count) in &counts.all {
            page.value(&[("namespace", namespace), ("action", action)], count);
        }
        page.family(
            "counter",
            "keda_webhook_scaled_object_validation_errors_total",
            "Total number of scaled object validating errors.",
        );
        for ((namespace, action, reason), count) in &counts.refused {
            page.value(&[("namespace", namespace), ("action", action), ("reason", reason)], count);
        }
    }
}

impl AdmissionHandler for AdmissionWebhook {
    fn admit(&self, review: AdmissionRequest) -> BoxFuture<'_, AdmissionResponse> {
        async move {
            // Kinds without rules are allowed.
            let (Some(kind), Some(operation)) =
                (AdmissionKind::parse(&review.kind), Operation::parse(&review.operation))
            else {
                return AdmissionResponse::allow(Vec::new());
            };
            let request = AdmissionInput {
                operation,
                kind,
                dry_run: review.dry_run,
                object: &review.object,
                old: review.old.as_ref(),
            };
            let verdict = self.rules.review(&request).await;
            let label = match &verdict {
                Verdict::Denied(denial) => denial.label,
                Verdict::Allowed(_) => None,
            };
            let namespace = review.object.pointer("/metadata/namespace").and_then(Value::as_str);
            self.judged.count(kind, namespace.unwrap_or_default(), &review.operation, label);
            match verdict {
                Verdict::Allowed(allowed) => AdmissionResponse::allow(allowed.warnings),
                Verdict::Denied(Denial { code, reason, message, .. }) => {
                    AdmissionResponse::refuse(Status::new(code, reason, message, None))
                }
            }
        }
        .boxed()
    }
}
