use jiff::Timestamp;
use quantity::Quantity;
use serde_json::json;
use sim::load::{CurveShape as LoadShape, LoadCurve};
use sim::workload::{ContainerUsageModel, ServiceCapacity, UsageModel};

use super::*;

fn at(millis: i64) -> SimulationTime {
    SimulationTime { at: Millis(millis), wall: Millis(millis).after(Timestamp::UNIX_EPOCH) }
}

/// Two observed nodes with one CPU each.
fn state() -> NodesState {
    let mut plan = Plan { count: 2, ..Plan::default() };
    plan.capacity.cpu = Quantity::parse("1").unwrap();
    let mut state = NodesState::new(plan);
    for name in ["node-1", "node-2"] {
        state.node_seen(serde_json::from_value(json!({"metadata": {"name": name}})).unwrap());
    }
    state.advance(at(0));
    state
}

fn pod(name: &str, node: Option<&str>, cpu: &str) -> PodView {
    let resources = json!({"requests": {"cpu": cpu}});
    let value = json!({
        "metadata": {"namespace": "shop", "name": name, "uid": format!("uid-{name}"), "labels": {"app": "web"}},
        "spec": {"nodeName": node, "containers": [{"name": "web", "image": "web:1", "resources": resources}]},
        "status": {"phase": "Pending"},
    });
    serde_json::from_value(value).unwrap()
}

fn deleted(name: &str, node: Option<&str>, grace: i64) -> PodView {
    let mut view = pod(name, node, "100m");
    view.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
    view.metadata.deletion_grace_period_seconds = Some(grace);
    view
}

/// The writes in short form; the server accepts them.
fn writes(state: &mut NodesState, millis: i64) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let writes = state.advance(at(millis));
        if writes.is_empty() {
            return all;
        }
        for write in writes {
            state.written(&write, WriteOutcome::Done, at(millis));
            let name = &write.key.name;
            all.push(match write.what {
                PodWriteKind::Bind(node) => format!("{name} to {node}"),
                PodWriteKind::Complain { message, .. } => format!("{name}: {message}"),
                PodWriteKind::Status(patch) => {
                    let status = &patch["status"];
                    let ready = status["containerStatuses"][0]["ready"] == true;
                    format!(
                        "{name} {}{}",
                        status["phase"].as_str().unwrap(),
                        if ready { " ready" } else { "" }
                    )
                }
                PodWriteKind::Remove => format!("{name} removed"),
            });
        }
    }
}

#[test]
fn pod_runs_from_creation_to_removal() {
    let mut state = state();
    state.pod_seen(pod("a", None, "100m"), at(0));
    assert_eq!(writes(&mut state, 0), ["a to node-1"]);
    // Observed late, or again: nothing changes.
    state.pod_seen(pod("a", None, "100m"), at(5));
    assert_eq!(writes(&mut state, 5), [""; 0]);
    state.pod_seen(pod("a", Some("node-1"), "100m"), at(10));
    assert_eq!(writes(&mut state, 10), ["a Pending"]);
    assert_eq!(state.next(), Some(Millis(3_010)));
    assert_eq!(writes(&mut state, 3_009), [""; 0]);
    assert_eq!(writes(&mut state, 3_010), ["a Running"]);
    assert_eq!(writes(&mut state, 10_010), ["a Running ready"]);
    state.pod_seen(deleted("a", Some("node-1"), 30), at(60_000));
    assert_eq!(writes(&mut state, 60_000), [""; 0]);
    assert_eq!(writes(&mut state, 65_000), ["a Succeeded", "a removed"]);
    assert_eq!(writes(&mut state, 66_000), [""; 0]);
    state.pod_gone("uid-a", at(66_000));
    assert!(state.pods.is_empty() && state.by_uid.is_empty());
    assert!(state.schedulable.iter().all(|target| target.used == ResourceAmounts::default()));
}

#[test]
fn stages_without_delay_are_written_at_once() {
    let mut state = state();
    state.plan.delays =
        sim::workload::PodDelays { start: Millis::ZERO, ready: Millis::ZERO, stop: Millis::ZERO };
    state.pod_seen(pod("a", Some("node-2"), "1"), at(0));
    assert_eq!(writes(&mut state, 0), ["a Running ready"]);
    state.pod_seen(deleted("a", Some("node-2"), 30), at(1));
    assert_eq!(writes(&mut state, 1), ["a Succeeded", "a removed"]);
}

#[test]
fn unschedulable_pods_wait_for_free_resources() {
    let mut state = state();
    for name in ["a", "b", "c", "d"] {
        state.pod_seen(pod(name, None, "600m"), at(0));
    }
    let full = "0/2 nodes are available: 2 Insufficient cpu.";
    let expected = [format!("c: {full}"), format!("d: {full}")];
    assert_eq!(
        writes(&mut state, 0),
        [&["a to node-1".into(), "b to node-2".into()], &expected[..]].concat()
    );
    assert_eq!(writes(&mut state, 1), [""; 0], "said once");
    state.pod_gone("uid-b", at(2));
    assert_eq!(writes(&mut state, 2), ["c to node-2"]);
    // A cordoned node, and its deletion.
    let spec = json!({"metadata": {"name": "node-1"}, "spec": {"unschedulable": true}});
    state.node_seen(serde_json::from_value(spec).unwrap());
    let cordoned = "d: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.";
    assert_eq!(writes(&mut state, 3), [cordoned]);
    state.node_gone("node-1");
    state.pod_gone("uid-c", at(4));
    assert_eq!(writes(&mut state, 4), ["d to node-2"]);
}

#[test]
fn foreign_pods_are_ignored() {
    let mut state = state();
    let mut other = pod("a", None, "1m");
    other.spec.as_mut().unwrap().scheduler_name = Some("other".into());
    let mut gated = pod("b", None, "1m");
    gated.spec.as_mut().unwrap().scheduling_gates = Some(vec![json!({"name": "wait"})]);
    let malformed =
        serde_json::from_value(json!({"metadata": {"namespace": "n", "name": "x", "uid": "x"}, "spec": 7}));
    for view in [other, gated, pod("c", Some("elsewhere"), "1m"), deleted("d", None, 0), malformed.unwrap()] {
        state.pod_seen(view, at(0));
    }
    assert_eq!(writes(&mut state, 0), [""; 0]);
    // Bound elsewhere before our binding arrived.
    state.pod_seen(pod("e", None, "1m"), at(0));
    let bind = state.advance(at(0));
    state.pod_seen(pod("e", Some("elsewhere"), "1m"), at(1));
    state.written(&bind[0], WriteOutcome::Conflict, at(1));
    assert_eq!(writes(&mut state, 60_000), [""; 0]);
    assert!(state.pods.is_empty());
}

#[test]
fn failed_writes_are_retried_with_backoff() {
    let mut state = state();
    state.pod_seen(pod("a", None, "1m"), at(0));
    for (due, next) in [(0, 500), (500, 1_500), (1_500, 3_500)] {
        let writes = state.advance(at(due));
        assert!(matches!(writes[..], [PodWrite { what: PodWriteKind::Bind(_), .. }]), "{due}: {writes:?}");
        state.written(&writes[0], WriteOutcome::Failed("no".into()), at(due));
        assert_eq!(state.advance(at(next - 1)), [], "{due}");
    }
    assert_eq!(state.last_error(), Some("no"));
    assert_eq!(writes(&mut state, 3_500), ["a to node-1"]);
    state.pod_seen(pod("a", Some("node-1"), "1m"), at(4_000));
    let status = state.advance(at(4_000));
    state.written(&status[0], WriteOutcome::Failed("no".into()), at(4_000));
    // The pod runs meanwhile: only the newest status is written.
    assert_eq!(writes(&mut state, 8_000), ["a Running"]);
    let gone = PodWrite { what: PodWriteKind::Remove, ..status[0].clone() };
    state.written(&gone, WriteOutcome::Gone, at(9_000));
    assert!(state.pods.is_empty());
}

#[test]
fn new_list_removes_missing_pods_and_keeps_the_others() {
    let mut state = state();
    for name in ["a", "b"] {
        state.pod_seen(pod(name, Some("node-1"), "100m"), at(0));
    }
    writes(&mut state, 20_000);
    state.listing();
    state.pod_seen(pod("a", Some("node-1"), "100m"), at(21_000));
    state.listed(at(21_000));
    assert_eq!(writes(&mut state, 21_000), [""; 0]);
    assert_eq!((state.pods.len(), state.schedulable[0].used.cpu), (1, 100));
    // This pod was running before the nodes started.
    let mut running = pod("c", Some("node-2"), "100m");
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let status = json!({"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "podIP": "10.128.0.9", "conditions": ready});
    running.status = serde_json::from_value(status).unwrap();
    state.pod_seen(running, at(21_000));
    assert_eq!(writes(&mut state, 60_000), [""; 0]);
    assert_eq!(state.addresses, 9);
}

#[test]
fn finished_pods_free_resources_and_are_removed_on_deletion() {
    let mut state = state();
    let mut job = pod("a", Some("node-1"), "1");
    job.spec.as_mut().unwrap().restart_policy = Some("Never".into());
    job.metadata.annotations = Some([("plimsoll.dev/run-for".to_owned(), "30s".to_owned())].into());
    state.pod_seen(job, at(0));
    let mut all: Vec<String> = Vec::new();
    for millis in [0, 3_000, 32_999, 33_000, 90_000] {
        all.extend(writes(&mut state, millis));
    }
    assert_eq!(all, ["a Pending", "a Running ready", "a Succeeded"]);
    assert_eq!(state.schedulable[0].used, ResourceAmounts::default());
    state.pod_seen(deleted("a", Some("node-1"), 0), at(99_000));
    assert_eq!(writes(&mut state, 99_000), ["a removed"]);
    // A finalizer keeps the pod; there is nothing more to write.
    state.pod_seen(deleted("a", Some("node-1"), 0), at(99_001));
    assert_eq!(writes(&mut state, 99_001), [""; 0]);
}

#[test]
fn usage_follows_the_load() {
    let usage = |idle, per_unit| UsageModel { idle, per_unit, starting: idle, limit: f64::INFINITY };
    let containers =
        vec![ContainerUsageModel { name: "web".into(), cpu: usage(0.0, 25.0), memory: usage(1e9, 0.0) }];
    let workload = |rate| Workload {
        namespace: "shop".into(),
        selector: api::selector::Selector::parse("app=web").unwrap(),
        load: LoadCurve::new(vec![LoadShape::Constant(rate)], Vec::new()),
        service: ServiceCapacity { per_pod: None, queue: 0.0 },
        containers: containers.clone(),
        delays: None,
    };
    let mut state = state();
    for (name, node) in [("a", "node-1"), ("b", "node-2")] {
        state.pod_seen(pod(name, Some(node), "100m"), at(0));
    }
    let cpu = |state: &mut NodesState, millis: i64| -> f64 {
        writes(state, millis);
        let page = state.metrics(0, at(millis)).unwrap();
        let line = page.lines().find(|line| line.starts_with("container_cpu")).unwrap_or("x 0 0");
        line.split(' ').nth(1).unwrap().parse().unwrap()
    };
    assert_eq!(cpu(&mut state, 0), 0.0);
    for millis in [3_000, 10_000, 20_000] {
        cpu(&mut state, millis);
    }
    state.set_load(workload(16.0), at(20_000));
    let before = cpu(&mut state, 20_000);
    let used = |used: f64| (used * 1e6).round() / 1e6;
    assert_eq!(used(cpu(&mut state, 30_000) - before), 10.0 * 0.2, "half of 16 units");
    state.pod_gone("uid-b", at(30_000));
    assert_eq!(used(cpu(&mut state, 40_000) - before), 2.0 + 10.0 * 0.4);
    state.set_load(workload(0.0), at(40_000));
    assert_eq!(used(cpu(&mut state, 50_000) - before), 6.0);
    let node = |state: &mut NodesState, millis| -> f64 {
        let page = state.metrics(0, at(millis)).unwrap();
        let line = page.lines().find(|line| line.starts_with("node_cpu")).unwrap().to_owned();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    };
    let whole = node(&mut state, 50_000);
    state.pod_gone("uid-a", at(50_000));
    assert_eq!(used(node(&mut state, 50_000)), used(whole), "a counter never goes back");
}
