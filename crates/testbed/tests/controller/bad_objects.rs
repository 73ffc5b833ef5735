//! Invalid objects, which match the schema or were stored without validation: each gets a condition or an event, and other objects are
//! scaled as usual.

use serde_json::{Value, json};
use testbed::harness::Failure;

use crate::env::{ControllerEnv, PERIOD, cpu, on_both, queue, reconciles_within};

/// An invalid spec.
fn cases() -> Vec<(&'static str, Value)> {
    let target = |field: &str, value: Value| {
        let mut target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "{name}"});
        target[field] = value;
        json!({"scaleTargetRef": target})
    };
    let metrics = |metrics: Value| json!({"metrics": metrics});
    let average = |value: &str| {
        metrics(json!([{"type": "External", "external": {
            "metric": {"name": "{name}"}, "target": {"type": "AverageValue", "averageValue": value}
        }}]))
    };
    let down = |rules: Value| json!({"behavior": {"scaleDown": rules}});
    let up = |rules: Value| json!({"behavior": {"scaleUp": rules}});
    let policy = |kind: &str, value: i64, period: i64| json!({"policies": [{"type": kind, "value": value, "periodSeconds": period}]});
    vec![
        ("min above max", json!({"minReplicas": 6, "maxReplicas": 2})),
        ("max zero", json!({"maxReplicas": 0})),
        ("max negative", json!({"maxReplicas": -5})),
        ("min negative", json!({"minReplicas": -3})),
        ("min zero without the gate", json!({"minReplicas": 0})),
        ("max as large as can be", json!({"maxReplicas": i32::MAX})),
        ("no metrics", metrics(json!([]))),
        ("a type that nobody knows", metrics(json!([{"type": "Horoscope"}]))),
        ("an empty type", metrics(json!([{"type": ""}]))),
        ("a type without its source", metrics(json!([{"type": "Resource"}]))),
        (
            "another source than the type",
            metrics(json!([{"type": "Pods", "external": queue("{name}")["external"]}])),
        ),
        ("a source without its target", metrics(json!([{"type": "Resource", "resource": {"name": "cpu"}}]))),
        (
            "no resource",
            metrics(json!([{"type": "Resource", "resource": {
                "name": "", "target": {"type": "Utilization", "averageUtilization": 50}
            }}])),
        ),
        ("a target of nothing", average("0")),
        ("a target below nothing", average("-10")),
        ("the smallest target", average("1n")),
        ("the largest target", average("9223372036854775807")),
        ("a percentage of zero", metrics(json!([cpu(0)]))),
        ("a negative percentage", metrics(json!([cpu(-50)]))),
        ("the largest percentage", metrics(json!([cpu(i32::MAX)]))),
        ("an empty kind", target("kind", json!(""))),
        ("a kind that nobody knows", target("kind", json!("Wish"))),
        ("a kind that cannot be scaled", target("kind", json!("ConfigMap"))),
        ("an empty name", target("name", json!(""))),
        ("a name that leads elsewhere", target("name", json!("../../../secrets/x?y#z"))),
        ("a name of other letters", target("name", json!("ñandú-\u{1f426}"))),
        ("a group like no other", target("apiVersion", json!("///"))),
        ("a window below nothing", down(json!({"stabilizationWindowSeconds": -5}))),
        ("the longest window", up(json!({"stabilizationWindowSeconds": i32::MAX}))),
        ("the largest policy", up(policy("Percent", i64::from(i32::MAX), 1800))),
        ("a policy below nothing", down(policy("Pods", -3, 60))),
        ("a policy of no time", up(policy("Pods", 4, 0))),
        ("a policy of negative time", up(policy("Percent", 100, -60))),
        ("a policy of an unknown kind", down(policy("Moods", 4, 60))),
        ("no policies", down(json!({"policies": []}))),
        (
            "a choice that nobody knows",
            up(json!({"selectPolicy": "Whatever", "policies": [
                {"type": "Pods", "value": 4, "periodSeconds": 60}
            ]})),
        ),
        ("a tolerance below nothing", down(json!({"tolerance": "-1"}))),
        (
            "a metric with a very long name",
            metrics(json!([{"type": "External", "external": {
                "metric": {"name": "n".repeat(10_000)}, "target": {"type": "Value", "value": "1"}
            }}])),
        ),
        (
            "a metric with an odd name and selector",
            metrics(json!([{"type": "External", "external": {
                "metric": {"name": "a/../%2e%2e?x=\u{1f433}#", "selector": {"matchExpressions": [{"key": "", "operator": "Near", "values": ["x"]}]}},
                "target": {"type": "Value", "value": "1"}
            }}])),
        ),
        ("a very long list of metrics", metrics(Value::Array((0..200).map(|_| queue("{name}")).collect()))),
    ]
}

/// Objects with wrong types, which only localkube's store can hold: a real API server could not list them.
fn of_other_types() -> Vec<(&'static str, Value)> {
    vec![
        ("a word for a number", json!({"maxReplicas": "three"})),
        ("a fraction", json!({"minReplicas": 1.5})),
        ("a number beyond all", json!({"maxReplicas": 1e30})),
        ("an object for a list", json!({"metrics": {"type": "Resource"}})),
        ("a word for an object", json!({"scaleTargetRef": "web"})),
        (
            "a quantity that is none",
            json!({"metrics": [{"type": "External", "external": {
                "metric": {"name": "x"}, "target": {"type": "Value", "value": "many"}
            }}]}),
        ),
    ]
}

fn object(name: &str, wrong: &Value) -> Value {
    let mut spec = json!({
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": 2, "maxReplicas": 8, "metrics": [queue(name)]
    });
    let wrong: Value = serde_json::from_str(&wrong.to_string().replace("{name}", name)).unwrap();
    for (field, value) in wrong.as_object().unwrap() {
        spec[field] = value.clone();
    }
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {}, "spec": spec})
}

#[test]
fn invalid_objects_get_conditions_and_do_not_affect_others() -> Result<(), Failure> {
    on_both(async |env| {
        let mut cases = cases();
        let typed = cases.len();
        if !env.is_real() {
            cases.extend(of_other_types());
        }
        env.deployment("good", 4).await;
        env.ask_for("good", 4);
        env.hpa("good", 2, 8, json!([queue("good")])).await;
        let name = |number: usize| format!("bad-{number}");
        for (number, (_, wrong)) in cases.iter().enumerate() {
            let name = name(number);
            env.deployment(&name, 4).await;
            env.ask_for(&name, 6);
            env.store_raw(&name, object(&name, wrong)).await;
        }
        let ours = env.controller(env.settings());
        env.until_condition("good", "ScalingActive", "True ValidMetricFound").await;
        for (number, (what, _)) in cases.iter().enumerate() {
            reported(&env, &name(number), what, number >= typed).await;
        }
        // Other objects are created and deleted meanwhile.
        for wanted in [7, 3] {
            env.ask_for("good", wanted);
            let before = env.metric_reads("good");
            env.until_replicas("good", wanted).await;
            let took = env.metric_reads("good") - before;
            assert!(took <= reconciles_within(2 * PERIOD), "on {}: {took} reconciles", env.cluster);
        }
        assert!(ours.is_alive() && ours.handle.is_alive(std::time::Duration::from_secs(5)));
        // A corrected object is reconciled.
        let corrected = name(0);
        env.store_raw(&corrected, object(&corrected, &json!({}))).await;
        env.until_replicas(&corrected, 6).await;
        ours.stop().await;
    })
}

/// Waits for a condition or an event about the object.
async fn reported(env: &ControllerEnv, name: &str, what: &str, unreadable: bool) {
    env.until(what, async || {
        let events = env.events(name).await;
        if unreadable {
            let named = events.iter().any(|event| event.starts_with("Warning/InvalidObject: "));
            return if named { Ok(()) } else { Err(events) };
        }
        let hpa = env.hpa_object(name).await;
        let conditions = hpa["status"]["conditions"].as_array().is_some_and(|all| !all.is_empty());
        if conditions || !events.is_empty() { Ok(()) } else { Err(events) }
    })
    .await;
    if std::env::var_os("PLIMSOLL_SHOW").is_some() {
        let count = env.replicas(name).await;
        let conditions = if unreadable { String::new() } else { shown(env, name).await };
        println!("{}: {what}: {count} {conditions} {:?}", env.cluster, env.events(name).await);
    }
}

async fn shown(env: &ControllerEnv, name: &str) -> String {
    let mut shown = Vec::new();
    for kind in ["AbleToScale", "ScalingActive", "ScalingLimited"] {
        shown.push(env.condition(name, kind).await);
    }
    shown.join(" / ")
}

/// The object is too large: its status cannot be stored, which an event reports.
#[test]
fn object_of_one_megabyte_is_scaled() -> Result<(), Failure> {
    on_both(async |env| {
        for name in ["good", "fat"] {
            env.deployment(name, 4).await;
            env.ask_for(name, 6);
        }
        let mut fat = object("fat", &json!({}));
        fat["metadata"]["annotations"] = json!({"story": "once upon a time ".repeat(60_000)});
        env.store_raw("fat", fat).await;
        env.hpa("good", 2, 8, json!([queue("good")])).await;
        let ours = env.controller(env.settings());
        env.until_replicas("good", 6).await;
        env.until_replicas("fat", 6).await;
        env.until("an event", async || {
            let events = env.events("fat").await;
            if events.iter().any(|event| event.starts_with("Normal/SuccessfulRescale: ")) {
                Ok(())
            } else {
                Err(events)
            }
        })
        .await;
        env.ask_for("good", 3);
        env.until_replicas("good", 3).await;
        assert!(ours.is_alive());
        ours.stop().await;
    })
}
