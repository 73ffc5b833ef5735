//! One CloudEvent.

use api::keda::EventSubscription;
use api::meta::ObjectMeta;
use jiff::Timestamp;
use keda::event::Event;
use serde_json::{Value, json};

use crate::operator::id::EventSubject;

/// An event, independent of its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CloudEvent {
    id: String,
    pub(super) type_: &'static str,
    /// The namespace of the object; empty for objects of the cluster.
    pub(super) namespace: String,
    /// `/{namespace}/{kind}/{name}`.
    subject: String,
    time: Timestamp,
    reason: &'static str,
    note: String,
}

/// The CloudEvent type of an event.
fn type_of(subject: EventSubject, reason: &str) -> Option<&'static str> {
    Some(match (subject, reason) {
        (EventSubject::Object, "ScaledObjectReady") => "keda.scaledobject.ready.v1",
        (EventSubject::Object, "ScaledObjectCheckFailed" | "ScaledObjectUpdateFailed") => {
            "keda.scaledobject.failed.v1"
        }
        (EventSubject::Object, "ScaledObjectDeleted") => "keda.scaledobject.removed.v1",
        (EventSubject::Object, "ScaledObjectPaused") => "keda.scaledobject.paused.v1",
        (EventSubject::Object, "ScaledObjectUnpaused") => "keda.scaledobject.unpaused.v1",
        (EventSubject::Job, "ScaledJobReady") => "keda.scaledjob.ready.v1",
        (EventSubject::Job, "ScaledJobCheckFailed" | "ScaledJobUpdateFailed") => "keda.scaledjob.failed.v1",
        (EventSubject::Job, "ScaledJobDeleted") => "keda.scaledjob.removed.v1",
        (EventSubject::Job, "ScaledJobPaused") => "keda.scaledjob.paused.v1",
        (EventSubject::Job, "ScaledJobUnpaused") => "keda.scaledjob.unpaused.v1",
        (EventSubject::Job, "ScaledJobRolloutCleanupStarted") => "keda.scaledjob.rolloutcleanup.started.v1",
        (EventSubject::Job, "ScaledJobRolloutCleanupCompleted") => {
            "keda.scaledjob.rolloutcleanup.completed.v1"
        }
        (EventSubject::Job, "ScaledJobRolloutCleanupFailed") => "keda.scaledjob.rolloutcleanup.failed.v1",
        (EventSubject::Authentication, "TriggerAuthenticationAdded") => {
            "keda.authentication.triggerauthentication.created.v1"
        }
        (EventSubject::Authentication, "TriggerAuthenticationDeleted") => {
            "keda.authentication.triggerauthentication.removed.v1"
        }
        (
            EventSubject::Authentication,
            "TriggerAuthenticationUpdated" | "ClusterTriggerAuthenticationUpdated",
        ) => "keda.authentication.triggerauthentication.updated.v1",
        (EventSubject::ClusterAuthentication, "ClusterTriggerAuthenticationAdded") => {
            "keda.authentication.clustertriggerauthentication.created.v1"
        }
        (EventSubject::ClusterAuthentication, "ClusterTriggerAuthenticationDeleted") => {
            "keda.authentication.clustertriggerauthentication.removed.v1"
        }
        (EventSubject::ClusterAuthentication, "ClusterTriggerAuthenticationUpdated") => {
            "keda.authentication.clustertriggerauthentication.updated.v1"
        }
        _ => return None,
    })
}

/// Whether a subscription includes this type. Included types have precedence over excluded ones.
pub(super) fn accepts(subscription: &EventSubscription, type_: &str) -> bool {
    let EventSubscription { included_event_types: included, excluded_event_types: excluded } = subscription;
    if !included.is_empty() {
        return included.iter().any(|own| own == type_);
    }
    !excluded.iter().any(|own| own == type_)
}

impl CloudEvent {
    pub(super) fn of(
        subject: EventSubject,
        metadata: &ObjectMeta,
        event: &Event,
        now: Timestamp,
    ) -> Option<Self> {
        let type_ = type_of(subject, event.reason)?;
        let (kind, name) = (subject.kind().to_lowercase(), metadata.name.to_lowercase());
        Some(Self {
            id: cluster::random::uuid(),
            type_,
            namespace: metadata.namespace.clone(),
            subject: format!("/{}/{kind}/{name}", metadata.namespace),
            time: now,
            reason: event.reason,
            note: event.note.clone(),
        })
    }

    /// Attributes as headers (binary mode).
    pub(super) fn headers(&self, cluster: &str, namespace: &str) -> Vec<(&'static str, String)> {
        vec![
            ("ce-specversion", "1.0".to_owned()),
            ("ce-id", self.id.clone()),
            ("ce-source", format!("/{cluster}/{namespace}/keda")),
            ("ce-subject", format!("/{cluster}{}", self.subject)),
            ("ce-type", self.type_.to_owned()),
            ("ce-time", self.time.to_string()),
            ("content-type", "application/json".to_owned()),
        ]
    }

    pub(super) fn body(&self) -> Vec<u8> {
        self.data().to_string().into_bytes()
    }

    /// A batch of this one event, with its attributes (batched mode).
    pub(super) fn batch(&self, cluster: &str, namespace: &str) -> Vec<u8> {
        let event = json!({
            "specversion": "1.0",
            "id": self.id,
            "source": format!("/{cluster}/{namespace}/keda"),
            "subject": format!("/{cluster}{}", self.subject),
            "type": self.type_,
            "time": self.time.to_string(),
            "datacontenttype": "application/json",
            "data": self.data(),
        });
        json!([event]).to_string().into_bytes()
    }

    fn data(&self) -> Value {
        json!({"reason": self.reason, "message": self.note})
    }
}
