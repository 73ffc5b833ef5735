//! Watches: every change once and in order, from any resource version.

use http::Method;
use serde_json::{Value, json};
use testbed::cases;
use testbed::harness::{Case, Patch, Session};

use crate::objects::*;
use crate::widgets;

pub(crate) const CASES: &[Case] = cases![
    begins_with_what_is_there,
    begins_with_what_is_there_at_zero,
    begins_after_a_list,
    resumes_after_an_event,
    resumes_in_the_middle,
    of_one_object,
    ends_by_itself,
    by_label_what_stops_matching_is_deleted,
    by_label_what_never_matched_is_not_told,
    by_field,
    a_deletion_shows_the_last_state,
    a_finalizer_is_a_change,
    no_change_no_event,
    of_another_version,
    as_a_table,
    only_metadata,
    a_stream_of_the_list,
    a_stream_needs_its_parameters,
    over_all_namespaces,
    a_version_of_nonsense,
    a_version_that_is_too_old,
    limits_of_time_are_numbers,
    with_the_old_path,
    of_what_is_not_there,
    subresources_are_changes,
];

async fn send_unrecorded(s: &Session, object: Value) -> String {
    s.request(Method::POST, CONFIG_MAPS).json(object).send_unrecorded().await.version()
}

/// The selector of the case's ConfigMaps, because others, such as that with the cluster's certificate, are created by controllers.
const CASE_SELECTOR: &str = "labelSelector=mine%3Dyes";

fn mine(name: &str) -> Value {
    labelled(name, &json!({"mine": "yes"}))
}

async fn begins_with_what_is_there(s: Session) {
    send_unrecorded(&s, mine("a")).await;
    let mut watch = s.watch(&format!("{CONFIG_MAPS}?watch=1&{CASE_SELECTOR}")).await;
    watch.next().await;
    send_unrecorded(&s, mine("b")).await;
    watch.next().await;
}

async fn begins_with_what_is_there_at_zero(s: Session) {
    send_unrecorded(&s, mine("a")).await;
    s.wait(&format!("{CONFIG_MAPS}?resourceVersion=0&{CASE_SELECTOR}"), |response| {
        response.body["items"][0].is_object()
    })
    .await;
    let mut watch = s.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion=0&{CASE_SELECTOR}")).await;
    watch.next().await;
    send_unrecorded(&s, mine("b")).await;
    watch.next().await;
}

async fn begins_after_a_list(s: Session) {
    send_unrecorded(&s, mine("a")).await;
    let list = s.get(&format!("{CONFIG_MAPS}?{CASE_SELECTOR}")).await.version();
    send_unrecorded(&s, mine("b")).await;
    let mut watch = s.watch_from(&format!("{CONFIG_MAPS}?watch=1&{CASE_SELECTOR}"), &list).await;
    watch.next().await;
    s.patch(&at(CONFIG_MAPS, "a"), Patch::Merge, json!({"data": {"x": "1"}})).await;
    watch.next().await;
    s.delete(&at(CONFIG_MAPS, "a")).await;
    watch.next().await;
}

async fn resumes_after_an_event(s: Session) {
    let list = s.get(LEASES).await.version();
    for name in ["a", "b", "c", "d"] {
        s.request(Method::POST, LEASES).json(lease(name)).send_unrecorded().await;
    }
    let mut watch = s.watch_from(&format!("{LEASES}?watch=1"), &list).await;
    let seen = watch.take(2).await;
    drop(watch);
    let last = seen
        .last()
        .unwrap()
        .pointer("/object/metadata/resourceVersion")
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned();
    let mut watch = s.watch_from(&format!("{LEASES}?watch=1"), &last).await;
    watch.take(2).await;
}

async fn resumes_in_the_middle(s: Session) {
    let path = at(LEASES, "a");
    let first = s.post(LEASES, lease("a")).await.version();
    s.patch(&path, Patch::Merge, json!({"spec": {"leaseTransitions": 1}})).await;
    s.patch(&path, Patch::Merge, json!({"spec": {"leaseTransitions": 2}})).await;
    s.delete(&path).await;
    s.post(LEASES, lease("a")).await;
    let mut watch = s.watch_from(&format!("{LEASES}?watch=1"), &first).await;
    watch.take(4).await;
}

async fn of_one_object(s: Session) {
    let first = s.post(LEASES, lease("a")).await.version();
    let mut watch = s.watch_from(&format!("{LEASES}?watch=1&fieldSelector=metadata.name%3Da"), &first).await;
    s.post(LEASES, lease("b")).await;
    s.delete(&at(LEASES, "a")).await;
    watch.next().await;
}

async fn ends_by_itself(s: Session) {
    s.post(LEASES, lease("a")).await;
    let mut watch = s.watch(&format!("{LEASES}?watch=1&timeoutSeconds=1")).await;
    watch.rest().await;
}

async fn by_label_what_stops_matching_is_deleted(s: Session) {
    let first = send_unrecorded(&s, mine("a")).await;
    let mut watch = s.watch_from(&format!("{CONFIG_MAPS}?watch=1&{CASE_SELECTOR}"), &first).await;
    let path = at(CONFIG_MAPS, "a");
    s.patch(&path, Patch::Merge, json!({"data": {"x": "1"}})).await;
    s.patch(&path, Patch::Merge, json!({"metadata": {"labels": {"mine": "no"}}})).await;
    s.patch(&path, Patch::Merge, json!({"data": {"x": "2"}})).await;
    s.patch(&path, Patch::Merge, json!({"metadata": {"labels": {"mine": "yes"}}})).await;
    s.delete(&path).await;
    watch.take(4).await;
}

async fn by_label_what_never_matched_is_not_told(s: Session) {
    let first = send_unrecorded(&s, config_map("other")).await;
    let mut watch = s.watch_from(&format!("{CONFIG_MAPS}?watch=1&{CASE_SELECTOR}"), &first).await;
    s.patch(&at(CONFIG_MAPS, "other"), Patch::Merge, json!({"data": {"x": "1"}})).await;
    s.delete(&at(CONFIG_MAPS, "other")).await;
    send_unrecorded(&s, mine("a")).await;
    watch.next().await;
}

async fn by_field(s: Session) {
    let first = s.post(PODS, pod("a")).await.version();
    let mut watch =
        s.watch_from(&format!("{PODS}?watch=1&fieldSelector=status.phase%3DRunning"), &first).await;
    for phase in ["Running", "Succeeded"] {
        s.patch(&at(PODS, "a/status"), Patch::Merge, json!({"status": {"phase": phase}})).await;
    }
    watch.take(2).await;
}

async fn a_deletion_shows_the_last_state(s: Session) {
    let mut object = s.post(LEASES, lease("a")).await;
    object.body["spec"]["holderIdentity"] = json!("you");
    let version = s.put(&at(LEASES, "a"), &object.body).await.version();
    s.delete(&at(LEASES, "a")).await;
    let mut watch = s.watch_from(&format!("{LEASES}?watch=1"), &version).await;
    watch.next().await;
}

async fn a_finalizer_is_a_change(s: Session) {
    let mut object = lease("a");
    object["metadata"]["finalizers"] = json!(["example.com/a"]);
    let first = s.post(LEASES, object).await.version();
    s.delete(&at(LEASES, "a")).await;
    s.patch(&at(LEASES, "a"), Patch::Merge, json!({"metadata": {"finalizers": null}})).await;
    let mut watch = s.watch_from(&format!("{LEASES}?watch=1"), &first).await;
    watch.take(2).await;
}

async fn no_change_no_event(s: Session) {
    let first = s.post(LEASES, lease("a")).await.version();
    s.patch(&at(LEASES, "a"), Patch::Merge, json!({})).await;
    s.post(LEASES, lease("b")).await;
    let mut watch = s.watch_from(&format!("{LEASES}?watch=1"), &first).await;
    watch.next().await;
}

async fn of_another_version(s: Session) {
    let list = s.get(HPAS).await.version();
    let mut watch = s.watch_from(&format!("{HPAS_V1}?watch=1"), &list).await;
    s.post(HPAS, hpa("a")).await;
    watch.next().await;
}

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

async fn as_a_table(s: Session) {
    s.post(LEASES, lease("a")).await;
    let mut watch =
        s.request(Method::GET, &format!("{LEASES}?watch=1")).header("accept", TABLE).watch().await;
    watch.next().await;
    s.delete(&at(LEASES, "a")).await;
    watch.next().await;
}

async fn only_metadata(s: Session) {
    s.post(LEASES, lease("a")).await;
    let mut watch =
        s.request(Method::GET, &format!("{LEASES}?watch=1")).header("accept", METADATA).watch().await;
    watch.next().await;
    s.delete(&at(LEASES, "a")).await;
    watch.next().await;
}

const STREAM: &str =
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

async fn a_stream_of_the_list(s: Session) {
    s.post(LEASES, lease("a")).await;
    let mut watch = s.watch(&format!("{LEASES}?{STREAM}")).await;
    watch.take(2).await;
    s.post(LEASES, lease("b")).await;
    watch.next().await;
}

async fn a_stream_needs_its_parameters(s: Session) {
    s.watch(&format!("{LEASES}?watch=1&sendInitialEvents=true")).await;
    s.watch(&format!("{LEASES}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true")).await;
    s.watch(&format!("{LEASES}?watch=1&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1"))
        .await;
    s.watch(&format!("{LEASES}?watch=1&resourceVersionMatch=NotOlderThan")).await;
    s.get(&format!("{LEASES}?sendInitialEvents=true")).await;
}

async fn over_all_namespaces(s: Session) {
    send_unrecorded(&s, labelled("a", &json!({"of": "{ns}"}))).await;
    let mut watch = s.watch("/api/v1/configmaps?watch=1&labelSelector=of%3D{ns}").await;
    watch.next().await;
}

async fn a_version_of_nonsense(s: Session) {
    s.watch(&format!("{LEASES}?watch=1&resourceVersion=abc")).await;
    s.watch(&format!("{LEASES}?watch=1&resourceVersion=-1")).await;
}

async fn a_version_that_is_too_old(s: Session) {
    // The resource version is older than the kind.
    let widgets = widgets::define(&s, &widgets::definition()).await;
    let mut watch = s.watch(&format!("{widgets}?watch=1&resourceVersion=1")).await;
    watch.rest().await;
}

async fn limits_of_time_are_numbers(s: Session) {
    s.watch(&format!("{LEASES}?watch=1&timeoutSeconds=soon")).await;
    s.watch(&format!("{LEASES}?watch=perhaps")).await;
}

async fn with_the_old_path(s: Session) {
    s.post(LEASES, lease("a")).await;
    let mut watch = s.watch("/apis/coordination.k8s.io/v1/watch/namespaces/{ns}/leases").await;
    watch.next().await;
    let mut watch = s.watch("/apis/coordination.k8s.io/v1/watch/namespaces/{ns}/leases/a").await;
    watch.next().await;
}

async fn of_what_is_not_there(s: Session) {
    s.watch("/api/v1/namespaces/{ns}/dreams?watch=1").await;
    let mut watch = s.watch("/api/v1/namespaces/{ns}-absent/configmaps?watch=1&timeoutSeconds=1").await;
    watch.rest().await;
}

async fn subresources_are_changes(s: Session) {
    let first = s.post(DEPLOYMENTS, deployment("a")).await.version();
    s.patch(&at(DEPLOYMENTS, "a/scale"), Patch::Merge, json!({"spec": {"replicas": 5}})).await;
    s.patch(&at(DEPLOYMENTS, "a/status"), Patch::Merge, json!({"status": {"replicas": 1}})).await;
    let mut watch = s.watch_from(&format!("{DEPLOYMENTS}?watch=1"), &first).await;
    watch.take(2).await;
}
