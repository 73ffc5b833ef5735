//! Carries out plans.

use futures::{StreamExt, stream};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy};
use kube::core::Request;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::events::Occurrence;
use super::index::Written;
use super::objects::{Key, Kind};
use super::plan::{Change, Note, Plan, Subject, Write};

/// The name under which fields are managed.
pub(crate) const MANAGER: &str = "kube-controller-manager";
/// How many requests of one plan are under way at once.
const CONCURRENCY: usize = 64;

/// What came of a plan.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) written: Vec<Written>,
    /// Why it was not carried out to the end.
    pub(crate) failure: Option<String>,
}

/// Whoever carries out plans.
#[derive(Clone)]
pub(crate) struct Executor {
    pub(crate) client: kube::Client,
    pub(crate) events: UnboundedSender<Occurrence>,
}

/// Whether the server says that there is no such object.
pub(crate) fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// In the server's words, if it had any.
fn text(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

impl Executor {
    /// Writes, then the status. After a failure no more writes are begun, but the status is told.
    pub(crate) async fn execute(&self, subject: &Subject, plan: Plan) -> Outcome {
        let mut outcome = Outcome::default();
        let mut writes = plan.writes.into_iter().peekable();
        // Few at first: what fails once mostly fails a thousand times.
        let mut batch = 1;
        while writes.peek().is_some() && outcome.failure.is_none() {
            let some: Vec<Write> = writes.by_ref().take(batch).collect();
            let begun = some.into_iter().map(|write| self.write(subject, write));
            let mut results = stream::iter(begun).buffer_unordered(CONCURRENCY);
            while let Some(result) = results.next().await {
                match result {
                    Ok(written) => outcome.written.extend(written),
                    Err(error) => outcome.failure = Some(error),
                }
            }
            batch = batch.saturating_mul(2);
        }
        if let Some(status) = plan.status {
            let path = Request::new(path(subject.key.kind, &subject.key.namespace));
            let parameters = PatchParams::apply(MANAGER);
            let request =
                path.patch_subresource("status", &subject.key.name, &parameters, &Patch::Merge(status));
            match self.send(subject.key.kind, request).await {
                Ok(written) => outcome.written.extend(written),
                Err(error) if is_missing(&error) => {}
                Err(error) => outcome.failure = outcome.failure.or(Some(text(&error))),
            }
        }
        if outcome.failure.is_none() {
            plan.notes.into_iter().for_each(|note| self.tell(subject, note));
        }
        outcome
    }

    async fn write(&self, subject: &Subject, write: Write) -> Result<Option<Written>, String> {
        let namespace = &subject.key.namespace;
        let resource = Request::new(path(write.kind, namespace));
        let done = match &write.change {
            Change::Create(object) => {
                let parameters =
                    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
                self.send(write.kind, resource.create(&parameters, object.to_string().into_bytes())).await
            }
            Change::Patch { name, patch } => {
                let request = resource.patch(name, &PatchParams::apply(MANAGER), &Patch::Merge(patch));
                self.send(write.kind, request).await
            }
            Change::Delete { name, uid } => {
                let parameters = DeleteParams {
                    preconditions: Some(Preconditions { uid: Some(uid.clone()), resource_version: None }),
                    propagation_policy: Some(PropagationPolicy::Background),
                    ..DeleteParams::default()
                };
                let key = Key { kind: write.kind, namespace: namespace.clone(), name: name.clone() };
                match self.request::<Value>(resource.delete(name, &parameters)).await {
                    // Somebody else was faster.
                    Err(error) if is_missing(&error) || is_conflict(&error) => {
                        return Ok(Some(Written::Deleted(key, uid.clone())));
                    }
                    other => other.map(|_| Some(Written::Deleted(key, uid.clone()))),
                }
            }
        };
        match done {
            Ok(written) => {
                if let Some(note) = &write.note {
                    let name = name_of(&write, written.as_ref());
                    self.tell(subject, Note { text: note.text.replace("{}", &name), ..note.clone() });
                }
                Ok(written)
            }
            Err(error) => {
                let error_text = text(&error);
                if !is_conflict(&error) && !is_ending(&error) {
                    self.tell_failure(subject, &write, &error_text);
                }
                Err(error_text)
            }
        }
    }

    async fn send(
        &self,
        kind: Kind,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Option<Written>, kube::Error> {
        Ok(Some(match kind {
            Kind::Pod => Written::Pod(self.request(request).await?),
            Kind::Deployment => Written::Deployment(self.request(request).await?),
            Kind::ReplicaSet => Written::ReplicaSet(self.request(request).await?),
            Kind::StatefulSet => Written::StatefulSet(self.request(request).await?),
            Kind::Job => Written::Job(self.request(request).await?),
        }))
    }

    async fn request<T: DeserializeOwned>(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T, kube::Error> {
        self.client.request(request.map_err(kube::Error::BuildRequest)?).await
    }

    fn tell(&self, subject: &Subject, note: Note) {
        // Nobody listens at the very end.
        let _ = self.events.send(Occurrence { subject: subject.clone(), note });
    }

    fn tell_failure(&self, subject: &Subject, write: &Write, error: &str) {
        let (reason, verb) = match write.change {
            Change::Create(_) => ("FailedCreate", "Create"),
            Change::Delete { .. } => ("FailedDelete", "Delete"),
            Change::Patch { .. } => return,
        };
        let text = match subject.key.kind {
            Kind::StatefulSet => {
                let (pod, set) = (name_of(write, None), &subject.key.name);
                format!("{verb} Pod {pod} in StatefulSet {set} failed error: {error}")
            }
            Kind::ReplicaSet | Kind::Job if verb == "Create" => format!("Error creating: {error}"),
            Kind::ReplicaSet | Kind::Job => format!("Error deleting: {error}"),
            _ => return,
        };
        self.tell(subject, Note::warning(reason, text));
    }
}

/// Nothing can be made in a namespace that is ending: that is no news.
fn is_ending(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403 && status.message.contains("being terminated"))
}

/// The name of what was written: known before unless the server makes it.
fn name_of(write: &Write, written: Option<&Written>) -> String {
    let made = match written {
        Some(Written::Pod(pod)) => Some(pod.name()),
        Some(Written::ReplicaSet(set)) => Some(set.name()),
        _ => None,
    };
    let planned = match &write.change {
        Change::Create(object) => object.pointer("/metadata/name").and_then(Value::as_str),
        Change::Patch { name, .. } | Change::Delete { name, .. } => Some(name.as_str()),
    };
    made.or(planned).unwrap_or_default().to_owned()
}

/// The path of a kind in a namespace.
fn path(kind: Kind, namespace: &str) -> String {
    let (group, version, _, plural) = kind.names();
    let group = if group.is_empty() { "api".to_owned() } else { format!("apis/{group}") };
    format!("/{group}/{version}/namespaces/{namespace}/{plural}")
}
