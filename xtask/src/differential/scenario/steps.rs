//! The steps of a scenario after the first.
//!
//! A step changes either the autoscaler, in one write, or the objects on which it depends, because a reconcile that began before the step
//! has read only the autoscaler.

use serde_json::{Value, json};

use super::action::{HpaAction, HpaStep};
use super::behavior::Behavior;
use super::metric::Metric;
use super::pod::{Condition, Level, PodShape};
use super::{Broken, Facts, MAX_PODS, Scenario};
use crate::differential::action::{ApiRequest, RequestAction as _};

type MakeStep = fn(&mut Scenario, Facts) -> HpaStep;

/// All changes with their weights.
const WEIGHTED_CHANGES: [(usize, MakeStep); 21] = [
    (26, Scenario::new_values),
    (5, Scenario::all_zero),
    (5, Scenario::some_samples_gone),
    (6, Scenario::metric_gone),
    (12, Scenario::catch_up),
    (8, Scenario::pods_change),
    (6, Scenario::odd_pod),
    (3, Scenario::pod_gone),
    (6, Scenario::scaled_by_hand),
    (3, Scenario::roll_out),
    (2, Scenario::target_gone),
    (8, Scenario::other_bounds),
    (5, Scenario::other_goals),
    (6, Scenario::other_metrics),
    (9, Scenario::other_behavior),
    (3, Scenario::other_reference),
    (3, Scenario::autoscaler_anew),
    (2, Scenario::autoscaler_gone),
    (3, Scenario::rival),
    (1, Scenario::annotated),
    (2, nothing),
];

impl Scenario {
    pub(super) fn change(&mut self, facts: Facts) -> HpaStep {
        if self.rival {
            // Any other change could make both autoscalers act at the same time, in random order.
            if self.random.once_in(3) {
                return self.new_values(facts);
            }
            self.rival = false;
            return HpaStep::new("the second autoscaler goes").with([self.delete_autoscaler(1)]);
        }
        match self.broken.take() {
            Some(Broken::NoTarget) => {
                let replicas = self.random.between(1, 5);
                return HpaStep::new(format!("the target comes back with {replicas}"))
                    .with(self.kind.create(&self.name, replicas));
            }
            Some(Broken::NoAutoscaler) => {
                return HpaStep::new("the autoscaler comes back").with([self.create_autoscaler()]);
            }
            Some(Broken::Reference) => {
                let reference = json!({"scaleTargetRef": self.kind.reference(&self.name)});
                return HpaStep::new("the reference is right again")
                    .with([self.patch_autoscaler(&reference)]);
            }
            None => {}
        }
        // With scaling to zero, every scenario should reach zero once.
        if self.to_zero && self.min == Some(0) && self.random.once_in(5) {
            return self.all_zero(facts);
        }
        let place = self.random.weighted(WEIGHTED_CHANGES.iter().map(|(weight, _)| *weight));
        let make = WEIGHTED_CHANGES.get(place).map_or(nothing as MakeStep, |(_, make)| *make);
        make(self, facts)
    }

    fn new_values(&mut self, _: Facts) -> HpaStep {
        self.level = Level::any(&mut self.random);
        let Self { pods, random, name, level, .. } = self;
        let usage: Vec<HpaAction> = pods.iter().map(|pod| pod.usage(name, *level, random)).collect();
        let value_actions = self.set_all_values();
        HpaStep::new("new values").with(usage).with(value_actions)
    }

    fn all_zero(&mut self, _: Facts) -> HpaStep {
        self.level = Level::zero();
        let Self { pods, random, name, level, metrics, .. } = self;
        let usage: Vec<HpaAction> = pods.iter().map(|pod| pod.usage(name, *level, random)).collect();
        let value_actions: Vec<HpaAction> =
            metrics.iter().flat_map(|metric| metric.set_zero_values(name, pods)).collect();
        HpaStep::new("all values are zero").with(usage).with(value_actions)
    }

    fn annotated(&mut self, _: Facts) -> HpaStep {
        let path = format!("/apis/autoscaling/v2/namespaces/{{ns}}/horizontalpodautoscalers/{}", self.name);
        let note = json!({"metadata": {"annotations": {"note": format!("{}", self.steps_left), "team": Value::Null}}});
        HpaStep::new("the autoscaler is annotated").with([HpaAction::patch(path, note)])
    }

    fn some_samples_gone(&mut self, _: Facts) -> HpaStep {
        let Self { pods, random, .. } = self;
        let gone = pods
            .iter()
            .filter(|_| random.once_in(2))
            .map(|pod| HpaAction::Usage { pod: pod.name.clone(), usage: None });
        HpaStep::new("samples of some pods are gone").with(gone.collect::<Vec<_>>())
    }

    fn metric_gone(&mut self, _: Facts) -> HpaStep {
        let place = self.random.below(self.metrics.len());
        let actions = self.metrics.get(place).map(|metric| metric.forget(&self.name, &self.pods));
        HpaStep::new(format!("a metric is removed: {place}")).with(actions.into_iter().flatten())
    }

    /// Pods and status follow the requested replica count.
    fn catch_up(&mut self, facts: Facts) -> HpaStep {
        let Some(replicas) = facts.replicas else { return self.new_values(facts) };
        let wanted = usize::try_from(replicas).unwrap_or_default().min(MAX_PODS);
        let mut actions: Vec<HpaAction> = vec![self.kind.write_status(&self.name, replicas)];
        while self.pods.len() > wanted
            && let Some(pod) = self.pods.pop()
        {
            actions.extend([pod.remove(), HpaAction::Usage { pod: pod.name.clone(), usage: None }]);
        }
        while self.pods.len() < wanted {
            let condition = self.usual_condition();
            actions.extend(self.add_pod(PodShape::Plain, condition, facts.now));
        }
        HpaStep::new(format!("the workload has {replicas}")).with(actions)
    }

    fn pods_change(&mut self, facts: Facts) -> HpaStep {
        let condition =
            if self.random.once_in(4) { Condition::Ready } else { Condition::any(&mut self.random) };
        let most = self.random.once_in(3);
        let Self { pods, random, name, level, .. } = self;
        let mut actions = Vec::new();
        for pod in pods.iter_mut().filter(|pod| pod.condition != Condition::Terminating) {
            if most || random.once_in(2) {
                pod.condition = condition;
                actions.extend(pod.become_so(facts.now));
                actions.push(pod.usage(name, *level, random));
            }
        }
        HpaStep::new(format!("some pods are {condition:?}")).with(actions)
    }

    fn odd_pod(&mut self, facts: Facts) -> HpaStep {
        let (shape, condition) = (PodShape::any(&mut self.random), self.usual_condition());
        let actions = self.add_pod(shape, condition, facts.now);
        HpaStep::new(format!("another pod: {shape:?}, {condition:?}")).with(actions)
    }

    fn pod_gone(&mut self, facts: Facts) -> HpaStep {
        let Some(pod) = self.pods.pop() else { return self.odd_pod(facts) };
        // The sample of the pod is still served, as in a real cluster.
        HpaStep::new(format!("pod {} is gone", pod.name)).with([pod.remove()])
    }

    fn scaled_by_hand(&mut self, _: Facts) -> HpaStep {
        let replicas = self.random.of([0, 0, 1, 2, 3, 5, 8, 20]);
        HpaStep::new(format!("scaled to {replicas} by hand")).with([self.kind.scale(&self.name, replicas)])
    }

    fn roll_out(&mut self, facts: Facts) -> HpaStep {
        let replicas = facts.replicas.unwrap_or(1) + self.random.of([1, 2, 3]);
        HpaStep::new(format!("the status says {replicas}"))
            .with([self.kind.write_status(&self.name, replicas)])
    }

    fn target_gone(&mut self, _: Facts) -> HpaStep {
        self.broken = Some(Broken::NoTarget);
        let orphan = json!({"propagationPolicy": "Orphan"});
        let delete = HpaAction::ApiRequest(ApiRequest {
            method: http::Method::DELETE,
            path: self.kind.path(&self.name),
            body: orphan,
        });
        HpaStep::new("the target is deleted").with([delete])
    }

    fn other_bounds(&mut self, _: Facts) -> HpaStep {
        self.draw_bounds();
        let edit = self.patch_autoscaler(&json!({"minReplicas": self.min, "maxReplicas": self.max}));
        HpaStep::new(format!("between {:?} and {}", self.min, self.max)).with([edit])
    }

    fn other_goals(&mut self, _: Facts) -> HpaStep {
        let Self { metrics, random, .. } = self;
        *metrics = metrics.iter().map(|metric| metric.retargeted(random)).collect();
        let edit = self.patch_autoscaler(&json!({"metrics": self.metrics_json()}));
        HpaStep::new("other targets").with([edit])
    }

    /// The values of new metrics are set before the autoscaler refers to them, so only one write matters.
    fn other_metrics(&mut self, _: Facts) -> HpaStep {
        let before = self.min;
        self.draw_metrics();
        self.min = before;
        if self.to_zero && before == Some(0) && !self.metrics.iter().any(Metric::is_outside) {
            self.min = Some(1);
        }
        let value_actions = self.set_all_values();
        let edit = self.patch_autoscaler(&json!({"metrics": self.metrics_json(), "minReplicas": self.min}));
        HpaStep::new("other metrics").with(value_actions).with([edit])
    }

    fn other_behavior(&mut self, _: Facts) -> HpaStep {
        let behavior = (!self.random.once_in(5)).then(|| Behavior::any(&mut self.random));
        // A merge patch keeps absent fields, so all fields are set.
        let edit = behavior.as_ref().map_or(Value::Null, |behavior| {
            let rules = |direction: &str| {
                let unsaid = ["stabilizationWindowSeconds", "selectPolicy", "tolerance"]
                    .map(|key| (key.to_owned(), Value::Null));
                let rules =
                    behavior.json.get(direction).and_then(Value::as_object).cloned().unwrap_or_default();
                unsaid.into_iter().chain(rules).collect::<Value>()
            };
            json!({"scaleUp": rules("scaleUp"), "scaleDown": rules("scaleDown")})
        });
        self.behavior = behavior;
        HpaStep::new("other behavior").with([self.patch_autoscaler(&json!({"behavior": edit}))])
    }

    fn other_reference(&mut self, _: Facts) -> HpaStep {
        self.broken = Some(Broken::Reference);
        let (title, reference) = match self.random.below(5) {
            0 => (
                "nobody",
                json!({"apiVersion": self.kind.api_version(), "kind": self.kind.kind(), "name": "nobody"}),
            ),
            1 => (
                "an unknown kind",
                json!({"apiVersion": "example.com/v1", "kind": "Gizmo", "name": self.name}),
            ),
            2 => (
                "a kind without scale",
                json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": self.name}),
            ),
            3 => (
                "a kind in lower case",
                json!({"apiVersion": "apps/v1", "kind": "deployment", "name": self.name}),
            ),
            _ => (
                "a version that is not there",
                json!({"apiVersion": "apps/v9", "kind": "Deployment", "name": self.name}),
            ),
        };
        let edit = self.patch_autoscaler(&json!({"scaleTargetRef": reference}));
        HpaStep::new(format!("the reference names {title}")).with([edit])
    }

    fn delete_autoscaler(&self, place: usize) -> HpaAction {
        let names = self.autoscalers();
        let name = names.get(place).unwrap_or(&self.name);
        HpaAction::delete(format!("/apis/autoscaling/v2/namespaces/{{ns}}/horizontalpodautoscalers/{name}"))
    }

    fn autoscaler_anew(&mut self, _: Facts) -> HpaStep {
        HpaStep::new("the autoscaler is deleted and made anew")
            .with([self.delete_autoscaler(0), self.create_autoscaler()])
    }

    fn autoscaler_gone(&mut self, _: Facts) -> HpaStep {
        self.broken = Some(Broken::NoAutoscaler);
        HpaStep::new("the autoscaler is deleted").with([self.delete_autoscaler(0)])
    }

    /// Creates a second autoscaler of the same target.
    fn rival(&mut self, facts: Facts) -> HpaStep {
        // Without pods their selectors do not overlap, and both act.
        if self.pods.is_empty() || facts.replicas.is_none() {
            return self.new_values(facts);
        }
        self.rival = true;
        let names = self.autoscalers();
        let name = names.last().unwrap_or(&self.name);
        HpaStep::new("a second autoscaler of the same target")
            .with([HpaAction::post(self.hpa_path(), self.autoscaler(name))])
    }
}

fn nothing(_: &mut Scenario, _: Facts) -> HpaStep {
    HpaStep::new("nothing")
}
