//! Load sliders and fault buttons of the console: changes of the simulated workloads, of the nodes, of the metrics APIs and
//! of the API server.

use std::sync::{Arc, Mutex, MutexGuard};

use futures::future::BoxFuture;
use localkube::nodes::{Nodes, Workload};
use locks::MutexExt as _;
use serde_json::{Value, json};
use sim::Millis;
use sim::load::{CurveShape, LoadCurve};
use sim::workload::PodDelays;
use tokio::runtime::Handle;
use tokio::time::Instant;
use web_console::{ApiError, ApiRequest, ConsoleBackend};

use super::faults::{Fault, FaultTargets};
use super::queue::QueueLoad;

/// How long slow pods take to become ready.
const SLOW_READY_DELAY: Millis = Millis::from_secs(60);
/// The highest load that can be set, in requests per second.
const MAX_REQUESTS_PER_SECOND: f64 = 1e6;
/// The time within which the highest load of a scenario is looked for, and the step.
const LOOK_AHEAD_SECONDS: i64 = 3600;
const LOOK_AHEAD_STEP_SECONDS: usize = 30;

/// What can be changed.
pub(super) struct LoadAndFaults {
    nodes: Arc<Nodes>,
    workloads: Vec<(String, Workload)>,
    queue: Option<QueueLoad>,
    targets: FaultTargets,
    began: Instant,
    state: Mutex<LoadAndFaultState>,
    /// Held while a fault is caused or ended: two requests at once would lose two nodes, of which one would return.
    changing_fault: tokio::sync::Mutex<()>,
}

/// What was changed.
#[derive(Default)]
struct LoadAndFaultState {
    /// The load of each workload; none is that of the scenario.
    levels: Vec<Option<f64>>,
    active: Vec<Fault>,
}

impl LoadAndFaults {
    /// `began` is when the nodes started: the times of loads count from it.
    pub(super) fn new(
        nodes: Arc<Nodes>,
        workloads: Vec<(String, Workload)>,
        queue: Option<QueueLoad>,
        targets: FaultTargets,
        began: Instant,
    ) -> Self {
        let state = LoadAndFaultState { levels: vec![None; workloads.len()], ..LoadAndFaultState::default() };
        let changing_fault = tokio::sync::Mutex::default();
        Self { nodes, workloads, queue, targets, began, state: Mutex::new(state), changing_fault }
    }

    /// The load of a workload now, in units per second.
    pub(super) fn load_of(&self, name: &str) -> Option<f64> {
        if let Some(queue) = self.queue_of(name) {
            return Some(queue.per_second());
        }
        let index = self.workloads.iter().position(|(own, _)| own == name)?;
        let (_, workload) = self.workloads.get(index)?;
        let level = self.state().levels.get(index).copied().flatten();
        let now = Millis::from_secs(self.began.elapsed().as_secs() as i64);
        Some(level.unwrap_or_else(|| workload.load.at(now)))
    }

    /// The queue whose orders a workload takes.
    fn queue_of(&self, name: &str) -> Option<&QueueLoad> {
        self.queue.as_ref().filter(|queue| queue.workload() == name)
    }

    fn state(&self) -> MutexGuard<'_, LoadAndFaultState> {
        self.state.locked()
    }

    fn shown(&self) -> Value {
        let levels = self.state().levels.clone();
        let slider = |name: &str, max: f64, is_manual: bool| {
            json!({"name": name, "label": name, "unit": "/s", "value": self.load_of(name).unwrap_or_default(),
                "max": max, "manual": is_manual})
        };
        let loads = self.workloads.iter().zip(&levels);
        let loads =
            loads.map(|((name, workload), level)| slider(name, highest(&workload.load), level.is_some()));
        let queue = self.queue.iter();
        let queue = queue.map(|q| slider(q.workload(), QueueLoad::MAX_PER_SECOND, q.level().is_some()));
        let loads: Vec<Value> = loads.chain(queue).collect();
        let active = self.state().active.clone();
        let fault = |fault: Fault| json!({"id": fault.id(), "label": fault.label(), "active": active.contains(&fault)});
        json!({"loads": loads, "faults": Fault::ALL.map(fault)})
    }

    async fn change(&self, body: &Value) -> Result<(), ApiError> {
        let bad = |message: &str| ApiError::new(400, message);
        if let Some(name) = body.get("load").and_then(Value::as_str) {
            let level = match body.get("value") {
                None | Some(Value::Null) => None,
                Some(value) => {
                    let level =
                        value.as_f64().filter(|level| (0.0..=MAX_REQUESTS_PER_SECOND).contains(level));
                    Some(level.ok_or_else(|| bad("the load is a number that is not negative"))?)
                }
            };
            if let Some(queue) = self.queue_of(name) {
                queue.set_level(level);
                return Ok(());
            }
            let index = self.workloads.iter().position(|(own, _)| own == name);
            self.set_level(index.ok_or_else(|| bad("there is no such load"))?, level);
            return Ok(());
        }
        let fault = body.get("fault").and_then(Value::as_str).and_then(Fault::of);
        match (fault, body.get("active").and_then(Value::as_bool)) {
            (Some(fault), Some(active)) => self.set_fault(fault, active).await,
            _ => Err(bad("name a load and its value, or a fault and whether it is active")),
        }
    }

    async fn set_fault(&self, fault: Fault, active: bool) -> Result<(), ApiError> {
        let _changing = self.changing_fault.lock().await;
        if self.state().active.contains(&fault) == active {
            return Ok(());
        }
        self.targets.set(fault, active).await.map_err(|error| ApiError::new(502, error.to_string()))?;
        let mut state = self.state();
        state.active.retain(|known| *known != fault);
        if active {
            state.active.push(fault);
        }
        drop(state);
        if fault == Fault::SlowPods {
            (0..self.workloads.len()).for_each(|index| self.apply(index));
        }
        Ok(())
    }

    fn set_level(&self, index: usize, level: Option<f64>) {
        if let Some(known) = self.state().levels.get_mut(index) {
            *known = level;
        }
        self.apply(index);
    }

    /// Gives the nodes the workload as it is changed.
    fn apply(&self, index: usize) {
        let Some((_, workload)) = self.workloads.get(index) else { return };
        let mut workload = workload.clone();
        {
            let state = self.state();
            if let Some(level) = state.levels.get(index).copied().flatten() {
                workload.load = LoadCurve::new(vec![CurveShape::Constant(level)], Vec::new());
            }
            if state.active.contains(&Fault::SlowPods) {
                let delays = workload.delays.unwrap_or_default();
                workload.delays = Some(PodDelays { ready: delays.ready.max(SLOW_READY_DELAY), ..delays });
            }
        }
        self.nodes.set_load(workload);
    }
}

/// Answers the console on the runtime of the cluster, whose clock [`LoadAndFaults`] uses.
pub(super) struct LoadAndFaultsBackend {
    pub(super) load_and_faults: Arc<LoadAndFaults>,
    pub(super) runtime: Handle,
}

impl ConsoleBackend for LoadAndFaultsBackend {
    fn answer(&self, request: ApiRequest) -> BoxFuture<'_, Result<Value, ApiError>> {
        let load_and_faults = Arc::clone(&self.load_and_faults);
        let answer = self.runtime.spawn(async move {
            if let Some(body) = &request.body {
                load_and_faults.change(body).await?;
            }
            Ok(load_and_faults.shown())
        });
        Box::pin(async move {
            answer
                .await
                .unwrap_or_else(|error| Err(ApiError::new(503, format!("the cluster has ended: {error}"))))
        })
    }
}

/// Twice the highest load of the scenario's first hour: the end of the slider.
fn highest(load: &LoadCurve) -> f64 {
    let times = (0..LOOK_AHEAD_SECONDS).step_by(LOOK_AHEAD_STEP_SECONDS);
    let most = times.map(|second| load.at(Millis::from_secs(second))).fold(0.0, f64::max);
    if most > 0.0 { most * 2.0 } else { 10.0 }
}

#[cfg(test)]
mod tests {
    use localkube::nodes::Plan;
    use localkube::{Cluster, Options, PauseSwitch};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn faults_are_caused_shown_and_ended() {
        let running = Cluster::start(Options::default()).await.unwrap();
        let plan = Plan { count: 1, serve: false, clock: running.clock(), ..Plan::default() };
        let nodes = Arc::new(Nodes::start(running.client(), plan).await.unwrap());
        let pause = PauseSwitch::default();
        let targets = FaultTargets {
            client: running.client(),
            nodes: Arc::clone(&nodes),
            services: Vec::new(),
            custom_metrics: None,
            pause: pause.clone(),
            lost: Mutex::default(),
        };
        let subject = LoadAndFaults::new(Arc::clone(&nodes), Vec::new(), None, targets, Instant::now());
        let active = |subject: &LoadAndFaults| -> Vec<String> {
            let shown = subject.shown();
            let faults = shown["faults"].as_array().unwrap().iter();
            faults.filter(|fault| fault["active"] == true).map(|fault| fault["id"].to_string()).collect()
        };
        assert!(active(&subject).is_empty());
        for fault in Fault::ALL {
            subject.change(&json!({"fault": fault.id(), "active": true})).await.unwrap();
        }
        assert_eq!(active(&subject).len(), Fault::ALL.len());
        assert_eq!((nodes.busiest(), pause.is_paused()), (None, true));
        for fault in Fault::ALL {
            subject.change(&json!({"fault": fault.id(), "active": false})).await.unwrap();
        }
        assert!(active(&subject).is_empty());
        assert_eq!((nodes.busiest(), pause.is_paused()), (Some("node-1"), false));
        assert!(subject.change(&json!({"fault": "unknown", "active": true})).await.is_err());
        assert!(subject.change(&json!({"load": "unknown", "value": 1})).await.is_err());
    }

    #[test]
    fn slider_reaches_twice_the_load_of_the_scenario() {
        let load = |level: f64| LoadCurve::new(vec![CurveShape::Constant(level)], Vec::new());
        assert_eq!(highest(&load(15.0)), 30.0);
        assert_eq!(highest(&load(0.0)), 10.0);
    }
}
