//! Set-ups with faulty pods or missing samples.

use serde_json::{Value, json};

use super::{PodState, READY_POD, SetUp, SetUpKind, TestPod, TestTarget, hpa, set_up, with, with_pods};
use crate::env::cpu;

fn of_container(name: &str) -> Value {
    hpa(&json!({"type": "ContainerResource", "containerResource": {
        "name": "cpu", "container": name, "target": {"type": "Utilization", "averageUtilization": 50}
    }}))
}

pub(super) fn set_ups() -> Vec<SetUp> {
    let silent = TestPod { usage: None, ..READY_POD };
    let in_state = |state: PodState| TestPod { state, ..READY_POD };
    let without_request = TestPod { containers: &[("app", None)], ..READY_POD };
    let idle_request = TestPod { containers: &[("app", Some("0"))], ..READY_POD };
    let old_sample = TestPod { sample_age_minutes: 4, ..READY_POD };
    let calm = TestPod { usage: Some(200), ..READY_POD };
    let of_limits = json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50, "percentageOf": "limits"}}});
    vec![
        set_up(
            "container",
            with_pods(&[READY_POD; 2]),
            of_container("ap"),
            "container-not-found",
            "no pod has container ap (nearest: app)",
        ),
        set_up(
            "half-container",
            with_pods(&[READY_POD, TestPod { containers: &[("old-app", Some("1"))], ..READY_POD }]),
            of_container("app"),
            "container-not-found",
            "pod half-container-1 has no container app (nearest: old-app)",
        ),
        set_up(
            "no-request",
            with_pods(&[without_request]),
            hpa(&cpu(50)),
            "missing-request",
            "container app of pod no-request-0 has no cpu request",
        ),
        set_up(
            "sidecar",
            with_pods(&[TestPod { containers: &[("app", Some("1")), ("proxy", None)], ..READY_POD }]),
            hpa(&cpu(50)),
            "missing-request",
            "container proxy of pod sidecar-0 has no cpu request",
        ),
        set_up(
            "no-limit",
            with_pods(&[READY_POD]),
            hpa(&of_limits),
            "missing-limit",
            "container app of pod no-limit-0 has no cpu limit",
        )
        .of(SetUpKind::Autoscaler),
        set_up(
            "zero-request",
            with_pods(&[idle_request; 2]),
            hpa(&cpu(50)),
            "zero-requests",
            "the cpu requests of all counted pods are zero",
        ),
        set_up(
            "no-pods",
            TestTarget::Empty(2),
            hpa(&cpu(50)),
            "no-pods",
            "no pod matches the selector app=no-pods",
        ),
        set_up(
            "silent",
            with_pods(&[silent; 2]),
            hpa(&cpu(50)),
            "pods-without-samples",
            "2 pods are without samples: ",
        ),
        set_up(
            "half-silent",
            with_pods(&[calm, silent]),
            hpa(&cpu(50)),
            "pods-without-samples",
            "1 pod is without samples: half-silent-1",
        ),
        set_up(
            "unready",
            with_pods(&[in_state(PodState::Unready); 2]),
            hpa(&cpu(50)),
            "pods-not-ready",
            "2 pods are not ready: ",
        ),
        set_up(
            "pending",
            with_pods(&[TestPod { state: PodState::Pending, ..silent }; 2]),
            hpa(&cpu(50)),
            "pods-not-ready",
            "2 pods are not ready: ",
        ),
        set_up(
            "failed",
            with_pods(&[in_state(PodState::Failed); 2]),
            hpa(&cpu(50)),
            "pods-ended",
            "2 pods are terminating or failed: ",
        ),
        set_up(
            "completed",
            with_pods(&[TestPod { state: PodState::Completed, ..silent }; 2]),
            hpa(&cpu(50)),
            "pods-completed",
            "2 pods have completed, so they have no samples: ",
        ),
        set_up(
            "young",
            with_pods(&[TestPod { state: PodState::Young, ..silent }; 2]),
            hpa(&cpu(50)),
            "pods-just-started",
            "2 pods started less than ",
        ),
        set_up(
            "half-young",
            with_pods(&[calm, TestPod { state: PodState::Young, ..silent }]),
            hpa(&cpu(50)),
            "missing-samples-assumed",
            "1 pod is without samples: usage is assumed, to avoid a wrong change",
        ),
        set_up(
            "half-unready",
            with_pods(&[
                TestPod { usage: Some(950), ..READY_POD },
                TestPod { state: PodState::Unready, usage: Some(0), ..READY_POD },
            ]),
            hpa(&cpu(50)),
            "unready-pods-assumed",
            "1 pod is not ready yet and counted as idle",
        ),
        set_up("stale", with_pods(&[old_sample; 2]), hpa(&cpu(50)), "stale-samples", "the oldest sample is "),
        set_up(
            "too-old",
            with_pods(&[old_sample; 2]),
            hpa(&with(cpu(50), "maxAgeSeconds", json!(60))),
            "stale-samples",
            "more than maxAgeSeconds: 60",
        )
        .of(SetUpKind::Autoscaler),
        set_up(
            "lost",
            with_pods(&[calm, TestPod { on_lost_node: true, ..silent }]),
            hpa(&cpu(50)),
            "kubelet-down",
            "1 pod without samples because the kubelet of node {ns} does not answer: lost-1",
        ),
        set_up(
            "lost-stale",
            with_pods(&[READY_POD, TestPod { on_lost_node: true, ..old_sample }]),
            hpa(&cpu(50)),
            "stale-samples",
            " old because the kubelet of node {ns} does not answer",
        ),
    ]
}
