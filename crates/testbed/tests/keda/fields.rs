//! Objects with every field that KEDA 2.20 publishes: each is accepted, and no field is lost.

use http::Method;
use serde_json::{Value, json};
use testbed::harness::{Failure, on_both};

use crate::requests::{define, place, send_request};

fn trigger(of_objects: bool) -> Value {
    let mut trigger = json!({
        "type": "prometheus", "name": "a", "useCachedMetrics": true,
        "metadata": {"serverAddress": "http://prometheus", "query": "up", "threshold": "1"},
        "authenticationRef": {"name": "credentials", "kind": "ClusterTriggerAuthentication"},
    });
    if of_objects {
        trigger["metricType"] = json!("Value");
    }
    trigger
}

fn scaled_object() -> Value {
    let rules = |policy: &str| {
        json!({"stabilizationWindowSeconds": 60, "selectPolicy": policy, "tolerance": "50m",
            "policies": [{"type": "Percent", "value": 10, "periodSeconds": 15}]})
    };
    json!({
        "scaleTargetRef": {"name": "web", "apiVersion": "apps/v1", "kind": "StatefulSet", "envSourceContainerName": "c"},
        "pollingInterval": 1, "initialCooldownPeriod": 0, "cooldownPeriod": 0,
        "idleReplicaCount": 0, "minReplicaCount": 2, "maxReplicaCount": 9,
        "advanced": {
            "restoreToOriginalReplicaCount": true,
            "horizontalPodAutoscalerConfig": {"name": "h", "behavior": {"scaleUp": rules("Max"), "scaleDown": rules("Disabled")}},
            "scalingModifiers": {"formula": "a", "target": "2.5", "activationTarget": "1", "metricType": "AverageValue"},
        },
        "triggers": [trigger(true)],
        "fallback": {"failureThreshold": 0, "replicas": 0, "behavior": "scalingModifiers"},
    })
}

fn scaled_job() -> Value {
    let container = json!({
        "name": "c", "image": "i", "command": ["a"], "args": ["b"],
        "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}}],
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "m", "optional": true}}],
        "ports": [{"containerPort": 80, "protocol": "UDP"}],
        "resources": {"requests": {"cpu": 1, "memory": "64Mi"}},
    });
    let pods = json!({
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["e/f"], "anything": {"else": 1}},
        "spec": {"restartPolicy": "Never", "containers": [container], "workloadRef": {"name": "w", "podGroup": "g"}},
    });
    json!({
        "jobTargetRef": {"parallelism": 1, "completions": 1, "backoffLimit": 3, "activeDeadlineSeconds": 60,
            "ttlSecondsAfterFinished": 5, "suspend": false, "completionMode": "NonIndexed", "template": pods},
        "pollingInterval": 1, "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0, "rolloutStrategy": "gradual",
        "rollout": {"strategy": "immediate", "propagationPolicy": "foreground"}, "envSourceContainerName": "c",
        "minReplicaCount": 1, "maxReplicaCount": 2,
        "scalingStrategy": {"strategy": "custom", "customScalingQueueLengthDeduction": 1,
            "customScalingRunningJobPercentage": "0.5", "pendingPodConditions": ["Ready"], "multipleScalersCalculation": "sum"},
        "triggers": [trigger(false)],
    })
}

fn authentication() -> Value {
    let secret = || json!({"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}});
    let identity = json!({"provider": "azure-workload", "identityId": "i", "identityTenantId": "t",
        "identityAuthorityHost": "h", "roleArn": "r", "externalID": "e", "identityOwner": "workload"});
    let pki = json!({"commonName": "c", "altNames": "a", "ipSans": "i", "uriSans": "u", "otherSans": "o", "ttl": "1h", "format": "pem"});
    json!({
        "podIdentity": identity,
        "secretTargetRef": [{"parameter": "p", "name": "n", "key": "k"}],
        "configMapTargetRef": [{"parameter": "p", "name": "n", "key": "k"}],
        "env": [{"parameter": "p", "name": "N", "containerName": "c"}],
        "filePath": "team/credentials.json",
        "hashiCorpVault": {"address": "http://vault", "authentication": "kubernetes", "namespace": "n", "mount": "m", "role": "r",
            "credential": {"token": "t", "serviceAccount": "/f", "serviceAccountName": "a"},
            "secrets": [{"parameter": "p", "path": "a/b", "key": "k", "type": "pki", "pkiData": pki}]},
        "azureKeyVault": {"vaultUri": "https://v", "secrets": [{"parameter": "p", "name": "n", "version": "1"}],
            "credentials": {"clientId": "c", "tenantId": "t", "clientSecret": secret()}, "podIdentity": identity,
            "cloud": {"type": "Private", "keyVaultResourceURL": "u", "activeDirectoryEndpoint": "e"}},
        "gcpSecretManager": {"secrets": [{"parameter": "p", "id": "i", "version": "2"}],
            "credentials": {"clientSecret": secret()}, "podIdentity": {"provider": "gcp"}},
        "awsSecretManager": {"region": "r", "podIdentity": {"provider": "aws"},
            "secrets": [{"parameter": "p", "name": "n", "versionId": "i", "versionStage": "s", "secretKey": "k"}],
            "credentials": {"accessKey": secret(), "accessSecretKey": secret(), "accessToken": secret()}},
        "boundServiceAccountToken": [{"parameter": "p", "serviceAccountName": "a"}],
        "oauth2": {"type": "clientCredentials", "clientId": "c", "clientSecret": secret(), "tokenUrl": "https://t",
            "scopes": ["a", "b"], "tokenUrlParams": {"k": "v"}},
    })
}

fn destination() -> Value {
    json!({
        "clusterName": "c",
        "destination": {"http": {"uri": "http://u"}, "azureEventGridTopic": {"endpoint": "https://e"}},
        "authenticationRef": {"name": "n", "kind": "TriggerAuthentication"},
        "eventSubscription": {
            "includedEventTypes": api::keda::EVENT_TYPES,
            "excludedEventTypes": ["keda.scaledjob.rolloutcleanup.failed.v1", "keda.authentication.clustertriggerauthentication.removed.v1"],
        },
    })
}

/// Every condition with every field.
fn conditions(types: &[&str]) -> Value {
    types
        .iter()
        .map(|type_| json!({"type": type_, "status": "Unknown", "reason": "R", "message": "m"}))
        .collect()
}

fn kinds() -> [(&'static str, Value, Value); 6] {
    let object = json!({
        "scaleTargetKind": "apps/v1.StatefulSet",
        "scaleTargetGVKR": {"group": "apps", "version": "v1", "kind": "StatefulSet", "resource": "statefulsets"},
        "originalReplicaCount": 0, "lastActiveTime": "2026-01-02T03:04:05Z",
        "externalMetricNames": ["s0-a"], "resourceMetricNames": ["cpu"], "compositeScalerName": "composite-metric",
        "conditions": conditions(&["Ready", "Active", "Fallback", "Paused", "HPAActive"]),
        "health": {"s0-a": {"numberOfFailures": 0, "status": "Happy"}, "s1-b": {"numberOfFailures": 4, "status": "Failing"}},
        "triggersActivity": {"s0-a": {"isActive": false}}, "pausedReplicaCount": 0, "hpaName": "h",
        "triggersTypes": "cpu,redis", "authenticationsTypes": "",
    });
    let job = json!({
        "lastActiveTime": "2026-01-02T03:04:05Z", "conditions": conditions(&["Ready", "Active", "Fallback", "Paused"]),
        "Paused": "x", "triggersTypes": "a", "authenticationsTypes": "b", "externalMetricNames": ["s0-a"],
        "triggersActivity": {"s0-a": {"isActive": true}},
    });
    let users = json!({"scaledobjects": "a,b", "scaledjobs": "c"});
    let active = json!({"conditions": conditions(&["Active"])});
    [
        ("ScaledObject", scaled_object(), object),
        ("ScaledJob", scaled_job(), job),
        ("TriggerAuthentication", authentication(), users.clone()),
        ("ClusterTriggerAuthentication", authentication(), users),
        ("CloudEventSource", destination(), active.clone()),
        ("ClusterCloudEventSource", destination(), active),
    ]
}

/// The same JSON with sorted keys.
fn sorted(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    value.to_string()
}

#[test]
fn fields_of_published_keda_objects_are_accepted_and_kept() -> Result<(), Failure> {
    on_both(async |ns| {
        define(&ns).await;
        for (kind, spec, status) in kinds() {
            let group = if kind.ends_with("CloudEventSource") { "eventing.keda.sh" } else { "keda.sh" };
            let name = format!("every-field-{}", ns.namespace);
            let object = json!({"apiVersion": format!("{group}/v1alpha1"), "kind": kind, "metadata": {"name": name}, "spec": spec});
            let collection = place(&ns, kind);
            let uri = format!("{collection}?fieldValidation=Strict");
            let made = send_request(&ns.client, Method::POST, &uri, Some(&object)).await;
            assert_eq!(made.code, 201, "{kind} on {}: {}", ns.cluster, made.message());
            assert_eq!(sorted(&made.body["spec"]), sorted(&spec), "{kind} on {}", ns.cluster);

            let mut whole = made.body.clone();
            whole["status"] = status.clone();
            let own = format!("{collection}/{name}");
            let uri = format!("{own}/status?fieldValidation=Strict");
            let response = send_request(&ns.client, Method::PUT, &uri, Some(&whole)).await;
            assert_eq!(response.code, 200, "{kind} on {}: {}", ns.cluster, response.message());
            let read = send_request(&ns.client, Method::GET, &own, None).await.body;
            assert_eq!(sorted(&read["status"]), sorted(&status), "{kind} on {}", ns.cluster);
            assert_eq!(sorted(&read["spec"]), sorted(&spec), "{kind} on {}", ns.cluster);

            // Our Rust types keep all fields too.
            let kept = match kind {
                "ScaledObject" => through::<api::keda::ScaledObject>(&read),
                "ScaledJob" => through::<api::keda::ScaledJob>(&read),
                "CloudEventSource" | "ClusterCloudEventSource" => {
                    through::<api::keda::CloudEventSource>(&read)
                }
                _ => through::<api::keda::TriggerAuthentication>(&read),
            };
            for part in ["spec", "status"] {
                assert_eq!(sorted(&kept[part]), sorted(&read[part]), "{part} of {kind}");
            }
            let gone = send_request(&ns.client, Method::DELETE, &own, None).await;
            assert_eq!(gone.code, 200, "{kind} on {}: {}", ns.cluster, gone.message());
        }
    })
}

fn through<T: serde::de::DeserializeOwned + serde::Serialize>(object: &Value) -> Value {
    json!(serde_json::from_value::<T>(object.clone()).unwrap())
}
