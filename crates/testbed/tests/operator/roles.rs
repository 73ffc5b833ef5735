//! The operator works under the roles of `deploy/operator`, is never refused, and needs every rule. localkube has no RBAC:
//! there, the test only checks that no request exceeds the roles.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};
use testbed::harness::Failure;

use crate::env::{
    ACCOUNT, Kubectl, SYSTEM_NAMESPACE, SourceResponse, TestNamespace, deployment, folder, metrics_api,
    on_both, scripted,
};
use crate::shared::roles::{Permission, check_answers, granted, needed};

/// Rules that no request of this test needs: group, resource, verb, and why.
const RULES_NOT_NEEDED_HERE: [(&str, &str, &str); 9] = [
    // The operator reads an object only if its creation had no response; here all requests get one.
    ("batch", "jobs", "get"),
    // Followers copy the passes of the leader; here is one replica.
    ("operator.plimsoll.dev", "passes", "list"),
    // Checked by API servers with the admission plugin OwnerReferencesPermissionEnforcement.
    ("keda.sh", "scaledobjects/finalizers", "update"),
    ("keda.sh", "scaledjobs/finalizers", "update"),
    // Certificates are renewed rarely; `replicas` does not wait for that.
    ("", "secrets", "update"),
    // `cpu` and `memory` in scaling mode `direct`; this cluster has no metrics server.
    ("metrics.k8s.io", "pods", "list"),
    // localkube does not serve this kind.
    ("", "replicationcontrollers", "get"),
    ("", "replicationcontrollers", "list"),
    ("", "replicationcontrollers", "watch"),
];

/// Custom resources with a scale subresource, as targets.
const BOATS: &str = "/apis/test.plimsoll.dev/v1/namespaces/{ns}/boats";

#[test]
fn operator_works_under_its_roles_and_needs_every_rule() -> Result<(), Failure> {
    on_both(async |ns| {
        let (ns, operator) = ns.serving().await;
        let kubectl = ns.kubectl();
        targets(&ns, &kubectl).await;
        credentials(&ns, &kubectl).await;
        sources(&ns, &kubectl).await;
        jobs(&ns, &kubectl).await;
        destination(&ns, &kubectl).await;
        operator.check();

        let log = ns.env.serving().await.proxy.rules().log();
        check_answers(&ns.namespace, &log);
        let objects = folder("deploy/operator");
        let mut role = granted(&objects, ACCOUNT);
        role.extend(granted(&objects, &format!("{ACCOUNT}-certificates")));
        let mut needed = needed(&log);
        // On the real cluster the ConfigMaps of the API server's own authentication are excluded.
        let config_map = |path: &str| path.contains("/configmaps/") && !path.contains("kube-system");
        if log.iter().any(|entry| config_map(&entry.path)) {
            let permission = |text: &str| text.to_owned();
            needed.insert(Permission {
                group: String::new(),
                resource: permission("configmaps"),
                verb: permission("get"),
            });
        }
        check(&role, &needed);
        let holder = ns
            .get(&format!(
                "/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases/operator.keda.sh"
            ))
            .await
            .1;
        assert!(holder["spec"]["holderIdentity"].is_string(), "{holder}");
    })
}

fn check(role: &[Permission], needed: &BTreeSet<Permission>) {
    // Token and access reviews are allowed by Kubernetes' own roles.
    let own = |need: &&Permission| !need.group.starts_with("auth");
    let missing: Vec<_> =
        needed.iter().filter(own).filter(|need| !role.iter().any(|held| held.covers(need))).collect();
    assert!(missing.is_empty(), "asked for, but not granted: {missing:#?}");
    let elsewhere = |held: &&Permission| {
        RULES_NOT_NEEDED_HERE.contains(&(held.group.as_str(), held.resource.as_str(), held.verb.as_str()))
    };
    let idle: Vec<_> = role
        .iter()
        .filter(|held| !elsewhere(held))
        .filter(|held| !needed.iter().any(|need| held.covers(need)))
        .collect();
    assert!(idle.is_empty(), "granted, but never needed: {idle:#?}");
}

/// Targets of each kind are activated, edited, paused and deleted.
async fn targets(ns: &TestNamespace, kubectl: &Kubectl) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.test.plimsoll.dev"},
        "spec": {
            "group": "test.plimsoll.dev", "scope": "Namespaced", "names": {"plural": "boats", "kind": "Boat"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                "subresources": {"scale": {"specReplicasPath": ".spec.crew", "statusReplicasPath": ".status.crew"}}
            }]
        }
    });
    kubectl.apply(&definition);
    ns.until("boats", async || {
        let (code, response) = ns.get(BOATS).await;
        if code == 200 { Ok(()) } else { Err(response) }
    })
    .await;
    let boat = json!({
        "apiVersion": "test.plimsoll.dev/v1", "kind": "Boat", "metadata": {"name": "role-boat"}, "spec": {"crew": 0}
    });
    kubectl.apply(&boat);
    kubectl.apply(&deployment("role-deployment", 0));
    let mut set = deployment("role-set", 0);
    set["kind"] = json!("ReplicaSet");
    kubectl.apply(&set);
    let mut stateful = deployment("role-stateful", 0);
    stateful["kind"] = json!("StatefulSet");
    stateful["spec"]["serviceName"] = json!("x");
    kubectl.apply(&stateful);
    let mut kinds = vec![
        ("role-deployment", "apps/v1", "Deployment"),
        ("role-set", "apps/v1", "ReplicaSet"),
        ("role-stateful", "apps/v1", "StatefulSet"),
        ("role-boat", "test.plimsoll.dev/v1", "Boat"),
    ];
    // localkube does not serve this kind.
    if ns.env.cluster.access.is_some() {
        let name = "role-replication";
        let mut controller = deployment(name, 0);
        controller["apiVersion"] = json!("v1");
        controller["kind"] = json!("ReplicationController");
        controller["spec"]["selector"] = json!({"app": name});
        kubectl.apply(&controller);
        kinds.push((name, "v1", "ReplicationController"));
    }
    for &(name, version, kind) in &kinds {
        ns.set_response(name, SourceResponse::Value(5));
        let mut trigger = scripted(ns, name);
        if kind != "Boat" {
            // The container's environment variables are read from the target itself, which may not be cached otherwise.
            trigger["metadata"]["noteFromEnv"] = json!("NOTE");
        }
        let target = json!({"apiVersion": version, "kind": kind, "name": name});
        kubectl.apply(&ns.scaled_object(name, &json!({"scaleTargetRef": target, "triggers": [trigger]})));
    }
    for &(name, _, kind) in &kinds {
        let field = if kind == "Boat" { "crew" } else { "replicas" };
        let line = format!("get {kind} {name} -o jsonpath={{.spec.{field}}}");
        ns.until(&format!("{name} awake"), async || {
            let response = kubectl.run_ok(&line);
            // The HPA may have scaled up further.
            if response.parse::<u32>().is_ok_and(|count| count > 0) {
                return Ok(());
            }
            Err((response, ns.object(name).await["status"].clone()))
        })
        .await;
        ns.until_condition(name, "Ready", "True ScaledObjectReady").await;
    }
    let most = json!({"maxReplicaCount": 7});
    kubectl.apply(&ns.scaled_object("role-deployment", &most));
    ns.until_hpa("keda-hpa-role-deployment", "an edit", |hpa| hpa["spec"]["maxReplicas"] == 7).await;
    kubectl.run_ok("annotate so role-deployment autoscaling.keda.sh/paused-replicas=0");
    ns.until_hpa("keda-hpa-role-deployment", "the end", Value::is_null).await;
    // This target does not exist.
    kubectl.apply(&ns.scaled_object("role-nothing", &json!({})));
    ns.until_condition("role-nothing", "Ready", "False ScaledObjectCheckFailed").await;
    // The webhook reads a target with a cpu trigger.
    let cpu = json!({"type": "cpu", "metricType": "Utilization", "metadata": {"value": "50"}});
    kubectl.apply(&deployment("role-cpu", 1));
    ns.until_judged().await;
    let (good, response) =
        kubectl.try_apply(&ns.scaled_object("role-cpu", &json!({"minReplicaCount": 1, "triggers": [cpu]})));
    assert!(!good && response.contains("doesn't have the cpu request defined"), "{response}");
    for (name, ..) in kinds {
        kubectl.run_ok(&format!("delete so {name}"));
    }
}

/// Credentials from each source.
async fn credentials(ns: &TestNamespace, kubectl: &Kubectl) {
    kubectl.run_ok("create secret generic role-login --from-literal=token=abc");
    kubectl.run_ok("create configmap role-settings --from-literal=token=abc");
    let named = |name: &str| json!([{"parameter": "token", "name": name, "key": "token"}]);
    let specs = [
        ("role-secret", json!({"secretTargetRef": named("role-login")})),
        ("role-map", json!({"configMapTargetRef": named("role-settings")})),
        ("role-identity", json!({"podIdentity": {"provider": "aws", "identityOwner": "workload"}})),
    ];
    for (name, spec) in &specs {
        kubectl.apply(&json!({
            "apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": {"name": name}, "spec": spec
        }));
        kubectl.apply(&deployment(name, 0));
        ns.set_response(name, SourceResponse::Guarded(5, "abc"));
        let mut trigger = metrics_api(ns, name, "10");
        trigger["metadata"]["authMode"] = json!("bearer");
        trigger["authenticationRef"] = json!({"name": name});
        kubectl.apply(&ns.scaled_object(name, &json!({"triggers": [trigger]})));
    }
    for name in ["role-secret", "role-map"] {
        ns.until_condition(name, "Active", "True ScalerActive").await;
    }
    // The operator must read the service account to see that it has no cloud role.
    ns.until_object("role-identity", "what is missing", |found| {
        TestNamespace::message(found, "Ready").contains("eks.amazonaws.com/role-arn")
    })
    .await;
    // A ClusterTriggerAuthentication, whose Secrets are in the operator's namespace.
    let cluster = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ClusterTriggerAuthentication", "metadata": {"name": "role-all"},
        "spec": {"secretTargetRef": named("role-nowhere")}
    });
    kubectl.apply(&cluster);
    let mut trigger = metrics_api(ns, "role-all", "10");
    trigger["authenticationRef"] = json!({"name": "role-all", "kind": "ClusterTriggerAuthentication"});
    kubectl.apply(&deployment("role-all", 0));
    kubectl.apply(&ns.scaled_object("role-all", &json!({"triggers": [trigger]})));
    ns.until_object("role-all", "what is missing", |found| {
        TestNamespace::message(found, "Ready").contains("role-nowhere does not exist")
    })
    .await;
    for name in ["role-secret", "role-map", "role-identity", "role-all"] {
        kubectl.run_ok(&format!("delete so {name}"));
    }
    kubectl.run_ok("delete clustertriggerauthentication role-all");
    kubectl.run_ok("delete triggerauthentication --all");
}

/// Sources in the cluster itself, and one whose failures are recorded repeatedly.
async fn sources(ns: &TestNamespace, kubectl: &Kubectl) {
    let workload =
        json!({"type": "kubernetes-workload", "metadata": {"podSelector": "app=role-pods", "value": "1"}});
    let mut service = metrics_api(ns, "role-service", "10");
    service["metadata"]["url"] = json!(format!("http://role-service.{}:80/x", ns.namespace));
    service["metadata"]["aggregateFromKubeServiceEndpoints"] = json!("true");
    let cases =
        [("role-pods", workload), ("role-service", service), ("role-fails", scripted(ns, "role-fails"))];
    ns.set_response("role-fails", SourceResponse::Fails("the queue is closed"));
    for (name, trigger) in &cases {
        kubectl.apply(&deployment(name, 1));
        kubectl.apply(&ns.scaled_object(name, &json!({"triggers": [trigger]})));
    }
    ns.until_condition("role-pods", "Ready", "True ScaledObjectReady").await;
    ns.until_condition("role-service", "Ready", "False TriggerError").await;
    ns.until("an event twice", async || {
        let events = ns.get("/api/v1/namespaces/{ns}/events").await.1;
        let items = events["items"].as_array().unwrap();
        let about: Vec<&Value> =
            items.iter().filter(|event| event["involvedObject"]["name"] == "role-fails").collect();
        let twice =
            |event: &&Value| event["count"].as_i64() > Some(1) || event["series"]["count"].as_i64() > Some(1);
        if about.iter().any(twice) { Ok(()) } else { Err(json!(about)) }
    })
    .await;
    for (name, _) in &cases {
        kubectl.run_ok(&format!("delete so {name}"));
    }
}

/// Jobs are created, watched with their pods, and deleted when the generation changes.
async fn jobs(ns: &TestNamespace, kubectl: &Kubectl) {
    ns.set_response("role-batch", SourceResponse::Value(10));
    kubectl.apply(&ns.scaled_job("role-batch", 1));
    let jobs = "/apis/batch/v1/namespaces/{ns}/jobs?labelSelector=scaledjob.keda.sh%2Fname%3Drole-batch";
    let count = async || ns.get(jobs).await.1["items"].as_array().unwrap().len();
    ns.until("a job", async || if count().await == 1 { Ok(()) } else { Err(()) }).await;
    ns.set_response("role-batch", SourceResponse::Value(0));
    kubectl.apply(&ns.scaled_job("role-batch", 2));
    ns.until("no job", async || if count().await == 0 { Ok(()) } else { Err(count().await) }).await;
    kubectl.run_ok("delete sj role-batch");
}

/// CloudEvents are delivered.
async fn destination(ns: &TestNamespace, kubectl: &Kubectl) {
    let uri = ns.env.sources.url(&ns.namespace, "role-events");
    let root = "/apis/eventing.keda.sh/v1alpha1";
    for (kind, place) in [
        ("CloudEventSource", format!("{root}/namespaces/{{ns}}/cloudeventsources")),
        ("ClusterCloudEventSource", format!("{root}/clustercloudeventsources")),
    ] {
        let name = ns.namespace.as_str();
        let path = format!("{place}/{name}");
        let wrote = format!("{}/status", path.replace("{ns}", name));
        // Operators of other tests reconcile cluster-scoped objects too, and may be faster.
        ns.until(&format!("a {kind} that this operator knows"), async || {
            kubectl.apply(&json!({
                "apiVersion": "eventing.keda.sh/v1alpha1", "kind": kind, "metadata": {"name": name},
                "spec": {"destination": {"http": {"uri": uri}}}
            }));
            ns.until(&format!("a {kind} that is known"), async || {
                let found = ns.get(&path).await.1;
                let active = TestNamespace::condition(&found, "Active");
                if active == "True CloudEventSourceActive" { Ok(()) } else { Err(found) }
            })
            .await;
            assert_eq!(ns.send(Method::DELETE, &path, None).await.0, 200);
            let log = ns.env.serving().await.proxy.rules().log();
            let is_ours = log.iter().any(|entry| entry.path.starts_with(&wrote));
            if is_ours { Ok(()) } else { Err("somebody else was faster") }
        })
        .await;
    }
}
