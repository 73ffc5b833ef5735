//! Load sliders and fault buttons of the console: changes of the simulated workloads and of the metrics APIs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cluster::request::{self, Request};
use futures::future::BoxFuture;
use http::Method;
use kube::Client;
use localkube::nodes::{Nodes, Workload};
use serde_json::{Value, json};
use sim::Millis;
use sim::load::{CurveShape, LoadCurve};
use sim::workload::PodDelays;
use web_console::{ApiError, ApiRequest, ConsoleBackend};

use super::objects;

/// The names of faults in requests.
const METRICS_OUTAGE: &str = "metrics";
const SLOW_PODS: &str = "slow-pods";
/// How long slow pods take to become ready.
const SLOW_READY_DELAY: Millis = Millis::from_secs(60);
/// The highest load that can be set, in requests per second.
const MAX_LEVEL: f64 = 1e6;
/// The time within which the highest load of a scenario is looked for, and the step.
const LOOK_AHEAD_SECONDS: i64 = 3600;
const LOOK_AHEAD_STEP_SECONDS: usize = 30;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// What can be changed.
pub(super) struct Lab {
    nodes: Arc<Nodes>,
    client: Client,
    /// The APIServices of the metrics server, which an outage removes.
    services: Vec<Value>,
    workloads: Vec<(String, Workload)>,
    began: Instant,
    state: Mutex<LabState>,
}

/// What was changed.
#[derive(Default)]
struct LabState {
    /// The load of each workload; none is that of the scenario.
    levels: Vec<Option<f64>>,
    are_pods_slow: bool,
    is_outage: bool,
}

impl Lab {
    pub(super) fn new(
        nodes: Arc<Nodes>,
        client: Client,
        services: Vec<Value>,
        workloads: Vec<(String, Workload)>,
        began: Instant,
    ) -> Self {
        let state = LabState { levels: vec![None; workloads.len()], ..LabState::default() };
        Self { nodes, client, services, workloads, began, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, LabState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shown(&self) -> Value {
        let state = self.state();
        let now = Millis::from_secs(self.began.elapsed().as_secs() as i64);
        let loads = self.workloads.iter().zip(&state.levels).map(|((name, workload), level)| {
            json!({"name": name, "label": name, "unit": "/s", "value": level.unwrap_or_else(|| workload.load.at(now)),
                "max": highest(&workload.load), "manual": level.is_some()})
        });
        let loads: Vec<Value> = loads.collect();
        let faults = [
            json!({"id": METRICS_OUTAGE, "label": "metrics outage", "active": state.is_outage}),
            json!({"id": SLOW_PODS, "label": "slow pods", "active": state.are_pods_slow}),
        ];
        json!({"loads": loads, "faults": faults})
    }

    async fn change(&self, body: &Value) -> Result<(), ApiError> {
        let bad = |message: &str| ApiError::new(400, message);
        if let Some(name) = body.get("load").and_then(Value::as_str) {
            let index = self.workloads.iter().position(|(own, _)| own == name);
            let index = index.ok_or_else(|| bad("there is no such load"))?;
            let level = match body.get("value") {
                None | Some(Value::Null) => None,
                Some(value) => {
                    let level = value.as_f64().filter(|level| (0.0..=MAX_LEVEL).contains(level));
                    Some(level.ok_or_else(|| bad("the load is a number that is not negative"))?)
                }
            };
            self.set_level(index, level);
            return Ok(());
        }
        let fault = body.get("fault").and_then(Value::as_str);
        match (fault, body.get("active").and_then(Value::as_bool)) {
            (Some(SLOW_PODS), Some(active)) => {
                self.state().are_pods_slow = active;
                (0..self.workloads.len()).for_each(|index| self.apply(index));
                Ok(())
            }
            (Some(METRICS_OUTAGE), Some(active)) => self.outage(active).await,
            _ => Err(bad("name a load and its value, or a fault and whether it is active")),
        }
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
            if state.are_pods_slow {
                let delays = workload.delays.unwrap_or_default();
                workload.delays = Some(PodDelays { ready: delays.ready.max(SLOW_READY_DELAY), ..delays });
            }
        }
        self.nodes.set_load(workload);
    }

    /// Removes the metrics APIs, or registers them again.
    async fn outage(&self, active: bool) -> Result<(), ApiError> {
        for service in &self.services {
            let done = if active {
                self.remove(service).await
            } else {
                objects::create_one(&self.client, service).await
            };
            done.map_err(|error| ApiError::new(502, error.to_string()))?;
        }
        self.state().is_outage = active;
        Ok(())
    }

    async fn remove(&self, service: &Value) -> Result<(), crate::failure::BoxError> {
        let name = service.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let request = Request {
            method: Method::DELETE,
            uri: format!("/apis/apiregistration.k8s.io/v1/apiservices/{name}"),
            resource: "apiservices".to_owned(),
            name: name.to_owned(),
            body: None,
            deadline: REQUEST_TIMEOUT,
        };
        request::send(&self.client, request).await?;
        Ok(())
    }
}

impl ConsoleBackend for Lab {
    fn answer(&self, request: ApiRequest) -> BoxFuture<'_, Result<Value, ApiError>> {
        Box::pin(async move {
            if let Some(body) = &request.body {
                self.change(body).await?;
            }
            Ok(self.shown())
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
    use super::*;

    #[test]
    fn slider_reaches_twice_the_load_of_the_scenario() {
        let load = |level: f64| LoadCurve::new(vec![CurveShape::Constant(level)], Vec::new());
        assert_eq!(highest(&load(15.0)), 30.0);
        assert_eq!(highest(&load(0.0)), 10.0);
    }
}
