#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use localkube::{Cluster, Options};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::*;
use crate::request::tests::fake::{Fake, JSON, ReceivedRequest, Reply, TEXT};

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A resource as Kubernetes 1.36 lists it.
fn resource(plural: &str, group: &str, version: &str, kind: &str, scale: bool) -> Value {
    let mut resource = json!({"resource": plural, "scope": "Namespaced", "verbs": ["get"],
        "responseKind": {"group": group, "version": version, "kind": kind}});
    if scale {
        resource["subresources"] = json!([
            {"subresource": "status", "responseKind": {"group": group, "version": version, "kind": kind}},
            {"subresource": "scale", "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}},
        ]);
    }
    resource
}

fn version(name: &str, resources: &[Value]) -> Value {
    json!({"version": name, "freshness": "Current", "resources": resources})
}

fn groups(extra: &[Value]) -> Value {
    let widgets = |version: &str, scale| resource("widgets", "example.com", version, "Widget", scale);
    let mut items = vec![
        json!({"metadata": {"name": "apps"},
            "versions": [version("v1", &[resource("deployments", "apps", "v1", "Deployment", true)])]}),
        json!({"metadata": {"name": "example.com"}, "versions": [
            version("v1", &[widgets("v1", true)]),
            version("v1beta1", &[widgets("v1beta1", true)]),
            version("v2alpha1", &[widgets("v2alpha1", false), resource("news", "example.com", "v2alpha1", "News", false)]),
        ]}),
        // Nobody answers there.
        json!({"metadata": {"name": "down.example.org"}, "versions": [{"version": "v1", "freshness": "Stale"}]}),
    ];
    items.extend_from_slice(extra);
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items})
}

fn core() -> Value {
    let pods = resource("pods", "", "v1", "Pod", false);
    json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {}, "versions": [version("v1", &[pods])]}]})
}

fn one_document(request: &ReceivedRequest) -> Reply {
    let body = if request.line == "GET /api" { core() } else { groups(&[]) };
    assert!(request.headers["accept"].to_str().unwrap().starts_with(V2));
    Reply::new(200, V2, &body.to_string())
}

fn shown(mappings: &[Resource]) -> Vec<String> {
    mappings.iter().map(|r| format!("{} {}", r.api_version(), r.plural)).collect()
}

#[tokio::test]
async fn kinds_are_found_by_group_and_kind() {
    let discovery = Discovery::new(Fake::new(one_document).client());
    for (group, kind, expected) in [
        ("apps", "Deployment", &["apps/v1 deployments"][..]),
        ("apps", "deployment", &["apps/v1 deployments"]),
        ("", "Pod", &["v1 pods"]),
        // Once per version, and each time in the preferred one.
        ("example.com", "Widget", &["example.com/v1 widgets"; 3]),
        ("example.com", "News", &["example.com/v2alpha1 news"]),
    ] {
        assert_eq!(shown(&discovery.mappings(group, kind).await.unwrap()), expected, "{group} {kind}");
    }
    for (group, kind) in [
        ("apps", "Deployments"),
        ("apps", "dEployment"),
        ("", "Deployment"),
        ("apps", "Scale"),
        ("down.example.org", "Foo"),
        ("nowhere", "Foo"),
    ] {
        let error = discovery.mappings(group, kind).await.unwrap_err().to_string();
        assert_eq!(error, format!("no matches for kind \"{kind}\" in group \"{group}\""));
    }
}

#[tokio::test]
async fn a_kind_is_found_in_the_named_version_only() {
    let discovery = Discovery::new(Fake::new(one_document).client());
    let found = async |group: &str, version: &str, kind: &str| {
        let found = discovery.mapping(group, version, kind).await.unwrap();
        found.map(|found| format!("{} {}", found.version, found.plural))
    };
    assert_eq!(found("example.com", "v1beta1", "Widget").await, Some("v1beta1 widgets".to_owned()));
    assert_eq!(found("example.com", "v2alpha1", "News").await, Some("v2alpha1 news".to_owned()));
    assert_eq!(found("example.com", "v1", "News").await, None, "that version does not have it");
    assert_eq!(found("example.com", "v3", "Widget").await, None);
    assert_eq!(found("example.com", "v1", "widget").await, None);
    assert_eq!(found("", "v1", "Pod").await, Some("v1 pods".to_owned()));
}

#[tokio::test]
async fn versions_and_scale_kinds_are_found() {
    let discovery = Discovery::new(Fake::new(one_document).client());
    assert_eq!(discovery.versions("example.com").await.unwrap(), ["v1", "v1beta1", "v2alpha1"]);
    // A group whose server is away is still a group.
    assert_eq!(discovery.versions("down.example.org").await.unwrap(), ["v1"]);
    assert!(discovery.versions("nowhere").await.unwrap().is_empty());
    let widget = discovery.mappings("example.com", "Widget").await.unwrap().remove(0);
    assert_eq!(discovery.scale_kind(&widget).await, ScaleKind::Served("autoscaling/v1".to_owned()));
    let news = discovery.mappings("example.com", "News").await.unwrap().remove(0);
    assert_eq!(discovery.scale_kind(&news).await, ScaleKind::Absent);
    assert_eq!((widget.group_resource().as_str(), widget.namespaced), ("widgets.example.com", true));
}

/// A server from before there was one document, with one API behind it that is away.
fn many_documents(request: &ReceivedRequest) -> Reply {
    let gv = |version: &str| json!({"groupVersion": format!("example.com/{version}"), "version": version});
    let body = match request.line.as_str() {
        "GET /api" => json!({"kind": "APIVersions", "versions": ["v1"]}),
        "GET /apis" => json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [
            {"name": "down.example.org", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}},
            {"name": "example.com", "versions": [gv("v1beta1"), gv("v1")], "preferredVersion": gv("v1")},
        ]}),
        "GET /api/v1" => json!({"kind": "APIResourceList", "resources": [
            {"name": "pods", "namespaced": true, "kind": "Pod"},
            {"name": "replicationcontrollers", "namespaced": true, "kind": "ReplicationController"},
            {"name": "replicationcontrollers/scale", "namespaced": true, "kind": "Scale",
                "group": "autoscaling", "version": "v1"},
        ]}),
        "GET /apis/example.com/v1" | "GET /apis/example.com/v1beta1" => json!({"resources": [
            {"name": "widgets", "namespaced": false, "kind": "Widget"},
        ]}),
        _ => return Reply::new(503, TEXT, "service unavailable"),
    };
    Reply::new(200, JSON, &body.to_string())
}

#[tokio::test]
async fn servers_without_aggregated_discovery_are_read_by_group() {
    let fake = Fake::new(many_documents);
    let discovery = Discovery::new(fake.client());
    let found = discovery.mappings("example.com", "Widget").await.unwrap();
    assert_eq!(shown(&found), ["example.com/v1 widgets"; 2]);
    assert!(!found[0].namespaced);
    assert_eq!(discovery.versions("example.com").await.unwrap(), ["v1", "v1beta1"]);
    assert_eq!(discovery.versions("down.example.org").await.unwrap(), ["v1"]);
    let controller = discovery.mappings("", "ReplicationController").await.unwrap().remove(0);
    assert_eq!(discovery.scale_kind(&controller).await, ScaleKind::Served("autoscaling/v1".to_owned()));
    assert_eq!(fake.lines().len() as u64, discovery.requests());
}

#[tokio::test(start_paused = true)]
async fn concurrent_callers_share_one_fetch_in_thirty_seconds() {
    let fake = Fake::new(|request| one_document(request).after(Duration::from_secs(1)));
    let discovery = Discovery::new(fake.client());
    for _ in 0..3 {
        let all = futures::future::join_all((0..50).map(|_| discovery.mappings("apps", "Deployment"))).await;
        assert!(all.iter().all(Result::is_ok));
        sleep(Duration::from_secs(10)).await;
    }
    assert_eq!(fake.lines(), ["GET /api", "GET /apis"]);
    sleep(Duration::from_secs(1)).await;
    discovery.mappings("apps", "Deployment").await.unwrap();
    assert_eq!(fake.lines(), ["GET /api", "GET /apis"]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_kind_is_fetched_again_unless_the_catalog_is_new() {
    let late = Arc::new(AtomicU32::new(0));
    let fake = {
        let late = Arc::clone(&late);
        Fake::new(move |request| {
            let new = json!({"metadata": {"name": "new.org"},
                "versions": [version("v1", &[resource("foos", "new.org", "v1", "Foo", true)])]});
            let there = late.load(Ordering::SeqCst) > 0;
            let body = groups(if there { std::slice::from_ref(&new) } else { &[] });
            if request.line == "GET /api" {
                one_document(request)
            } else {
                Reply::new(200, V2, &body.to_string())
            }
        })
    };
    let discovery = Discovery::new(fake.client());
    discovery.mappings("new.org", "Foo").await.unwrap_err();
    assert_eq!(fake.lines().len(), 2);
    late.store(1, Ordering::SeqCst);
    sleep(Duration::from_secs(4)).await;
    discovery.mappings("new.org", "Foo").await.unwrap_err();
    assert_eq!(fake.lines().len(), 0);
    sleep(Duration::from_secs(2)).await;
    discovery.mappings("new.org", "Foo").await.unwrap();
    assert_eq!(fake.lines().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn unchanged_documents_are_not_sent_again() {
    let fake = Fake::new(|request| match request.headers.get("if-none-match") {
        Some(tag) if tag == "\"a\"" => Reply::new(304, "", ""),
        _ => one_document(request).with("etag", "\"a\""),
    });
    let discovery = Discovery::new(fake.client());
    discovery.mappings("apps", "Deployment").await.unwrap();
    assert!(fake.taken().iter().all(|request| !request.headers.contains_key("if-none-match")));
    for _ in 0..2 {
        sleep(Duration::from_secs(31)).await;
        assert_eq!(shown(&discovery.mappings("apps", "Deployment").await.unwrap()), ["apps/v1 deployments"]);
        assert!(fake.taken().iter().all(|request| request.headers.contains_key("if-none-match")));
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_catalog_is_used_while_fetching_fails() {
    let away = Arc::new(AtomicU32::new(1));
    let fake = {
        let away = Arc::clone(&away);
        Fake::new(move |request| match away.load(Ordering::SeqCst) {
            0 => one_document(request),
            _ => Reply::new(500, TEXT, "boom"),
        })
    };
    let discovery = Discovery::new(fake.client());
    let error = discovery.mappings("apps", "Deployment").await.unwrap_err().to_string();
    assert_eq!(error, "an error on the server (\"boom\") has prevented the request from succeeding");
    away.store(0, Ordering::SeqCst);
    discovery.mappings("apps", "Deployment").await.unwrap();
    away.store(1, Ordering::SeqCst);
    fake.lines();
    sleep(Duration::from_mins(10)).await;
    for _ in 0..5 {
        discovery.mappings("apps", "Deployment").await.unwrap();
    }
    assert_eq!(fake.lines(), ["GET /api"]);
    sleep(Duration::from_secs(6)).await;
    discovery.mappings("apps", "Deployment").await.unwrap();
    assert_eq!(fake.lines(), ["GET /api"]);
}

#[tokio::test]
async fn discovery_of_localkube_finds_the_kinds_of_kubernetes() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let discovery = Discovery::new(cluster.client());
    let find = async |group, kind| shown(&discovery.mappings(group, kind).await.unwrap());
    assert_eq!(find("apps", "Deployment").await, ["apps/v1 deployments"]);
    assert_eq!(find("apps", "statefulset").await, ["apps/v1 statefulsets"]);
    assert_eq!(
        find("autoscaling", "HorizontalPodAutoscaler").await,
        ["autoscaling/v2 horizontalpodautoscalers"; 2]
    );
    assert_eq!(find("", "Namespace").await, ["v1 namespaces"]);
    let deployment = discovery.mappings("apps", "Deployment").await.unwrap().remove(0);
    assert_eq!(discovery.scale_kind(&deployment).await, ScaleKind::Served("autoscaling/v1".to_owned()));
    let hpa = discovery.mappings("autoscaling", "HorizontalPodAutoscaler").await.unwrap().remove(0);
    assert_eq!(discovery.scale_kind(&hpa).await, ScaleKind::Absent);
}
