//! Growing and shrinking on each type of metric; conditions, events and status as Kubernetes writes them.

use localkube::metrics::{DescribedObject, PodUsage, Series};
use serde_json::json;
use testbed::harness::Failure;

use crate::env::on_both;

#[test]
fn cpu_scales_a_deployment_up_and_down() -> Result<(), Failure> {
    on_both(async |env| {
        env.workload("web", 3).await;
        env.usage("web", 3, 900, 1 << 28);
        let metric = json!([{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}
        }}]);
        env.hpa("web", 1, 10, metric).await;
        let ours = env.controller(env.settings());
        env.until_replicas("web", 6).await;
        env.until_reported("web", 6).await;
        env.set_ready_replicas("web", 6).await;
        for number in 3..6 {
            env.pod("web", number).await;
        }
        env.usage("web", 6, 500, 1 << 28);
        // An earlier reconcile used the samples of three pods.
        env.until("the usage of all six", async || {
            let seen =
                env.hpa_object("web").await["status"]["currentMetrics"][0]["resource"]["current"].clone();
            if seen["averageValue"] == "500m" { Ok(()) } else { Err(seen) }
        })
        .await;
        env.until_condition("web", "AbleToScale", "True ReadyForNewScale").await;
        let hpa = env.hpa_object("web").await;
        assert_eq!(hpa["status"]["currentReplicas"], 6);
        assert_eq!(hpa["status"]["currentMetrics"][0]["resource"]["current"]["averageUtilization"], 50);
        env.usage("web", 6, 100, 1 << 28);
        env.until_replicas("web", 2).await;
        ours.stop().await;
        let events = env.events("web").await;
        let reason = "cpu resource utilization (percentage of request) above target";
        assert!(
            events.contains(&format!("Normal/SuccessfulRescale: New size: 6; reason: {reason}")),
            "{events:?}"
        );
        let down = "Normal/SuccessfulRescale: New size: 2; reason: All metrics below target".to_owned();
        assert!(events.contains(&down), "{events:?}");
    })
}

#[test]
fn external_metric_scales_a_deployment_up() -> Result<(), Failure> {
    on_both(async |env| {
        env.workload("worker", 3).await;
        env.script.set_external(&env.namespace, "qlen", Series::milli(20_000).labelled(&[("q", "a")]));
        env.script.set_external(&env.namespace, "qlen", Series::milli(21_000).labelled(&[("q", "b")]));
        let metric = json!([{"type": "External", "external": {
            "metric": {"name": "qlen"}, "target": {"type": "AverageValue", "averageValue": "10"}
        }}]);
        env.hpa("worker", 1, 10, metric).await;
        let ours = env.controller(env.settings());
        env.until_replicas("worker", 5).await;
        env.until_condition("worker", "ScalingActive", "True ValidMetricFound").await;
        ours.stop().await;
    })
}

#[test]
fn pods_and_object_metrics_scale_a_deployment_up() -> Result<(), Failure> {
    on_both(async |env| {
        env.workload("api", 3).await;
        for number in 0..3 {
            let pod = DescribedObject::pod(&env.namespace, &format!("api-{number}"));
            env.script.set_custom(pod, "rps", Series::milli(20_000).of_object(&[("app", "api")]));
        }
        let pods = json!({"type": "Pods", "pods": {
            "metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}
        }});
        let object = json!({"type": "Object", "object": {
            "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "front"},
            "metric": {"name": "hits"}, "target": {"type": "Value", "value": "10"}
        }});
        env.hpa("api", 1, 20, json!([pods, object])).await;
        let front = DescribedObject::new(&env.namespace, "services", "front");
        env.script.set_custom(front, "hits", Series::milli(15_000));
        let ours = env.controller(env.settings());
        env.until_replicas("api", 6).await;
        ours.stop().await;
        let hpa = env.hpa_object("api").await;
        assert_eq!(hpa["status"]["currentMetrics"][0]["pods"]["current"]["averageValue"], "20");
        assert_eq!(hpa["status"]["currentMetrics"][1]["object"]["current"]["value"], "15");
    })
}

#[test]
fn memory_and_container_cpu_scale_deployments_up() -> Result<(), Failure> {
    on_both(async |env| {
        env.workload("cache", 3).await;
        env.usage("cache", 3, 100, 200 << 20);
        let memory = json!([{"type": "Resource", "resource": {
            "name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}
        }}]);
        env.hpa("cache", 1, 10, memory).await;

        env.workload("mesh", 3).await;
        for number in 0..3 {
            // The usage of the other container is ignored.
            let usage = PodUsage::new(&[("app", "mesh")], &[("app", 800, 1 << 20), ("proxy", 9000, 1 << 20)]);
            env.script.set_pod(&env.namespace, &format!("mesh-{number}"), usage);
        }
        let one = json!([{"type": "ContainerResource", "containerResource": {
            "name": "cpu", "container": "app", "target": {"type": "Utilization", "averageUtilization": 40}
        }}]);
        env.hpa("mesh", 1, 10, one).await;

        let ours = env.controller(env.settings());
        env.until_replicas("cache", 6).await;
        env.until_replicas("mesh", 6).await;
        env.until_reported("mesh", 6).await;
        env.until_reported("cache", 6).await;
        ours.stop().await;
        let hpa = env.hpa_object("cache").await;
        assert_eq!(hpa["status"]["currentMetrics"][0]["resource"]["current"]["averageValue"], "200Mi");
        let events = env.events("cache").await;
        assert_eq!(events, ["Normal/SuccessfulRescale: New size: 6; reason: memory resource above target"]);
        let hpa = env.hpa_object("mesh").await;
        let current = &hpa["status"]["currentMetrics"][0]["containerResource"]["current"];
        assert_eq!((&current["averageUtilization"], &current["averageValue"]), (&json!(80), &json!("800m")));
        let reason = "cpu container resource utilization (percentage of request) above target";
        let events = env.events("mesh").await;
        assert_eq!(events, [format!("Normal/SuccessfulRescale: New size: 6; reason: {reason}")]);
    })
}
