//! Records Kubernetes events, and delivers those of reconciles as CloudEvents too.

use std::sync::Arc;
use std::time::Duration;

use api::diagnosis::{Diagnosis, event_annotations};
use api::keda::API_VERSION;
use api::meta::ObjectMeta;
use api::provider::Compat;
use cluster::events::{EventRecorder, ObjectReference};
use keda::event::Event;

use super::cloud_events::CloudEvents;
use super::id::EventSubject;

/// Records events in the background; never waits and never fails.
#[derive(Clone)]
pub(crate) struct OperatorEventRecorder {
    operator: EventRecorder,
    /// KEDA records polls of ScaledJobs under another component.
    handler: EventRecorder,
    pub(crate) cloud_events: Arc<CloudEvents>,
    compat: Compat,
}

/// The longest `action` that the API server accepts, in bytes.
const MAX_ACTION_BYTES: usize = 128;

/// A failing source is reported in every poll. An equal event within this time is not written again, to spare the API server
/// when many sources fail at once. KEDA writes every time.
const MIN_EVENT_INTERVAL: Duration = Duration::from_secs(20);

impl OperatorEventRecorder {
    pub(crate) fn new(recorder: &EventRecorder, cloud_events: Arc<CloudEvents>, compat: Compat) -> Self {
        let pause = if compat.is_strict() { Duration::ZERO } else { MIN_EVENT_INTERVAL };
        let recorder = recorder.clone().with_pause(pause);
        Self {
            compat,
            operator: recorder.with_component("keda-operator"),
            handler: recorder.with_component("scale-handler"),
            cloud_events,
        }
    }

    /// Records an event of a reconcile. Its action is its text, if that is short enough; KEDA loses events with a longer text.
    pub(crate) fn record_reconcile(&self, subject: EventSubject, metadata: &ObjectMeta, event: &Event) {
        let fits = event.note.len() <= MAX_ACTION_BYTES;
        if fits || event.action.is_some() || !self.compat.is_strict() {
            let action = if fits { event.note.as_str() } else { event.reason };
            record(&self.operator, subject, metadata, event, event.action.unwrap_or(action));
        }
        self.cloud_events.offer(subject, metadata, event);
    }

    /// Records that a reconcile, or what `what` names, panicked and when it is retried.
    pub(crate) fn record_panic(
        &self,
        subject: EventSubject,
        metadata: &ObjectMeta,
        what: &str,
        message: &str,
        retry_after: Duration,
    ) {
        let note = format!("{what} panicked and is retried in {} s: {message}", retry_after.as_secs());
        let event = Event::warning("ReconcilePanicked", note);
        record(&self.operator, subject, metadata, &event, event.reason);
    }

    /// Records an event of a poll.
    pub(crate) fn record_poll(&self, subject: EventSubject, metadata: &ObjectMeta, event: &Event) {
        let recorder = if subject == EventSubject::Job { &self.handler } else { &self.operator };
        record(recorder, subject, metadata, event, event.action.unwrap_or(event.reason));
    }

    /// Records an event of the engine.
    pub(crate) fn record_engine(&self, metadata: &ObjectMeta, event: &engine::Event, causes: &[Diagnosis]) {
        let about = about(EventSubject::Object, metadata);
        let recorder = self.operator.with_annotations(event_annotations(causes));
        recorder.record_action(&about, event, &event.reason);
    }
}

fn about(subject: EventSubject, metadata: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        api_version: API_VERSION,
        kind: subject.kind(),
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
    }
}

fn record(
    recorder: &EventRecorder,
    subject: EventSubject,
    metadata: &ObjectMeta,
    event: &Event,
    action: &str,
) {
    let about = about(subject, metadata);
    let recorder = recorder.with_annotations(event_annotations(&event.causes));
    let event = engine::Event { kind: event.kind, reason: event.reason.into(), message: event.note.clone() };
    recorder.record_action(&about, &event, action);
}
