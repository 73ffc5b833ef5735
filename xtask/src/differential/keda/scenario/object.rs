//! Steps of a valid object: sources change, the object is edited, another client changes its HPA or target.

use serde_json::{Value, json};

use super::breakage::KedaBreakage;
use super::change_kind::ChangeKind;
use super::trigger::{Source, Trigger};
use super::{HPAS, KedaScenario, LONG_COOLDOWN_SECONDS, OBJECTS, PODS, json_text};
use crate::differential::action::RequestAction as _;
use crate::differential::keda::action::{KedaAction, KedaStep};
use crate::differential::keda::source::SourceResponse;

impl KedaScenario {
    pub(super) fn object_spec(&self) -> Value {
        json!({
            "scaleTargetRef": self.target.reference(&self.name),
            "pollingInterval": self.polling,
            "cooldownPeriod": self.cooldown,
            "initialCooldownPeriod": self.initial_cooldown,
            "minReplicaCount": self.min,
            "maxReplicaCount": self.max,
            "idleReplicaCount": self.idle,
            "advanced": self.advanced(),
            "fallback": self.fallback,
            "triggers": self.triggers_json(),
        })
    }

    fn advanced(&self) -> Value {
        let hpa = json!({"name": self.hpa_name, "behavior": self.behavior});
        let hpa = if self.hpa_name.is_some() || self.behavior.is_some() { hpa } else { Value::Null };
        if self.restore.is_none() && hpa.is_null() && self.modifiers.is_none() {
            return Value::Null;
        }
        json!({
            "restoreToOriginalReplicaCount": self.restore,
            "horizontalPodAutoscalerConfig": hpa,
            "scalingModifiers": self.modifiers,
        })
    }

    /// The name of the HPA.
    pub(super) fn hpa(&self) -> String {
        self.hpa_name.clone().unwrap_or_else(|| format!("keda-hpa-{}", self.name))
    }

    /// The step of a change; another change if this one is not possible now.
    pub(super) fn plan(&mut self, change: ChangeKind) -> KedaStep {
        let planned =
            self.plan_sources(change).or_else(|| self.plan_edit(change)).or_else(|| self.plan_others(change));
        let planned = planned.or_else(|| self.plan_broken(change)).or_else(|| self.plan_job(change));
        planned.unwrap_or_else(|| self.change_value())
    }

    fn change_value(&mut self) -> KedaStep {
        let step = KedaStep::new("another value");
        let Some(key) = self.any_key() else { return step };
        let state = SourceResponse { value: self.random.between(0, 40), ..self.state(&key) };
        step.with([self.set_response(&key, state)])
    }

    fn plan_sources(&mut self, change: ChangeKind) -> Option<KedaStep> {
        Some(match change {
            ChangeKind::Value => self.change_value(),
            ChangeKind::Activity => {
                let key = self.any_key()?;
                let state = self.state(&key);
                let state = SourceResponse { active: !state.active, ..state };
                let title = if state.active { "a source becomes active" } else { "a source becomes idle" };
                KedaStep::new(title).with([self.set_response(&key, state)])
            }
            ChangeKind::AllIdle => {
                let keys: Vec<String> =
                    self.triggers.iter().filter_map(|t| t.key().map(str::to_owned)).collect();
                let actions: Vec<KedaAction> =
                    keys.iter().map(|key| self.set_response(key, SourceResponse::new(0, false))).collect();
                KedaStep::new("all sources become idle").with(actions)
            }
            ChangeKind::Push => {
                let place = self
                    .triggers
                    .iter()
                    .position(|t| matches!(t.source, Source::External { push: true, .. }));
                let Some(place) = place else {
                    for trigger in &mut self.triggers {
                        if let Source::External { push, .. } = &mut trigger.source {
                            *push = true;
                        }
                    }
                    return Some(KedaStep::new("triggers become push triggers").with([self.edit()]));
                };
                let key = self.triggers.get(place)?.key()?.to_owned();
                // The source is idle in polls, so that only the push activates the target until the next poll.
                KedaStep::new("a source pushes activity").with([
                    KedaAction::Say {
                        key: key.clone(),
                        state: SourceResponse { active: true, ..self.state(&key) },
                    },
                    KedaAction::Push { key: key.clone() },
                    self.set_response(&key, SourceResponse { active: true, ..self.state(&key) }),
                ])
            }
            ChangeKind::Pods => {
                if self.triggers.iter().all(|t| !matches!(t.source, Source::Workload { .. })) {
                    self.triggers.push(Trigger::new(Source::Workload { target: 2 }));
                    self.triggers_made += 1;
                    return Some(KedaStep::new("a trigger that counts pods").with([self.edit()]));
                }
                let (name, number) = (self.name.clone(), self.pods);
                self.pods += 1;
                let pod = json!({
                    "apiVersion": "v1", "kind": "Pod",
                    "metadata": {"name": format!("{name}-{number}"), "labels": {"crew": name, "scenario": name}},
                    "spec": {"containers": [{"name": "app", "image": "app"}]},
                });
                KedaStep::new("one pod more").with([KedaAction::post(PODS, pod)])
            }
            _ => return None,
        })
    }

    fn plan_edit(&mut self, change: ChangeKind) -> Option<KedaStep> {
        let title = match change {
            ChangeKind::Bounds => {
                self.draw_bounds();
                format!("bounds: min {:?}, max {:?}, idle {:?}", self.min, self.max, self.idle)
            }
            ChangeKind::Idle if self.job.is_none() => {
                self.min = Some(2);
                self.max = Some(6);
                self.idle = if self.idle.is_some() { None } else { Some(self.random.between(0, 1)) };
                format!("idle {:?} below 2", self.idle)
            }
            ChangeKind::Threshold => {
                let new = self.random.between(1, 20);
                for trigger in &mut self.triggers {
                    match &mut trigger.source {
                        Source::External { target, .. }
                        | Source::Api { target, .. }
                        | Source::Workload { target } => *target = new,
                        Source::Cpu { percent, .. } => *percent = 30 + new,
                        Source::Cron { replicas, .. } => *replicas = new,
                        Source::Memory | Source::Nonsense => {}
                    }
                }
                format!("all thresholds: {new}")
            }
            ChangeKind::MetricName => {
                let new = self.random.of(["jobs-new", "b_2", "Letters"]);
                for trigger in &mut self.triggers {
                    if let Source::External { metric, .. } = &mut trigger.source {
                        new.clone_into(metric);
                    }
                }
                "another name of metrics".to_owned()
            }
            ChangeKind::MetricType if self.job.is_none() => {
                let new = self.random.of([Some("Value"), Some("AverageValue"), None]);
                for trigger in self.triggers.iter_mut().filter(|trigger| !trigger.is_resource()) {
                    trigger.metric_type = new;
                }
                format!("type of metrics: {new:?}")
            }
            ChangeKind::HpaName => {
                self.hpa_name =
                    if self.hpa_name.is_some() { None } else { Some(format!("{}-own", self.name)) };
                format!("name of the HPA: {:?}", self.hpa_name)
            }
            ChangeKind::Behavior => {
                let policy =
                    json!([{"type": "Pods", "value": self.random.between(1, 4), "periodSeconds": 60}]);
                let rules =
                    json!({"stabilizationWindowSeconds": 30, "selectPolicy": "Max", "policies": policy});
                self.behavior = Some(json!({"scaleUp": rules.clone(), "scaleDown": rules}));
                "a whole behavior".to_owned()
            }
            ChangeKind::PartialBehavior => {
                let policy = json!([{"type": "Percent", "value": 50, "periodSeconds": 15}]);
                let some = [
                    json!({"scaleDown": {"stabilizationWindowSeconds": 60}}),
                    json!({"scaleUp": {"selectPolicy": "Min", "policies": policy}}),
                    json!({"scaleDown": {"selectPolicy": "Disabled"}}),
                    json!({"scaleUp": {"tolerance": "0.2", "stabilizationWindowSeconds": 0}}),
                ];
                self.behavior =
                    if self.random.once_in(4) { None } else { some.get(self.random.below(3)).cloned() };
                "part of a behavior".to_owned()
            }
            ChangeKind::Modifiers => {
                self.name_triggers();
                let formula = match self.named() {
                    names if names.len() > 1 => format!("{} + {} * 2", names.first()?, names.get(1)?),
                    names => format!("{} > 3 ? 20 : 1", names.first()?),
                };
                let kind = self.random.of([None, Some("Value"), Some("AverageValue")]);
                let activation = self.random.of([None, Some("2"), Some("30")]);
                self.modifiers = if self.modifiers.is_some() {
                    None
                } else {
                    Some(
                        json!({"formula": formula, "target": self.random.of(["5", "2.5"]), "activationTarget": activation, "metricType": kind}),
                    )
                };
                format!("modifiers: {}", json_text(self.modifiers.as_ref()))
            }
            ChangeKind::Fallback => {
                self.fallback = if self.fallback.is_some() { None } else { Some(self.any_fallback()) };
                format!("fallback: {}", json_text(self.fallback.as_ref()))
            }
            ChangeKind::Polling => {
                self.polling = if self.polling == 1 { 2 } else { 1 };
                format!("asked every {} s", self.polling)
            }
            ChangeKind::Cooldown => {
                self.cooldown = self.random.of([None, Some(3), Some(4), Some(5)]);
                self.initial_cooldown = self.random.of([None, Some(1), Some(300)]);
                format!("cooldown {:?}, at first {:?}", self.cooldown, self.initial_cooldown)
            }
            ChangeKind::AddTrigger => {
                self.add_trigger();
                let keys: Vec<String> =
                    self.triggers.iter().filter_map(|t| t.key().map(str::to_owned)).collect();
                let new = keys.into_iter().find(|key| !self.states.contains_key(key));
                let mut actions: Vec<KedaAction> = Vec::new();
                if let Some(key) = new {
                    let state = SourceResponse::new(self.random.between(1, 9), self.random.once_in(2));
                    actions.push(self.set_response(&key, state));
                }
                actions.push(self.edit());
                return Some(KedaStep::new("one trigger more").with(actions));
            }
            ChangeKind::RemoveTrigger if self.triggers.len() > 1 && self.modifiers.is_none() => {
                self.triggers.remove(0);
                "the first trigger goes".to_owned()
            }
            ChangeKind::Reorder if self.triggers.len() > 1 => {
                self.triggers.reverse();
                "triggers in another order".to_owned()
            }
            ChangeKind::Cpu if self.triggers.iter().all(|trigger| !trigger.is_resource()) => {
                self.triggers.insert(0, Trigger::new(Source::Cpu { percent: 55, container: false }));
                "a cpu trigger before all others".to_owned()
            }
            ChangeKind::Cached => {
                for trigger in &mut self.triggers {
                    if trigger.key().is_some() {
                        trigger.cached = !trigger.cached;
                    }
                }
                "cached metrics on or off".to_owned()
            }
            _ => return None,
        };
        Some(KedaStep::new(title).with([self.edit()]))
    }

    /// Writes by other clients, and changes outside of the spec.
    fn plan_others(&mut self, change: ChangeKind) -> Option<KedaStep> {
        let path = self.path();
        let hpa = format!("{HPAS}/{}", self.hpa());
        Some(match change {
            ChangeKind::Label => {
                let new = self.random.of(["b", "c"]);
                self.labels.insert("team", new.to_owned());
                let label = KedaAction::patch(path, json!({"metadata": {"labels": {"team": new}}}));
                self.other_max();
                KedaStep::new("a label, and an edit").with([label, self.edit()])
            }
            ChangeKind::Annotation => {
                let new = self.random.of(["y", "z"]);
                let action = self.annotate("example.org/note", Some(new));
                self.other_max();
                KedaStep::new("an annotation, and an edit").with([action, self.edit()])
            }
            ChangeKind::ExcludedLabel => {
                let labels = json!({"metadata": {"labels": {"team": "a", "owner": "b"}}});
                let action = self.annotate("scaledobject.keda.sh/hpa-excluded-labels", Some("team,other"));
                self.other_max();
                KedaStep::new("a label that is not for the HPA").with([
                    KedaAction::patch(path, labels),
                    action,
                    self.edit(),
                ])
            }
            ChangeKind::ForceActivation => {
                let key = "autoscaling.keda.sh/force-activation";
                let value = if self.annotations.contains_key(key) { None } else { Some("true") };
                KedaStep::new(format!("force-activation: {value:?}")).with([self.annotate(key, value)])
            }
            ChangeKind::HpaEdited if self.job.is_none() => {
                let body = json!({"spec": {"maxReplicas": 77}, "metadata": {"labels": {"by": "hand"}}});
                KedaStep::new("a user edits the HPA").with([KedaAction::patch(hpa, body)])
            }
            ChangeKind::HpaMetricsEdited => {
                let behavior = json!({"scaleDown": {"stabilizationWindowSeconds": 11}});
                let metadata =
                    json!({"labels": {"app.kubernetes.io/part-of": "me"}, "annotations": {"by": "hand"}});
                let body = json!({"spec": {"behavior": behavior, "minReplicas": 2}, "metadata": metadata});
                KedaStep::new("a user edits behavior and labels of the HPA")
                    .with([KedaAction::patch(hpa, body)])
            }
            ChangeKind::HpaDeleted => KedaStep::new("a user deletes the HPA").with([KedaAction::delete(hpa)]),
            ChangeKind::HpaForeign => {
                self.broken = Some(KedaBreakage::Foreign);
                self.cooldown = Some(LONG_COOLDOWN_SECONDS);
                self.hpa_name = Some(format!("{}-foreign", self.name));
                let foreign = json!({
                    "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                    "metadata": {"name": self.hpa(), "labels": {"by": "hand"}, "annotations": {"by": "hand"}},
                    "spec": {"scaleTargetRef": self.target.reference(&self.name), "minReplicas": 3, "maxReplicas": 50},
                });
                let take = self.annotate("scaledobject.keda.sh/transfer-hpa-ownership", Some("true"));
                KedaStep::new("an HPA of a user is taken over").with([
                    KedaAction::post(HPAS, foreign),
                    take,
                    self.edit(),
                ])
            }
            ChangeKind::HpaTold => {
                let (status, reason, message) = self.random.of([
                    ("True", "ValidMetricFound", "the HPA was able to compute"),
                    ("False", "FailedGetExternalMetric", "no value"),
                    (
                        "False",
                        "ScalingDisabled",
                        "scaling is disabled since the replica count of the target is zero",
                    ),
                    ("False", "", "who knows"),
                ]);
                let condition = json!({
                    "type": "ScalingActive", "status": status, "reason": reason, "message": message,
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                });
                let status = json!({"status": {"desiredReplicas": 1, "currentReplicas": 1, "conditions": [condition]}});
                KedaStep::new(format!("the HPA controller says {reason:?}"))
                    .with([KedaAction::TellHpa { name: self.hpa(), status }])
            }
            ChangeKind::Scaled if self.job.is_none() => {
                let replicas = self.random.between(0, 5);
                let action =
                    KedaAction::patch(self.target.path(&self.name), json!({"spec": {"replicas": replicas}}));
                KedaStep::new(format!("a user scales the target to {replicas}")).with([action])
            }
            ChangeKind::Delete | ChangeKind::DeleteWithRestore | ChangeKind::DeletePaused
                if self.job.is_none() =>
            {
                let mut actions = Vec::new();
                if change == ChangeKind::DeletePaused {
                    actions.push(self.annotate("autoscaling.keda.sh/paused-replicas", Some("2")));
                } else {
                    self.restore = (change == ChangeKind::DeleteWithRestore).then_some(true);
                    actions.push(self.edit());
                }
                actions.push(KedaAction::delete(format!("{OBJECTS}/{}", self.name)));
                self.broken = Some(KedaBreakage::Deleted);
                KedaStep::new(format!("deleted ({change:?})")).with(actions)
            }
            ChangeKind::Delete => {
                self.broken = Some(KedaBreakage::Deleted);
                KedaStep::new("deleted").with([KedaAction::delete(path)])
            }
            _ => return None,
        })
    }

    /// An edit that changes the spec.
    fn other_max(&mut self) {
        self.max = Some(if self.max == Some(7) { 8 } else { 7 });
    }

    fn any_fallback(&mut self) -> Value {
        let behavior = self.random.of([
            None,
            Some("static"),
            Some("currentReplicas"),
            Some("currentReplicasIfHigher"),
            Some("currentReplicasIfLower"),
        ]);
        self.fallback_of(behavior)
    }

    pub(super) fn fallback_of(&mut self, behavior: Option<&str>) -> Value {
        let (threshold, replicas) = (self.random.between(0, 2), self.random.of([1, 2, 4, 6]));
        json!({"failureThreshold": threshold, "replicas": replicas, "behavior": behavior})
    }

    /// Every trigger that has none gets a name.
    pub(super) fn name_triggers(&mut self) {
        for (place, trigger) in self.triggers.iter_mut().enumerate() {
            trigger.name.get_or_insert_with(|| format!("trig_{place}"));
        }
    }

    /// The names that formulas may use.
    pub(super) fn named(&self) -> Vec<String> {
        self.triggers.iter().filter(|t| !t.is_resource()).filter_map(|t| t.name.clone()).collect()
    }
}
