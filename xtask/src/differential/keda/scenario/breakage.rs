//! Faults that one step causes and the next one repairs.

use serde_json::json;

use super::change_kind::ChangeKind;
use super::trigger::{AUTH, AUTHENTICATION_WITHOUT_SECRET, CLUSTER, LATE_AUTHENTICATION, Source, Trigger};
use super::{
    AUTHENTICATIONS, COOLDOWN_SECONDS, HPAS, KedaScenario, LONG_COOLDOWN_SECONDS, SECRET, SECRETS, json_text,
};
use crate::differential::action::RequestAction as _;
use crate::differential::keda::action::{KedaAction, KedaStep};
use crate::differential::keda::source::{SourceFault, SourceResponse};

/// The current fault.
#[derive(Clone, Debug)]
pub(super) enum KedaBreakage {
    /// The sources of these keys fail.
    Sources(Vec<String>),
    /// The object before the fault.
    Spec(Box<KedaScenario>),
    /// This annotation is to be removed.
    Annotation(&'static str),
    NoAuthentication,
    NoSecret,
    /// The TriggerAuthentication was deleted; whether the object was edited since.
    AuthenticationGone(bool),
    /// The Secret was deleted; whether the object was edited since.
    SecretGone(bool),
    NoTarget,
    /// Its HPA has the name of an HPA that a user created.
    Foreign,
    Deleted,
}

const PAUSED: &str = "autoscaling.keda.sh/paused";
const PAUSED_REPLICAS: &str = "autoscaling.keda.sh/paused-replicas";
const PAUSED_IN: &str = "autoscaling.keda.sh/paused-scale-in";
const PAUSED_OUT: &str = "autoscaling.keda.sh/paused-scale-out";

impl KedaScenario {
    pub(super) fn plan_broken(&mut self, change: ChangeKind) -> Option<KedaStep> {
        let annotation = |value: &'static str, key: &'static str| Some((key, value));
        let pause = match change {
            ChangeKind::Pause => annotation("true", PAUSED),
            ChangeKind::PauseOddly => annotation(self.random.of(["", "yes", "1", "false"]), PAUSED),
            ChangeKind::PausedReplicas => annotation(self.random.of(["0", "1", "4"]), PAUSED_REPLICAS),
            ChangeKind::PausedReplicasBadly => {
                annotation(self.random.of(["many", "-1", ""]), PAUSED_REPLICAS)
            }
            ChangeKind::PauseIn => annotation("true", PAUSED_IN),
            ChangeKind::PauseOut => annotation("true", PAUSED_OUT),
            _ => None,
        };
        if let Some((key, value)) = pause {
            self.broken = Some(KedaBreakage::Annotation(key));
            let mut actions = vec![self.annotate(key, Some(value))];
            // An invalid edit is tried.
            let keys: Vec<String> = self.triggers.iter().filter_map(|t| t.key().map(str::to_owned)).collect();
            if matches!(change, ChangeKind::PauseIn | ChangeKind::PauseOut) {
                let active = change == ChangeKind::PauseOut;
                actions.extend(keys.iter().map(|key| self.set_response(key, SourceResponse::new(9, active))));
            }
            return Some(KedaStep::new(format!("{key}: {value:?}")).with(actions));
        }
        self.plan_failure(change).or_else(|| self.plan_missing(change)).or_else(|| self.plan_invalid(change))
    }

    /// Sources that fail.
    fn plan_failure(&mut self, change: ChangeKind) -> Option<KedaStep> {
        let fault = match change {
            ChangeKind::MetricsFail
            | ChangeKind::FallbackAndFailure(_)
            | ChangeKind::FallbackToZero
            | ChangeKind::FallbackInFormula => SourceFault::Metrics,
            ChangeKind::ActiveFails => SourceFault::Active,
            ChangeKind::SpecsFail => SourceFault::Specs,
            ChangeKind::SpecsEmpty => SourceFault::Empty,
            ChangeKind::Refused => {
                self.cooldown = Some(LONG_COOLDOWN_SECONDS);
                let before = self.clone();
                for trigger in &mut self.triggers {
                    if let Source::External { refused, .. } = &mut trigger.source {
                        *refused = true;
                    }
                }
                self.broken = Some(KedaBreakage::Spec(Box::new(before)));
                return Some(
                    KedaStep::new("the address of the scaler refuses connections").with([self.edit()]),
                );
            }
            _ => return None,
        };
        let mut actions = Vec::new();
        if let ChangeKind::FallbackAndFailure(behavior) = change {
            self.fallback = Some(self.fallback_of(behavior));
            self.cooldown = Some(COOLDOWN_SECONDS);
            actions.push(self.edit());
        }
        if change == ChangeKind::FallbackToZero {
            (self.min, self.idle, self.cooldown) = (None, None, Some(COOLDOWN_SECONDS));
            self.fallback = Some(json!({"failureThreshold": 0, "replicas": 0}));
            actions.push(self.edit());
        }
        if change == ChangeKind::FallbackInFormula {
            self.name_triggers();
            let name = self.named().into_iter().next()?;
            self.modifiers = Some(json!({"formula": format!("{name} ?? 7"), "target": "4"}));
            self.fallback =
                Some(json!({"failureThreshold": 1, "replicas": 3, "behavior": "scalingModifiers"}));
            actions.push(self.edit());
        }
        let keys: Vec<String> = if change == ChangeKind::FallbackToZero {
            // No target is scaled to zero while another source is active.
            self.triggers.iter().filter_map(|trigger| trigger.key().map(str::to_owned)).collect()
        } else {
            vec![self.any_key()?]
        };
        for key in &keys {
            let state = SourceResponse { fault, ..self.state(key) };
            actions.push(self.set_response(key, state));
        }
        self.broken = Some(KedaBreakage::Sources(keys));
        let fallback = if actions.len() > 1 {
            format!(", with fallback {}", json_text(self.fallback.as_ref()))
        } else {
            String::new()
        };
        Some(KedaStep::new(format!("a source fails: {fault:?}{fallback}")).with(actions))
    }

    /// Deletes a referenced object.
    fn plan_missing(&mut self, change: ChangeKind) -> Option<KedaStep> {
        let name = self.name.clone();
        let mut actions = Vec::new();
        let uses = |scenario: &mut Self, auth: &'static str| {
            let letter = scenario.letter();
            let key = format!("{}-{letter}", scenario.name);
            let value_action = scenario.set_response(&key, SourceResponse::new(4, true));
            let mut trigger = Trigger::new(Source::Api { key, target: 3 });
            trigger.auth = Some(auth);
            scenario.triggers.push(trigger);
            [value_action, scenario.edit()]
        };
        let uses_it = self.triggers.iter().any(|trigger| trigger.auth == Some(AUTH));
        let (title, broken) = match change {
            ChangeKind::AuthenticationGone | ChangeKind::SecretGone if self.job.is_none() && !uses_it => {
                // The trigger works first.
                self.changes.insert(0, change);
                return Some(KedaStep::new("a trigger with credentials").with(uses(self, AUTH)));
            }
            ChangeKind::AuthenticationGone if self.job.is_none() => {
                actions.push(KedaAction::delete(format!("{AUTHENTICATIONS}/{name}-{AUTH}")));
                ("the TriggerAuthentication is deleted", KedaBreakage::AuthenticationGone(false))
            }
            ChangeKind::SecretGone if self.job.is_none() => {
                actions.push(KedaAction::delete(format!("{SECRETS}/{name}-{SECRET}")));
                ("the Secret is deleted", KedaBreakage::SecretGone(false))
            }
            ChangeKind::ClusterAuthentication if self.job.is_none() => {
                if self.triggers.iter().any(|trigger| trigger.auth == Some(CLUSTER)) {
                    return None;
                }
                actions.extend(self.cluster_authentication());
                actions.extend(uses(self, CLUSTER));
                return Some(KedaStep::new("a trigger with a ClusterTriggerAuthentication").with(actions));
            }
            ChangeKind::NoAuthentication if self.job.is_none() => {
                actions.extend(uses(self, LATE_AUTHENTICATION));
                ("a TriggerAuthentication that is not there", KedaBreakage::NoAuthentication)
            }
            ChangeKind::NoSecret if self.job.is_none() => {
                actions.extend(
                    self.authentication(AUTHENTICATION_WITHOUT_SECRET, AUTHENTICATION_WITHOUT_SECRET),
                );
                actions.extend(uses(self, AUTHENTICATION_WITHOUT_SECRET));
                ("a Secret that is not there", KedaBreakage::NoSecret)
            }
            ChangeKind::NoTarget if self.job.is_none() => {
                actions.push(KedaAction::delete(self.target.path(&name)));
                ("the target is deleted", KedaBreakage::NoTarget)
            }
            _ => return None,
        };
        self.broken = Some(broken);
        Some(KedaStep::new(title).with(actions))
    }

    /// Specs that the API server accepts and the operator rejects.
    fn plan_invalid(&mut self, change: ChangeKind) -> Option<KedaStep> {
        let rests = self.cooldown.replace(LONG_COOLDOWN_SECONDS);
        let before = self.clone();
        let mut body = None;
        match change {
            ChangeKind::WrongTarget => {
                let mut spec = self.spec();
                let missing = self.target.reference("nowhere");
                spec.as_object_mut()?.insert("scaleTargetRef".to_owned(), missing);
                body = Some(spec);
            }
            ChangeKind::BadIdle => (self.min, self.max, self.idle) = (Some(2), Some(5), Some(2)),
            ChangeKind::UnknownType => self.triggers.push(Trigger::new(Source::Nonsense)),
            ChangeKind::BadCron => {
                self.triggers.push(Trigger::new(Source::Cron { open: true, replicas: 2, broken: true }));
            }
            ChangeKind::BadMetricType => {
                for trigger in self.triggers.iter_mut().filter(|trigger| !trigger.is_resource()) {
                    trigger.metric_type = Some("Utilization");
                }
            }
            ChangeKind::SameNames => {
                self.add_trigger();
                self.triggers.iter_mut().for_each(|trigger| trigger.name = Some("same".to_owned()));
            }
            ChangeKind::CachedCron => {
                let mut cron = Trigger::new(Source::Cron { open: true, replicas: 2, broken: false });
                cron.cached = true;
                self.triggers.push(cron);
            }
            ChangeKind::NoAddress => {
                let mut spec = self.spec();
                let trigger = json!({"type": "external", "metadata": {"metric": "jobs"}});
                spec.get_mut("triggers")?.as_array_mut()?.push(trigger);
                body = Some(spec);
            }
            ChangeKind::BadModifiers => {
                self.name_triggers();
                let formula = self.random.of(["nobody + 1", "trig_0 +", "\"text\""]);
                let target = self.random.of(["2", "0", "x"]);
                self.modifiers = Some(json!({"formula": formula, "target": target}));
            }
            _ => {
                self.cooldown = rests;
                return None;
            }
        }
        let action = match body {
            None => self.edit(),
            Some(spec) => {
                KedaAction::patch(self.path(), json!([{"op": "replace", "path": "/spec", "value": spec}]))
            }
        };
        // New sources must be registered.
        let keys: Vec<String> = self.triggers.iter().filter_map(|t| t.key().map(str::to_owned)).collect();
        let new: Vec<String> = keys.into_iter().filter(|key| !self.states.contains_key(key)).collect();
        let mut actions: Vec<KedaAction> =
            new.iter().map(|key| self.set_response(key, SourceResponse::new(3, true))).collect();
        actions.push(action);
        self.broken = Some(KedaBreakage::Spec(Box::new(before)));
        Some(KedaStep::new(format!("a spec that cannot work: {change:?}")).with(actions))
    }

    pub(super) fn mend(&mut self, broken: KedaBreakage) -> KedaStep {
        let name = self.name.clone();
        match broken {
            KedaBreakage::Sources(keys) => {
                let mended = |key: &String| {
                    let state = SourceResponse { fault: SourceFault::None, ..self.state(key) };
                    self.set_response(key, state)
                };
                KedaStep::new("the source answers again").with(keys.iter().map(mended).collect::<Vec<_>>())
            }
            KedaBreakage::AuthenticationGone(false) => {
                self.broken = Some(KedaBreakage::AuthenticationGone(true));
                self.edit_without("TriggerAuthentication")
            }
            KedaBreakage::SecretGone(false) => {
                self.broken = Some(KedaBreakage::SecretGone(true));
                self.edit_without("Secret")
            }
            KedaBreakage::AuthenticationGone(true) => {
                KedaStep::new("the TriggerAuthentication is there again")
                    .with(self.authentication(AUTH, SECRET))
            }
            KedaBreakage::SecretGone(true) => {
                KedaStep::new("the Secret is there again").with(self.secret(SECRET))
            }
            KedaBreakage::Spec(before) => {
                let (states, made) = (self.states.clone(), self.triggers_made);
                let (changes, done, random) = (self.changes.clone(), self.done.clone(), self.random.clone());
                *self = Self { states, triggers_made: made, changes, done, random, broken: None, ..*before };
                KedaStep::new("as it was before").with([self.edit()])
            }
            KedaBreakage::Annotation(key) => {
                KedaStep::new(format!("without {key}")).with([self.annotate(key, None)])
            }
            KedaBreakage::NoAuthentication => KedaStep::new("the TriggerAuthentication appears")
                .with(self.authentication(LATE_AUTHENTICATION, SECRET)),
            KedaBreakage::NoSecret => {
                KedaStep::new("the Secret appears").with(self.secret(AUTHENTICATION_WITHOUT_SECRET))
            }
            KedaBreakage::NoTarget => {
                let replicas = self.random.between(0, 2);
                KedaStep::new(format!("a target of {replicas} appears"))
                    .with(self.target.create(&name, replicas))
            }
            KedaBreakage::Foreign => {
                // Another object with the same HPA name may own the HPA now.
                KedaStep::new("that HPA goes").with([KedaAction::delete(format!("{HPAS}/{}", self.hpa()))])
            }
            KedaBreakage::Deleted => {
                self.annotations.remove(PAUSED_REPLICAS);
                KedaStep::new("created again").with([self.create()])
            }
        }
    }

    /// Triggers are rebuilt while a referenced object is missing.
    fn edit_without(&mut self, what: &str) -> KedaStep {
        self.cooldown = Some(if self.cooldown == Some(LONG_COOLDOWN_SECONDS) {
            LONG_COOLDOWN_SECONDS + 1
        } else {
            LONG_COOLDOWN_SECONDS
        });
        KedaStep::new(format!("an edit without the {what}")).with([self.edit()])
    }
}
