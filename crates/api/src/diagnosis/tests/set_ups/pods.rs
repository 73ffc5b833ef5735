//! Set-ups whose pods lack something.

use engine::pod::{ConditionStatus, Pod, PodPhase, ReadyCondition};
use engine::spec::{MetricSource, MetricTarget, UtilizationBase};
use jiff::SignedDuration;

use super::super::test_facts::{TestFacts, at, container, metric, now, per_pod, per_pod_at, pod};
use super::{SetUp, set_up};
use crate::diagnosis::{ClusterFacts, NodeFact, PodFact};

fn of_container(name: &str) -> engine::spec::Metric {
    let source = MetricSource::ContainerResource {
        name: "cpu".into(),
        container: name.into(),
        of: UtilizationBase::Requests,
    };
    metric(source, MetricTarget::Utilization(50))
}

fn each(facts: TestFacts, change: impl Fn(Pod) -> Pod) -> TestFacts {
    TestFacts { pods: facts.pods.into_iter().map(change).collect(), ..facts }
}

fn started(pod: Pod, seconds: i64, ready: ConditionStatus) -> Pod {
    let since = now() - SignedDuration::from_secs(seconds);
    Pod { started: Some(since), ready: Some(ReadyCondition { status: ready, since }), ..pod }
}

/// Pod `web-1` runs on a node whose kubelet does not answer.
fn with_lost_node() -> ClusterFacts {
    let on = |name: &str, node: &str| PodFact { name: name.into(), node: Some(node.into()) };
    ClusterFacts {
        pods: Some(vec![on("web-0", "node-a"), on("web-1", "node-b")]),
        nodes: Some(vec![
            NodeFact { name: "node-a".into(), ready: true },
            NodeFact { name: "node-b".into(), ready: false },
        ]),
        ..ClusterFacts::default()
    }
}

pub(super) fn set_ups() -> Vec<SetUp> {
    let facts = TestFacts::healthy;
    let none = || per_pod(&[None, None]);
    let mut of_limits = facts();
    of_limits.spec.metrics = vec![metric(
        MetricSource::Resource { name: "cpu".into(), of: UtilizationBase::Limits },
        MetricTarget::Utilization(50),
    )];
    let mut sidecar = facts();
    sidecar.pods = ["web-0", "web-1"]
        .map(|name| pod(name, vec![container("app", Some("200m")), container("proxy", None)]))
        .into();
    let mut one_differs = facts();
    one_differs.pods = vec![
        pod("web-0", vec![container("app", Some("200m"))]),
        pod("web-1", vec![container("old-app", Some("200m"))]),
    ];
    vec![
        set_up(
            "a misspelt container",
            "container-not-found",
            "no pod has container ap (nearest: app)",
            facts().with_metric(of_container("ap"), none()),
        ),
        set_up(
            "a container that only some pods have",
            "container-not-found",
            "pod web-1 has no container app (nearest: old-app)",
            TestFacts {
                pods: one_differs.pods.clone(),
                ..facts().with_metric(of_container("app"), per_pod(&[Some(100), None]))
            },
        ),
        set_up(
            "a sidecar without a cpu request",
            "missing-request",
            "container proxy of pod web-0 has no cpu request",
            sidecar,
        ),
        set_up(
            "percentageOf: limits without limits",
            "missing-limit",
            "container app of pod web-0 has no cpu limit",
            of_limits,
        ),
        set_up(
            "cpu requests of zero",
            "zero-requests",
            "the cpu requests of all counted pods are zero",
            TestFacts {
                pods: ["web-0", "web-1"].map(|name| pod(name, vec![container("app", Some("0"))])).into(),
                ..facts()
            },
        ),
        set_up(
            "a selector that matches no pods",
            "no-pods",
            "no pod matches the selector app=web",
            TestFacts { pods: Vec::new(), ..facts() }.with_samples(per_pod(&[])),
        ),
        set_up(
            "pods that are not ready",
            "pods-not-ready",
            "2 pods are not ready: web-0, web-1",
            each(facts(), |pod| started(pod, 60, ConditionStatus::False)),
        ),
        set_up(
            "pods that cannot be scheduled",
            "pods-not-ready",
            "2 pods are not ready: web-0, web-1",
            each(facts(), |pod| Pod { phase: PodPhase::Pending, started: None, ready: None, ..pod })
                .with_samples(none()),
        ),
        set_up(
            "pods that started a moment ago",
            "pods-just-started",
            "2 pods started less than 21 s ago: web-0, web-1",
            each(facts(), |pod| started(pod, 20, ConditionStatus::True)).with_samples(none()),
        ),
        set_up(
            "pods that are being deleted",
            "pods-ended",
            "2 pods are terminating or failed: web-0, web-1",
            each(facts(), |pod| Pod { deleting: true, ..pod }),
        ),
        set_up(
            "pods of a finished Job with the labels of the target",
            "pods-completed",
            "2 pods have completed, so they have no samples: web-0, web-1",
            each(facts(), |pod| Pod { phase: PodPhase::Succeeded, ..pod }).with_samples(none()),
        ),
        set_up(
            "old pods without samples",
            "pods-without-samples",
            "2 pods are without samples: web-0, web-1",
            facts().with_samples(none()),
        ),
        set_up(
            "a node whose kubelet does not answer",
            "kubelet-down",
            "1 pod without samples because the kubelet of node node-b does not answer: web-1",
            facts().with_samples(per_pod(&[Some(20), None])).with_cluster(with_lost_node()),
        ),
        set_up(
            "old samples of such a node",
            "stale-samples",
            "the oldest sample is 4 min old because the kubelet of node node-b does not answer",
            facts()
                .with_samples(per_pod_at(at("09:06:00"), &[Some(100), Some(100)]))
                .with_cluster(with_lost_node()),
        ),
        set_up(
            "old samples for an unknown reason",
            "stale-samples",
            "the oldest sample is 4 min old",
            facts().with_samples(per_pod_at(at("09:06:00"), &[Some(100), Some(100)])),
        ),
        set_up(
            "a new pod without a sample while load falls",
            "missing-samples-assumed",
            "1 pod is without samples: usage is assumed, to avoid a wrong change",
            {
                let mut facts = facts().with_samples(per_pod(&[Some(40), None]));
                facts.pods[1] = started(facts.pods[1].clone(), 20, ConditionStatus::True);
                facts
            },
        ),
        set_up(
            "a pod that is not ready while load rises",
            "unready-pods-assumed",
            "1 pod is not ready yet and counted as idle",
            {
                let mut facts = facts().with_samples(per_pod(&[Some(190), Some(0)]));
                facts.pods[1] = started(facts.pods[1].clone(), 20, ConditionStatus::False);
                facts
            },
        ),
    ]
}
