//! The table of broken set-ups: an autoscaler, what its target consists of, the expected cause, and words of the first line.

mod limits;
mod metrics;
mod pods;
mod targets;

use serde_json::{Value, json};

/// One set-up. Autoscaler, target and external metric have its name, unless its spec says otherwise.
pub(super) struct SetUp {
    pub(super) name: &'static str,
    pub(super) kind: SetUpKind,
    /// The annotation `plimsoll.dev/mode`.
    pub(super) mode: Option<&'static str>,
    pub(super) target: TestTarget,
    pub(super) spec: Value,
    /// The identifier of the first cause.
    pub(super) id: &'static str,
    /// Words that the first line contains; `{ns}` is the namespace.
    pub(super) words: &'static str,
}

/// The kind of autoscaler.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SetUpKind {
    Hpa,
    Autoscaler,
}

/// What the target of a set-up consists of.
pub(super) enum TestTarget {
    /// There is no target, or that of another set-up.
    Nothing,
    /// A Deployment without pods.
    Empty(usize),
    /// A Deployment whose external metric proposes `wanted` replicas.
    Recommended { replicas: usize, wanted: i64 },
    /// A Deployment with these pods.
    Pods(Vec<TestPod>),
    /// A Deployment whose pods have this label instead of its name; pods with it exist.
    Labelled(&'static str),
    /// A Deployment whose selector also matches the pods of a StatefulSet.
    Wide,
    /// A custom resource whose scale has this selector.
    Widget { selector: Option<&'static str> },
    /// A custom resource without a scale.
    Gadget,
}

/// One pod.
#[derive(Clone, Copy)]
pub(super) struct TestPod {
    pub(super) state: PodState,
    /// Names of containers and their cpu requests.
    pub(super) containers: &'static [(&'static str, Option<&'static str>)],
    /// Millicores that each container uses; none: there is no sample.
    pub(super) usage: Option<i64>,
    /// The age of the sample; zero: it is new in every response.
    pub(super) sample_age_minutes: i64,
    /// Whether the pod runs on the node whose kubelet does not respond.
    pub(super) on_lost_node: bool,
}

/// The status of a pod.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PodState {
    /// It has been ready for an hour.
    Ready,
    /// It runs, and was never ready.
    Unready,
    /// It is not scheduled.
    Pending,
    /// It has been ready for a few seconds.
    Young,
    Failed,
    Completed,
}

/// A ready pod without faults, which uses half of its request.
pub(super) const READY_POD: TestPod = TestPod {
    state: PodState::Ready,
    containers: &[("app", Some("1"))],
    usage: Some(500),
    sample_age_minutes: 0,
    on_lost_node: false,
};

impl SetUp {
    fn of(self, kind: SetUpKind) -> Self {
        Self { kind, ..self }
    }

    fn mode(self, mode: &'static str) -> Self {
        Self { mode: Some(mode), ..self }
    }

    /// `hpa/web`.
    pub(super) fn full_name(&self) -> String {
        let kind = match self.kind {
            SetUpKind::Hpa => "hpa",
            SetUpKind::Autoscaler => "autoscaler",
        };
        format!("{kind}/{}", self.name)
    }
}

fn set_up(
    name: &'static str,
    target: TestTarget,
    spec: Value,
    id: &'static str,
    words: &'static str,
) -> SetUp {
    SetUp { name, kind: SetUpKind::Hpa, mode: None, target, spec, id, words }
}

fn hpa(metric: &Value) -> Value {
    json!({"minReplicas": 1, "maxReplicas": 8, "metrics": [metric]})
}

fn with(mut spec: Value, field: &str, value: Value) -> Value {
    spec[field] = value;
    spec
}

fn with_pods(pods: &[TestPod]) -> TestTarget {
    TestTarget::Pods(pods.to_vec())
}

/// All set-ups whose cause persists, and that need no failure of a whole API.
pub(super) fn all() -> Vec<SetUp> {
    let mut all = targets::set_ups();
    all.extend(pods::set_ups());
    all.extend(metrics::set_ups());
    all.extend(limits::set_ups());
    all
}

/// Set-ups whose cause ends with the first decisions. The records of these decisions are kept.
pub(super) fn passing() -> Vec<SetUp> {
    limits::passing()
}
