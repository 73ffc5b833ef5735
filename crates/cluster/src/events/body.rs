//! An event as it is written, field for field as kube-controller-manager 1.36 writes it.

use engine::report::EventKind;
use jiff::Timestamp;
use serde::Serialize;

use super::correlate::Notice;
use crate::lease::chance;

/// The body of a POST.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Created<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Metadata<'a>,
    involved_object: InvolvedObject<'a>,
    reason: &'a str,
    message: &'a str,
    source: Source,
    first_timestamp: String,
    last_timestamp: String,
    count: u32,
    #[serde(rename = "type")]
    event_type: &'static str,
    event_time: (),
    reporting_component: &'static str,
    reporting_instance: &'static str,
}

#[derive(Debug, Serialize)]
struct Metadata<'a> {
    name: &'a str,
    namespace: &'a str,
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
struct Source {
    component: &'static str,
}

/// The body of a PATCH: it never says more, whatever else has changed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counted<'a> {
    count: u32,
    last_timestamp: String,
    message: &'a str,
}

/// Where an event is: with its object, or in `default`.
pub(super) fn namespace(notice: &Notice) -> &str {
    match notice.about.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    }
}

/// The event as it is created; also when it should have been there and is not.
pub(super) fn create(notice: &Notice) -> Vec<u8> {
    let about = &notice.about;
    let body = Created {
        kind: "Event",
        api_version: "v1",
        metadata: Metadata { name: &notice.name, namespace: namespace(notice) },
        involved_object: InvolvedObject {
            kind: about.kind,
            namespace: &about.namespace,
            name: &about.name,
            uid: &about.uid,
            api_version: about.api_version,
            resource_version: &about.resource_version,
        },
        reason: &notice.reason,
        message: &notice.message,
        source: Source { component: notice.component },
        first_timestamp: seconds(notice.first),
        last_timestamp: seconds(notice.last),
        count: notice.count,
        event_type: match notice.kind {
            EventKind::Normal => "Normal",
            EventKind::Warning => "Warning",
        },
        event_time: (),
        reporting_component: notice.component,
        reporting_instance: "",
    };
    serde_json::to_vec(&body).unwrap_or_default()
}

/// What is changed of an event that is there.
pub(super) fn patch(notice: &Notice) -> Vec<u8> {
    let last_timestamp = seconds(notice.last);
    serde_json::to_vec(&Counted { count: notice.count, last_timestamp, message: &notice.message })
        .unwrap_or_default()
}

/// `{object}.{nanoseconds in hex}`, or a UUID where that would be no name.
pub(super) fn event_name(object: &str, nanos: i128) -> String {
    let name = format!("{object}.{nanos:x}");
    if api::names::subdomain_faults(&name).is_empty() { name } else { chance::uuid() }
}

/// A Time: whole seconds, cut off.
fn seconds(at: Timestamp) -> String {
    format!("{at:.0}")
}
