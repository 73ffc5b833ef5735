//! Merge patches (RFC 7386).

use serde_json::json;
use testbed::cases;
use testbed::harness::{Case, Patch, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    sets_and_removes,
    lists_are_replaced,
    nulls_in_what_is_new,
    with_a_version,
    not_an_object,
    labels_of_each_kind,
    an_immutable_field,
    an_unknown_field,
    defaults_come_back,
    wrong_types,
];

async fn sets_and_removes(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    let path = at(CONFIG_MAPS, "a");
    s.patch(&path, Patch::Merge, json!({"data": {"b": "2"}, "metadata": {"labels": {"x": "y"}}})).await;
    s.patch(&path, Patch::Merge, json!({"data": {"a": null, "absent": null}})).await;
    s.patch(&path, Patch::Merge, json!({"metadata": {"labels": null}})).await;
    s.patch(&path, Patch::Merge, json!({})).await;
    s.patch(&path, Patch::Merge, json!({"data": null})).await;
}

async fn lists_are_replaced(s: Session) {
    s.post(SERVICES, service("a")).await;
    s.patch(&at(SERVICES, "a"), Patch::Merge, json!({"spec": {"ports": [{"name": "b", "port": 81}]}})).await;
}

async fn nulls_in_what_is_new(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    let path = at(CONFIG_MAPS, "a");
    s.patch(&path, Patch::Merge, json!({"metadata": {"annotations": {"a": "b", "c": null}}})).await;
}

async fn with_a_version(s: Session) {
    let first = s.post(CONFIG_MAPS, config_map("a")).await;
    let path = at(CONFIG_MAPS, "a");
    let patch = json!({"metadata": {"resourceVersion": first.version()}, "data": {"b": "2"}});
    s.patch(&path, Patch::Merge, &patch).await;
    s.patch(&path, Patch::Merge, &patch).await;
    s.patch(&path, Patch::Merge, json!({"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}})).await;
}

async fn not_an_object(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    let path = at(CONFIG_MAPS, "a");
    for text in ["[]", "7", "null", "\"x\"", "{", ""] {
        s.patch(&path, Patch::Merge, text).await;
    }
}

async fn labels_of_each_kind(s: Session) {
    for (collection, object) in one_of_each("a") {
        s.request(http::Method::POST, collection).json(object).send_unrecorded().await;
        s.patch(&at(collection, "a"), Patch::Merge, json!({"metadata": {"labels": {"x": "y"}}})).await;
    }
}

async fn an_immutable_field(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    let path = at(DEPLOYMENTS, "a");
    s.patch(&path, Patch::Merge, json!({"spec": {"selector": {"matchLabels": {"app": "b"}}}})).await;
    s.patch(&path, Patch::Merge, json!({"metadata": {"name": "b"}})).await;
    s.patch(&path, Patch::Merge, json!({"metadata": {"namespace": "elsewhere"}})).await;
}

async fn an_unknown_field(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    let path = at(CONFIG_MAPS, "a");
    s.patch(&path, Patch::Merge, json!({"spec": {"x": 1}, "data": {"b": "2"}})).await;
    s.patch(&format!("{path}?fieldValidation=Strict"), Patch::Merge, json!({"spec": {"x": 1}})).await;
    s.patch(&format!("{path}?fieldValidation=Warn"), Patch::Merge, json!({"spec": {"x": 1}})).await;
}

async fn defaults_come_back(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    let path = at(DEPLOYMENTS, "a");
    s.patch(&path, Patch::Merge, json!({"spec": {"replicas": null, "strategy": null}})).await;
    s.post(HPAS, hpa("a")).await;
    s.patch(&at(HPAS, "a"), Patch::Merge, json!({"spec": {"minReplicas": null, "metrics": null}})).await;
}

async fn wrong_types(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    let path = at(DEPLOYMENTS, "a");
    s.patch(&path, Patch::Merge, json!({"spec": {"replicas": "three"}})).await;
    s.patch(&path, Patch::Merge, json!({"spec": {"replicas": 1.5}})).await;
    s.patch(&path, Patch::Merge, json!({"spec": {"paused": "yes"}})).await;
    s.patch(&path, Patch::Merge, json!({"spec": {"template": []}})).await;
    s.patch(&path, Patch::Merge, json!({"metadata": {"labels": {"a": 1}}})).await;
}
