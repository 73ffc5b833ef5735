//! What is told: events for people, CloudEvents for programs.

use std::sync::Arc;
use std::time::Duration;

use api::keda::API_VERSION;
use api::meta::ObjectMeta;
use api::provider::Compat;
use cluster::events::{EventRecorder, ObjectReference};
use keda::event::Event;

use super::cloud_events::CloudEvents;

/// Who is told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventSubject {
    Object,
    Job,
    Authentication,
    ClusterAuthentication,
}

impl EventSubject {
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Object => "ScaledObject",
            Self::Job => "ScaledJob",
            Self::Authentication => "TriggerAuthentication",
            Self::ClusterAuthentication => "ClusterTriggerAuthentication",
        }
    }
}

/// Tells in the background; never waits, never fails.
#[derive(Clone)]
pub(crate) struct OperatorEventRecorder {
    operator: EventRecorder,
    /// The loops of ScaledJobs have a name of their own.
    handler: EventRecorder,
    pub(crate) cloud_events: Arc<CloudEvents>,
    compat: Compat,
}

/// The API server takes no event whose action is longer.
const LONGEST_ACTION: usize = 128;

/// A source that fails is told at every poll. Sooner than this the event of last time is left as it is: when what all ask is
/// gone, the API server has enough to do. The original writes every time.
const PAUSE: Duration = Duration::from_secs(20);

impl OperatorEventRecorder {
    pub(crate) fn new(recorder: &EventRecorder, cloud_events: Arc<CloudEvents>, compat: Compat) -> Self {
        let pause = if compat.is_strict() { Duration::ZERO } else { PAUSE };
        let recorder = recorder.clone().with_pause(pause);
        Self {
            compat,
            operator: recorder.with_component("keda-operator"),
            handler: recorder.with_component("scale-handler"),
            cloud_events,
        }
    }

    /// What a reconcile tells: it becomes a CloudEvent too. Its action is its text; the original loses those whose text is
    /// too long for that.
    pub(crate) fn record_reconcile(&self, subject: EventSubject, metadata: &ObjectMeta, event: &Event) {
        let fits = event.note.len() <= LONGEST_ACTION;
        if fits || event.action.is_some() || !self.compat.is_strict() {
            let action = if fits { event.note.as_str() } else { event.reason };
            record(&self.operator, subject, metadata, event, event.action.unwrap_or(action));
        }
        self.cloud_events.offer(subject, metadata, event);
    }

    /// What a round tells.
    pub(crate) fn record_poll(&self, subject: EventSubject, metadata: &ObjectMeta, event: &Event) {
        let recorder = if subject == EventSubject::Job { &self.handler } else { &self.operator };
        record(recorder, subject, metadata, event, event.action.unwrap_or(event.reason));
    }

    /// What our own engine tells of a ScaledObject.
    pub(crate) fn record_engine(&self, metadata: &ObjectMeta, event: &engine::Event) {
        let about = about(EventSubject::Object, metadata);
        self.operator.record_action(&about, event, &event.reason);
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
    let told = engine::Event { kind: event.kind, reason: event.reason.into(), message: event.note.clone() };
    recorder.record_action(&about, &told, action);
}
