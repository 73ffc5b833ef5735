//! The objects that the definitions accept and reject.

use http::Method;
use serde_json::{Value, json};
use testbed::harness::{Failure, LOCAL, TestNamespace, on_both};

use crate::requests::{define, place, send_request};

/// A minimal valid object of a kind.
fn least(kind: &str) -> Value {
    let triggers = json!([{"type": "cron", "metadata": {}}]);
    let spec = match kind {
        "ScaledObject" => json!({"scaleTargetRef": {"name": "web"}, "triggers": triggers}),
        "ScaledJob" => json!({"jobTargetRef": {"template": {}}, "triggers": triggers}),
        "CloudEventSource" | "ClusterCloudEventSource" => json!({"destination": {}}),
        _ => json!({}),
    };
    let group = if kind.ends_with("CloudEventSource") { "eventing.keda.sh" } else { "keda.sh" };
    json!({"apiVersion": format!("{group}/v1alpha1"), "kind": kind, "metadata": {"name": "x"}, "spec": spec})
}

/// Sets a field of the spec.
fn with(kind: &str, path: &str, value: Value) -> Value {
    let mut object = least(kind);
    let mut place = &mut object["spec"];
    for part in path.split('.') {
        place = match part.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[part],
        };
    }
    *place = value;
    object
}

/// Removes a field of the spec.
fn without(kind: &str, path: &str) -> Value {
    let mut object = least(kind);
    let (parent, field) = path.rsplit_once('/').unwrap();
    object.pointer_mut(&format!("/spec{parent}")).unwrap().as_object_mut().unwrap().shift_remove(field);
    object
}

/// Creates an object as a dry run with strict field validation, and returns the response.
pub(crate) async fn create(ns: &TestNamespace, object: &Value) -> (u16, String) {
    let kind = object["kind"].as_str().unwrap();
    let uri = format!("{}?dryRun=All&fieldValidation=Strict", place(ns, kind));
    let response = send_request(&ns.client, Method::POST, &uri, Some(object)).await;
    (response.code, response.message().to_owned())
}

pub(crate) const KINDS: [&str; 6] = [
    "ScaledObject",
    "ScaledJob",
    "TriggerAuthentication",
    "ClusterTriggerAuthentication",
    "CloudEventSource",
    "ClusterCloudEventSource",
];

/// Invalid changes of objects, each with words that the error must contain.
fn broken() -> Vec<(Value, &'static str)> {
    let (so, sj, ta, ces) = ("ScaledObject", "ScaledJob", "TriggerAuthentication", "CloudEventSource");
    let secret = json!({"parameter": "p", "name": "n", "key": "k"});
    let mut all = vec![
        (without(so, "/scaleTargetRef"), "spec.scaleTargetRef"),
        (without(so, "/triggers"), "spec.triggers"),
        (without(so, "/triggers/0/type"), "spec.triggers[0].type"),
        (without(so, "/triggers/0/metadata"), "spec.triggers[0].metadata"),
        (with(so, "scaleTargetRef.name", json!("")), "spec.scaleTargetRef.name"),
        (with(so, "triggers", json!([])), "spec.triggers"),
        (with(so, "triggers.0.type", json!("")), "spec.triggers[0].type"),
        (with(so, "triggers.0.metadata", json!({"a": 1})), "spec.triggers[0].metadata.a"),
        (with(so, "triggers.0.metadat", json!({})), "metadat"),
        (with(so, "triggers.0.useCachedMetrics", json!("yes")), "spec.triggers[0].useCachedMetrics"),
        (with(so, "triggers.0.authenticationRef", json!({})), "spec.triggers[0].authenticationRef.name"),
        (
            with(so, "triggers.0.authenticationRef", json!({"name": "n", "kind": "Secret"})),
            "spec.triggers[0].authenticationRef.kind",
        ),
        (with(so, "pollingInterval", json!(0)), "spec.pollingInterval"),
        (with(so, "pollingInterval", json!("30")), "spec.pollingInterval"),
        (with(so, "initialCooldownPeriod", json!(-1)), "spec.initialCooldownPeriod"),
        (with(so, "cooldownPeriod", json!(-1)), "spec.cooldownPeriod"),
        (with(so, "idleReplicaCount", json!(-1)), "spec.idleReplicaCount"),
        (with(so, "minReplicaCount", json!(-1)), "spec.minReplicaCount"),
        (with(so, "maxReplicaCount", json!(0)), "spec.maxReplicaCount"),
        (with(so, "maxReplicas", json!(3)), "maxReplicas"),
        (
            with(so, "advanced.scalingModifiers.metricType", json!("Utilization")),
            "spec.advanced.scalingModifiers.metricType",
        ),
        (with(so, "fallback", json!({"replicas": 1})), "spec.fallback.failureThreshold"),
        (with(so, "fallback", json!({"failureThreshold": 1})), "spec.fallback.replicas"),
        (
            with(so, "fallback", json!({"failureThreshold": -1, "replicas": 1})),
            "spec.fallback.failureThreshold",
        ),
        (
            with(so, "fallback", json!({"failureThreshold": 1, "replicas": 1, "behavior": "x"})),
            "spec.fallback.behavior",
        ),
        (
            with(
                so,
                "advanced.horizontalPodAutoscalerConfig.behavior.scaleDown",
                json!({"stabilizationWindowSeconds": 3601}),
            ),
            "stabilizationWindowSeconds",
        ),
        (
            with(
                so,
                "advanced.horizontalPodAutoscalerConfig.behavior.scaleUp",
                json!({"policies": [{"type": "Pods", "value": 1}]}),
            ),
            "policies[0].periodSeconds",
        ),
        (
            with(so, "advanced.horizontalPodAutoscalerConfig.behavior.scaleUp", json!({"tolerance": "much"})),
            "tolerance",
        ),
        (without(sj, "/jobTargetRef"), "spec.jobTargetRef"),
        (without(sj, "/jobTargetRef/template"), "spec.jobTargetRef.template"),
        (without(sj, "/triggers"), "spec.triggers"),
        (with(sj, "triggers.0.metricType", json!("Value")), "metricType"),
        (with(sj, "maxReplicaCount", json!(0)), "spec.maxReplicaCount"),
        (with(sj, "successfulJobsHistoryLimit", json!(-1)), "spec.successfulJobsHistoryLimit"),
        (with(sj, "failedJobsHistoryLimit", json!(-1)), "spec.failedJobsHistoryLimit"),
        (with(sj, "rolloutStrategy", json!("later")), "spec.rolloutStrategy"),
        (with(sj, "rollout.strategy", json!("later")), "spec.rollout.strategy"),
        (with(sj, "rollout.propagationPolicy", json!("orphan")), "spec.rollout.propagationPolicy"),
        (with(sj, "scalingStrategy.strategy", json!("x")), "spec.scalingStrategy.strategy"),
        (
            with(sj, "scalingStrategy.multipleScalersCalculation", json!("x")),
            "spec.scalingStrategy.multipleScalersCalculation",
        ),
        (
            with(sj, "jobTargetRef.template.spec", json!({"containers": [{"image": "i"}]})),
            "containers[0].name",
        ),
        (with(sj, "jobTargetRef.template.spec", json!({"contaners": []})), "contaners"),
        (
            with(
                sj,
                "jobTargetRef.template.spec",
                json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": "much"}}}]}),
            ),
            "resources.requests.cpu",
        ),
        (with(ta, "podIdentity", json!({})), "spec.podIdentity.provider"),
        (with(ta, "podIdentity", json!({"provider": "azure"})), "spec.podIdentity.provider"),
        (
            with(ta, "podIdentity", json!({"provider": "aws", "identityOwner": "me"})),
            "spec.podIdentity.identityOwner",
        ),
        (
            with(ta, "secretTargetRef", json!([{"parameter": "p", "name": "n"}])),
            "spec.secretTargetRef[0].key",
        ),
        (
            with(ta, "configMapTargetRef", json!([{"name": "n", "key": "k"}])),
            "spec.configMapTargetRef[0].parameter",
        ),
        (with(ta, "secretTargetRef", secret), "spec.secretTargetRef"),
        (with(ta, "env", json!([{"parameter": "p"}])), "spec.env[0].name"),
        (
            with(ta, "hashiCorpVault", json!({"address": "a", "authentication": "token", "secrets": []})),
            "spec.hashiCorpVault.secrets",
        ),
        (
            with(
                ta,
                "hashiCorpVault",
                json!({"address": "a", "authentication": "cert", "secrets": [{"parameter": "p", "path": "a", "key": "k"}]}),
            ),
            "spec.hashiCorpVault.authentication",
        ),
        (with(ta, "azureKeyVault", json!({"vaultUri": "u"})), "spec.azureKeyVault.secrets"),
        (
            with(ta, "gcpSecretManager", json!({"secrets": [{"parameter": "p"}]})),
            "spec.gcpSecretManager.secrets[0].id",
        ),
        (with(ta, "awsSecretManager", json!({"secrets": []})), "spec.awsSecretManager.secrets"),
        (
            with(ta, "boundServiceAccountToken", json!([{"parameter": "p"}])),
            "spec.boundServiceAccountToken[0].serviceAccountName",
        ),
        (with(ta, "oauth2", json!({"tokenUrl": "u"})), "spec.oauth2.clientId"),
        (
            with(ta, "oauth2", json!({"type": "password", "tokenUrl": "u", "clientId": "c"})),
            "spec.oauth2.type",
        ),
        (without(ces, "/destination"), "spec.destination"),
        (with(ces, "destination.http", json!({})), "spec.destination.http.uri"),
        (
            with(ces, "eventSubscription.includedEventTypes", json!(["keda.scaledobject.ready"])),
            "spec.eventSubscription.includedEventTypes[0]",
        ),
    ];
    // The cases of a kind also apply to its cluster-scoped variant.
    let clustered: Vec<_> = all
        .iter()
        .filter(|(object, _)| object["kind"] == ta || object["kind"] == ces)
        .map(|(object, words)| {
            let mut object = object.clone();
            object["kind"] = json!(format!("Cluster{}", object["kind"].as_str().unwrap()));
            (object, *words)
        })
        .collect();
    all.extend(clustered);
    for kind in KINDS.iter().filter(|kind| **kind != sj) {
        let mut bare = least(kind);
        bare.as_object_mut().unwrap().shift_remove("spec");
        all.push((bare, "spec"));
    }
    all
}

#[test]
fn invalid_objects_are_refused_with_the_field_name() -> Result<(), Failure> {
    on_both(async |ns| {
        define(&ns).await;
        for kind in KINDS {
            let (code, response) = create(&ns, &least(kind)).await;
            assert_eq!(code, 201, "{kind} on {}: {response}", ns.cluster);
        }
        for (object, words) in broken() {
            let (code, response) = create(&ns, &object).await;
            assert!(matches!(code, 400 | 422), "{object} on {}: {code}", ns.cluster);
            assert!(response.contains(words), "{words} of {object} on {}: {response}", ns.cluster);
        }
        // KEDA's definition does not require a spec here.
        let mut job = least("ScaledJob");
        job.as_object_mut().unwrap().shift_remove("spec");
        assert_eq!(create(&ns, &job).await.0, 201);
        if ns.cluster != LOCAL {
            // localkube does not evaluate CEL rules.
            for (min, max) in [(json!(101), json!(null)), (json!(3), json!(2))] {
                let mut object = with("ScaledObject", "minReplicaCount", min);
                if !max.is_null() {
                    object["spec"]["maxReplicaCount"] = max;
                }
                let (code, response) = create(&ns, &object).await;
                assert_eq!(code, 422, "{response}");
                assert!(
                    response.contains("minReplicaCount must be less than or equal to maxReplicaCount"),
                    "{response}"
                );
            }
        }
    })
}

#[test]
fn two_defaults_are_set_and_pod_metadata_is_kept() -> Result<(), Failure> {
    on_both(async |ns| {
        define(&ns).await;
        let stored = async |object: &Value| {
            let kind = object["kind"].as_str().unwrap();
            let uri = format!("{}?dryRun=All&fieldValidation=Strict", place(&ns, kind));
            let response = send_request(&ns.client, Method::POST, &uri, Some(object)).await;
            assert_eq!(response.code, 201, "{response:?}");
            response.body["spec"].clone()
        };
        let fallback = json!({"failureThreshold": 1, "replicas": 2});
        let spec = stored(&with("ScaledObject", "fallback", fallback)).await;
        assert_eq!(spec["fallback"], json!({"failureThreshold": 1, "replicas": 2, "behavior": "static"}));
        let spec =
            stored(&with("TriggerAuthentication", "oauth2", json!({"clientId": "c", "tokenUrl": "u"}))).await;
        assert_eq!(spec["oauth2"]["type"], "clientCredentials");
        let template = json!({
            "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}, "creationTimestamp": null},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "b"}],
                "resources": {"requests": {"cpu": 1, "memory": "64Mi"}}, "ports": [{"containerPort": 80}],
                "livenessProbe": {"httpGet": {"port": "http"}}}]},
        });
        let mut kept = template.clone();
        kept["spec"]["containers"][0]["ports"][0]["protocol"] = json!("TCP");
        let spec = stored(&with("ScaledJob", "jobTargetRef.template", template)).await;
        let mut found = spec["jobTargetRef"]["template"].clone();
        for template in [&mut found, &mut kept] {
            template["metadata"].as_object_mut().unwrap().shift_remove("creationTimestamp");
        }
        assert_eq!(found, kept);
    })
}
