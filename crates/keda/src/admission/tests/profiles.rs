//! The rules that differ between releases of KEDA.

use api::keda::KedaProfile::{V2_20, V2_21};
use serde_json::json;

use super::*;

fn verdict_in(object: &Value, around: &ClusterSnapshot, compat: Compat, profile: KedaProfile) -> Verdict {
    let rules = AdmissionRules::of(compat).in_profile(profile);
    review(&create(AdmissionKind::ScaledObject, object), around, &rules)
}

fn warnings(spec: Value, profile: KedaProfile) -> Vec<String> {
    match verdict_in(&object("so", spec), &around(), Compat::Strict, profile) {
        Verdict::Allowed(allowed) => allowed.warnings,
        Verdict::Denied(denial) => panic!("{denial:?}"),
    }
}

#[test]
fn warnings_about_settings_without_effect_follow_the_release() {
    let both = json!({"minReplicaCount": 2, "pollingInterval": 5, "cooldownPeriod": 9});
    for (profile, ends) in [
        (V2_20, ["useCachedMetrics is enabled", "idleReplicaCount = 0"]),
        (V2_21, ["conditions and events", "idleReplicaCount is set"]),
    ] {
        let found = warnings(both.clone(), profile);
        assert_eq!(found.len(), 2, "{profile}");
        for (found, end) in found.iter().zip(ends) {
            assert!(found.ends_with(end), "{found}");
        }
    }
    let idle =
        json!({"minReplicaCount": 2, "idleReplicaCount": 1, "pollingInterval": 5, "cooldownPeriod": 9});
    assert_eq!((warnings(idle.clone(), V2_20).len(), warnings(idle, V2_21).len()), (2, 0));
    let formula = json!({"minReplicaCount": 2, "pollingInterval": 5,
        "triggers": [{"type": "prometheus", "name": "a", "metadata": {}}],
        "advanced": {"scalingModifiers": {"formula": "a + 1", "target": "1"}}});
    assert_eq!((warnings(formula.clone(), V2_20).len(), warnings(formula, V2_21).len()), (1, 0));
}

#[test]
fn conflicts_are_searched_among_objects_of_the_same_name() {
    let mut here = around();
    here.add(object(
        "lost",
        json!({"scaleTargetRef": {"apiVersion": "x.io/v9", "kind": "Gizmo", "name": "other"}}),
    ))
    .unwrap();
    let fine = object("so", json!({}));
    assert!(matches!(verdict_in(&fine, &here, Compat::Strict, V2_20), Verdict::Denied(_)));
    assert!(matches!(verdict_in(&fine, &here, Compat::Strict, V2_21), Verdict::Allowed(_)));
    here.add(object(
        "namesake",
        json!({"scaleTargetRef": {"apiVersion": "x.io/v9", "kind": "Gizmo", "name": "web"}}),
    ))
    .unwrap();
    let denied = denial(verdict_in(&fine, &here, Compat::Strict, V2_21));
    assert_eq!(denied.message, "no matches for kind \"Gizmo\" in version \"x.io/v9\"");
}

/// The object with the same HPA comes first by name, the one with the same target second.
#[test]
fn equal_targets_precede_equal_hpas() {
    let mut here = around();
    here.add(object(
        "a",
        json!({"scaleTargetRef": {"name": "x"},
        "advanced": {"horizontalPodAutoscalerConfig": {"name": "keda-hpa-so"}}}),
    ))
    .unwrap();
    let label = |here: &ClusterSnapshot, profile| {
        denial(verdict_in(&object("so", json!({})), here, Compat::Strict, profile)).label
    };
    assert_eq!(label(&here, V2_21), Some("other-scaled-object-hpa"));
    here.add(object("b", json!({}))).unwrap();
    assert_eq!(label(&here, V2_20), Some("other-scaled-object-hpa"));
    assert_eq!(label(&here, V2_21), Some("other-scaled-object"));
}

#[test]
fn denials_name_the_hpa_of_the_new_object() {
    let mut here = around();
    here.add(object(
        "other",
        json!({"scaleTargetRef": {"name": "x"}, "advanced": {"horizontalPodAutoscalerConfig": {}}}),
    ))
    .unwrap();
    let taking =
        object("so", json!({"advanced": {"horizontalPodAutoscalerConfig": {"name": "keda-hpa-other"}}}));
    let message = |profile| denial(verdict_in(&taking, &here, Compat::Strict, profile)).message;
    assert_eq!(message(V2_20), "the HPA '' is already managed by the ScaledObject 'other'");
    assert_eq!(message(V2_21), "the HPA 'keda-hpa-other' is already managed by the ScaledObject 'other'");
}

#[test]
fn resources_of_the_pod_count_unless_one_container_is_measured() {
    let mut here = around();
    let pod = json!({"resources": {"limits": {"cpu": "1"}}, "containers": [{"name": "app"}]});
    here.add(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "whole", "namespace": "ns"},
        "spec": {"template": {"spec": pod}}}))
        .unwrap();
    let is_denied = |metadata: Value, type_: &str, profile| {
        let triggers = json!([{"type": type_, "metadata": metadata}]);
        let spec = json!({"scaleTargetRef": {"name": "whole"}, "triggers": triggers, "minReplicaCount": 1});
        matches!(verdict_in(&object("so", spec), &here, Compat::Strict, profile), Verdict::Denied(_))
    };
    assert!(is_denied(json!({}), "cpu", V2_20));
    assert!(!is_denied(json!({}), "cpu", V2_21));
    assert!(is_denied(json!({}), "memory", V2_21));
    assert!(is_denied(json!({"containerName": "app"}), "cpu", V2_21));
}

#[test]
fn service_principals_are_checked_whatever_the_pod_identity_is() {
    let secret = json!({"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}});
    let message = |principal: Value| {
        let spec = json!({"podIdentity": {"provider": "gcp"}, "azureServicePrincipal": principal});
        let object = json!({"metadata": {"name": "ta", "namespace": "ns"}, "spec": spec});
        let request = create(AdmissionKind::TriggerAuthentication, &object);
        match review(&request, &around(), &AdmissionRules::of(Compat::Strict).in_profile(V2_21)) {
            Verdict::Allowed(_) => String::new(),
            Verdict::Denied(denial) => denial.message,
        }
    };
    let with = |extra: Value| {
        let mut principal = json!({"tenantId": "t", "clientId": "c"});
        principal.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        message(principal)
    };
    assert_eq!(
        message(json!({"clientSecret": secret})),
        "azureServicePrincipal.tenantId is required when azureServicePrincipal is configured"
    );
    assert_eq!(
        message(json!({"tenantId": "t", "clientSecret": secret})),
        "azureServicePrincipal.clientId is required when azureServicePrincipal is configured"
    );
    assert_eq!(with(json!({})), "azureServicePrincipal requires either clientSecret or clientCertificate");
    assert_eq!(
        with(json!({"clientSecret": secret, "clientCertificate": secret})),
        "azureServicePrincipal.clientSecret and azureServicePrincipal.clientCertificate are mutually exclusive"
    );
    assert_eq!(
        with(json!({"clientSecret": secret, "clientCertificatePassword": secret})),
        "azureServicePrincipal.clientCertificatePassword requires clientCertificate"
    );
    assert_eq!(
        with(json!({"clientSecret": secret, "cloud": "private"})),
        "azureServicePrincipal.activeDirectoryEndpoint is required when cloud is Private"
    );
    assert_eq!(
        with(json!({"clientSecret": secret, "activeDirectoryEndpoint": "https://x"})),
        "azureServicePrincipal.activeDirectoryEndpoint can only be set when cloud is Private"
    );
    assert_eq!(with(json!({"clientCertificate": secret, "cloud": "Nowhere"})), "");
}
