//! Objects that KEDA left behind are adopted: what is already right is not written. `handover` measures the switch under load.

mod handover;

use http::Method;
use serde_json::{Value, json};
use testbed::harness::Failure;
use testbed::keda::{Keda, KedaOptions};

use crate::env::{Operator, SourceResponse, TestNamespace, deployment, on_both};

const OBJECTS: &str = "/apis/keda.sh/v1alpha1/namespaces/{ns}/scaledobjects";

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message})
}

fn conditions(active: &Value, paused: &Value) -> Value {
    json!([
        condition(
            "Ready",
            "True",
            "ScaledObjectReady",
            "ScaledObject is defined correctly and is ready for scaling"
        ),
        active,
        condition("Fallback", "False", "NoFallbackFound", "No fallbacks are active on this scaled object"),
        paused,
    ])
}

impl TestNamespace {
    /// A ScaledObject as KEDA leaves it: with finalizer, label and status.
    async fn left(&self, name: &str, status: &Value, annotations: Value) -> Value {
        let mut object =
            self.scaled_object(name, &json!({"advanced": {"restoreToOriginalReplicaCount": true}}));
        object["metadata"] = json!({
            "name": name, "annotations": annotations, "finalizers": ["finalizer.keda.sh"],
            "labels": {"scaledobject.keda.sh/name": name, "team": "a"}
        });
        let (code, response) = self.send(Method::POST, OBJECTS, Some(&object)).await;
        assert_eq!(code, 201, "{response}");
        let mut full = json!({
            "externalMetricNames": [format!("s0-{name}")], "originalReplicaCount": 3, "triggersTypes": "external",
            "authenticationsTypes": "", "scaleTargetKind": "apps/v1.Deployment",
            "scaleTargetGVKR": {"group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments"},
        });
        for (field, value) in status.as_object().unwrap() {
            full[field.as_str()] = value.clone();
        }
        let path = format!("{OBJECTS}/{name}/status");
        let (code, response) = self.send(Method::PATCH, &path, Some(&json!({"status": full}))).await;
        assert_eq!(code, 200, "{response}");
        response
    }

    /// The HPA that KEDA 2.20.2 creates for such a ScaledObject.
    async fn left_hpa(&self, object: &Value) -> Value {
        let meta = &object["metadata"];
        let name = meta["name"].as_str().unwrap();
        let hpa = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {
                "name": format!("keda-hpa-{name}"), "annotations": meta["annotations"],
                "labels": {
                    "app.kubernetes.io/name": format!("keda-hpa-{name}"), "app.kubernetes.io/version": "2.20.2",
                    "app.kubernetes.io/part-of": name, "app.kubernetes.io/managed-by": "keda-operator",
                    "scaledobject.keda.sh/name": name, "team": "a"
                },
                "ownerReferences": [{
                    "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": name, "uid": meta["uid"],
                    "controller": true, "blockOwnerDeletion": true
                }]
            },
            "spec": {
                "minReplicas": 1, "maxReplicas": 10,
                "behavior": object["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"],
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                "metrics": [{"type": "External", "external": {
                    "metric": {
                        "name": format!("s0-{name}"),
                        "selector": {"matchLabels": {"scaledobject.keda.sh/name": name}}
                    },
                    "target": {"type": "AverageValue", "averageValue": "10"}
                }}]
            }
        });
        let path = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers";
        let (code, response) = self.send(Method::POST, path, Some(&hpa)).await;
        assert_eq!(code, 201, "{response}");
        response
    }
}

#[test]
fn objects_left_by_keda_are_adopted_unchanged() -> Result<(), Failure> {
    on_both(async |ns| {
        let kubectl = ns.kubectl();
        for name in ["worker", "paused", "ending"] {
            kubectl.apply(&deployment(name, 5));
            ns.set_response(name, SourceResponse::Value(45));
        }
        let now = api::instant::format(jiff::Timestamp::now());
        let awake =
            condition("Active", "True", "ScalerActive", "Scaling is performed because triggers are active");
        let not_paused = json!({"type": "Paused", "status": "False"});
        let served = |name: &str| {
            json!({
                "hpaName": format!("keda-hpa-{name}"), "lastActiveTime": now,
                "conditions": conditions(&awake, &not_paused),
                "triggersActivity": {(format!("s0-{name}")): {"isActive": true}},
            })
        };
        let worker = ns.left("worker", &served("worker"), json!({"note": "x"})).await;
        let hpa = ns.left_hpa(&worker).await;
        let pause = condition("Paused", "True", "ScaledObjectPaused", "ScaledObject is paused");
        let mut response = conditions(&awake, &pause);
        response[0]["message"] = json!("ScaledObject is paused");
        let paused = json!({"pausedReplicaCount": 5, "conditions": response});
        let paused = ns.left("paused", &paused, json!({"autoscaling.keda.sh/paused-replicas": "5"})).await;
        let ending = ns.left("ending", &served("ending"), json!({"note": "x"})).await;
        ns.left_hpa(&ending).await;
        kubectl.run_ok("delete so ending --wait=false");
        let jobs = job(&ns).await;
        let before = ns.generation("worker").await;

        let operator = Operator::start(&ns, &[]).await;
        ns.rounds("worker", 6).await;
        let same = ns.hpa("keda-hpa-worker").await;
        assert_eq!(same, hpa, "the HPA is as it was, to the version");
        let object = ns.object("worker").await;
        assert_eq!(object["metadata"]["generation"], worker["metadata"]["generation"]);
        for field in ["finalizers", "labels", "annotations", "uid"] {
            assert_eq!(object["metadata"][field], worker["metadata"][field]);
        }
        for field in
            ["hpaName", "originalReplicaCount", "externalMetricNames", "conditions", "triggersActivity"]
        {
            assert_eq!(object["status"][field], worker["status"][field], "{field}");
        }
        assert_eq!(ns.generation("worker").await, before, "its count was not written");
        assert_eq!(ns.events("worker").await, [""; 0], "nothing has happened");

        // A paused object stays paused; a deleted object is finalized and its original count restored.
        assert_eq!(ns.object("paused").await["status"], paused["status"]);
        ns.until_object("ending", "the end", Value::is_null).await;
        assert_eq!(ns.replicas("ending").await, 3);
        ns.until_hpa("keda-hpa-ending", "the end", Value::is_null).await;
        let path = "/apis/batch/v1/namespaces/{ns}/jobs";
        ns.rounds("batch", 6).await;
        let found = ns.get(path).await.1["items"].as_array().unwrap().clone();
        let names: Vec<&Value> = found.iter().map(|job| &job["metadata"]["uid"]).collect();
        assert_eq!(names, jobs.iter().collect::<Vec<_>>(), "jobs that run count, and are kept");

        // The operator manages it from now on.
        ns.set_response("worker", SourceResponse::Value(0));
        ns.until_replicas("worker", 0).await;
        kubectl.run_ok("annotate so paused autoscaling.keda.sh/paused-replicas-");
        ns.until_hpa("keda-hpa-paused", "presence", |hpa| !hpa.is_null()).await;
        operator.check();
    })
}

/// A ScaledJob with one job that KEDA created; returns the UIDs of its jobs.
async fn job(ns: &TestNamespace) -> Vec<Value> {
    let mut object = ns.scaled_job("batch", 1);
    object["metadata"]["finalizers"] = json!(["finalizer.keda.sh"]);
    ns.set_response("batch", SourceResponse::Value(100));
    let path = "/apis/keda.sh/v1alpha1/namespaces/{ns}/scaledjobs";
    let (code, made) = ns.send(Method::POST, path, Some(&object)).await;
    assert_eq!(code, 201, "{made}");
    let labels = json!({
        "app.kubernetes.io/name": "batch-x", "app.kubernetes.io/version": "2.20.2",
        "app.kubernetes.io/part-of": "batch", "app.kubernetes.io/managed-by": "keda-operator",
        "scaledjob.keda.sh/name": "batch"
    });
    let mut pods = object["spec"]["jobTargetRef"]["template"].clone();
    pods["metadata"] = json!({"labels": {"scaledjob.keda.sh/name": "batch"}});
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": "batch-x", "labels": labels, "annotations": {"scaledjob.keda.sh/generation": "1"},
            "ownerReferences": [{
                "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob", "name": "batch",
                "uid": made["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true
            }]
        },
        "spec": {"template": pods}
    });
    let (code, made) = ns.send(Method::POST, "/apis/batch/v1/namespaces/{ns}/jobs", Some(&job)).await;
    assert_eq!(code, 201, "{made}");
    vec![made["metadata"]["uid"].clone()]
}

/// A ScaledObject without fields that change with time.
async fn still(ns: &TestNamespace, name: &str) -> Value {
    let mut object = ns.object(name).await;
    if let Some(status) = object["status"].as_object_mut() {
        status.shift_remove("lastActiveTime");
        // It depends on an HPA controller, which does not run here.
        let conditions = status["conditions"].as_array_mut().unwrap();
        conditions.retain(|condition| condition["type"] != "HPAActive");
        conditions.sort_by_key(|condition| condition["type"].as_str().unwrap().to_owned());
    }
    let meta = object["metadata"].as_object_mut().unwrap();
    meta.shift_remove("resourceVersion");
    meta.shift_remove("managedFields");
    object
}

#[test]
#[ignore = "builds KEDA, which takes nine minutes: make differential-keda"]
fn keda_itself_is_replaced_and_comes_back_and_nothing_is_written() -> Result<(), Failure> {
    on_both(async |ns| {
        // KEDA runs on real clusters only.
        let Some(access) = ns.env.cluster.access else { return };
        let options = KedaOptions { namespace: Some(ns.namespace.clone()), ..KedaOptions::default() };
        let keda = Keda::start(access, &options).await.unwrap();
        let kubectl = ns.kubectl();
        for name in ["worker", "paused"] {
            kubectl.apply(&deployment(name, 1));
            ns.set_response(name, SourceResponse::Value(45));
            let mut object =
                ns.scaled_object(name, &json!({"fallback": {"failureThreshold": 3, "replicas": 4}}));
            object["metadata"]["labels"] = json!({"team": "a"});
            object["metadata"]["annotations"] = json!({"note": "x"});
            kubectl.apply(&object);
            ns.until_condition(name, "Active", "True ScalerActive").await;
        }
        kubectl.run_ok("annotate so paused autoscaling.keda.sh/paused-replicas=2");
        ns.until_replicas("paused", 2).await;
        ns.until_hpa("keda-hpa-paused", "the end", Value::is_null).await;
        ns.until_condition("paused", "Paused", "True ScaledObjectPaused").await;
        // As an HPA would.
        kubectl.run_ok("scale deployment worker --replicas=5");
        ns.rounds("worker", 4).await;
        let before = (still(&ns, "worker").await, still(&ns, "paused").await, ns.generation("worker").await);
        let hpa = ns.hpa("keda-hpa-worker").await;
        drop(keda);

        let operator = Operator::start(&ns, &[]).await;
        ns.rounds("worker", 6).await;
        assert_eq!(ns.hpa("keda-hpa-worker").await, hpa, "the HPA is as it was, to the version");
        let after = (still(&ns, "worker").await, still(&ns, "paused").await, ns.generation("worker").await);
        assert_eq!(after, before);
        operator.check();
        operator.kill();

        let _keda = Keda::start(access, &options).await.unwrap();
        ns.rounds("worker", 6).await;
        let back = ns.hpa("keda-hpa-worker").await;
        for field in ["uid", "labels", "annotations", "ownerReferences"] {
            assert_eq!(back["metadata"][field], hpa["metadata"][field]);
        }
        assert_eq!(back["spec"], hpa["spec"]);
        let after = (still(&ns, "worker").await, still(&ns, "paused").await, ns.generation("worker").await);
        assert_eq!(after, before);
        ns.set_response("worker", SourceResponse::Value(0));
        ns.until_replicas("worker", 0).await;
        kubectl.run_ok("delete so --all");
    })
}
