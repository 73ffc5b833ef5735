//! Executes plans.

use futures::{StreamExt, stream};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy};
use kube::core::Request;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::events::{EventOccurrence, FIELD_MANAGER, is_missing};
use super::index::WriteResult;
use super::objects::{ObjectRef, WorkloadKind};
use super::plan::{EventNote, EventSubject, ObjectWrite, ReconcilePlan, WriteOperation};

/// How many requests of one plan run concurrently.
const MAX_CONCURRENT_REQUESTS: usize = 64;

/// The result of a plan.
#[derive(Debug, Default)]
pub(crate) struct PlanOutcome {
    pub(crate) written: Vec<WriteResult>,
    /// Why it was not completed.
    pub(crate) failure: Option<String>,
}

/// Executes plans.
#[derive(Clone)]
pub(crate) struct Executor {
    pub(crate) client: kube::Client,
    pub(crate) events: UnboundedSender<EventOccurrence>,
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// The server's message, if there is one.
fn text(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

impl Executor {
    /// Performs the writes, then updates the status. After a failure no further writes start, but the status is
    /// updated.
    pub(crate) async fn execute(&self, subject: &EventSubject, plan: ReconcilePlan) -> PlanOutcome {
        let mut outcome = PlanOutcome::default();
        let mut writes = plan.writes.into_iter().peekable();
        // Batches grow from one: a request that fails once usually fails for all.
        let mut batch = 1;
        while writes.peek().is_some() && outcome.failure.is_none() {
            let some: Vec<ObjectWrite> = writes.by_ref().take(batch).collect();
            let begun = some.into_iter().map(|write| self.write(subject, write));
            let mut results = stream::iter(begun).buffer_unordered(MAX_CONCURRENT_REQUESTS);
            while let Some(result) = results.next().await {
                match result {
                    Ok(written) => outcome.written.extend(written),
                    Err(error) => outcome.failure = Some(text(&error)),
                }
            }
            batch = batch.saturating_mul(2);
        }
        if let Some(status) = plan.status {
            let path = Request::new(path(subject.key.kind, &subject.key.namespace));
            let parameters = PatchParams::apply(FIELD_MANAGER);
            let request =
                path.patch_subresource("status", &subject.key.name, &parameters, &Patch::Merge(status));
            match self.send(subject.key.kind, request).await {
                Ok(written) => outcome.written.extend(written),
                Err(error) if is_missing(&error) => {}
                Err(error) => outcome.failure = outcome.failure.or(Some(text(&error))),
            }
        }
        if outcome.failure.is_none() {
            plan.notes.into_iter().for_each(|note| self.record_event(subject, note));
        }
        outcome
    }

    async fn write(
        &self,
        subject: &EventSubject,
        write: ObjectWrite,
    ) -> Result<Option<WriteResult>, kube::Error> {
        let namespace = &subject.key.namespace;
        let resource = Request::new(path(write.kind, namespace));
        let done = match &write.change {
            WriteOperation::Create(object) => {
                let parameters =
                    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
                self.send(write.kind, resource.create(&parameters, object.to_string().into_bytes())).await
            }
            WriteOperation::Patch { name, patch } => {
                let request = resource.patch(name, &PatchParams::apply(FIELD_MANAGER), &Patch::Merge(patch));
                self.send(write.kind, request).await
            }
            WriteOperation::Delete { name, uid } => {
                let parameters = DeleteParams {
                    preconditions: Some(Preconditions { uid: Some(uid.clone()), resource_version: None }),
                    propagation_policy: Some(PropagationPolicy::Background),
                    ..DeleteParams::default()
                };
                let key = ObjectRef { kind: write.kind, namespace: namespace.clone(), name: name.clone() };
                match self.request::<Value>(resource.delete(name, &parameters)).await {
                    // The object is already gone or replaced.
                    Err(error) if is_missing(&error) || is_conflict(&error) => {
                        return Ok(Some(WriteResult::Deleted(key, uid.clone())));
                    }
                    other => other.map(|_| Some(WriteResult::Deleted(key, uid.clone()))),
                }
            }
        };
        match done {
            Ok(written) => {
                if let Some(note) = &write.note {
                    let name = name_of(&write, written.as_ref());
                    self.record_event(
                        subject,
                        EventNote { text: note.text.replace("{}", &name), ..note.clone() },
                    );
                }
                Ok(written)
            }
            Err(error) => {
                if !is_conflict(&error) && !is_terminating(&error) {
                    self.record_failure(subject, &write, &text(&error));
                }
                Err(error)
            }
        }
    }

    async fn send(
        &self,
        kind: WorkloadKind,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Option<WriteResult>, kube::Error> {
        Ok(Some(match kind {
            WorkloadKind::Pod => WriteResult::Pod(self.request(request).await?),
            WorkloadKind::Deployment => WriteResult::Deployment(self.request(request).await?),
            WorkloadKind::ReplicaSet => WriteResult::ReplicaSet(self.request(request).await?),
            WorkloadKind::StatefulSet => WriteResult::StatefulSet(self.request(request).await?),
            WorkloadKind::Job => WriteResult::Job(self.request(request).await?),
        }))
    }

    async fn request<T: DeserializeOwned>(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T, kube::Error> {
        self.client.request(request.map_err(kube::Error::BuildRequest)?).await
    }

    fn record_event(&self, subject: &EventSubject, note: EventNote) {
        // The receiver is gone at shutdown.
        let _ = self.events.send(EventOccurrence { subject: subject.clone(), note });
    }

    fn record_failure(&self, subject: &EventSubject, write: &ObjectWrite, error: &str) {
        let (reason, verb) = match write.change {
            WriteOperation::Create(_) => ("FailedCreate", "Create"),
            WriteOperation::Delete { .. } => ("FailedDelete", "Delete"),
            WriteOperation::Patch { .. } => return,
        };
        let text = match subject.key.kind {
            WorkloadKind::StatefulSet => {
                let (pod, set) = (name_of(write, None), &subject.key.name);
                format!("{verb} Pod {pod} in StatefulSet {set} failed error: {error}")
            }
            WorkloadKind::ReplicaSet | WorkloadKind::Job if verb == "Create" => {
                format!("Error creating: {error}")
            }
            WorkloadKind::ReplicaSet | WorkloadKind::Job => format!("Error deleting: {error}"),
            _ => return,
        };
        self.record_event(subject, EventNote::warning(reason, text));
    }
}

/// Whether the namespace is terminating; that is not reported.
fn is_terminating(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403 && status.message.contains("being terminated"))
}

/// The name of the written object; the server may generate it.
fn name_of(write: &ObjectWrite, written: Option<&WriteResult>) -> String {
    let made = match written {
        Some(WriteResult::Pod(pod)) => Some(pod.name()),
        Some(WriteResult::ReplicaSet(set)) => Some(set.name()),
        _ => None,
    };
    let planned = match &write.change {
        WriteOperation::Create(object) => object.pointer("/metadata/name").and_then(Value::as_str),
        WriteOperation::Patch { name, .. } | WriteOperation::Delete { name, .. } => Some(name.as_str()),
    };
    made.or(planned).unwrap_or_default().to_owned()
}

/// The path of a kind in a namespace.
fn path(kind: WorkloadKind, namespace: &str) -> String {
    let (group, version, _, plural) = kind.names();
    let group = if group.is_empty() { "api".to_owned() } else { format!("apis/{group}") };
    format!("/{group}/{version}/namespaces/{namespace}/{plural}")
}
