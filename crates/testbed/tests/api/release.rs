//! Changes of Kubernetes 1.37. The cases run only on that release: `PLIMSOLL_KUBERNETES=1.37.1`.

use serde_json::{Value, json};
use testbed::cases;
use testbed::harness::{Case, Patch, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    generation_starts_at_one,
    generation_counts_changes_of_the_spec,
    generation_counts_writes_of_v1,
    generation_counts_a_deletion_that_waits,
    generation_of_a_client_is_ignored,
    conditions_have_a_generation,
    negative_generation_of_a_condition,
    zero_replicas,
    order_of_errors,
    owners_without_fields,
    scale_metadata_is_ignored,
];

fn with(field: &str, value: Value) -> Value {
    let mut object = hpa("a");
    object["spec"][field] = value;
    object
}

async fn generation_starts_at_one(s: Session) {
    let mut object = hpa("a");
    object["metadata"]["generation"] = json!(7);
    s.post(HPAS, object).await;
    s.post(HPAS_V1, hpa_v1("b")).await;
    s.get(&at(HPAS, "b")).await;
}

async fn generation_counts_changes_of_the_spec(s: Session) {
    let path = at(HPAS, "a");
    s.post(HPAS, hpa("a")).await;
    s.patch(&path, Patch::Merge, json!({"spec": {"maxReplicas": 9}})).await;
    s.patch(&path, Patch::Merge, json!({"spec": {"maxReplicas": 9}})).await;
    s.patch(&path, Patch::Merge, json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}))
        .await;
    s.patch(&at(HPAS, "a/status"), Patch::Merge, json!({"status": {"currentReplicas": 2}})).await;
    let tolerance = |text: &str| json!({"spec": {"behavior": {"scaleUp": {"tolerance": text}}}});
    s.patch(&path, Patch::Merge, tolerance("100m")).await;
    s.patch(&path, Patch::Merge, tolerance("0.1")).await;
}

async fn generation_counts_writes_of_v1(s: Session) {
    s.post(HPAS, hpa("a")).await;
    s.patch(&at(HPAS_V1, "a"), Patch::Merge, json!({"metadata": {"labels": {"a": "b"}}})).await;
    s.patch(&at(HPAS_V1, "a"), Patch::Merge, json!({"spec": {"maxReplicas": 9}})).await;
    s.get(&at(HPAS, "a")).await;
}

async fn generation_counts_a_deletion_that_waits(s: Session) {
    let mut object = hpa("a");
    object["metadata"]["finalizers"] = json!(["example.org/hold"]);
    s.post(HPAS, object).await;
    s.delete(&at(HPAS, "a")).await;
    s.get(&at(HPAS, "a")).await;
    s.patch(&at(HPAS, "a"), Patch::Merge, json!({"metadata": {"finalizers": null}})).await;
}

async fn generation_of_a_client_is_ignored(s: Session) {
    s.post(HPAS, hpa("a")).await;
    s.patch(&at(HPAS, "a"), Patch::Merge, json!({"metadata": {"generation": 9}})).await;
    s.patch(&at(HPAS, "a/status"), Patch::Merge, json!({"metadata": {"generation": 9}})).await;
}

fn conditions(generation: &Value) -> Value {
    json!({"status": {"conditions": [{
        "type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale",
        "lastTransitionTime": "2001-02-03T04:05:06Z", "observedGeneration": generation,
    }]}})
}

async fn conditions_have_a_generation(s: Session) {
    s.post(HPAS, hpa("a")).await;
    for generation in [json!(3), json!(0), json!(null)] {
        s.patch(&at(HPAS, "a/status"), Patch::Merge, conditions(&generation)).await;
        s.get(&at(HPAS_V1, "a")).await;
    }
}

async fn negative_generation_of_a_condition(s: Session) {
    s.post(HPAS, hpa("a")).await;
    let mut status = conditions(&json!(-1));
    status["status"]["currentReplicas"] = json!(-2);
    s.patch(&at(HPAS, "a/status"), Patch::Merge, status).await;
}

async fn zero_replicas(s: Session) {
    s.post(HPAS, with("minReplicas", json!(0))).await;
    let mut object = with("minReplicas", json!(0));
    object["spec"]["metrics"] = json!([{"type": "External", "external": {
        "metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "1"}}}]);
    s.post(HPAS, object).await;
}

async fn order_of_errors(s: Session) {
    for (min, max) in [(1, -5), (-1, 0), (5, 3)] {
        let mut object = with("minReplicas", json!(min));
        object["spec"]["maxReplicas"] = json!(max);
        object["spec"]["scaleTargetRef"]["kind"] = json!("");
        s.post(HPAS, object).await;
    }
}

async fn owners_without_fields(s: Session) {
    for owner in [json!({}), json!({"apiVersion": "a/b/c", "kind": "Node", "name": "n", "uid": "u"})] {
        let mut object = config_map("a");
        object["metadata"]["ownerReferences"] = json!([owner]);
        s.post(CONFIG_MAPS, object).await;
    }
}

async fn scale_metadata_is_ignored(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    let mut scale = s.get(&at(DEPLOYMENTS, "a/scale")).await.body;
    scale["spec"]["replicas"] = json!(4);
    scale["metadata"]["labels"] = json!({"not a label": "x"});
    scale["metadata"]["finalizers"] = json!(["not a finalizer"]);
    s.put(&at(DEPLOYMENTS, "a/scale"), scale).await;
}
