//! A scenario: one ScaledObject or ScaledJob with its target and sources, and their changes. It is a function of a seed and a number.

mod breakage;
mod change_kind;
mod job;
mod object;
#[cfg(test)]
mod tests;
pub(crate) mod trigger;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::action::{KedaAction, KedaStep};
use super::facts::{FallbackFacts, KedaFacts};
use super::source::{SourceFault, SourceResponse};
use crate::differential::action::RequestAction as _;
use crate::differential::scenario::random::RandomSource;
use crate::differential::scenario::target::Kind;
use breakage::KedaBreakage;
use change_kind::ChangeKind;
use job::JobSpec;
use trigger::{AUTH, AUTHENTICATION_WITHOUT_SECRET, CLUSTER, LATE_AUTHENTICATION, Places, Source, Trigger};

/// A scenario in its current state.
#[derive(Clone, Debug)]
pub(crate) struct KedaScenario {
    /// The name of its objects.
    pub(crate) name: String,
    places: Places,
    random: RandomSource,
    /// Set for ScaledJobs.
    job: Option<JobSpec>,
    target: Kind,
    triggers: Vec<Trigger>,
    triggers_made: u8,
    states: BTreeMap<String, SourceResponse>,
    min: Option<i64>,
    max: Option<i64>,
    idle: Option<i64>,
    polling: i64,
    cooldown: Option<i64>,
    initial_cooldown: Option<i64>,
    restore: Option<bool>,
    hpa_name: Option<String>,
    behavior: Option<Value>,
    modifiers: Option<Value>,
    fallback: Option<Value>,
    annotations: BTreeMap<&'static str, String>,
    labels: BTreeMap<&'static str, String>,
    pods: usize,
    /// What must be undone in the next step.
    broken: Option<KedaBreakage>,
    changes: Vec<ChangeKind>,
    made: bool,
    /// The titles of the steps so far.
    pub(crate) done: Vec<KedaStep>,
}

/// The Secret that exists from the beginning.
const SECRET: &str = "secret";
/// The number of changes of a scenario.
const CHANGES_PER_SCENARIO: usize = 7;
/// The cooldown of targets in seconds, longer than a poll. After an edit KEDA rebuilds its triggers while its new loop already
/// polls them, which then sees nothing active (docs/spec/keda.md 3.3, trap 30); without a cooldown, whether the target
/// scales to zero would be random.
const COOLDOWN_SECONDS: i64 = 3;
/// Cooldown where polls stop for a while, as with an invalid spec: the same would happen when it is repaired.
const LONG_COOLDOWN_SECONDS: i64 = 300;
/// The number of scenarios of which one is about a ScaledJob.
const JOBS: u64 = 5;

pub(crate) const OBJECTS: &str = "/apis/keda.sh/v1alpha1/namespaces/{ns}/scaledobjects";
pub(crate) const SCALED_JOBS: &str = "/apis/keda.sh/v1alpha1/namespaces/{ns}/scaledjobs";
pub(crate) const AUTHENTICATIONS: &str = "/apis/keda.sh/v1alpha1/namespaces/{ns}/triggerauthentications";
pub(crate) const CLUSTER_AUTHENTICATIONS: &str = "/apis/keda.sh/v1alpha1/clustertriggerauthentications";
pub(crate) const HPAS: &str = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers";
pub(crate) const PODS: &str = "/api/v1/namespaces/{ns}/pods";
pub(crate) const SECRETS: &str = "/api/v1/namespaces/{ns}/secrets";
/// The collection of the Secrets of ClusterTriggerAuthentications.
const KEDA_SECRETS: &str = "/api/v1/namespaces/keda/secrets";

impl KedaScenario {
    /// The scenario of this number.
    pub(crate) fn new(seed: u64, number: u64, places: Places) -> Self {
        let mut random = RandomSource::new(seed ^ 0x6b65_6461, number);
        let name = format!("s{number}");
        let job = (number % JOBS == JOBS - 1).then(|| JobSpec::any(&mut random));
        let change_kinds = if job.is_some() { ChangeKind::jobs() } else { ChangeKind::objects() };
        // Scenarios of one kind take consecutive changes of the list, so that every change is made.
        let turn = if job.is_some() { number / JOBS } else { number - number / JOBS };
        let mut changes = change_kind::consecutive(change_kinds, seed, turn, CHANGES_PER_SCENARIO);
        // KEDA does not recover from it, so this is the last step.
        changes.sort_by_key(|change| *change == ChangeKind::HpaForeign);
        let target = random.of([
            Kind::Deployment,
            Kind::Deployment,
            Kind::Deployment,
            Kind::StatefulSet,
            Kind::ReplicaSet,
            Kind::Worker,
        ]);
        let mut scenario = Self {
            name,
            places,
            random,
            job,
            target,
            triggers: Vec::new(),
            triggers_made: 0,
            states: BTreeMap::new(),
            min: None,
            max: None,
            idle: None,
            polling: 1,
            cooldown: Some(COOLDOWN_SECONDS),
            initial_cooldown: None,
            restore: None,
            hpa_name: None,
            behavior: None,
            modifiers: None,
            fallback: None,
            annotations: BTreeMap::new(),
            labels: BTreeMap::new(),
            pods: 0,
            broken: None,
            changes,
            made: false,
            done: Vec::new(),
        };
        scenario.draw();
        scenario
    }

    fn draw(&mut self) {
        let name = self.name.clone();
        let letter = self.letter();
        self.triggers.push(Trigger::external(&name, letter, &mut self.random));
        for _ in 0..self.random.weighted([50, 35, 15]) {
            self.add_trigger();
        }
        self.draw_bounds();
        if self.random.once_in(3) {
            self.cooldown = self.random.of([None, Some(4), Some(300)]);
        }
        if self.random.once_in(4) {
            self.initial_cooldown = Some(2);
        }
        if self.random.once_in(3) {
            self.labels.insert("team", "a".to_owned());
        }
        if self.random.once_in(3) {
            self.annotations.insert("example.org/note", "x".to_owned());
        }
        if self.random.once_in(4) {
            self.restore = Some(true);
        }
    }

    fn draw_bounds(&mut self) {
        self.min = self.random.of([None, None, Some(0), Some(1), Some(2), Some(3)]);
        self.max = self.random.of([None, Some(4), Some(5), Some(9)]);
        let least = self.min.unwrap_or_default();
        let idle = self.job.is_none() && least > 0 && self.random.once_in(3);
        self.idle = idle.then(|| self.random.between(0, least - 1));
    }

    fn letter(&mut self) -> char {
        self.triggers_made += 1;
        char::from(b'a' + (self.triggers_made - 1) % 26)
    }

    fn add_trigger(&mut self) {
        let (name, letter) = (self.name.clone(), self.letter());
        let trigger = if self.job.is_some() {
            Trigger::external(&name, letter, &mut self.random)
        } else {
            Trigger::any(&name, letter, &mut self.random)
        };
        self.triggers.push(trigger);
    }

    /// Whether the scenario has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.made && self.changes.is_empty() && self.broken.is_none()
    }

    pub(crate) fn is_job(&self) -> bool {
        self.job.is_some()
    }

    pub(crate) fn target(&self) -> Kind {
        self.target
    }

    /// How many seconds after the last change the object may still change.
    pub(crate) fn memory(&self) -> u64 {
        let cooldown = self.cooldown.unwrap_or(300).max(self.initial_cooldown.unwrap_or_default());
        let cooldown = if cooldown > 10 { 0 } else { cooldown };
        u64::try_from(cooldown + 2 * self.polling).unwrap_or(2)
    }

    /// The next step.
    pub(crate) fn step(&mut self) -> KedaStep {
        let step = if !self.made {
            self.made = true;
            self.begin()
        } else if let Some(broken) = self.broken.take() {
            self.mend(broken)
        } else {
            let change = if self.changes.is_empty() { ChangeKind::Value } else { self.changes.remove(0) };
            self.plan(change)
        };
        self.done.push(step.clone());
        step
    }

    /// Removes all objects and sources of the scenario.
    pub(crate) fn end(&self) -> Vec<KedaAction> {
        let mine = format!("labelSelector=scenario%3D{}", self.name);
        let name = &self.name;
        let mut actions = vec![KedaAction::delete(self.path())];
        if self.job.is_none() {
            actions.push(KedaAction::delete(self.target.path(name)));
            actions.push(KedaAction::delete(format!("{PODS}?{mine}&gracePeriodSeconds=0")));
        }
        let ends = [AUTH, LATE_AUTHENTICATION, AUTHENTICATION_WITHOUT_SECRET];
        actions.extend(ends.map(|end| KedaAction::delete(format!("{AUTHENTICATIONS}/{name}-{end}"))));
        actions.extend(
            [SECRET, AUTHENTICATION_WITHOUT_SECRET]
                .map(|end| KedaAction::delete(format!("{SECRETS}/{name}-{end}"))),
        );
        let of_cluster = [CLUSTER_AUTHENTICATIONS, KEDA_SECRETS];
        actions.extend(of_cluster.map(|path| KedaAction::delete(format!("{path}/{{ns}}-{name}-{CLUSTER}"))));
        actions
    }

    /// The facts on which deliberate differences depend.
    pub(crate) fn facts(&self) -> KedaFacts {
        let fallback = self.fallback.as_ref().map(|fallback| FallbackFacts {
            replicas: fallback.get("replicas").and_then(Value::as_i64).unwrap_or_default(),
            behavior: fallback.get("behavior").and_then(Value::as_str).map(str::to_owned),
        });
        let silent = |trigger: &Trigger| match &trigger.source {
            Source::External { refused: true, .. } => true,
            Source::External { key, .. } => {
                matches!(self.state(key).fault, SourceFault::Specs | SourceFault::Empty)
            }
            _ => false,
        };
        let gone = matches!(
            self.broken,
            Some(
                KedaBreakage::NoAuthentication
                    | KedaBreakage::NoSecret
                    | KedaBreakage::AuthenticationGone(_)
                    | KedaBreakage::SecretGone(_)
            )
        );
        let wakes_to = self.min.unwrap_or_default().max(1);
        let invalid = matches!(self.broken, Some(KedaBreakage::Spec(_)));
        let target = self.modifiers.as_ref().and_then(|modifiers| modifiers.get("target")?.as_str());
        let fractional = target.is_some_and(|target| target.parse::<i64>().is_err());
        let silent = self.triggers.iter().any(silent);
        let foreign = matches!(self.broken, Some(KedaBreakage::Foreign));
        KedaFacts { fallback, silent, fractional, foreign, invalid, wakes_to, gone }
    }

    /// The polling interval of the sources.
    pub(crate) fn interval(&self) -> Duration {
        Duration::from_secs(self.polling.unsigned_abs())
    }

    fn path(&self) -> String {
        let collection = if self.job.is_some() { SCALED_JOBS } else { OBJECTS };
        format!("{collection}/{}", self.name)
    }

    /// Creates the target, sources, credentials and the object.
    fn begin(&mut self) -> KedaStep {
        let replicas = self.random.between(0, 3);
        let name = self.name.clone();
        let mut actions: Vec<KedaAction> = Vec::new();
        if self.job.is_none() {
            actions.extend(self.target.create::<KedaAction>(&name, replicas));
        }
        actions.extend(self.secret(SECRET));
        actions.extend(self.authentication(AUTH, SECRET));
        let keys: Vec<String> =
            self.triggers.iter().filter_map(|trigger| trigger.key().map(str::to_owned)).collect();
        for key in keys {
            let state = SourceResponse::new(self.random.between(0, 12), self.random.once_in(2));
            actions.push(self.set_response(&key, state));
        }
        actions.push(self.create());
        let types: Vec<String> = self
            .triggers
            .iter()
            .filter_map(|t| t.json(&name, &self.places).get("type")?.as_str().map(str::to_owned))
            .collect();
        let what = if self.job.is_some() {
            "a ScaledJob".to_owned()
        } else {
            format!("a {} of {replicas} and its ScaledObject", self.target.kind())
        };
        KedaStep::new(format!("{what} with {}", types.join(", "))).with(actions)
    }

    /// Creates a Secret with this suffix of its name.
    fn secret(&self, end: &str) -> [KedaAction; 1] {
        let name = format!("{}-{end}", self.name);
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": {"scenario": self.name}},
            "stringData": {"token": "abc"},
        });
        [KedaAction::post(SECRETS, body)]
    }

    /// Creates a TriggerAuthentication with this suffix of its name, which takes a token from that Secret.
    fn authentication(&self, end: &str, secret: &str) -> [KedaAction; 1] {
        let secret = format!("{}-{secret}", self.name);
        let body = json!({
            "apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication",
            "metadata": {"name": format!("{}-{end}", self.name)},
            "spec": {"secretTargetRef": [{"parameter": "token", "name": secret, "key": "token"}]},
        });
        [KedaAction::post(AUTHENTICATIONS, body)]
    }

    /// Creates a ClusterTriggerAuthentication, one for each operator, which takes a token from a Secret in KEDA's namespace.
    fn cluster_authentication(&self) -> [KedaAction; 2] {
        let name = format!("{{ns}}-{}-{CLUSTER}", self.name);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"token": "abc"},
        });
        let body = json!({
            "apiVersion": "keda.sh/v1alpha1", "kind": "ClusterTriggerAuthentication", "metadata": {"name": name},
            "spec": {"secretTargetRef": [{"parameter": "token", "name": name, "key": "token"}]},
        });
        [KedaAction::post(KEDA_SECRETS, secret), KedaAction::post(CLUSTER_AUTHENTICATIONS, body)]
    }

    fn create(&self) -> KedaAction {
        let (kind, collection) =
            if self.job.is_some() { ("ScaledJob", SCALED_JOBS) } else { ("ScaledObject", OBJECTS) };
        let metadata = json!({"name": self.name, "labels": self.labels, "annotations": self.annotations});
        let body = json!({"apiVersion": "keda.sh/v1alpha1", "kind": kind, "metadata": metadata, "spec": self.spec()});
        KedaAction::post(collection, body)
    }

    /// Writes the spec as it is now.
    fn edit(&self) -> KedaAction {
        KedaAction::patch(self.path(), json!([{"op": "replace", "path": "/spec", "value": self.spec()}]))
    }

    fn spec(&self) -> Value {
        let spec = if let Some(job) = &self.job { self.job_spec(job) } else { self.object_spec() };
        without_nulls(spec)
    }

    fn triggers_json(&self) -> Value {
        self.triggers.iter().map(|trigger| trigger.json(&self.name, &self.places)).collect()
    }

    /// Sets or removes an annotation.
    fn annotate(&mut self, key: &'static str, value: Option<&str>) -> KedaAction {
        match value {
            Some(value) => self.annotations.insert(key, value.to_owned()),
            None => self.annotations.remove(key),
        };
        KedaAction::patch(self.path(), json!({"metadata": {"annotations": {key: value}}}))
    }

    /// Sets the response of a source, and keeps it.
    fn set_response(&mut self, key: &str, state: SourceResponse) -> KedaAction {
        self.states.insert(key.to_owned(), state.clone());
        KedaAction::Say { key: key.to_owned(), state }
    }

    /// A scripted source of its triggers.
    fn any_key(&mut self) -> Option<String> {
        let keys: Vec<String> = self.triggers.iter().filter_map(|t| t.key().map(str::to_owned)).collect();
        let place = self.random.below(keys.len());
        keys.into_iter().nth(place)
    }

    fn state(&self, key: &str) -> SourceResponse {
        self.states.get(key).cloned().unwrap_or(SourceResponse {
            value: 1,
            active: true,
            fault: SourceFault::None,
        })
    }
}

/// A part of a spec, as text for people.
fn json_text(part: Option<&Value>) -> String {
    part.map_or_else(|| "none".to_owned(), Value::to_string)
}

/// Removes null members at any depth.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}
