//! Tables of pods.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::read::{age, at, holds, instant, items, name, number, or, text};
use crate::catalog::ServedResource;

/// The summary of a pod's containers.
#[derive(Debug)]
struct PodSummary {
    ready: usize,
    total: usize,
    restarts: RestartCount,
    status: String,
}

#[derive(Clone, Copy, Debug, Default)]
struct RestartCount {
    count: i64,
    last: Option<Timestamp>,
}

pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = PodSummary::of(pod);
    let (spec, status) = (at(pod, "spec"), at(pod, "status"));
    vec![
        name(pod),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.status.into(),
        summary.restarts.text(now).into(),
        age(pod, now),
        or(items(status, "podIPs").first().map_or("", |ip| text(ip, "ip")), "<none>").into(),
        or(text(spec, "nodeName"), "<none>").into(),
        or(text(status, "nominatedNodeName"), "<none>").into(),
        gates(pod).into(),
    ]
}

/// The row condition of a completed pod, so that clients can hide it.
pub(super) fn conditions(served: &ServedResource, pod: &Value) -> Option<Value> {
    if served.kind != "Pod" || !served.group.is_empty() {
        return None;
    }
    let phase = text(pod, "status.phase");
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
}

impl RestartCount {
    fn add(&mut self, container: &Value) {
        self.count += number(container, "restartCount");
        self.last = self.last.max(instant(container, "lastState.terminated.finishedAt"));
    }

    fn text(self, now: Timestamp) -> String {
        match self.last {
            Some(last) if self.count != 0 => {
                format!("{} ({} ago)", self.count, api::age::since(Some(last), now))
            }
            _ => self.count.to_string(),
        }
    }
}

impl PodSummary {
    fn of(pod: &Value) -> Self {
        let status = at(pod, "status");
        let phase = text(status, "phase");
        let mut summary = Self {
            ready: 0,
            total: items(pod, "spec.containers").len(),
            restarts: RestartCount::default(),
            status: or(text(status, "reason"), phase).to_owned(),
        };
        if items(status, "conditions")
            .iter()
            .any(|c| at(c, "type") == "PodScheduled" && at(c, "reason") == GATED)
        {
            GATED.clone_into(&mut summary.status);
        }
        let sidecars = summary.initialize(pod);
        if let Some(restarts) = sidecars {
            summary.restarts = restarts;
            summary.run(pod);
        }
        if !at(pod, "metadata.deletionTimestamp").is_null() {
            if at(status, "reason") == "NodeLost" {
                "Unknown".clone_into(&mut summary.status);
            } else if !matches!(phase, "Succeeded" | "Failed") {
                "Terminating".clone_into(&mut summary.status);
            }
        }
        summary
    }

    /// Summarizes init containers up to the first unfinished one. Returns the restarts of sidecars if the regular
    /// containers may run.
    fn initialize(&mut self, pod: &Value) -> Option<RestartCount> {
        let specs = items(pod, "spec.initContainers");
        let stays = specs.iter().filter(|container| at(container, "restartPolicy") == "Always");
        let sidecars: BTreeSet<&str> = stays.map(|container| text(container, "name")).collect();
        self.total += sidecars.len();
        let mut restarts = RestartCount::default();
        for (index, container) in items(pod, "status.initContainerStatuses").iter().enumerate() {
            let sidecar = sidecars.contains(text(container, "name"));
            self.restarts.add(container);
            if sidecar {
                restarts.add(container);
            }
            let (waiting, terminated) = (at(container, "state.waiting"), at(container, "state.terminated"));
            if !terminated.is_null() && number(terminated, "exitCode") == 0 {
                continue;
            }
            if sidecar && at(container, "started") == true {
                self.ready += usize::from(at(container, "ready") == true);
                continue;
            }
            let why = text(waiting, "reason");
            self.status = if !terminated.is_null() {
                format!("Init:{}", ending(terminated))
            } else if !why.is_empty() && why != "PodInitializing" {
                format!("Init:{why}")
            } else {
                format!("Init:{index}/{}", specs.len())
            };
            return holds(pod, "Initialized").then_some(restarts);
        }
        Some(restarts)
    }

    /// Summarizes the regular containers; the first one with a reason determines the status.
    fn run(&mut self, pod: &Value) {
        let mut running = false;
        for container in items(pod, "status.containerStatuses").iter().rev() {
            self.restarts.add(container);
            let state = at(container, "state");
            let why = text(state, "waiting.reason");
            if !why.is_empty() {
                why.clone_into(&mut self.status);
            } else if !at(state, "terminated").is_null() {
                self.status = ending(at(state, "terminated"));
            } else if at(container, "ready") == true && !at(state, "running").is_null() {
                running = true;
                self.ready += 1;
            }
        }
        if self.status == "Completed" && running {
            let ready = holds(pod, "Ready");
            (if ready { "Running" } else { "NotReady" }).clone_into(&mut self.status);
        }
    }
}

const GATED: &str = "SchedulingGated";

/// The reason why a container ended.
fn ending(terminated: &Value) -> String {
    match (text(terminated, "reason"), number(terminated, "signal")) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// How many readiness gates are fulfilled.
fn gates(pod: &Value) -> String {
    let gates = items(pod, "spec.readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates.iter().filter(|gate| holds(pod, text(gate, "conditionType"))).count();
    format!("{open}/{}", gates.len())
}
