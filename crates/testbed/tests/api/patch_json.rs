//! JSON patches (RFC 6902).

use serde_json::{Value, json};
use testbed::cases;
use testbed::harness::{ApiResponse, Case, Patch, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    adds_replaces_and_removes,
    moves_copies_and_tests,
    lists,
    a_test_that_fails,
    a_path_that_is_not,
    an_operation_that_is_not,
    not_a_patch,
    an_invalid_result,
    the_version_can_be_tested,
    the_name_cannot_change,
    nothing_changes,
    of_what_is_not_there,
];

async fn patch(s: &Session, operations: Value) -> ApiResponse {
    s.patch(&at(CONFIG_MAPS, "a"), Patch::Json, operations).await
}

async fn adds_replaces_and_removes(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    patch(&s, json!([{"op": "add", "path": "/data/b", "value": "2"}])).await;
    patch(&s, json!([{"op": "replace", "path": "/data/a", "value": "0"}])).await;
    patch(&s, json!([{"op": "remove", "path": "/data/a"}])).await;
    patch(&s, json!([{"op": "add", "path": "/metadata/labels", "value": {"x/y": "1"}}])).await;
    patch(&s, json!([{"op": "replace", "path": "/metadata/labels/x~1y", "value": "2"}])).await;
}

async fn moves_copies_and_tests(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    patch(&s, json!([{"op": "copy", "from": "/data/a", "path": "/data/b"}])).await;
    patch(&s, json!([{"op": "move", "from": "/data/a", "path": "/data/c"}])).await;
    patch(&s, json!([{"op": "test", "path": "/data/c", "value": "1"}, {"op": "add", "path": "/data/d", "value": "4"}])).await;
}

async fn lists(s: Session) {
    s.post(SERVICES, service("a")).await;
    let path = at(SERVICES, "a");
    let named = json!([{"op": "replace", "path": "/spec/ports/0", "value": {"name": "a", "port": 80}},
        {"op": "add", "path": "/spec/ports/-", "value": {"name": "c", "port": 82}},
        {"op": "add", "path": "/spec/ports/1", "value": {"name": "b", "port": 81}}]);
    s.patch(&path, Patch::Json, named).await;
    s.patch(&path, Patch::Json, json!([{"op": "remove", "path": "/spec/ports/0"}])).await;
    s.patch(&path, Patch::Json, json!([{"op": "remove", "path": "/spec/ports/9"}])).await;
    s.patch(&path, Patch::Json, json!([{"op": "add", "path": "/spec/ports/9", "value": {}}])).await;
}

async fn a_test_that_fails(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    patch(&s, json!([{"op": "add", "path": "/data/b", "value": "2"}, {"op": "test", "path": "/data/a", "value": "9"}])).await;
    s.get(&at(CONFIG_MAPS, "a")).await;
}

async fn a_path_that_is_not(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    patch(&s, json!([{"op": "remove", "path": "/data/absent"}])).await;
    patch(&s, json!([{"op": "replace", "path": "/data/absent", "value": "1"}])).await;
    patch(&s, json!([{"op": "add", "path": "/absent/deeper", "value": "1"}])).await;
    patch(&s, json!([{"op": "test", "path": "/data/absent", "value": "1"}])).await;
    patch(&s, json!([{"op": "copy", "from": "/data/absent", "path": "/data/b"}])).await;
    patch(&s, json!([{"op": "move", "from": "/data/absent", "path": "/data/b"}])).await;
}

async fn an_operation_that_is_not(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    patch(&s, json!([{"op": "wish", "path": "/data/a"}])).await;
    patch(&s, json!([{"path": "/data/a"}])).await;
    patch(&s, json!([{"op": "add", "value": "1"}])).await;
}

async fn not_a_patch(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    patch(&s, json!({"data": {"b": "2"}})).await;
    s.patch(&at(CONFIG_MAPS, "a"), Patch::Json, "[{").await;
    s.patch(&at(CONFIG_MAPS, "a"), Patch::Json, "").await;
}

async fn an_invalid_result(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    patch(&s, json!([{"op": "add", "path": "/metadata/labels", "value": {"a b": "c"}}])).await;
    s.post(HPAS, hpa("a")).await;
    s.patch(&at(HPAS, "a"), Patch::Json, json!([{"op": "replace", "path": "/spec/maxReplicas", "value": 0}]))
        .await;
    s.patch(
        &at(HPAS, "a"),
        Patch::Json,
        json!([{"op": "replace", "path": "/spec/maxReplicas", "value": "x"}]),
    )
    .await;
}

async fn the_version_can_be_tested(s: Session) {
    let first = s.post(CONFIG_MAPS, config_map("a")).await;
    let operations = json!([{"op": "replace", "path": "/metadata/resourceVersion", "value": first.version()},
        {"op": "add", "path": "/data/b", "value": "2"}]);
    patch(&s, operations.clone()).await;
    patch(&s, operations).await;
    patch(&s, json!([{"op": "test", "path": "/metadata/uid", "value": first.uid()}])).await;
}

async fn the_name_cannot_change(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    patch(&s, json!([{"op": "replace", "path": "/metadata/name", "value": "b"}])).await;
    patch(
        &s,
        json!([{"op": "replace", "path": "/metadata/uid", "value": "11111111-2222-3333-4444-555555555555"}]),
    )
    .await;
}

async fn nothing_changes(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    patch(&s, json!([])).await;
    patch(&s, json!([{"op": "replace", "path": "/data/a", "value": "1"}])).await;
}

async fn of_what_is_not_there(s: Session) {
    patch(&s, json!([{"op": "add", "path": "/data/b", "value": "2"}])).await;
    s.patch(&at(DEPLOYMENTS, "a"), Patch::Merge, json!({})).await;
    s.patch(&at(DEPLOYMENTS, "a"), Patch::Strategic, json!({})).await;
}
