//! Metrics APIs that are missing, broken or return absurd values. An unreadable metric never counts as zero.

use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use localkube::metrics::{DescribedObject, MetricsGroup, Outage, PodUsage, SampleTime, Series};
use serde_json::{Value, json};
use testbed::harness::Failure;

use crate::env::{
    ControllerEnv, PERIOD, ReplicaWatch, alone_on_both, cpu, on_both, queue, reconciles_within,
};

/// Timeout of a request without a response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an API server may take to find an API that has come back.
const API_RECOVERY_TIMEOUT: Duration = Duration::from_secs(30);

const SERVICES: [&str; 4] = [
    "v1beta1.metrics.k8s.io",
    "v1beta2.custom.metrics.k8s.io",
    "v1beta1.custom.metrics.k8s.io",
    "v1beta1.external.metrics.k8s.io",
];

/// One workload for each API, all of the same size.
const WORKLOADS: [(&str, &str); 3] = [
    ("by-cpu", "False FailedGetResourceMetric"),
    ("by-pods", "False FailedGetPodsMetric"),
    ("by-queue", "False FailedGetExternalMetric"),
];

#[test]
fn missing_metrics_prevent_scale_down_and_set_conditions() -> Result<(), Failure> {
    alone_on_both(async |env| {
        let unavailable =
            Outage::Status { code: 503, reason: "ServiceUnavailable", message: "not now".into() };
        let outages = [
            ("503", Some(unavailable), Duration::ZERO),
            (
                "another answer than JSON",
                Some(Outage::Text { code: 502, body: "bad gateway".into() }),
                Duration::ZERO,
            ),
            ("empty lists", Some(Outage::Empty), Duration::ZERO),
            ("garbage", Some(Outage::Garbage), Duration::ZERO),
            ("cut answers", Some(Outage::Cut), Duration::ZERO),
            ("no answer", Some(Outage::Hang), REQUEST_TIMEOUT),
            ("not registered", None, API_RECOVERY_TIMEOUT),
        ];
        for name in ["by-cpu", "by-pods"] {
            env.workload(name, 4).await;
        }
        env.deployment("by-queue", 4).await;
        set(&env, 6);
        env.hpa("by-cpu", 2, 8, json!([cpu(50)])).await;
        let rps = json!({"type": "Pods", "pods": {
            "metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}
        }});
        env.hpa("by-pods", 2, 8, json!([rps])).await;
        env.hpa("by-queue", 2, 8, json!([queue("by-queue")])).await;
        let ours = env.controller(env.settings());
        settled(&env, 6).await;
        let observers = join_all(WORKLOADS.map(|(name, _)| env.observer(name))).await;
        let seen = || observers.iter().map(|observer| observer.seen().len()).collect::<Vec<_>>();
        for (name, outage, slow) in outages {
            for observer in &observers {
                observer.caught_up(&env, 6).await;
            }
            let before = seen();
            let removed = begin(&env, outage.as_ref()).await;
            set(&env, 3);
            for (workload, condition) in WORKLOADS {
                env.until_condition(workload, "ScalingActive", condition).await;
            }
            env.until_decisions(&ours, &WORKLOADS.map(|(name, _)| name), 2).await;
            assert_eq!(seen(), before, "on {}: something was scaled during {name}", env.cluster);
            end(&env, removed).await;
            let decisions = || WORKLOADS.map(|(workload, _)| ours.decisions(&env.namespace, workload));
            let before = decisions();
            settled(&env, 3).await;
            let took = decisions().iter().zip(before).map(|(now, before)| now.saturating_sub(before)).max();
            println!("{}: right {took:?} reconciles after {name}", env.cluster);
            assert!(
                took <= Some(reconciles_within(2 * PERIOD + slow)),
                "on {}: {name} took {took:?} reconciles",
                env.cluster
            );
            set(&env, 6);
            settled(&env, 6).await;
        }
        assert!(
            observers
                .iter()
                .flat_map(ReplicaWatch::counts)
                .all(|count| count == 6 || count == 3 || count == 4)
        );
        assert!(ours.is_alive());
        ours.stop().await;
    })
}

/// Sets the metrics so that this count is right for all workloads.
fn set(env: &ControllerEnv, right: i64) {
    env.usage("by-cpu", 4, right * 125, 1);
    for number in 0..4 {
        let pod = DescribedObject::pod(&env.namespace, &format!("by-pods-{number}"));
        env.script.set_custom(pod, "rps", Series::milli(right * 2_500).of_object(&[("app", "by-pods")]));
    }
    env.ask_for("by-queue", right);
}

async fn settled(env: &ControllerEnv, count: i64) {
    for (workload, _) in WORKLOADS {
        env.until_replicas(workload, count).await;
        env.until_condition(workload, "ScalingActive", "True ValidMetricFound").await;
    }
}

/// Breaks all three APIs, or deletes their APIServices and returns those.
async fn begin(env: &ControllerEnv, outage: Option<&Outage>) -> Vec<Value> {
    let Some(outage) = outage else {
        let mut removed = Vec::new();
        for name in SERVICES {
            let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{name}");
            removed.push(env.read(&path).await);
            env.delete(&path).await;
        }
        // An API server may notice this only after some time.
        for api in
            ["metrics.k8s.io/v1beta1", "custom.metrics.k8s.io/v1beta2", "external.metrics.k8s.io/v1beta1"]
        {
            let gone = async || match env.get(&format!("/apis/{api}")).await {
                (200, found) => Err(found),
                _ => Ok(()),
            };
            env.until("the end of an API", gone).await;
        }
        return removed;
    };
    for group in [MetricsGroup::Resource, MetricsGroup::Custom, MetricsGroup::External] {
        env.script.fail(group, outage.clone());
    }
    Vec::new()
}

async fn end(env: &ControllerEnv, removed: Vec<Value>) {
    for group in [MetricsGroup::Resource, MetricsGroup::Custom, MetricsGroup::External] {
        env.script.fail(group, Outage::None);
    }
    for service in removed {
        let new = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": service["metadata"]["name"]}, "spec": service["spec"]
        });
        env.create("/apis/apiregistration.k8s.io/v1/apiservices", new).await;
    }
}

/// Absurd metric values, and their allowed effect.
struct AbsurdMetrics {
    name: &'static str,
    /// The usage of each of four pods, by number; none: no sample.
    says: fn(usize) -> Option<PodUsage>,
    leads_to: AbsurdMetricsEffect,
}

/// The effect of absurd values on a count of six.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AbsurdMetricsEffect {
    /// Scales to this count.
    Count(i64),
    /// No change, although the value is used.
    Nothing,
    /// No change, because it is no data.
    NoData,
}

fn pod(cpu: i64) -> PodUsage {
    PodUsage::new(&[("app", "web")], &[("app", cpu, 1)])
}

const LOW_USAGE_MILLICORES: i64 = 375;

/// The effects are those of Kubernetes, as recorded in the engine's scenarios.
const ABSURD_METRICS: [AbsurdMetrics; 9] = [
    AbsurdMetrics { name: "nothing", says: |_| None, leads_to: AbsurdMetricsEffect::NoData },
    AbsurdMetrics {
        name: "no containers",
        says: |_| Some(PodUsage::new(&[("app", "web")], &[])),
        leads_to: AbsurdMetricsEffect::NoData,
    },
    AbsurdMetrics {
        name: "another container",
        says: |_| Some(PodUsage::new(&[("app", "web")], &[("other", LOW_USAGE_MILLICORES, 1)])),
        leads_to: AbsurdMetricsEffect::Count(3),
    },
    AbsurdMetrics {
        name: "half of the pods",
        says: |n| (n < 2).then(|| pod(LOW_USAGE_MILLICORES)),
        leads_to: AbsurdMetricsEffect::Nothing,
    },
    AbsurdMetrics {
        name: "old samples",
        says: |_| Some(pod(LOW_USAGE_MILLICORES).at(SampleTime::At(Timestamp::UNIX_EPOCH))),
        leads_to: AbsurdMetricsEffect::Count(3),
    },
    AbsurdMetrics {
        name: "samples without a time",
        says: |_| Some(pod(LOW_USAGE_MILLICORES).at(SampleTime::Never)),
        leads_to: AbsurdMetricsEffect::Count(3),
    },
    AbsurdMetrics {
        name: "less than nothing",
        says: |_| Some(pod(-5000)),
        leads_to: AbsurdMetricsEffect::Count(2),
    },
    AbsurdMetrics {
        name: "the largest number there is",
        says: |_| Some(pod(i64::MAX)),
        leads_to: AbsurdMetricsEffect::Count(8),
    },
    AbsurdMetrics {
        name: "the smallest number there is",
        says: |_| Some(pod(i64::MIN)),
        leads_to: AbsurdMetricsEffect::Count(2),
    },
];

#[test]
fn absurd_metrics_keep_replicas_within_bounds() -> Result<(), Failure> {
    on_both(async |env| {
        join_all(ABSURD_METRICS.iter().enumerate().map(|(number, absurd)| {
            let env = &env;
            async move {
                run_absurd_metrics(&env.in_new_namespace(&format!("lie-{number}")).await, absurd).await;
            }
        }))
        .await;
    })
}

async fn run_absurd_metrics(env: &ControllerEnv, absurd: &AbsurdMetrics) {
    env.workload("web", 4).await;
    env.usage("web", 4, 750, 1);
    env.hpa("web", 2, 8, json!([cpu(50)])).await;
    let ours = env.controller(env.settings());
    env.until_replicas("web", 6).await;
    let observer = env.observer("web").await;
    env.script.clear_pods(&env.namespace);
    for number in 0..4 {
        if let Some(usage) = (absurd.says)(number) {
            env.script.set_pod(&env.namespace, &format!("web-{number}"), usage);
        }
    }
    match absurd.leads_to {
        AbsurdMetricsEffect::Count(count) => {
            let reached = env.until_replicas("web", count);
            let reached = tokio::time::timeout(Duration::from_secs(20), reached).await;
            assert!(reached.is_ok(), "on {}: {} led to {:?}", env.cluster, absurd.name, observer.counts());
        }
        AbsurdMetricsEffect::Nothing => {
            env.until_condition("web", "AbleToScale", "True ReadyForNewScale").await;
        }
        AbsurdMetricsEffect::NoData => {
            env.until_condition("web", "ScalingActive", "False FailedGetResourceMetric").await;
        }
    }
    env.until_decisions(&ours, &["web"], 2).await;
    let counts = observer.counts();
    let expected =
        if let AbsurdMetricsEffect::Count(count) = absurd.leads_to { vec![6, count] } else { vec![6] };
    assert_eq!(counts, expected, "on {}: {}", env.cluster, absurd.name);
    env.usage("web", 4, LOW_USAGE_MILLICORES, 1);
    env.until_replicas("web", 3).await;
    env.until_condition("web", "ScalingActive", "True ValidMetricFound").await;
    assert!(ours.is_alive());
    ours.stop().await;
}
