//! Step 6: report. The status is written only if it changed.

use api::autoscaling::v2::HorizontalPodAutoscalerStatus;
use cluster::lease::Leadership;
use cluster::request::{self, ApiError, Request};
use engine::snapshot::StateSnapshot;
use http::Method;
use kube::Client;
use serde::Deserialize;
use serde_json::json;

use super::autoscaler::{AutoscalerEntry, AutoscalerObject, PERSISTED_STATE_ANNOTATION};
use super::persisted_state::PersistAction;

/// The deadline of a status write.
const STATUS_WRITE_DEADLINE: std::time::Duration = std::time::Duration::from_secs(30);

/// Writes the status of autoscalers while this process is the leader.
pub(crate) struct StatusWriter {
    pub(crate) client: Client,
    pub(crate) leadership: Leadership,
}

/// Why a write failed. The texts are those of client-go.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StatusWriteError {
    #[error(transparent)]
    Request(#[from] ApiError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// How a report ended.
pub(crate) struct ReportOutcome {
    /// The result of the status write; `Ok` if there was nothing to write.
    pub(crate) result: Result<(), StatusWriteError>,
    /// Whether a request was sent.
    pub(crate) sent: bool,
    /// The object after the write, if it changed.
    pub(crate) object: Option<AutoscalerObject>,
    /// The persisted state on the object, and whether a write was made for it alone.
    pub(crate) kept: Option<(StateSnapshot, bool)>,
}

#[derive(Deserialize)]
struct WrittenObject {
    metadata: WrittenMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenMetadata {
    resource_version: String,
}

impl StatusWriter {
    /// Writes `status` if it changed, and the persisted state as `persist` says (docs/spec/hpa.md 3.0).
    pub(crate) async fn store(
        &self,
        entry: &AutoscalerEntry,
        status: Option<HorizontalPodAutoscalerStatus>,
        keep: PersistAction,
    ) -> ReportOutcome {
        let nothing = ReportOutcome { result: Ok(()), sent: false, object: None, kept: None };
        let (snapshot, due) = match keep {
            PersistAction::Nothing => (None, false),
            PersistAction::WithStatusWrite(snapshot) => (Some(snapshot), false),
            PersistAction::SeparateWrite(snapshot) => (Some(snapshot), true),
        };
        if !(status.is_some() || due) || !self.leadership.is_leader() {
            return nothing;
        }
        match entry.object.as_ref() {
            AutoscalerObject::Hpa(_) => {
                let alone = status.is_none();
                let status = status.unwrap_or_else(|| entry.object.status().clone());
                self.put(entry, status, snapshot, alone).await
            }
            AutoscalerObject::Autoscaler(_) => {
                // The status subresource of a custom resource ignores changes of annotations.
                let reported = match status {
                    Some(status) => self.put(entry, status, None, false).await,
                    None => nothing,
                };
                match snapshot {
                    Some(snapshot) if due => self.annotate(entry, reported, snapshot).await,
                    _ => reported,
                }
            }
        }
    }

    async fn put(
        &self,
        entry: &AutoscalerEntry,
        status: HorizontalPodAutoscalerStatus,
        snapshot: Option<StateSnapshot>,
        alone: bool,
    ) -> ReportOutcome {
        let new = entry.object.with(status, snapshot.as_ref().map(StateSnapshot::to_text));
        let result = match new.to_json() {
            Ok(body) => self.send(entry, Method::PUT, "/status", "application/json", body).await,
            Err(error) => Err(StatusWriteError::Json(error)),
        };
        match result {
            Ok(version) => ReportOutcome {
                result: Ok(()),
                sent: true,
                object: Some(new.at_version(version)),
                kept: snapshot.map(|snapshot| (snapshot, alone)),
            },
            // A failed write of persisted state alone is not reported; the next reconcile tries again.
            Err(error) if alone => {
                tracing::debug!(
                    namespace = &*entry.key.namespace, name = entry.key.record_name(), %error,
                    "failed to write the persisted state"
                );
                ReportOutcome { result: Ok(()), sent: true, object: None, kept: None }
            }
            Err(error) => ReportOutcome { result: Err(error), sent: true, object: None, kept: None },
        }
    }

    /// Writes the persisted state to an object whose status write cannot carry it.
    async fn annotate(
        &self,
        entry: &AutoscalerEntry,
        reported: ReportOutcome,
        snapshot: StateSnapshot,
    ) -> ReportOutcome {
        let body = json!({"metadata": {"annotations": {PERSISTED_STATE_ANNOTATION: snapshot.to_text()}}})
            .to_string()
            .into_bytes();
        match self.send(entry, Method::PATCH, "", "application/merge-patch+json", body).await {
            Ok(version) => {
                let base = reported.object.unwrap_or_else(|| (*entry.object).clone());
                let status = base.status().clone();
                let object = base.with(status, Some(snapshot.to_text())).at_version(version);
                ReportOutcome { object: Some(object), kept: Some((snapshot, true)), sent: true, ..reported }
            }
            Err(error) => {
                tracing::debug!(
                    namespace = &*entry.key.namespace, name = entry.key.record_name(), %error,
                    "failed to write the persisted state"
                );
                reported
            }
        }
    }

    /// Sends a write; returns the new `resourceVersion`.
    async fn send(
        &self,
        entry: &AutoscalerEntry,
        method: Method,
        subresource: &str,
        content_type: &'static str,
        body: Vec<u8>,
    ) -> Result<String, StatusWriteError> {
        let uri = format!("{}{subresource}", entry.path());
        let request = Request::get(uri, entry.group_resource(), STATUS_WRITE_DEADLINE)
            .named(&entry.object.metadata().name);
        let request = Request { method, body: Some((content_type, body)), ..request };
        let answer = request::send_leading(&self.client, request, &self.leadership).await?;
        let answer: WrittenObject = serde_json::from_slice(&answer)?;
        Ok(answer.metadata.resource_version)
    }
}
