//! Events about reviewed writes. Any client that reaches the webhook can send a review, so an event is recorded only after the
//! watch has shown the object that the review named.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use api::keda::API_VERSION;
use api::meta::ObjectMeta;
use cluster::events::{EventRecorder, ObjectReference};
use keda::admission::AdmissionKind;
use keda::event::Event;
use locks::MutexExt as _;
use tokio::time::{Instant, sleep};

use super::context::OperatorContext;
use super::id::NamespacedName;

/// How long an object may take to appear in the watch after its review.
const OBJECT_WATCH_TIMEOUT: Duration = Duration::from_secs(30);
/// How often waiting events are checked.
const CHECK_PERIOD: Duration = Duration::from_millis(500);
/// Maximum length of a UID, in bytes: API servers assign UUIDs.
const MAX_UID_BYTES: usize = 64;
/// How many reviews may wait; further ones record no events.
const MAX_WAITING_REVIEWS: usize = 256;

/// Records events of reviews. Clones share what waits.
#[derive(Clone)]
pub(crate) struct AdmissionEvents {
    context: Arc<OperatorContext>,
    recorder: EventRecorder,
    waiting: Arc<Mutex<VecDeque<WaitingReview>>>,
}

/// The events of a review, until its object appears.
struct WaitingReview {
    kind: AdmissionKind,
    name: NamespacedName,
    uid: String,
    events: Vec<Event>,
    until: Instant,
}

impl AdmissionEvents {
    pub(crate) fn new(context: Arc<OperatorContext>, recorder: EventRecorder) -> Self {
        Self { context, recorder, waiting: Arc::default() }
    }

    /// Records the events when the watch shows an object with this name and UID, or never.
    pub(crate) fn offer(&self, kind: AdmissionKind, name: NamespacedName, uid: &str, events: &[Event]) {
        let is_recorded = matches!(kind, AdmissionKind::ScaledObject | AdmissionKind::ScaledJob);
        if !is_recorded || events.is_empty() || uid.is_empty() || uid.len() > MAX_UID_BYTES {
            return;
        }
        let until = Instant::now() + OBJECT_WATCH_TIMEOUT;
        let review = WaitingReview { kind, name, uid: uid.to_owned(), events: events.to_vec(), until };
        let is_first = {
            let mut waiting = self.waiting();
            if waiting.len() >= MAX_WAITING_REVIEWS {
                return;
            }
            waiting.push_back(review);
            waiting.len() == 1
        };
        if is_first {
            let events = self.clone();
            tokio::spawn(async move {
                while events.check() {
                    sleep(CHECK_PERIOD).await;
                }
            });
        }
    }

    /// Records the events of objects that have appeared; false if none wait any more.
    fn check(&self) -> bool {
        let now = Instant::now();
        let mut waiting = self.waiting();
        waiting.retain(|review| match self.watched(review) {
            Some(about) => {
                for event in &review.events {
                    let recorded = engine::Event {
                        kind: event.kind,
                        reason: event.reason.into(),
                        message: event.note.clone(),
                    };
                    self.recorder.record_action(&about, &recorded, event.action.unwrap_or(event.reason));
                }
                false
            }
            None => now < review.until,
        });
        !waiting.is_empty()
    }

    /// The object in the watch that a review named.
    fn watched(&self, review: &WaitingReview) -> Option<ObjectReference> {
        let store = self.context.store();
        let metadata: ObjectMeta = match review.kind {
            AdmissionKind::ScaledObject => store.objects.get(&review.name)?.metadata.clone(),
            AdmissionKind::ScaledJob => store.scaled_jobs.get(&review.name)?.metadata.clone(),
            _ => return None,
        };
        (metadata.uid == review.uid).then(|| ObjectReference {
            api_version: API_VERSION,
            kind: review.kind.name(),
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
        })
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<WaitingReview>> {
        self.waiting.locked()
    }
}
