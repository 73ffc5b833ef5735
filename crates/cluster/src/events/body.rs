//! An event as it is written, field for field as kube-controller-manager 1.36 writes it.

use engine::report::EventKind;
use jiff::Timestamp;
use serde::Serialize;

use super::correlate::OutgoingEvent;
use crate::lease::random;

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

/// The body of a POST of an event of the newer form, as `events.k8s.io/v1` stores it too.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Acted<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Metadata<'a>,
    involved_object: InvolvedObject<'a>,
    reason: &'a str,
    message: &'a str,
    action: &'a str,
    #[serde(rename = "type")]
    event_type: &'static str,
    event_time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<Series>,
    source: NoSource,
    reporting_component: &'static str,
    reporting_instance: &'static str,
}

/// How often it happened.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Series {
    count: u32,
    last_observed_time: String,
}

#[derive(Debug, Serialize)]
struct NoSource {}

/// The body of a PATCH of an event of the newer form: all but its series is never changed.
#[derive(Debug, Serialize)]
struct Continued {
    series: Series,
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
pub(super) fn namespace(notice: &OutgoingEvent) -> &str {
    match notice.about.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    }
}

/// The event as it is created; also when it should have been there and is not.
pub(super) fn create(notice: &OutgoingEvent) -> Vec<u8> {
    let about = &notice.about;
    let metadata = Metadata { name: &notice.name, namespace: namespace(notice) };
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
        let body = Acted {
            kind: "Event",
            api_version: "v1",
            metadata,
            involved_object,
            reason: &notice.reason,
            message: cut(&notice.message, LONGEST_NOTE),
            action: cut(action, LONGEST_ACTION),
            event_type,
            event_time: microseconds(notice.first),
            series: (notice.count > 1).then(|| series(notice)),
            source: NoSource {},
            reporting_component: notice.component,
            reporting_instance: notice.component,
        };
        return serde_json::to_vec(&body).unwrap_or_default();
    }
    let body = Created {
        kind: "Event",
        api_version: "v1",
        metadata,
        involved_object,
        reason: &notice.reason,
        message: &notice.message,
        source: Source { component: notice.component },
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

/// What is changed of an event that is there.
pub(super) fn patch(notice: &OutgoingEvent) -> Vec<u8> {
    if notice.action.is_some() {
        return serde_json::to_vec(&Continued { series: series(notice) }).unwrap_or_default();
    }
    let last_timestamp = seconds(notice.last);
    serde_json::to_vec(&Counted { count: notice.count, last_timestamp, message: &notice.message })
        .unwrap_or_default()
}

fn series(notice: &OutgoingEvent) -> Series {
    Series { count: notice.count, last_observed_time: microseconds(notice.last) }
}

/// The server takes no longer texts in events of the newer form.
const LONGEST_NOTE: usize = 1024;
const LONGEST_ACTION: usize = 128;

/// As much of a text as fits.
fn cut(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}

/// `{object}.{nanoseconds in hex}`, or a UUID where that would be no name.
pub(super) fn event_name(object: &str, nanos: i128) -> String {
    let name = format!("{object}.{nanos:x}");
    if api::names::subdomain_faults(&name).is_empty() { name } else { random::uuid() }
}

/// A Time: whole seconds, cut off.
fn seconds(at: Timestamp) -> String {
    format!("{at:.0}")
}

/// A MicroTime, cut off.
fn microseconds(at: Timestamp) -> String {
    format!("{at:.6}")
}
