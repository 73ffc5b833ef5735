//! Watches of decisions: one Kubernetes watch event per decision.

use std::time::Duration;

use api::decisions::DecisionRecord;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, future, stream};
use http::Response;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::list::version;
use super::{DecisionSource, RecordFilter, ResponseForm, missing, table};
use crate::request::AuthorizedRequest;
use crate::response::Body;
use crate::status::{Status, StatusDetails};

/// The first events of a watch without a resource version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchStart {
    /// All stored decisions.
    All,
    /// The latest decision: the current object.
    Latest,
}

/// Watches one autoscaler.
pub(super) fn one(
    group: &'static str,
    decisions: &dyn DecisionSource,
    namespace: &str,
    name: &str,
    start: WatchStart,
    form: ResponseForm,
    call: &AuthorizedRequest,
) -> Result<Response<Body>, Status> {
    // Subscribing before reading loses nothing; records that occur twice are sent once.
    let next = decisions.follow(namespace, name).ok_or_else(|| missing(group, name))?;
    let kept = decisions.of(namespace, name).ok_or_else(|| missing(group, name))?;
    let newest = kept.iter().map(version).max();
    let known = known(call)?;
    let first = match (known, start) {
        (None, WatchStart::Latest) => kept.into_iter().next_back().into_iter().collect(),
        (None, WatchStart::All) => kept,
        (Some(known), _) => newer(kept, known),
    };
    let is_new = move |record: &DecisionRecord| newest.is_none_or(|newest| version(record) > newest);
    let next = next.filter(move |record| future::ready(is_new(record)));
    send(first, "ADDED", next.boxed(), form, call)
}

/// Watches the autoscalers of a namespace, or all.
pub(super) fn many(
    group: &'static str,
    decisions: &dyn DecisionSource,
    namespace: Option<&str>,
    filter: &RecordFilter,
    form: ResponseForm,
    call: &AuthorizedRequest,
) -> Result<Response<Body>, Status> {
    let namespace = namespace.or_else(|| filter.fields.exact("metadata.namespace"));
    if let (Some(namespace), Some(name)) = (namespace, filter.fields.exact("metadata.name")) {
        // kubectl has the object and sends `0`. A client without a resource version has nothing. Through the API server
        // one object is watched this way, because there a watch of a path with a name ends after a minute.
        let start =
            if call.query.get("resourceVersion").is_some() { WatchStart::Latest } else { WatchStart::All };
        return one(group, decisions, namespace, name, start, form, call);
    }
    let next = decisions.follow_all(namespace);
    let next = next.ok_or_else(|| Status::no_watch(StatusDetails::new(group, "decisions", "")))?;
    let mut first = decisions.latest(namespace);
    first.retain(|record| filter.takes(&record.metadata));
    if let Some(known) = known(call)? {
        first = newer(first, known);
    }
    let (fields, labels) = (filter.fields.clone(), filter.labels.clone());
    let filter = RecordFilter { fields, labels };
    let next = next.filter(move |record| future::ready(filter.takes(&record.metadata)));
    send(first, "MODIFIED", next.boxed(), form, call)
}

fn newer(mut records: Vec<DecisionRecord>, known: i64) -> Vec<DecisionRecord> {
    records.retain(|record| version(record) > known);
    records
}

/// The resource version that the client already has.
fn known(call: &AuthorizedRequest) -> Result<Option<i64>, Status> {
    match call.query.get("resourceVersion").unwrap_or_default() {
        "" | "0" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            Status::bad_request(format!("resourceVersion: Invalid value: {}", api::gotext::quote(text)))
        }),
    }
}

fn send(
    first: Vec<DecisionRecord>,
    then: &'static str,
    next: BoxStream<'static, DecisionRecord>,
    form: ResponseForm,
    call: &AuthorizedRequest,
) -> Result<Response<Body>, Status> {
    let limit =
        call.query.get("timeoutSeconds").and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0);
    let first = stream::iter(first).map(|record| ("ADDED", record));
    let lines = first.chain(next.map(move |record| (then, record)));
    let clock = call.clock.clone();
    let lines = lines.map(move |(kind, record)| line(kind, &record, form, clock.now()));
    call.streams.send(lines.boxed(), limit.map(Duration::from_secs))
}

fn line(kind: &str, record: &DecisionRecord, form: ResponseForm, now: Timestamp) -> Bytes {
    let object = match form {
        ResponseForm::Json => serde_json::to_value(record).unwrap_or(Value::Null),
        ResponseForm::Table(style) => {
            let version = version(record).to_string();
            table::decisions(std::slice::from_ref(record), style, &version, now)
        }
    };
    Bytes::from(format!("{}\n", json!({"type": kind, "object": object})))
}
