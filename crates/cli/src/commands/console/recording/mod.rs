//! A recording (`--record FOLDER`) in the place of a cluster: the paths of the API server that the console reads, answered from files.
//! Everything above the client is the same as with a cluster.

mod events;
mod object;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use api::decisions::{DecisionMeta, DecisionRecord};
use cluster::{AutoscalerKey, AutoscalerKind};
use controllers::hpa::Records;
use controllers::hpa::records::{HistoryLimits, for_each_pass};
use http::request::Parts;
use http::{Request, Response};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use serve::response;
use serve::{App, Clock, InProcessServer, Query, Status};

use self::events::RecordedEvents;
use crate::failure::Failure;
use crate::live::cluster_client::RecordingSummary;
use crate::live::{ClusterClient, named};
use crate::stored_decisions::StoredDecisions;

/// The time before the end that is read, which is what a page shows.
const READ_HISTORY: SignedDuration = SignedDuration::from_hours(6);
/// The memory for passes; above it, the oldest are left out.
const MAX_HISTORY_BYTES: usize = 1 << 30;

/// Objects, events and decisions of a recording.
struct RecordedCluster {
    objects: BTreeMap<AutoscalerKey, Value>,
    events: RecordedEvents,
    decisions: InProcessServer,
}

/// Reads a recording up to a time. Must be called within a runtime.
pub(super) fn open(path: &Path, at: Option<Timestamp>) -> Result<ClusterClient, Failure> {
    let (cluster, summary) = read(path, at)?;
    let cluster = Arc::new(cluster);
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (cluster, (parts, _)) = (Arc::clone(&cluster), request.into_parts());
        async move { Ok::<_, Infallible>(cluster.respond(parts).await) }
    });
    Ok(ClusterClient::recorded(kube::Client::new(service, "default"), summary))
}

fn read(path: &Path, at: Option<Timestamp>) -> Result<(RecordedCluster, RecordingSummary), Failure> {
    let failed = |error: controllers::hpa::records::RecordingError| {
        Failure::input(format!(
            "{error}\n  remedy: name a folder that `plimsoll controller --record FOLDER` wrote, or a file of it"
        ))
    };
    let (mut begin, mut until) = (None, None);
    let times = |_: &DecisionMeta, time: Timestamp| {
        begin = Some(begin.map_or(time, |begin: Timestamp| begin.min(time)));
        if at.is_none_or(|at| time <= at) {
            until = until.max(Some(time));
        }
        false
    };
    for error in for_each_pass(path, times, |_, _| {}).map_err(failed)? {
        eprintln!("warning: {error}; it is skipped");
    }
    let until = until.ok_or_else(|| {
        let text = begin.map_or_else(
            || "has no passes".to_owned(),
            |begin| format!("begins at {begin}; choose a later time with --at"),
        );
        Failure::input(format!("{} {text}", path.display()))
    })?;
    let since = until.checked_sub(READ_HISTORY).unwrap_or(Timestamp::MIN);
    let limits = HistoryLimits { age: READ_HISTORY, bytes: MAX_HISTORY_BYTES };
    // Two processes decide, and each serves only its own decisions.
    let (controller, operator) = (Records::new(limits), Records::new(limits));
    let (mut events, mut passes, mut from) = (RecordedEvents::default(), 0, until);
    let mut objects = BTreeMap::new();
    for_each_pass(
        path,
        |_, time| (since..=until).contains(&time),
        |record, _| {
            let Some(key) = key_of(&record.metadata) else { return };
            passes += 1;
            from = from.min(record.decision.at);
            events.add(&key, &record.decision);
            let DecisionRecord { mode, period, ref spec, ref decision, ref round, .. } = record;
            let records = if key.kind.has_triggers() { &operator } else { &controller };
            records.add_round(&key, mode, period, &Arc::new(spec.clone()), decision, round.clone());
            objects.insert(key, record);
        },
    )
    .map_err(failed)?;
    let objects: BTreeMap<AutoscalerKey, Value> = objects
        .into_iter()
        .map(|(key, record): (AutoscalerKey, DecisionRecord)| {
            let object = object::of_record(key.kind, &record);
            (key, object)
        })
        .collect();
    let app = App {
        decisions: Some(Arc::new(StoredDecisions(controller))),
        groups: vec![serve::operator_group(Arc::new(StoredDecisions(operator)))],
        clock: Clock::new(move || until),
        ..App::default()
    };
    let path = path.display().to_string();
    let summary = RecordingSummary { path, from, until, passes, autoscalers: objects.len() };
    Ok((RecordedCluster { objects, events, decisions: InProcessServer::new(app) }, summary))
}

/// The autoscaler of a record: `hpa.web` in a namespace.
fn key_of(metadata: &DecisionMeta) -> Option<AutoscalerKey> {
    let (kind, name) = metadata.name.split_once('.')?;
    let (namespace, name) = (metadata.namespace.as_str().into(), name.into());
    Some(AutoscalerKey { kind: named::kind(kind)?, namespace, name })
}

impl RecordedCluster {
    async fn respond(&self, parts: Parts) -> Response<serve::Body> {
        let uri = &parts.uri;
        if let Some(found) = self.answer(uri.path(), &Query::parse(uri.query().unwrap_or_default())) {
            return response::json(200, &found);
        }
        let served = [api::decisions::API_VERSION, api::decisions::OPERATOR_API_VERSION];
        let is_served = served.iter().any(|version| uri.path().starts_with(&format!("/apis/{version}")));
        if !is_served {
            return response::status(&Status::no_path());
        }
        self.decisions.respond(Request::from_parts(parts, response::full(""))).await
    }

    /// An object, or a list of objects or events; none for other paths.
    fn answer(&self, path: &str, query: &Query) -> Option<Value> {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => ((*version).to_owned(), rest),
            ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let in_namespace = |key: &AutoscalerKey| namespace.is_none_or(|only| *key.namespace == *only);
        if let ("v1", ["events"]) = (version.as_str(), rest) {
            let selector = query.get("fieldSelector").unwrap_or_default();
            let selector = api::selector::FieldSelector::parse(selector).ok()?;
            let wanted = |key: &AutoscalerKey| {
                in_namespace(key)
                    && selector.matches(|field| match field {
                        "involvedObject.name" => &*key.name,
                        "involvedObject.kind" => key.kind.name(),
                        _ => "",
                    })
            };
            return Some(list("EventList", &self.events.of(wanted)));
        }
        let (plural, name) = match rest {
            [plural] => (*plural, None),
            [plural, name] => (*plural, Some(*name)),
            _ => return None,
        };
        let is_it = |kind: &AutoscalerKind| kind.api_version() == version && kind.plural() == plural;
        let kind = AutoscalerKind::ALL.into_iter().find(is_it)?;
        if let Some(name) = name {
            let key = AutoscalerKey { kind, namespace: namespace?.into(), name: name.into() };
            return self.objects.get(&key).cloned();
        }
        let found = self.objects.iter().filter(|(key, _)| key.kind == kind && in_namespace(key));
        let found: Vec<Value> = found.map(|(_, object)| object.clone()).collect();
        Some(list(&format!("{}List", kind.name()), &found))
    }
}

fn list(kind: &str, items: &[Value]) -> Value {
    json!({"kind": kind, "metadata": {}, "items": items})
}

#[cfg(test)]
mod tests;
