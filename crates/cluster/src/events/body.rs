//! The request bodies of events, field for field as kube-controller-manager 1.36 writes them.

use std::collections::BTreeMap;

use engine::report::EventKind;
use jiff::Timestamp;
use serde::Serialize;

use super::correlate::OutgoingEvent;

/// The body of a POST.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CoreEvent<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: EventMetadata<'a>,
    involved_object: InvolvedObject<'a>,
    reason: &'a str,
    message: &'a str,
    source: EventSource,
    first_timestamp: String,
    last_timestamp: String,
    count: u32,
    #[serde(rename = "type")]
    event_type: &'static str,
    event_time: (),
    reporting_component: &'static str,
    reporting_instance: &'static str,
}

/// The body of a POST of an event with an action, as `events.k8s.io/v1` stores it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ActionEvent<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: EventMetadata<'a>,
    involved_object: InvolvedObject<'a>,
    reason: &'a str,
    message: &'a str,
    action: &'a str,
    #[serde(rename = "type")]
    event_type: &'static str,
    event_time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<EventSeries>,
    source: NoSource,
    reporting_component: &'static str,
    reporting_instance: &'static str,
}

/// The number of occurrences.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EventSeries {
    count: u32,
    last_observed_time: String,
}

#[derive(Debug, Serialize)]
struct NoSource {}

/// The body of a PATCH of an event with an action: only its series changes.
#[derive(Debug, Serialize)]
struct SeriesPatch<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<AnnotationPatch<'a>>,
    series: EventSeries,
}

/// The annotations of an event that was sent before: those of its last occurrence. Without a value, an annotation of an earlier
/// occurrence is removed.
#[derive(Debug, Serialize)]
struct AnnotationPatch<'a> {
    annotations: BTreeMap<&'static str, Option<&'a str>>,
}

#[derive(Debug, Serialize)]
struct EventMetadata<'a> {
    name: &'a str,
    namespace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a BTreeMap<&'static str, String>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct InvolvedObject<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    api_version: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    resource_version: &'a str,
}

#[derive(Debug, Serialize)]
struct EventSource {
    component: &'static str,
}

/// The body of a PATCH: only these fields change.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CountPatch<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<AnnotationPatch<'a>>,
    count: u32,
    last_timestamp: String,
    message: &'a str,
}

/// The namespace of an event: that of its object, or `default`.
pub(super) fn namespace(notice: &OutgoingEvent) -> &str {
    match notice.about.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    }
}

/// The body that creates an event; also for an event that was sent before and no longer exists.
pub(super) fn create(notice: &OutgoingEvent) -> Vec<u8> {
    let about = &notice.about;
    let metadata =
        EventMetadata { name: &notice.name, namespace: namespace(notice), annotations: annotations(notice) };
    let involved_object = InvolvedObject {
        kind: about.kind,
        namespace: &about.namespace,
        name: &about.name,
        uid: &about.uid,
        api_version: about.api_version,
        resource_version: &about.resource_version,
    };
    let event_type = match notice.kind {
        EventKind::Normal => "Normal",
        EventKind::Warning => "Warning",
    };
    if let Some(action) = &notice.action {
        let body = ActionEvent {
            kind: "Event",
            api_version: "v1",
            metadata,
            involved_object,
            reason: &notice.reason,
            message: cut(&notice.message, MAX_NOTE_BYTES),
            action: cut(action, MAX_ACTION_BYTES),
            event_type,
            event_time: microseconds(notice.first),
            series: (notice.count > 1).then(|| series(notice)),
            source: NoSource {},
            reporting_component: notice.component,
            reporting_instance: notice.component,
        };
        return serde_json::to_vec(&body).unwrap_or_default();
    }
    let body = CoreEvent {
        kind: "Event",
        api_version: "v1",
        metadata,
        involved_object,
        reason: &notice.reason,
        message: &notice.message,
        source: EventSource { component: notice.component },
        first_timestamp: seconds(notice.first),
        last_timestamp: seconds(notice.last),
        count: notice.count,
        event_type,
        event_time: (),
        reporting_component: notice.component,
        reporting_instance: "",
    };
    serde_json::to_vec(&body).unwrap_or_default()
}

/// The body that patches an event that was sent before.
pub(super) fn patch(notice: &OutgoingEvent) -> Vec<u8> {
    let removed = notice.earlier_annotations.keys().map(|key| (*key, None));
    let set = notice.annotations.iter().map(|(key, value)| (*key, Some(value.as_str())));
    let annotations: BTreeMap<_, _> = removed.chain(set).collect();
    let metadata = (!annotations.is_empty()).then_some(AnnotationPatch { annotations });
    if notice.action.is_some() {
        return serde_json::to_vec(&SeriesPatch { metadata, series: series(notice) }).unwrap_or_default();
    }
    let last_timestamp = seconds(notice.last);
    let body = CountPatch { metadata, count: notice.count, last_timestamp, message: &notice.message };
    serde_json::to_vec(&body).unwrap_or_default()
}

fn annotations(notice: &OutgoingEvent) -> Option<&BTreeMap<&'static str, String>> {
    Some(&*notice.annotations).filter(|annotations| !annotations.is_empty())
}

fn series(notice: &OutgoingEvent) -> EventSeries {
    EventSeries { count: notice.count, last_observed_time: microseconds(notice.last) }
}

/// The server refuses longer texts in events with an action.
const MAX_NOTE_BYTES: usize = 1024;
const MAX_ACTION_BYTES: usize = 128;

/// The text, cut to at most so many bytes.
fn cut(text: &str, max_bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(max_bytes)).unwrap_or(text)
}

/// A Time: truncated to whole seconds.
fn seconds(at: Timestamp) -> String {
    format!("{at:.0}")
}

/// A MicroTime: truncated to microseconds.
fn microseconds(at: Timestamp) -> String {
    format!("{at:.6}")
}
