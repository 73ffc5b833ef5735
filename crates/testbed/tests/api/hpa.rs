//! HorizontalPodAutoscalers in two versions of the API.

use serde_json::{Value, json};
use testbed::cases;
use testbed::harness::{Case, Patch, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    v2_read_as_v1,
    v1_read_as_v2,
    defaults_of_v1,
    defaults_of_v2,
    defaults_of_behavior,
    other_metrics_are_annotations_of_v1,
    annotations_of_v1_are_metrics,
    behavior_survives_v1,
    conditions_are_annotations_of_v1,
    patched_in_one_version_read_in_the_other,
    removed_versions,
    bounds,
    targets,
    metrics_that_are_wrong,
    behavior_that_is_wrong,
    names_that_are_wrong,
    wrong_types,
    applied_in_both_versions,
    lists_in_both_versions,
    as_kubectl_autoscale_writes_it,
];

fn metrics(metrics: &Value) -> Value {
    let mut object = hpa("a");
    object["spec"]["metrics"] = metrics.clone();
    object
}

async fn v2_read_as_v1(s: Session) {
    s.post(HPAS, hpa("a")).await;
    s.get(&at(HPAS_V1, "a")).await;
}

async fn v1_read_as_v2(s: Session) {
    s.post(HPAS_V1, hpa_v1("a")).await;
    s.get(&at(HPAS, "a")).await;
    s.get(&at(HPAS_V1, "a")).await;
}

async fn defaults_of_v1(s: Session) {
    let bare = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "a"}, "maxReplicas": 3}});
    s.post(HPAS_V1, bare).await;
    s.get(&at(HPAS, "a")).await;
}

async fn defaults_of_v2(s: Session) {
    let bare = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "a"}, "maxReplicas": 3}});
    s.post(HPAS, bare).await;
    s.get(&at(HPAS_V1, "a")).await;
}

async fn defaults_of_behavior(s: Session) {
    for (name, behavior) in [
        ("a", json!({})),
        ("b", json!({"scaleDown": {}})),
        ("c", json!({"scaleUp": {"stabilizationWindowSeconds": 30}})),
        (
            "d",
            json!({"scaleDown": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}], "tolerance": "0.05"}}),
        ),
        ("e", json!({"scaleUp": {"selectPolicy": "Disabled"}})),
    ] {
        let mut object = hpa(name);
        object["spec"]["behavior"] = behavior;
        s.post(HPAS, object).await;
    }
}

fn several() -> Value {
    metrics(&json!([
        {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}}},
        {"type": "Pods", "pods": {"metric": {"name": "requests", "selector": {"matchLabels": {"a": "b"}}}, "target": {"type": "AverageValue", "averageValue": "1k"}}},
        {"type": "Object", "object": {"metric": {"name": "hits"}, "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "a"}, "target": {"type": "Value", "value": "2k"}}},
        {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "30"}}},
        {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "main", "target": {"type": "Utilization", "averageUtilization": 60}}},
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
    ]))
}

async fn other_metrics_are_annotations_of_v1(s: Session) {
    s.post(HPAS, several()).await;
    s.get(&at(HPAS_V1, "a")).await;
}

async fn annotations_of_v1_are_metrics(s: Session) {
    let mut object = hpa_v1("a");
    object["metadata"]["annotations"] = json!({
        "autoscaling.alpha.kubernetes.io/metrics": r#"[{"type":"Pods","pods":{"metricName":"requests","targetAverageValue":"1k"}}]"#,
        "other": "stays",
    });
    s.post(HPAS_V1, object).await;
    s.get(&at(HPAS, "a")).await;
}

async fn behavior_survives_v1(s: Session) {
    let mut object = hpa("a");
    object["spec"]["behavior"] = json!({"scaleDown": {"stabilizationWindowSeconds": 60}});
    s.post(HPAS, object).await;
    let mut object = s.get(&at(HPAS_V1, "a")).await.body;
    object["spec"]["maxReplicas"] = json!(20);
    s.put(&at(HPAS_V1, "a"), object).await;
    s.get(&at(HPAS, "a")).await;
}

async fn conditions_are_annotations_of_v1(s: Session) {
    s.post(HPAS, hpa("a")).await;
    let status = json!({"status": {
        "currentReplicas": 3, "desiredReplicas": 4, "observedGeneration": 1, "lastScaleTime": "2001-02-03T04:05:06Z",
        "conditions": [{"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "message": "fine", "lastTransitionTime": "2001-02-03T04:05:06Z"}],
        "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 70, "averageValue": "140m"}}}],
    }});
    s.patch(&at(HPAS, "a/status"), Patch::Merge, status).await;
    s.get(&at(HPAS_V1, "a")).await;
    s.get(&at(HPAS_V1, "a/status")).await;
}

async fn patched_in_one_version_read_in_the_other(s: Session) {
    s.post(HPAS, hpa("a")).await;
    s.patch(&at(HPAS_V1, "a"), Patch::Merge, json!({"spec": {"targetCPUUtilizationPercentage": 80}})).await;
    s.get(&at(HPAS, "a")).await;
    s.patch(&at(HPAS_V1, "a"), Patch::Strategic, json!({"spec": {"targetCPUUtilizationPercentage": null}}))
        .await;
    s.get(&at(HPAS, "a")).await;
}

async fn removed_versions(s: Session) {
    s.get("/apis/autoscaling/v2beta2/namespaces/{ns}/horizontalpodautoscalers").await;
    s.get("/apis/autoscaling/v2beta1").await;
    let mut object = hpa("a");
    object["apiVersion"] = json!("autoscaling/v2beta2");
    s.post(HPAS, object).await;
}

async fn bounds(s: Session) {
    for (min, max) in [
        (json!(0), json!(3)),
        (json!(-1), json!(3)),
        (json!(5), json!(3)),
        (json!(1), json!(0)),
        (json!(1), json!(null)),
    ] {
        let mut object = hpa("a");
        object["spec"]["minReplicas"] = min;
        object["spec"]["maxReplicas"] = max;
        s.post(HPAS, object).await;
    }
    s.post(
        HPAS_V1,
        json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}}),
    )
    .await;
}

async fn targets(s: Session) {
    for target in [
        json!({}),
        json!({"kind": "Deployment", "name": ""}),
        json!({"kind": "a/b", "name": "c/d", "apiVersion": "apps/v1/x"}),
    ] {
        let mut object = hpa("a");
        object["spec"]["scaleTargetRef"] = target;
        s.post(HPAS, object).await;
    }
}

async fn metrics_that_are_wrong(s: Session) {
    for metric in [
        json!({}),
        json!({"type": "Resource"}),
        json!({"type": "Dream"}),
        json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}),
        json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 0}}}),
        json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Value", "value": "1"}}}),
        json!({"type": "Resource", "resource": {"name": "", "target": {"type": "AverageValue", "averageValue": "-1"}}}),
        json!({"type": "Pods", "pods": {"metric": {"name": ""}, "target": {"type": "AverageValue"}}}),
        json!({"type": "Object", "object": {"metric": {"name": "x"}, "describedObject": {}, "target": {"type": "Value", "value": "0"}}}),
        json!({"type": "External", "external": {"metric": {"name": "x"}, "target": {"type": "Value", "value": "1", "averageValue": "1"}}}),
        json!({"type": "Resource", "pods": {"metric": {"name": "x"}, "target": {"type": "AverageValue", "averageValue": "1"}}}),
    ] {
        s.post(HPAS, metrics(&json!([metric]))).await;
    }
}

async fn behavior_that_is_wrong(s: Session) {
    for behavior in [
        json!({"scaleUp": {"stabilizationWindowSeconds": -1}}),
        json!({"scaleUp": {"stabilizationWindowSeconds": 3601}}),
        json!({"scaleUp": {"policies": []}}),
        json!({"scaleDown": {"policies": [{"type": "Wish", "value": 0, "periodSeconds": 1801}]}}),
        json!({"scaleDown": {"selectPolicy": "Median"}}),
        json!({"scaleDown": {"tolerance": "-1"}}),
    ] {
        let mut object = hpa("a");
        object["spec"]["behavior"] = behavior;
        s.post(HPAS, object).await;
    }
}

async fn names_that_are_wrong(s: Session) {
    s.post(HPAS, hpa("Upper")).await;
    s.post(HPAS, hpa("")).await;
}

async fn wrong_types(s: Session) {
    for (field, value) in [
        ("maxReplicas", json!("3")),
        ("minReplicas", json!(1.5)),
        ("metrics", json!({})),
        ("maxReplicas", json!(3_000_000_000_u32)),
    ] {
        let mut object = hpa("a");
        object["spec"][field] = value;
        s.post(HPAS, object).await;
    }
    let mut object = hpa_v1("a");
    object["spec"]["targetCPUUtilizationPercentage"] = json!("half");
    s.post(HPAS_V1, object).await;
}

async fn applied_in_both_versions(s: Session) {
    s.patch(&format!("{}?fieldManager=one", at(HPAS, "a")), Patch::Apply, hpa("a")).await;
    let mut object = hpa_v1("a");
    object["spec"]["targetCPUUtilizationPercentage"] = json!(70);
    s.patch(&format!("{}?fieldManager=one", at(HPAS_V1, "a")), Patch::Apply, object).await;
    s.get(&at(HPAS, "a")).await;
}

async fn lists_in_both_versions(s: Session) {
    s.post(HPAS, hpa("a")).await;
    s.post(HPAS_V1, hpa_v1("b")).await;
    s.get(HPAS).await;
    s.get(HPAS_V1).await;
}

/// A field of a protobuf message that is made of bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    assert!(length < 128, "longer ones are written otherwise");
    [&[number << 3 | 2, length], content].concat()
}

async fn as_kubectl_autoscale_writes_it(s: Session) {
    let target = [field(1, b"Deployment"), field(2, b"a"), field(3, b"apps/v1")].concat();
    let utilization = [field(1, b"Utilization"), vec![4 << 3, 50]].concat();
    let resource = [field(1, b"cpu"), field(2, &utilization)].concat();
    let metric = [field(1, b"Resource"), field(4, &resource)].concat();
    let spec = [field(1, &target), vec![2 << 3, 1, 3 << 3, 10], field(4, &metric)].concat();
    let object = [field(1, &field(1, b"a")), field(2, &spec), field(3, &[3 << 3, 0, 4 << 3, 0])].concat();
    let kind = [field(1, b"autoscaling/v2"), field(2, b"HorizontalPodAutoscaler")].concat();
    let body = [b"k8s\0".to_vec(), field(1, &kind), field(2, &object), field(3, b""), field(4, b"")].concat();
    let ask = s.request(http::Method::POST, &format!("{HPAS}?fieldManager=kubectl-autoscale"));
    ask.header("content-type", "application/vnd.kubernetes.protobuf").body(body).send().await;
}
