//! A scenario: one workload with its autoscaler, and the changes of both. It is a function of a seed and a number.

pub(crate) mod action;
mod behavior;
mod metric;
mod pod;
pub(crate) mod random;
mod steps;
pub(crate) mod target;

use std::collections::BTreeSet;

use jiff::Timestamp;
use localkube::metrics::{MetricsGroup, Outage};
use serde_json::{Value, json};

use action::{HpaAction, HpaStep};
use behavior::Behavior;
use metric::Metric;
use pod::{Condition, Level, Pod, PodShape};
use random::RandomSource;
use target::Kind;

use super::action::RequestAction as _;

/// The facts that the next step of a scenario depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// The requested replica count of the target, which is the same on both sides; absent: there is no target.
    pub(crate) replicas: Option<i64>,
    pub(crate) now: Timestamp,
}

/// One workload with its autoscaler, in its current state.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// The name of its objects.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    random: RandomSource,
    to_zero: bool,
    pods: Vec<Pod>,
    pods_made: usize,
    metrics: Vec<Metric>,
    metrics_made: usize,
    level: Level,
    behavior: Option<Behavior>,
    min: Option<i64>,
    max: i64,
    /// The API version through which the autoscaler is written.
    old_api: bool,
    /// What must be undone in the next step.
    broken: Option<Broken>,
    /// Whether there is a second autoscaler.
    rival: bool,
    steps_left: usize,
    made: bool,
    /// The titles of the steps so far.
    pub(crate) done: Vec<HpaStep>,
}

/// The current fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    NoTarget,
    NoAutoscaler,
    Reference,
}

/// Maximum replicas of most scenarios.
const MAX_REPLICAS: i64 = 12;
/// Maximum number of pods, independent of the number of replicas.
const MAX_PODS: usize = 6;

impl Scenario {
    /// The scenario of this number; `to_zero` if the cluster lets autoscalers scale to zero.
    pub(crate) fn new(seed: u64, number: u64, to_zero: bool) -> Self {
        let mut random = RandomSource::new(seed, number);
        let place = random.weighted([40, 12, 12, 10, 20, 3]);
        let kind = Kind::ALL.into_iter().nth(place).unwrap_or(Kind::Deployment);
        let steps_left = random.between(4, 7) as usize;
        let level = Level::any(&mut random);
        let mut scenario = Self {
            name: format!("s{number}"),
            kind,
            random,
            to_zero,
            pods: Vec::new(),
            pods_made: 0,
            metrics: Vec::new(),
            metrics_made: 0,
            level,
            behavior: None,
            min: None,
            max: 1,
            old_api: false,
            broken: None,
            rival: false,
            steps_left,
            made: false,
            done: Vec::new(),
        };
        scenario.draw_bounds();
        scenario.draw_metrics();
        if scenario.random.once_in(3) {
            scenario.behavior = Some(Behavior::any(&mut scenario.random));
        }
        scenario.old_api = scenario.random.once_in(8);
        scenario
    }

    /// Whether the scenario has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.steps_left == 0
    }

    /// The names of its autoscalers, present and past.
    pub(crate) fn autoscalers(&self) -> [String; 2] {
        [self.name.clone(), format!("{}-b", self.name)]
    }

    /// The names of the autoscalers that a step has deleted, whether they came back or not.
    pub(crate) fn deleted_autoscalers(&self) -> BTreeSet<String> {
        let deleted = |action: &HpaAction| match action {
            HpaAction::ApiRequest(ask) if ask.method == http::Method::DELETE => {
                ask.path.rsplit_once("/horizontalpodautoscalers/").map(|(_, name)| name.to_owned())
            }
            _ => None,
        };
        self.done.iter().flat_map(|step| &step.actions).filter_map(deleted).collect()
    }

    /// The number of seconds after the last change during which controllers may still keep earlier recommendations.
    pub(crate) fn memory(&self) -> i64 {
        self.behavior.as_ref().map_or(0, |behavior| behavior.memory)
    }

    /// Maximum number of warning events of one reconcile.
    pub(crate) fn warnings_per_pass(&self) -> usize {
        self.metrics.len() + 1
    }

    /// The next step.
    pub(crate) fn step(&mut self, facts: Facts) -> HpaStep {
        self.steps_left = self.steps_left.saturating_sub(1);
        let step = if self.made { self.change(facts) } else { self.begin(facts) };
        self.done.push(step.clone());
        step
    }

    /// A step in which a whole metrics API fails.
    pub(crate) fn outage(&mut self, group: MetricsGroup, outage: &Outage) -> HpaStep {
        let step = HpaStep::new(format!("{} fails for everybody: {outage:?}", group.name()));
        self.done.push(step.clone());
        step
    }

    /// The step after it.
    pub(crate) fn mended(&mut self, group: MetricsGroup) -> HpaStep {
        let step = HpaStep::new(format!("{} answers again", group.name()));
        self.done.push(step.clone());
        step
    }

    /// Whether the scenario has begun.
    pub(crate) fn is_made(&self) -> bool {
        self.made
    }

    /// Removes all objects and values of the scenario.
    pub(crate) fn end(&self) -> Vec<HpaAction> {
        let mine = format!("labelSelector=scenario%3D{}", self.name);
        let hpas = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers";
        let mut actions = vec![
            HpaAction::delete(format!("{hpas}?{mine}")),
            HpaAction::delete(format!("{}?{mine}", self.kind.collection())),
            HpaAction::delete(format!("/api/v1/namespaces/{{ns}}/pods?{mine}&gracePeriodSeconds=0")),
        ];
        for metric in &self.metrics {
            actions.extend(metric.forget(&self.name, &self.pods));
        }
        actions.extend(self.pods.iter().map(|pod| HpaAction::Usage { pod: pod.name.clone(), usage: None }));
        actions.extend(self.autoscalers().iter().map(|name| {
            HpaAction::delete(format!(
                "/api/v1/namespaces/{{ns}}/events?fieldSelector=involvedObject.name%3D{name}"
            ))
        }));
        actions
    }

    /// Creates the target, pods, values and autoscaler.
    fn begin(&mut self, facts: Facts) -> HpaStep {
        self.made = true;
        let replicas = self.random.between(1, 5);
        let mut actions: Vec<HpaAction> = self.kind.create(&self.name, replicas);
        let pods = if self.random.once_in(5) { self.random.below(5) } else { replicas as usize };
        for _ in 0..pods {
            let (shape, condition) = (self.usual_shape(), self.usual_condition());
            actions.extend(self.add_pod(shape, condition, facts.now));
        }
        actions.extend(self.set_all_values());
        actions.push(self.create_autoscaler());
        let title = format!("a {} of {replicas} with {pods} pods and its autoscaler", self.kind.kind());
        HpaStep::new(title).with(actions)
    }

    fn usual_shape(&mut self) -> PodShape {
        if self.random.once_in(10) { PodShape::any(&mut self.random) } else { PodShape::Plain }
    }

    fn usual_condition(&mut self) -> Condition {
        if self.random.once_in(10) { Condition::any(&mut self.random) } else { Condition::Ready }
    }

    fn add_pod(&mut self, shape: PodShape, condition: Condition, now: Timestamp) -> Vec<HpaAction> {
        let pod = Pod { name: format!("{}-{}", self.name, self.pods_made), shape, condition };
        self.pods_made += 1;
        let mut actions = pod.create(&self.name, now);
        actions.push(pod.usage(&self.name, self.level, &mut self.random));
        self.pods.push(pod);
        actions
    }

    /// Sets new values of all metrics that are not resource metrics of pods.
    fn set_all_values(&mut self) -> Vec<HpaAction> {
        let Self { metrics, random, name, pods, .. } = self;
        metrics.iter().flat_map(|metric| metric.set_values(random, name, pods)).collect()
    }

    fn draw_bounds(&mut self) {
        let lowest = i64::from(!self.to_zero || !self.metrics.iter().any(Metric::is_outside));
        self.min = (!self.random.once_in(5)).then(|| self.random.between(lowest.max(0), 4));
        let least = self.min.unwrap_or(1).max(1);
        self.max = if self.random.once_in(12) { 40 } else { self.random.between(least, MAX_REPLICAS) };
    }

    fn draw_metrics(&mut self) {
        let count = 1 + self.random.weighted([60, 25, 15]);
        self.metrics.clear();
        for place in 0..count {
            self.metrics_made += 1;
            let number = self.metrics_made;
            let outside = self.to_zero && place == 0;
            let make = if outside { Metric::outside } else { Metric::any };
            self.metrics.push(make(&mut self.random, &self.name, number, self.kind));
        }
        if self.to_zero && self.random.once_in(2) {
            self.min = Some(0);
        }
    }

    fn metrics_json(&self) -> Value {
        self.metrics.iter().map(|metric| metric.json(&self.name)).collect()
    }

    fn hpa_path(&self) -> String {
        let version = if self.old_api { "v1" } else { "v2" };
        format!("/apis/autoscaling/{version}/namespaces/{{ns}}/horizontalpodautoscalers")
    }

    fn create_autoscaler(&self) -> HpaAction {
        HpaAction::post(self.hpa_path(), self.autoscaler(&self.name))
    }

    fn autoscaler(&self, name: &str) -> Value {
        let mut metadata =
            json!({"name": name, "labels": {"scenario": self.name}, "annotations": {"team": "a"}});
        let mut spec = json!({
            "scaleTargetRef": self.kind.reference(&self.name), "minReplicas": self.min, "maxReplicas": self.max,
        });
        let behavior = self.behavior.as_ref().map(|behavior| behavior.json.clone());
        let mut set = |key: &str, value: Value| {
            if let Some(spec) = spec.as_object_mut() {
                spec.insert(key.to_owned(), value);
            }
        };
        if self.old_api {
            let flat: Vec<Value> = self.metrics.iter().filter_map(|metric| metric.flat(&self.name)).collect();
            let annotation = |name: &str| format!("autoscaling.alpha.kubernetes.io/{name}");
            if let Some(annotations) = metadata.pointer_mut("/annotations").and_then(Value::as_object_mut) {
                annotations.insert(annotation("metrics"), json!(flat).to_string().into());
                if let Some(behavior) = behavior {
                    annotations.insert(annotation("behavior"), behavior.to_string().into());
                }
            }
            if let Some(percent) = self.metrics.iter().find_map(Metric::cpu_utilization) {
                set("targetCPUUtilizationPercentage", percent.into());
            }
        } else {
            set("metrics", self.metrics_json());
            if let Some(behavior) = behavior {
                set("behavior", behavior);
            }
        }
        let version = if self.old_api { "autoscaling/v1" } else { "autoscaling/v2" };
        json!({"apiVersion": version, "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec})
    }

    fn patch_autoscaler(&self, spec: &Value) -> HpaAction {
        let path = format!("/apis/autoscaling/v2/namespaces/{{ns}}/horizontalpodautoscalers/{}", self.name);
        HpaAction::patch(path, json!({"spec": spec}))
    }
}

#[cfg(test)]
mod tests;
