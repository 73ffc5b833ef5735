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
/// The name of the queue's slider. Those of workloads are their places, because their names may be the same in two namespaces.
const QUEUE_SLIDER: &str = "queue";
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

    /// The load of a workload now, in units per second: the orders of the queue if it takes them.
    pub(super) fn load_of(&self, namespace: &str, name: &str) -> Option<f64> {
        let takes_orders = |queue: &&QueueLoad| {
            let workers = queue.workers();
            workers.namespace == namespace && workers.name == name
        };
        if let Some(queue) = self.queue.as_ref().filter(takes_orders) {
            return Some(queue.per_second());
        }
        let is_meant = |(own, workload): &(String, Workload)| own == name && workload.namespace == namespace;
        self.load_at(self.workloads.iter().position(is_meant)?)
    }

    /// The load of the workload in this place now.
    fn load_at(&self, index: usize) -> Option<f64> {
        let (_, workload) = self.workloads.get(index)?;
        let level = self.state().levels.get(index).copied().flatten();
        let now = Millis::from_secs(self.began.elapsed().as_secs() as i64);
        Some(level.unwrap_or_else(|| workload.load.at(now)))
    }

    fn state(&self) -> MutexGuard<'_, LoadAndFaultState> {
        self.state.locked()
    }

    fn shown(&self) -> Value {
        let levels = self.state().levels.clone();
        let slider = |name: &str, label: &str, unit: &str, value: f64, max: f64, is_manual: bool| {
            json!({"name": name, "label": label, "unit": unit, "value": value, "max": max,
                "manual": is_manual})
        };
        let loads = self.workloads.iter().zip(&levels).enumerate();
        let loads = loads.map(|(index, ((label, workload), level))| {
            let value = self.load_at(index).unwrap_or_default();
            slider(&index.to_string(), label, "/s", value, highest(&workload.load), level.is_some())
        });
        let queue = self.queue.iter().map(|queue| {
            let (label, max) = (&queue.workers().name, QueueLoad::MAX_PER_SECOND);
            slider(QUEUE_SLIDER, label, "orders/s", queue.per_second(), max, queue.level().is_some())
        });
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
            match (&self.queue, name.parse::<usize>()) {
                (Some(queue), _) if name == QUEUE_SLIDER => queue.set_level(level),
                (_, Ok(index)) if index < self.workloads.len() => self.set_level(index, level),
                _ => return Err(bad("there is no such load")),
            }
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
    use api::selector::Selector;
    use localkube::nodes::Plan;
    use localkube::{Cluster, Options, PauseSwitch, Running};
    use sim::workload::ServiceCapacity;

    use super::super::queue::{Queue, QueueWorkers};
    use super::*;

    /// What can be changed of a cluster with one node, and the switch of its API server.
    async fn of_cluster(
        running: &Running,
        workloads: Vec<(String, Workload)>,
        queue: Option<QueueLoad>,
    ) -> (LoadAndFaults, PauseSwitch) {
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
        (LoadAndFaults::new(nodes, workloads, queue, targets, Instant::now()), pause)
    }

    #[tokio::test(start_paused = true)]
    async fn sliders_change_the_loads_that_they_show() {
        let running = Cluster::start(Options::default()).await.unwrap();
        let workers = QueueWorkers { namespace: "a".into(), resource: "deployments", name: "web".into() };
        let queue = Queue::open(running.client(), workers).await.unwrap();
        let workloads = ["a", "b"].map(|namespace| {
            let workload = Workload {
                namespace: namespace.into(),
                selector: Selector::parse("app=web").unwrap(),
                load: LoadCurve::new(vec![CurveShape::Constant(5.0)], Vec::new()),
                service: ServiceCapacity { per_pod: None, queue: 0.0 },
                containers: Vec::new(),
                delays: None,
            };
            ("web".to_owned(), workload)
        });
        let (subject, _) = of_cluster(&running, workloads.into(), Some(queue.load())).await;
        let values = || -> Vec<f64> {
            let shown = subject.shown();
            shown["loads"].as_array().unwrap().iter().map(|load| load["value"].as_f64().unwrap()).collect()
        };
        assert_eq!(values()[..2], [5.0, 5.0]);
        for (slider, value) in [("0", 1.0), ("1", 2.0), ("queue", 3.0)] {
            subject.change(&json!({"load": slider, "value": value})).await.unwrap();
        }
        assert_eq!(values(), [1.0, 2.0, 3.0]);
        let load_in = |namespace: &str| subject.load_of(namespace, "web");
        assert_eq!((load_in("a"), load_in("b"), load_in("c")), (Some(3.0), Some(2.0), None));
        subject.change(&json!({"load": "0", "value": null})).await.unwrap();
        assert_eq!(values(), [5.0, 2.0, 3.0]);
        assert!(subject.change(&json!({"load": "2", "value": 1})).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn faults_are_caused_shown_and_ended() {
        let running = Cluster::start(Options::default()).await.unwrap();
        let (subject, pause) = of_cluster(&running, Vec::new(), None).await;
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
        assert_eq!((subject.nodes.busiest(), pause.is_paused()), (None, true));
        for fault in Fault::ALL {
            subject.change(&json!({"fault": fault.id(), "active": false})).await.unwrap();
        }
        assert!(active(&subject).is_empty());
        assert_eq!((subject.nodes.busiest(), pause.is_paused()), (Some("node-1"), false));
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
