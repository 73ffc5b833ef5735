#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Mutex;
use std::time::Duration;

use api::decisions::passes::{PassItem, PassList, PassListMeta, PassQuery, UnknownCursor};
use api::decisions::{API_VERSION, DecisionList, DecisionMode, DifferenceRecord};
use engine::spec::{Spec, TargetRef};
use engine::{Observation, PodSelection, Scale, ScaleReadError, State, Status as Stored};
use futures::StreamExt as _;
use http::HeaderMap;
use http::header::ACCEPT;
use http_body_util::BodyExt as _;
use jiff::{SignedDuration, Timestamp};
use runtime::Clock;
use serde_json::Value;
use tokio::sync::broadcast;

use super::*;
use crate::access::RequestAttributes;
use crate::client_permits::{ClientPermits, PermitDivision};
use crate::identity::User;
use crate::query::Query;
use crate::stream::WatchStreams;
use crate::tls::Activity;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

fn record(namespace: &str, name: &str, second: i64, found: i32) -> DecisionRecord {
    let last = Timestamp::from_second(1_800_000_000 + second).unwrap();
    let target = TargetRef { kind: "Deployment".into(), name: name.into() };
    let spec = Spec {
        namespace: namespace.into(),
        name: name.into(),
        target,
        min: 1.into(),
        max: 10.into(),
        ..Spec::default()
    };
    let scale = Scale { spec_replicas: found.into(), status_replicas: found.into(), selector: String::new() };
    let seen = Observation {
        config: Arc::default(),
        spec: Arc::new(spec.clone()),
        status: Stored::default(),
        scale: if found < 0 { Err(ScaleReadError::Query("no".into())) } else { Ok(scale) },
        selection: PodSelection::Ours,
        pods: Vec::new(),
        samples: Vec::new(),
    };
    DecisionRecord {
        api_version: API_VERSION.into(),
        kind: "Decision".into(),
        metadata: DecisionMeta { name: format!("hpa.{name}"), namespace: namespace.into() },
        mode: DecisionMode::DryRun,
        first: last - SignedDuration::from_secs(60),
        last,
        times: 5,
        period: SignedDuration::from_secs(15),
        spec,
        decision: State::default().step(last, &seen),
        round: None,
    }
}

/// Everything that was recorded, and whoever listens.
struct FakeDecisionSource {
    records: Mutex<Vec<DecisionRecord>>,
    sender: broadcast::Sender<DecisionRecord>,
}

impl FakeDecisionSource {
    fn new(records: Vec<DecisionRecord>) -> Self {
        Self { records: Mutex::new(records), sender: broadcast::channel(16).0 }
    }

    fn add(&self, record: DecisionRecord) {
        self.records.lock().unwrap().push(record.clone());
        let _ = self.sender.send(record);
    }

    fn received(
        &self,
        takes: impl Fn(&DecisionRecord) -> bool + Send + 'static,
    ) -> BoxStream<'static, DecisionRecord> {
        let receiver = self.sender.subscribe();
        let next = |mut receiver: broadcast::Receiver<DecisionRecord>| async {
            Some((receiver.recv().await.ok()?, receiver))
        };
        futures::stream::unfold(receiver, next)
            .filter(move |record| futures::future::ready(takes(record)))
            .boxed()
    }
}

fn within(record: &DecisionMeta, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|namespace| record.namespace == namespace)
}

impl DecisionSource for FakeDecisionSource {
    fn latest(&self, namespace: Option<&str>) -> Vec<DecisionRecord> {
        let mut latest: Vec<DecisionRecord> = Vec::new();
        for record in self.records.lock().unwrap().iter().rev() {
            let known = latest.iter().any(|known| known.metadata == record.metadata);
            if !known && within(&record.metadata, namespace) {
                latest.push(record.clone());
            }
        }
        latest.reverse();
        latest
    }

    fn of(&self, namespace: &str, name: &str) -> Option<Vec<DecisionRecord>> {
        let meta = DecisionMeta { name: name.into(), namespace: namespace.into() };
        let records = self.records.lock().unwrap();
        let own: Vec<_> = records.iter().filter(|record| record.metadata == meta).cloned().collect();
        (!own.is_empty()).then_some(own)
    }

    fn passes(&self, query: &PassQuery) -> Result<PassList, UnknownCursor> {
        if query.after.as_deref().is_some_and(|after| after != "known") {
            return Err(UnknownCursor);
        }
        let records = self.records.lock().unwrap();
        let wanted = |record: &&DecisionRecord| {
            within(&record.metadata, query.namespace.as_deref())
                && query.since.is_none_or(|since| record.last >= since)
        };
        let items = records.iter().filter(wanted).map(PassItem::of);
        let items = items.take(query.limit.unwrap_or(usize::MAX)).collect();
        let metadata = PassListMeta { cursor: "known".into(), remaining: false, lost: false };
        Ok(PassList { metadata, items, ..PassList::default() })
    }

    fn follow(&self, namespace: &str, name: &str) -> Option<BoxStream<'static, DecisionRecord>> {
        self.of(namespace, name)?;
        let meta = DecisionMeta { name: name.into(), namespace: namespace.into() };
        Some(self.received(move |record| record.metadata == meta))
    }

    fn follow_all(&self, namespace: Option<&str>) -> Option<BoxStream<'static, DecisionRecord>> {
        let namespace = namespace.map(str::to_owned);
        Some(self.received(move |record| within(&record.metadata, namespace.as_deref())))
    }

    fn differences(&self, namespace: Option<&str>) -> DifferenceList {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let one = |namespace: &str| DifferenceRecord {
            api_version: API_VERSION.into(),
            kind: "Difference".into(),
            metadata: DecisionMeta { name: "hpa.web".into(), namespace: namespace.into() },
            since: at,
            last: at,
            over: false,
            field: "desiredReplicas".into(),
            theirs: "3".into(),
            ours: "4".into(),
            why: "cpu 76 % of 50 %".into(),
        };
        let mut items = vec![one("a"), one("b")];
        items.retain(|record| within(&record.metadata, namespace));
        DifferenceList { autoscalers: 7, compared: 100, since: Some(at), items, ..DifferenceList::default() }
    }
}

fn source() -> FakeDecisionSource {
    FakeDecisionSource::new(vec![
        record("a", "web", 0, 12),
        record("a", "api", 5, 0),
        record("a", "web", 15, 10),
        record("b", "web", 10, -1),
    ])
}

fn call(method: &str, uri: &str, accept: &str) -> AuthorizedRequest {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let (method, query) = (method.parse().unwrap(), Query::parse(query));
    let path = format!("/apis/{GROUP}/{VERSION}{path}");
    let wanted = RequestAttributes::of(&method, &path, &query);
    let mut headers = HeaderMap::new();
    if !accept.is_empty() {
        headers.insert(ACCEPT, accept.parse().unwrap());
    }
    // The end of the server would end the watch.
    let (running, stop) = tokio::sync::watch::channel(false);
    std::mem::forget(running);
    let streams = WatchStreams {
        permits: ClientPermits::new(2, PermitDivision::Undivided),
        user: String::new(),
        limit: Duration::from_hours(1),
        stop,
        activity: Activity::new(),
    };
    AuthorizedRequest {
        method,
        path,
        query,
        headers,
        user: User::anonymous(),
        wanted,
        streams,
        clock: Clock::default(),
    }
}

async fn get(source: &FakeDecisionSource, uri: &str, accept: &str) -> (u16, Value) {
    let response =
        answer(GROUP, source, &call("GET", uri, accept)).unwrap_or_else(|error| response::status(&error));
    let code = response.status().as_u16();
    (code, serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap())
}

fn names(list: &Value) -> Vec<String> {
    let name = |item: &Value| {
        let meta = &item["metadata"];
        format!("{}/{}", meta["namespace"].as_str().unwrap(), meta["name"].as_str().unwrap())
    };
    list["items"].as_array().unwrap().iter().map(name).collect()
}

#[tokio::test]
async fn lists_decode_as_their_types() {
    let source = source();
    let (code, list) = get(&source, "/decisions", "").await;
    assert_eq!((code, names(&list)), (200, vec!["a/hpa.api".into(), "a/hpa.web".into(), "b/hpa.web".into()]));
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("DecisionList"), &json!(API_VERSION)));
    assert_eq!(list["metadata"]["resourceVersion"], "1800000015000000");
    let list: DecisionList = serde_json::from_value(list).unwrap();
    assert_eq!(list.items[1].decision.desired, 10);
    assert_eq!(names(&get(&source, "/namespaces/b/decisions/", "").await.1), ["b/hpa.web"]);
    assert_eq!(names(&get(&source, "/namespaces/none/decisions", "").await.1), Vec::<String>::new());
    let (_, one) = get(&source, "/namespaces/a/decisions/hpa.web", "application/json, */*").await;
    assert_eq!(one["items"][0]["last"], "2027-01-15T08:00:00Z");
    assert_eq!(names(&one).len(), 2);
    let selected = "/decisions?fieldSelector=metadata.name%3Dhpa.web,metadata.namespace!%3Da";
    assert_eq!(names(&get(&source, selected, "").await.1), ["b/hpa.web"]);
    assert_eq!(names(&get(&source, "/decisions?labelSelector=app%3Dweb", "").await.1).len(), 0);
    assert_eq!(names(&get(&source, "/decisions?labelSelector=!app", "").await.1).len(), 3);
}

#[tokio::test]
async fn pass_of_a_time_and_passes_of_a_span() {
    let source = source();
    let last = async |query: &str| {
        let (_, list) = get(&source, &format!("/namespaces/a/decisions/hpa.web?{query}"), "").await;
        list["items"].as_array().unwrap().iter().map(|item| item["last"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(last("at=2027-01-15T07:59:14.999Z").await, [json!("2027-01-15T08:00:00Z")]);
    assert_eq!(last("at=2027-01-15T08:59:15%2B01:00").await, [json!("2027-01-15T08:00:15Z")]);
    assert_eq!(last("at=2020-01-01T00:00:00Z").await, [json!("2027-01-15T08:00:00Z")], "the oldest");
    assert_eq!(last("since=2027-01-15T08:00:01Z").await, [json!("2027-01-15T08:00:15Z")]);
    assert_eq!(last("until=2027-01-15T07:59:10Z").await, [json!("2027-01-15T08:00:00Z")]);
    let (code, status) = get(&source, "/namespaces/a/decisions/hpa.web?at=noon", "").await;
    assert_eq!(code, 400);
    assert!(status["message"].as_str().unwrap().contains("RFC 3339"), "{status}");
    assert_eq!(get(&source, "/namespaces/a/decisions/hpa.x?at=2027-01-15T08:00:14Z", "").await.0, 404);
}

#[tokio::test]
async fn passes_have_a_cursor() {
    let source = source();
    let names = |list: &Value| {
        let name = |item: &Value| {
            format!("{}/{}", item["namespace"].as_str().unwrap(), item["name"].as_str().unwrap())
        };
        list["items"].as_array().unwrap().iter().map(name).collect::<Vec<_>>()
    };
    let (code, list) = get(&source, "/passes", "").await;
    assert_eq!((code, names(&list).len()), (200, 4));
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("PassList"), &json!(API_VERSION)));
    assert_eq!(list["metadata"], json!({"cursor": "known", "remaining": false, "lost": false}));
    let (_, list) =
        get(&source, "/namespaces/a/passes?fieldSelector=metadata.name%3Dhpa.web&after=known", "").await;
    assert_eq!(names(&list), ["a/hpa.web", "a/hpa.web"]);
    let (_, list) = get(&source, "/passes?since=2027-01-15T08:00:10Z&limit=1", "").await;
    assert_eq!(names(&list), ["a/hpa.web"]);
    let (_, table) = get(&source, "/namespaces/b/passes", TABLE).await;
    assert_eq!(table["rows"][0]["cells"][2], "<unknown>", "{table}");
    let (code, status) = get(&source, "/passes?after=other", "").await;
    assert_eq!((code, &status["reason"]), (410, &json!("Gone")));
    for (path, code) in
        [("/passes?limit=x", 400), ("/passes?since=x", 400), ("/passes?watch=1", 405), ("/passes/x", 404)]
    {
        assert_eq!(get(&source, path, "").await.0, code, "{path}");
    }
}

#[tokio::test]
async fn long_lists_are_sent_in_chunks() {
    let one = record("a", "web", 0, 12);
    let records = (0..10_000).map(|_| one.clone()).collect();
    let mut body = list::decisions(GROUP, records, ResponseForm::Json, Clock::default().now()).into_body();
    let (mut largest, mut all) = (0, Vec::new());
    while let Some(frame) = body.frame().await {
        let piece = frame.unwrap().into_data().unwrap();
        largest = largest.max(piece.len());
        all.extend_from_slice(&piece);
    }
    assert!(largest < 100_000, "{largest}");
    assert_eq!(serde_json::from_slice::<DecisionList>(&all).unwrap().items.len(), 10_000);
}

#[tokio::test]
async fn tables_are_for_people() {
    let source = source();
    let (_, table) = get(&source, "/namespaces/a/decisions", TABLE).await;
    let columns = table["columnDefinitions"].as_array().unwrap().iter().map(|column| column["name"].clone());
    assert_eq!(
        json!(columns.collect::<Vec<_>>()),
        json!(["Name", "Replicas", "Wanted", "Last", "Times", "Mode", "Why"])
    );
    let cells = &table["rows"][0]["cells"];
    assert_eq!(cells[0], "hpa.api");
    assert_eq!(
        (&cells[1], &cells[2], &cells[4], &cells[5]),
        (&json!("0"), &json!("0"), &json!(5), &json!("dry-run"))
    );
    assert_eq!(cells[6], "paused: the target was scaled to zero");
    assert_eq!(table["rows"][0]["object"]["metadata"]["namespace"], "a");
    // What is not known is not zero.
    let (_, table) = get(&source, "/namespaces/b/decisions?includeObject=None", TABLE).await;
    assert_eq!(table["rows"][0]["cells"][1], "<unknown>");
    assert_eq!(table["rows"][0]["cells"][2], "<unknown>");
    assert_eq!(table["rows"][0].get("object"), None);
    let (_, table) = get(&source, "/decisions?includeObject=Object", TABLE).await;
    assert_eq!(table["rows"][0]["object"]["kind"], "Decision");
    assert_eq!(get(&source, "/decisions?includeObject=x", TABLE).await.0, 400);
    let (_, table) = get(&source, "/namespaces/a/decisions/hpa.web", TABLE).await;
    assert_eq!(table["rows"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn differences_come_with_their_counts() {
    let source = source();
    let (_, list) = get(&source, "/namespaces/b/differences", "").await;
    assert_eq!(
        (&list["autoscalers"], &list["compared"], &list["kind"]),
        (&json!(7), &json!(100), &json!("DifferenceList"))
    );
    assert_eq!(names(&list), ["b/hpa.web"]);
    serde_json::from_value::<DifferenceList>(list).unwrap();
    let (_, table) = get(&source, "/differences", TABLE).await;
    assert_eq!(table["rows"].as_array().unwrap().len(), 2);
    assert_eq!(table["rows"][0]["cells"][1], "desiredReplicas");
    assert_eq!(get(&source, "/differences?watch=true", "").await.0, 405);
}

#[tokio::test]
async fn missing_objects_have_the_status_of_kubernetes() {
    let source = source();
    let message = async |uri: &str, accept: &str| {
        let (code, status) = get(&source, uri, accept).await;
        (code, status["message"].as_str().unwrap().to_owned())
    };
    let missing = "decisions.decisions.plimsoll.dev \"hpa.x\" not found".to_owned();
    assert_eq!(message("/namespaces/a/decisions/hpa.x", "").await, (404, missing.clone()));
    assert_eq!(message("/namespaces/a/decisions/hpa.x?watch=1", "").await, (404, missing));
    for path in [
        "/nothing",
        "/decisions/hpa.web",
        "/namespaces/a",
        "/namespaces//decisions",
        "/namespaces/a/decisions/x/y",
        "/namespaces/a/differences/x",
    ] {
        assert_eq!(get(&source, path, "").await.0, 404, "{path}");
    }
    assert_eq!(get(&source, "/decisions", "application/yaml").await.0, 406);
    assert_eq!(get(&source, "/decisions", "application/json;as=Table;v=v9;g=meta.k8s.io").await.0, 406);
    assert_eq!(get(&source, "/decisions?fieldSelector=spec.x%3D1", "").await.0, 400);
    assert_eq!(get(&source, "/decisions?labelSelector=%3D%3D", "").await.0, 400);
    assert_eq!(get(&source, "/namespaces/a/decisions/hpa.web?watch=true&resourceVersion=x", "").await.0, 400);
    for method in ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] {
        let error = answer(GROUP, &source, &call(method, "/namespaces/a/decisions", "")).unwrap_err();
        assert_eq!((error.code, &*error.reason), (405, "MethodNotAllowed"), "{method}");
    }
}

/// Reads events of a watch, a line each.
struct Lines(Body);

impl Lines {
    fn of(source: &FakeDecisionSource, uri: &str, accept: &str) -> Self {
        Self(answer(GROUP, source, &call("GET", uri, accept)).unwrap().into_body())
    }

    async fn next(&mut self) -> Value {
        let frame = tokio::time::timeout(Duration::from_secs(5), self.0.frame()).await.unwrap();
        let line = frame.unwrap().unwrap().into_data().unwrap();
        assert!(line.ends_with(b"\n") && !line[..line.len() - 1].contains(&b'\n'));
        serde_json::from_slice(&line).unwrap()
    }

    async fn last(&mut self) -> String {
        let event = self.next().await;
        format!("{} {}", event["type"].as_str().unwrap(), event["object"]["last"].as_str().unwrap())
    }
}

#[tokio::test]
async fn watch_of_one_object_begins_with_its_stored_records() {
    let source = source();
    let mut lines = Lines::of(&source, "/namespaces/a/decisions/hpa.web?watch=true", "");
    assert_eq!(lines.last().await, "ADDED 2027-01-15T08:00:00Z");
    assert_eq!(lines.last().await, "ADDED 2027-01-15T08:00:15Z");
    source.add(record("a", "api", 30, 3));
    source.add(record("a", "web", 15, 3));
    source.add(record("a", "web", 31, 3));
    assert_eq!(lines.last().await, "ADDED 2027-01-15T08:00:31Z");
    // Whoever has something already gets what follows.
    let mut lines =
        Lines::of(&source, "/namespaces/a/decisions/hpa.web?watch=true&resourceVersion=1800000015000000", "");
    assert_eq!(lines.last().await, "ADDED 2027-01-15T08:00:31Z");
}

#[tokio::test]
async fn kubectl_follows_with_a_selector_and_tables() {
    let source = source();
    let uri = "/namespaces/a/decisions?fieldSelector=metadata.name%3Dhpa.web&resourceVersion=0&watch=true";
    let mut lines = Lines::of(&source, uri, TABLE);
    let event = lines.next().await;
    assert_eq!((&event["type"], &event["object"]["kind"]), (&json!("ADDED"), &json!("Table")));
    assert_eq!(event["object"]["metadata"]["resourceVersion"], "1800000015000000");
    assert_eq!(event["object"]["rows"][0]["object"]["metadata"]["name"], "hpa.web");
    let mut lines = Lines::of(&source, &uri.replace("&resourceVersion=0", ""), "");
    assert_eq!(lines.last().await, "ADDED 2027-01-15T08:00:00Z");
    assert_eq!(lines.last().await, "ADDED 2027-01-15T08:00:15Z");
    let mut all = Lines::of(&source, "/decisions?watch=true&resourceVersion=1800000010000000", "");
    assert_eq!(all.last().await, "ADDED 2027-01-15T08:00:15Z");
    source.add(record("b", "new", 40, 3));
    assert_eq!(all.last().await, "MODIFIED 2027-01-15T08:00:40Z");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_in_time_and_there_are_not_too_many() {
    let source = source();
    let call = call("GET", "/namespaces/b/decisions/hpa.web?watch=true&timeoutSeconds=7", "");
    let start = tokio::time::Instant::now();
    let first = answer(GROUP, &source, &call).unwrap();
    let _second = answer(GROUP, &source, &call).unwrap();
    assert_eq!(answer(GROUP, &source, &call).unwrap_err().code, 429);
    first.into_body().collect().await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(7));
    // Its place is free again.
    tokio::task::yield_now().await;
    assert!(answer(GROUP, &source, &call).is_ok());
}
