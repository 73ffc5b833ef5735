use super::*;

fn object(kind: AutoscalerKind, name: &str) -> Object {
    let raw =
        serde_json::json!({"metadata": {"name": name, "namespace": "shop"}, "spec": {"maxReplicas": 3}});
    Object::read(kind, raw).unwrap()
}

#[test]
fn scaled_jobs_are_read_with_their_bounds() {
    let raw = serde_json::json!({"metadata": {"name": "mails", "namespace": "shop"}, "spec": {"maxReplicaCount": 7},
        "status": {"conditions": [{"type": "Ready", "status": "False", "message": "no secret"}]}});
    let Object { hpa, .. } = Object::read(AutoscalerKind::ScaledJob, raw).unwrap();
    assert_eq!((hpa.spec.min_replicas, hpa.spec.max_replicas), (Some(0), 7));
    assert_eq!(hpa.spec.scale_target_ref.name, "mails-*");
    assert_eq!(hpa.status.conditions[0].message, "no secret");
}

#[test]
fn missing_object_is_reported_with_existing_names() {
    let named = AutoscalerName { kind: AutoscalerKind::Hpa, name: "chekout".into() };
    let message_for = |here: &[Object], elsewhere: &[&str]| unknown("shop", &named, here, elsewhere);
    assert_eq!(
        message_for(&[], &[]),
        "there is no hpa/chekout in namespace shop; that namespace has no HorizontalPodAutoscaler"
    );
    assert_eq!(
        message_for(&[object(AutoscalerKind::Hpa, "checkout")], &[]),
        "there is no hpa/chekout in namespace shop\n  did you mean hpa/checkout?"
    );
    assert_eq!(
        message_for(&[object(AutoscalerKind::Hpa, "web")], &[]),
        "there is no hpa/chekout in namespace shop\n  there: web"
    );
    assert_eq!(
        message_for(&[object(AutoscalerKind::Autoscaler, "chekout")], &[]),
        "there is no hpa/chekout in namespace shop\n  there is autoscaler/chekout; did you mean that?"
    );
    assert_eq!(
        message_for(&[], &["prod", "test"]),
        "there is no hpa/chekout in namespace shop\n  it exists in namespace prod (and in test): add -n prod"
    );
}

#[test]
fn autoscalers_of_a_workload_are_found() {
    let of = |kind: AutoscalerKind, name: &str, target: &str, owner: Option<&str>| {
        let target = serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": target});
        let mut raw = serde_json::json!({"metadata": {"name": name, "namespace": "shop"},
            "spec": {"maxReplicas": 3, "scaleTargetRef": target}});
        if let Some(owner) = owner {
            let owner = serde_json::json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": owner, "uid": "1"});
            raw["metadata"]["ownerReferences"] = serde_json::json!([owner]);
        }
        Object::read(kind, raw).unwrap()
    };
    let all = [
        of(AutoscalerKind::Hpa, "web", "web", None),
        of(AutoscalerKind::Hpa, "keda-hpa-orders", "orders", Some("orders")),
        of(AutoscalerKind::ScaledObject, "orders", "orders", None),
        of(AutoscalerKind::Autoscaler, "web-too", "web", None),
    ];
    let names = |name: &str| {
        let workload = WorkloadName { kind: "Deployment", name: name.into() };
        scaling(&all, &workload).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(names("web"), ["hpa/web", "autoscaler/web-too"]);
    assert_eq!(names("orders"), ["so/orders"]);
    assert_eq!(names("other"), [""; 0]);
}

#[test]
fn managed_fields_are_removed() {
    let raw = serde_json::json!({
        "metadata": {"name": "a", "managedFields": [{"manager": "kubectl"}], "uid": "1"}, "spec": {"maxReplicas": 3}
    });
    let object = Object::read(AutoscalerKind::Hpa, raw).unwrap();
    assert_eq!(object.raw["metadata"].to_string(), r#"{"name":"a","uid":"1"}"#);
}

#[test]
fn items_of_a_list_get_kind_and_version() {
    assert_eq!(object(AutoscalerKind::Autoscaler, "a").raw["apiVersion"], "plimsoll.dev/v1alpha1");
    assert!(
        object(AutoscalerKind::Hpa, "a")
            .raw
            .to_string()
            .starts_with(r#"{"apiVersion":"autoscaling/v2","kind""#)
    );
}
