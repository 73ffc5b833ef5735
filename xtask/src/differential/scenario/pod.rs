//! The pods of a scenario, in all states that kubelets and users can cause.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::action::{Age, HpaAction, Usage};
use super::random::RandomSource;
use crate::differential::action::RequestAction as _;

/// The requests of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodShape {
    Plain,
    Odd,
    NoRequests,
    ZeroRequests,
    TwoContainers,
    SideWithoutRequests,
    Init,
    Sidecar,
    PodLevel,
    PodLevelCpu,
}

/// The state of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Ready,
    /// Started just now, with samples from before it was ready.
    Young,
    /// Started just now, with samples that count.
    YoungTrusted,
    YoungUnready,
    /// Started long ago and never ready.
    NeverReady,
    /// Was ready once.
    WasReady,
    UnknownReady,
    NoConditions,
    NoStart,
    Pending,
    Failed,
    Succeeded,
    /// Deleted, and held by a finalizer.
    Terminating,
}

/// One pod of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) shape: PodShape,
    pub(crate) condition: Condition,
}

const PODS: &str = "/api/v1/namespaces/{ns}/pods";
/// The usual window of samples in seconds.
const SAMPLE_WINDOW_SECONDS: u32 = 15;
/// A window that is longer than any scenario, so that the sample of a young pod never counts.
const LONG_SAMPLE_WINDOW_SECONDS: u32 = 3600;

impl PodShape {
    pub(crate) fn any(random: &mut RandomSource) -> Self {
        random.of([
            Self::Odd,
            Self::NoRequests,
            Self::ZeroRequests,
            Self::TwoContainers,
            Self::SideWithoutRequests,
            Self::Init,
            Self::Sidecar,
            Self::PodLevel,
            Self::PodLevelCpu,
        ])
    }

    fn spec(self) -> Value {
        let container = |name: &str, requests: Value| json!({"name": name, "image": "app", "resources": {"requests": requests}});
        let app = |cpu: &str, memory: &str| container("app", json!({"cpu": cpu, "memory": memory}));
        match self {
            Self::Plain => json!({"containers": [app("1", "1Gi")]}),
            Self::Odd => json!({"containers": [app("333m", "300M")]}),
            Self::NoRequests => json!({"containers": [container("app", json!({}))]}),
            Self::ZeroRequests => json!({"containers": [app("0", "0")]}),
            Self::TwoContainers => {
                let side = container("side", json!({"cpu": "500m", "memory": "512Mi"}));
                json!({"containers": [app("500m", "512Mi"), side]})
            }
            Self::SideWithoutRequests => {
                json!({"containers": [app("1", "1Gi"), container("side", json!({}))]})
            }
            Self::Init => json!({
                "initContainers": [container("prepare", json!({"cpu": "2", "memory": "2Gi"}))], "containers": [app("1", "1Gi")]
            }),
            Self::Sidecar => {
                let mut side = container("side", json!({"cpu": "250m", "memory": "128Mi"}));
                if let Some(side) = side.as_object_mut() {
                    side.insert("restartPolicy".to_owned(), "Always".into());
                }
                json!({"initContainers": [side], "containers": [app("1", "1Gi")]})
            }
            Self::PodLevel => json!({
                "resources": {"requests": {"cpu": "2", "memory": "2Gi"}}, "containers": [app("500m", "512Mi")]
            }),
            Self::PodLevelCpu => json!({
                "resources": {"requests": {"cpu": "2"}}, "containers": [container("app", json!({}))]
            }),
        }
    }

    fn containers(self) -> &'static [&'static str] {
        match self {
            Self::TwoContainers | Self::SideWithoutRequests | Self::Sidecar => &["app", "side"],
            _ => &["app"],
        }
    }
}

impl Condition {
    pub(crate) fn any(random: &mut RandomSource) -> Self {
        random.of([
            Self::Young,
            Self::YoungTrusted,
            Self::YoungUnready,
            Self::NeverReady,
            Self::WasReady,
            Self::UnknownReady,
            Self::NoConditions,
            Self::NoStart,
            Self::Pending,
            Self::Failed,
            Self::Succeeded,
            Self::Terminating,
        ])
    }

    fn status(self, now: Timestamp) -> Value {
        let ago = |minutes: i64| api::instant::format(now - SignedDuration::from_mins(minutes));
        let ready = |status: &str, minutes: i64| json!([{"type": "Ready", "status": status, "lastTransitionTime": ago(minutes)}]);
        let never = api::instant::format(now - SignedDuration::from_mins(60) + SignedDuration::from_secs(10));
        let never = json!([{"type": "Ready", "status": "False", "lastTransitionTime": never}]);
        let (phase, start, conditions) = match self {
            Self::Ready | Self::Terminating => ("Running", json!(ago(60)), ready("True", 60)),
            Self::Young => ("Running", json!(ago(0)), ready("True", 0)),
            Self::YoungTrusted => ("Running", json!(ago(0)), ready("True", 30)),
            Self::YoungUnready => ("Running", json!(ago(0)), ready("False", 0)),
            Self::NeverReady => ("Running", json!(ago(60)), never),
            Self::WasReady => ("Running", json!(ago(60)), ready("False", 10)),
            Self::UnknownReady => ("Running", json!(ago(60)), ready("Unknown", 60)),
            Self::NoConditions => ("Running", json!(ago(60)), Value::Null),
            Self::NoStart => ("Running", Value::Null, ready("True", 60)),
            Self::Pending => ("Pending", Value::Null, Value::Null),
            Self::Failed => ("Failed", json!(ago(60)), ready("False", 10)),
            Self::Succeeded => ("Succeeded", json!(ago(60)), ready("False", 10)),
        };
        json!({"status": {"phase": phase, "startTime": start, "conditions": conditions}})
    }
}

impl Pod {
    /// Creates the pod.
    pub(crate) fn create(&self, app: &str, now: Timestamp) -> Vec<HpaAction> {
        let object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": self.name, "labels": {"app": app, "scenario": app}}, "spec": self.shape.spec(),
        });
        let made = HpaAction::post(PODS, object);
        std::iter::once(made).chain(self.become_so(now)).collect()
    }

    /// Writes the status of its state.
    pub(crate) fn become_so(&self, now: Timestamp) -> Vec<HpaAction> {
        let path = format!("{PODS}/{}", self.name);
        let mut actions = vec![HpaAction::patch(format!("{path}/status"), self.condition.status(now))];
        if self.condition == Condition::Terminating {
            let held = json!({"metadata": {"finalizers": ["differential.plimsoll.dev/held"]}});
            actions.extend([HpaAction::patch(path.clone(), held), HpaAction::delete(path)]);
        }
        actions
    }

    pub(crate) fn remove(&self) -> HpaAction {
        HpaAction::delete(format!("{PODS}/{}", self.name))
    }

    /// The usage of the pod, which `random` varies a little.
    pub(crate) fn usage(&self, app: &str, level: Level, random: &mut RandomSource) -> HpaAction {
        let part = self.shape.containers().len() as i64;
        let vary = |amount: i64, random: &mut RandomSource| {
            if level.even { amount } else { amount + amount * random.between(-20, 20) / 100 }
        };
        let containers = self.shape.containers().iter().map(|name| {
            let cpu = level.cpu.map(|milli| format!("{}m", vary(milli / part, random)));
            let memory = level.memory.map(|bytes| vary(bytes / part, random).to_string());
            ((*name).to_owned(), cpu, memory)
        });
        let window = if self.condition == Condition::Young {
            LONG_SAMPLE_WINDOW_SECONDS
        } else {
            SAMPLE_WINDOW_SECONDS
        };
        let usage = Usage { app: app.to_owned(), containers: containers.collect(), when: level.when, window };
        HpaAction::Usage { pod: self.name.clone(), usage: Some(usage) }
    }
}

/// Usage of a scenario's pods.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// The CPU usage in thousandths of a core; absent: the sample has none.
    pub(crate) cpu: Option<i64>,
    /// The memory usage in bytes.
    pub(crate) memory: Option<i64>,
    pub(crate) when: Age,
    /// All pods use the same.
    pub(crate) even: bool,
}

impl Level {
    /// No usage, in a fresh sample.
    pub(crate) fn zero() -> Self {
        Self { cpu: Some(0), memory: Some(0), when: Age::Fresh, even: true }
    }

    pub(crate) fn any(random: &mut RandomSource) -> Self {
        const MI: i64 = 1 << 20;
        let cpu = random
            .of([0, 1, 90, 250, 449, 450, 500, 501, 549, 550, 551, 700, 900, 1499, 3000, 10_000_000, -500]);
        let memory = random.of([
            0,
            1,
            100 * MI,
            307 * MI + 1,
            461 * MI,
            512 * MI,
            563 * MI,
            800 * MI,
            1500 * MI,
            (1 << 40) + 7,
            -MI,
        ]);
        let when = match random.below(8) {
            0 => Age::Old(SignedDuration::from_hours(2)),
            1 => Age::Unknown,
            _ => Age::Fresh,
        };
        let lacks = random.below(16);
        Self {
            cpu: (lacks != 0).then_some(cpu),
            memory: (lacks != 1).then_some(memory),
            when,
            even: random.once_in(2),
        }
    }
}
