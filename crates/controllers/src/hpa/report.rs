//! Step 6: status and events, written only where they changed.

use api::autoscaling::v2::HorizontalPodAutoscalerStatus;
use cluster::lease::Leadership;
use cluster::request::{self, ApiError, Request};
use engine::memory::StateSnapshot;
use http::Method;
use kube::Client;
use serde::Deserialize;
use serde_json::json;

use super::autoscaler::{AutoscalerEntry, AutoscalerObject, MEMORY};
use super::persisted_state::PersistAction;

/// When to give up on a write of status.
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(30);

/// Writes status, for as long as we lead.
pub(crate) struct StatusWriter {
    pub(crate) client: Client,
    pub(crate) leadership: Leadership,
}

/// What became of a report.
pub(crate) struct ReportOutcome {
    /// How the status write went; `Ok` too when there was nothing to write.
    pub(crate) result: Result<(), String>,
    /// Whether anything was sent.
    pub(crate) sent: bool,
    /// The object as it is now, where it changed.
    pub(crate) object: Option<AutoscalerObject>,
    /// What the object now remembers, and whether a write was made for that alone.
    pub(crate) kept: Option<(StateSnapshot, bool)>,
}

#[derive(Deserialize)]
struct Answer {
    metadata: Version,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    resource_version: String,
}

impl StatusWriter {
    /// Stores `status`, if it changed, and what is to be remembered, if that needs it (docs/spec/hpa.md 3.0).
    pub(crate) async fn store(
        &self,
        entry: &AutoscalerEntry,
        status: Option<HorizontalPodAutoscalerStatus>,
        keep: PersistAction,
    ) -> ReportOutcome {
        let nothing = ReportOutcome { result: Ok(()), sent: false, object: None, kept: None };
        let (memory, due) = match keep {
            PersistAction::Nothing => (None, false),
            PersistAction::Piggyback(memory) => (Some(memory), false),
            PersistAction::Write(memory) => (Some(memory), true),
        };
        if !(status.is_some() || due) || !self.leadership.is_leader() {
            return nothing;
        }
        match entry.object.as_ref() {
            AutoscalerObject::Hpa(_) => {
                let alone = status.is_none();
                let status = status.unwrap_or_else(|| entry.object.status().clone());
                self.put(entry, status, memory, alone).await
            }
            AutoscalerObject::Autoscaler(_) => {
                // The server takes nothing but status through the status of a custom resource.
                let reported = match status {
                    Some(status) => self.put(entry, status, None, false).await,
                    None => nothing,
                };
                match memory {
                    Some(memory) if due => self.annotate(entry, reported, memory).await,
                    _ => reported,
                }
            }
        }
    }

    async fn put(
        &self,
        entry: &AutoscalerEntry,
        status: HorizontalPodAutoscalerStatus,
        memory: Option<StateSnapshot>,
        alone: bool,
    ) -> ReportOutcome {
        let new = entry.object.with(status, memory.as_ref().map(StateSnapshot::to_text));
        let result = match new.to_json() {
            Ok(body) => self.send(entry, Method::PUT, "/status", "application/json", body).await,
            Err(error) => Err(error.to_string()),
        };
        match result {
            Ok(version) => ReportOutcome {
                result: Ok(()),
                sent: true,
                object: Some(new.at_version(version)),
                kept: memory.map(|memory| (memory, alone)),
            },
            // What only memory was written for is tried again; nobody else needs to know.
            Err(error) if alone => {
                tracing::debug!(autoscaler = %entry.key, error, "failed to keep what must survive a restart");
                ReportOutcome { result: Ok(()), sent: true, object: None, kept: None }
            }
            Err(error) => ReportOutcome { result: Err(error), sent: true, object: None, kept: None },
        }
    }

    /// Keeps memory on an object whose status cannot carry it.
    async fn annotate(
        &self,
        entry: &AutoscalerEntry,
        reported: ReportOutcome,
        memory: StateSnapshot,
    ) -> ReportOutcome {
        let body = json!({"metadata": {"annotations": {MEMORY: memory.to_text()}}}).to_string().into_bytes();
        match self.send(entry, Method::PATCH, "", "application/merge-patch+json", body).await {
            Ok(version) => {
                let base = reported.object.unwrap_or_else(|| (*entry.object).clone());
                let status = base.status().clone();
                let object = base.with(status, Some(memory.to_text())).at_version(version);
                ReportOutcome { object: Some(object), kept: Some((memory, true)), sent: true, ..reported }
            }
            Err(error) => {
                tracing::debug!(autoscaler = %entry.key, error, "failed to keep what must survive a restart");
                reported
            }
        }
    }

    /// Sends a write; the version it made.
    async fn send(
        &self,
        entry: &AutoscalerEntry,
        method: Method,
        subresource: &str,
        content_type: &'static str,
        body: Vec<u8>,
    ) -> Result<String, String> {
        let request = Request {
            method,
            uri: format!("{}{subresource}", entry.path()),
            resource: entry.group_resource().to_owned(),
            name: entry.object.metadata().name.clone(),
            body: Some((content_type, body)),
            deadline: DEADLINE,
        };
        let answer = request::send(&self.client, request).await.map_err(|error: ApiError| error.message)?;
        let answer: Answer = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
        Ok(answer.metadata.resource_version)
    }
}
