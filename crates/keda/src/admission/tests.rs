#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::needless_pass_by_value)]

mod profiles;

use serde_json::json;

use super::*;

const NONE: Value = Value::Null;

/// What a namespace may hold.
fn around() -> ClusterSnapshot {
    let mut around = ClusterSnapshot::default();
    let workload = |kind: &str, name: &str, resources: Value| {
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "ns"},
            "spec": {"template": {"spec": {"containers": [{"name": "app", "resources": resources}]}}}})
    };
    around.add(workload("Deployment", "web", json!({"requests": {"cpu": "100m"}}))).unwrap();
    around.add(workload("Deployment", "bare", json!({}))).unwrap();
    around.add_kind("argoproj.io", "v1alpha1", "Rollout");
    around
}

fn object(name: &str, spec: Value) -> Value {
    let mut all =
        json!({"scaleTargetRef": {"name": "web"}, "triggers": [{"type": "prometheus", "metadata": {}}]});
    for (key, value) in spec.as_object().unwrap() {
        all[key] = value.clone();
    }
    json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name, "namespace": "ns"},
        "spec": all})
}

fn create(kind: AdmissionKind, object: &Value) -> AdmissionInput<'_> {
    AdmissionInput { operation: Operation::Create, kind, dry_run: false, object, old: None }
}

fn verdict_of(object: &Value, around: &ClusterSnapshot) -> Verdict {
    review(&create(AdmissionKind::ScaledObject, object), around, &AdmissionRules::of(Compat::Better))
}

fn denial(verdict: Verdict) -> Denial {
    match verdict {
        Verdict::Denied(denial) => denial,
        Verdict::Allowed(allowed) => panic!("allowed: {allowed:?}"),
    }
}

fn label(spec: Value, around: &ClusterSnapshot) -> Option<&'static str> {
    denial(verdict_of(&object("so", spec), around)).label
}

#[test]
fn every_rule_of_scaled_objects_has_its_label() {
    let here = around();
    assert!(matches!(verdict_of(&object("so", json!({})), &here), Verdict::Allowed(_)));
    let cpu = json!([{"type": "cpu", "metadata": {}}]);
    let cases = [
        (json!({"advanced": {"scalingModifiers": {"target": "1"}}}), "scaling-modifiers"),
        (
            json!({"fallback": {"failureThreshold": 1, "replicas": 1, "behavior": "scalingModifiers"}}),
            "scaling-modifiers-fallback",
        ),
        (
            json!({"scaleTargetRef": {"name": "bare"}, "triggers": cpu, "minReplicaCount": 1}),
            "missing-requests",
        ),
        (json!({"triggers": cpu}), "scale-to-zero-requirements-not-met"),
        (json!({"minReplicaCount": 3, "maxReplicaCount": 2}), "incorrect-replicas"),
        (json!({"idleReplicaCount": 0}), "incorrect-replicas"),
        (json!({"fallback": {"failureThreshold": -1, "replicas": 1}}), "incorrect-fallback"),
        (
            json!({"triggers": cpu, "minReplicaCount": 1, "fallback": {"failureThreshold": 1, "replicas": 1}}),
            "incorrect-fallback",
        ),
        (
            json!({"advanced": {"horizontalPodAutoscalerConfig": {"name": "h".repeat(64)}}}),
            "hpa-name-too-long",
        ),
        (json!({"triggers": []}), "incorrect-triggers"),
        (json!({"triggers": [{"type": "cron", "useCachedMetrics": true}]}), "incorrect-triggers"),
        (json!({"triggers": [{"type": "a", "name": "n"}, {"type": "b", "name": "n"}]}), "incorrect-triggers"),
    ];
    for (spec, wanted) in cases {
        assert_eq!(label(spec.clone(), &here), Some(wanted), "{spec}");
    }
    let long = denial(verdict_of(&object(&"s".repeat(64), json!({})), &here));
    assert_eq!(long.label, Some("name-too-long"));

    let mut crowded = around();
    crowded.add(object("other", json!({}))).unwrap();
    assert_eq!(label(json!({}), &crowded), Some("other-scaled-object"));
    let same = json!({"scaleTargetRef": {"name": "x"}, "advanced": {"horizontalPodAutoscalerConfig": {"name": "keda-hpa-other"}}});
    let taken = denial(verdict_of(&object("so", same), &crowded));
    assert_eq!(taken.label, Some("other-scaled-object-hpa"));
    assert_eq!(taken.message, "the HPA 'keda-hpa-other' is already managed by the ScaledObject 'other'");

    let mut scaled = around();
    let hpa = json!({"kind": "HorizontalPodAutoscaler", "metadata": {"name": "h", "namespace": "ns"},
        "spec": {"maxReplicas": 1, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    scaled.add(hpa).unwrap();
    assert_eq!(label(json!({}), &scaled), Some("other-hpa"));
    let mut taking = object("so", json!({}));
    taking["metadata"]["annotations"] = json!({"scaledobject.keda.sh/transfer-hpa-ownership": "true"});
    assert_eq!(denial(verdict_of(&taking, &scaled)).label, Some("transfer-ownership-missing-hpa-name"));
    taking["spec"]["advanced"] = json!({"horizontalPodAutoscalerConfig": {"name": "h"}});
    assert!(matches!(verdict_of(&taking, &scaled), Verdict::Allowed(_)));
}

#[test]
fn first_violated_rule_decides() {
    let mut crowded = around();
    crowded.add(object("other", json!({}))).unwrap();
    crowded.add(object("earlier", json!({}))).unwrap();
    // Everything is wrong here; the message does not depend on the order of the other objects.
    let spec = json!({"minReplicaCount": 3, "maxReplicaCount": 2, "triggers": []});
    let denied = denial(verdict_of(&object("so", spec), &crowded)).message;
    assert_eq!(
        denied,
        "the workload 'web' of type 'apps/v1.Deployment' is already managed by the ScaledObject 'earlier'"
    );
}

#[test]
fn missing_workload_is_not_found_except_in_dry_run() {
    let spec =
        json!({"scaleTargetRef": {"name": "gone"}, "triggers": [{"type": "cpu"}], "minReplicaCount": 1});
    let object = object("so", spec);
    let denied = denial(verdict_of(&object, &around()));
    assert_eq!((denied.code, denied.reason, denied.label), (404, "NotFound", None));
    assert_eq!(denied.message, "deployments.apps \"gone\" not found");
    let dry = AdmissionInput { dry_run: true, ..create(AdmissionKind::ScaledObject, &object) };
    assert!(matches!(review(&dry, &around(), &AdmissionRules::of(Compat::Better)), Verdict::Allowed(_)));
}

#[test]
fn unresolvable_targets_of_others_block_only_in_strict_mode() {
    let mut here = around();
    let lost = json!({"scaleTargetRef": {"apiVersion": "x.io/v9", "kind": "Gizmo", "name": "web"}});
    here.add(object("lost", lost.clone())).unwrap();
    let fine = object("so", json!({}));
    assert!(matches!(verdict_of(&fine, &here), Verdict::Allowed(_)));
    let strict =
        review(&create(AdmissionKind::ScaledObject, &fine), &here, &AdmissionRules::of(Compat::Strict));
    assert_eq!(denial(strict).message, "no matches for kind \"Gizmo\" in version \"x.io/v9\"");
    // One's own target must exist.
    assert_eq!(
        denial(verdict_of(&object("so", lost), &around())).message,
        "no matches for kind \"Gizmo\" in version \"x.io/v9\""
    );
    let rollout =
        json!({"scaleTargetRef": {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "r"}});
    assert!(matches!(verdict_of(&object("so", rollout), &around()), Verdict::Allowed(_)));
}

#[test]
fn removal_of_finalizer_is_always_allowed() {
    let broken = json!({"minReplicaCount": 3, "maxReplicaCount": 2});
    let mut old = object("so", broken.clone());
    old["metadata"]["finalizers"] = json!(["finalizer.keda.sh"]);
    let new = object("so", broken);
    let update = |new, old| AdmissionInput {
        operation: Operation::Update,
        old: Some(old),
        ..create(AdmissionKind::ScaledObject, new)
    };
    let verdict_of =
        |request: AdmissionInput<'_>| review(&request, &around(), &AdmissionRules::of(Compat::Better));
    assert!(matches!(verdict_of(update(&new, &old)), Verdict::Allowed(_)));
    assert!(matches!(verdict_of(update(&old, &new)), Verdict::Denied(_)));
    let mut other = new.clone();
    other["spec"]["maxReplicaCount"] = json!(1);
    assert!(matches!(verdict_of(update(&other, &old)), Verdict::Denied(_)));
    let delete = AdmissionInput {
        operation: Operation::Delete,
        old: Some(&old),
        ..create(AdmissionKind::ScaledObject, &NONE)
    };
    assert!(matches!(verdict_of(delete), Verdict::Allowed(_)));
}

#[test]
fn advice_about_triggers_is_a_warning_and_an_event() {
    let advice = |trigger: &Trigger| vec![format!("{} is unknown, did you mean prometheus?", trigger.type_)];
    let rules = |compat| AdmissionRules { compat, profile: KedaProfile::V2_20, advice: &advice };
    let object = object("so", json!({"triggers": [{"type": "promethues", "metadata": {}}]}));
    let verdict_of = |kind, object: &Value, compat, dry_run| match review(
        &AdmissionInput { dry_run, ..create(kind, object) },
        &around(),
        &rules(compat),
    ) {
        Verdict::Allowed(allowed) => (allowed.warnings.len(), allowed.events.len()),
        Verdict::Denied(denial) => panic!("{denial:?}"),
    };
    assert_eq!(verdict_of(AdmissionKind::ScaledObject, &object, Compat::Better, false), (1, 1));
    assert_eq!(verdict_of(AdmissionKind::ScaledObject, &object, Compat::Better, true), (1, 0));
    assert_eq!(verdict_of(AdmissionKind::ScaledObject, &object, Compat::Strict, false), (0, 0));
    assert_eq!(verdict_of(AdmissionKind::ScaledJob, &object, Compat::Better, false), (1, 1));
}

#[test]
fn advice_is_bounded() {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let advice = |trigger: &Trigger| {
        asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        vec![format!("there is no type {}", trigger.type_)]
    };
    let triggers = vec![json!({"type": "x".repeat(5_000), "metadata": {}}); 1_000];
    let object = json!({"metadata": {"name": "job", "namespace": "ns"}, "spec": {"triggers": triggers}});
    let rules = AdmissionRules { advice: &advice, ..AdmissionRules::of(Compat::Better) };
    let request = create(AdmissionKind::ScaledJob, &object);
    let Verdict::Allowed(allowed) = review(&request, &ClusterSnapshot::default(), &rules) else { panic!() };
    assert_eq!((allowed.warnings.len(), asked.into_inner()), (10, 10));
    assert!(allowed.events.iter().all(|event| event.note.chars().count() == 1_001));
}

#[test]
fn misleading_annotations_cause_warnings() {
    let warnings = |key: &str, value: &str| {
        let mut object = object("so", json!({}));
        object["metadata"]["annotations"] = json!({key: value});
        match verdict_of(&object, &around()) {
            Verdict::Allowed(allowed) => allowed.warnings.join("; "),
            Verdict::Denied(denial) => panic!("{denial:?}"),
        }
    };
    assert_eq!(
        warnings("autoscaling.keda.sh/paused", "no"),
        "annotation autoscaling.keda.sh/paused is \"no\", which is no boolean and counts as true"
    );
    assert!(warnings("autoscaling.keda.sh/paused-replicas", "abc").contains("no number of replicas"));
    assert!(warnings("plimsoll.dev/act", "fast").contains("neither hpa nor direct"));
    for (key, value) in [
        ("autoscaling.keda.sh/paused", "False"),
        ("autoscaling.keda.sh/paused-replicas", "0"),
        ("plimsoll.dev/act", "direct"),
        ("anything", ""),
    ] {
        assert_eq!(warnings(key, value), "", "{key}");
    }
}

#[test]
fn authentication_event_types_can_be_subscribed() {
    let source = |included: Value, excluded: Value| json!({"spec": {"eventSubscription": {"includedEventTypes": included, "excludedEventTypes": excluded}}});
    let verdict_of = |object: &Value, compat| {
        review(
            &create(AdmissionKind::CloudEventSource, object),
            &ClusterSnapshot::default(),
            &AdmissionRules::of(compat),
        )
    };
    let known = json!(["keda.scaledjob.rolloutcleanup.started.v1"]);
    assert!(matches!(verdict_of(&source(known.clone(), json!([])), Compat::Strict), Verdict::Allowed(_)));
    let both = denial(verdict_of(&source(known.clone(), known), Compat::Better));
    assert_eq!(both.message, "setting included types and excluded types at the same time is not supported");
    let odd = denial(verdict_of(&source(json!([]), json!(["x"])), Compat::Better));
    assert_eq!(
        odd.message,
        "excludedEventType: x in cloudeventsource/clustercloudeventsource spec is not supported"
    );
    let authentication = source(json!(["keda.authentication.triggerauthentication.created.v1"]), json!([]));
    assert!(matches!(verdict_of(&authentication, Compat::Better), Verdict::Allowed(_)));
    let strict = denial(verdict_of(&authentication, Compat::Strict));
    assert!(strict.message.starts_with("includedEventType: keda.authentication."), "{}", strict.message);
}

#[test]
fn undecodable_objects_are_refused_with_the_field() {
    for kind in AdmissionKind::ALL {
        for odd in [json!({"metadata": 3}), json!([]), json!("text"), NONE] {
            let denied = denial(review(&create(kind, &odd), &around(), &AdmissionRules::of(Compat::Better)));
            assert_eq!((denied.code, denied.reason), (400, "BadRequest"), "{kind:?} {odd}");
            assert!(denied.message.contains(kind.name()), "{}", denied.message);
        }
    }
}

#[test]
fn needs_name_the_objects_to_collect() {
    let plain = object("so", json!({}));
    let wanted = AdmissionNeeds { namespace: "ns".into(), workload: None };
    assert_eq!(needs(&create(AdmissionKind::ScaledObject, &plain)), Some(wanted));
    let measured = object("so", json!({"triggers": [{"type": "memory"}]}));
    let workload = |request: AdmissionInput<'_>| needs(&request).unwrap().workload;
    let own = Some((WorkloadKind::Deployment, "web".to_owned()));
    assert_eq!(workload(create(AdmissionKind::ScaledObject, &measured)), own);
    assert_eq!(
        workload(AdmissionInput { dry_run: true, ..create(AdmissionKind::ScaledObject, &measured) }),
        None
    );
    assert_eq!(needs(&create(AdmissionKind::ScaledJob, &measured)), None);
    assert_eq!(
        needs(&AdmissionInput { operation: Operation::Delete, ..create(AdmissionKind::ScaledObject, &NONE) }),
        None
    );
    assert_eq!(needs(&create(AdmissionKind::ScaledObject, &NONE)).unwrap().namespace, "");
}
