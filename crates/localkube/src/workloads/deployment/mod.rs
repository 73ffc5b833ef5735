//! Deployments: one replica set per template, and the way from one to the next.

pub(crate) mod rollout;
mod status;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::hash;
use super::objects::{Deployment, Kind, ReplicaSet};
use super::plan::{Note, Plan, Write, controlled_by, difference, put, template_labels};
use rollout::{Limits, Size};

const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations of a deployment that its replica sets do not take over.
const OWN: &[&str] =
    &["kubectl.kubernetes.io/last-applied-configuration", REVISION, REVISION_HISTORY, DESIRED, MAX];

/// A replica set of the deployment.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    pub(crate) set: Arc<ReplicaSet>,
    /// Whether pods of it are left that did not end; of interest only to those who wait for that.
    pub(crate) has_pods: bool,
}

/// A deployment and its replica sets, sorted out.
struct Rollout<'a> {
    deployment: &'a Deployment,
    replicas: i32,
    limits: Limits,
    hash: String,
    /// The set of the current template.
    new: Option<&'a Child>,
    /// The others, oldest first.
    old: Vec<&'a Child>,
}

/// What is to be done about a deployment with these replica sets.
pub(crate) fn plan(deployment: &Deployment, sets: &[Child], now: Timestamp) -> Plan {
    let rollout = Rollout::of(deployment, sets);
    let mut plan = Plan::default();
    if !deployment.is_deleting() {
        plan.writes.extend(rollout.renew_annotations());
        if !plan.writes.is_empty() {
            // A set is resized as it was seen: first things first.
        } else if deployment.spec.paused || rollout.is_scaled() {
            plan.writes.extend(rollout.scale());
        } else if deployment.spec.strategy.kind == "Recreate" {
            plan.writes.extend(rollout.recreate());
        } else {
            plan.writes.extend(rollout.roll());
        }
        plan.writes.extend(rollout.clean_up());
    }
    let creates = plan.writes.iter().any(|write| matches!(write.change, super::plan::Change::Create(_)));
    let status = rollout.status(creates, now);
    plan.look_again(rollout.deadline(&status, now));
    plan.status = difference(&deployment.status, &status);
    if let Some(revision) = rollout.own_revision() {
        // Along with the status, where it does not count as a change of the deployment's generation.
        let patch = plan.status.get_or_insert_with(|| json!({}));
        put(patch, &["metadata", "annotations", REVISION], revision);
    }
    plan
}

impl Child {
    fn wanted(&self) -> i32 {
        self.set.spec.replicas.unwrap_or(1)
    }

    fn size(&self) -> Size {
        let number = |name| self.set.annotation(name).and_then(|text| text.parse().ok());
        Size {
            wanted: self.wanted(),
            available: self.set.status.available_replicas,
            most: number(MAX).unwrap_or_default(),
        }
    }

    fn revision(&self) -> i64 {
        self.set.annotation(REVISION).and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

impl<'a> Rollout<'a> {
    fn of(deployment: &'a Deployment, sets: &'a [Child]) -> Self {
        let replicas = deployment.spec.replicas.unwrap_or(1);
        let hash = hash::of(&deployment.spec.template);
        let mut all: Vec<&Child> = sets.iter().collect();
        all.sort_by_key(|child| (child.set.created(), child.set.name()));
        let new = all.iter().copied().find(|child| hash::of(&without_hash(&child.set.spec.template)) == hash);
        let old = all.into_iter().filter(|child| new.is_none_or(|new| new.set.uid() != child.set.uid()));
        Self {
            deployment,
            replicas,
            limits: Limits::of(&deployment.spec, replicas),
            hash,
            new,
            old: old.collect(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &'a Child> {
        self.new.into_iter().chain(self.old.iter().copied())
    }

    fn new_size(&self) -> Size {
        self.new.map(Child::size).unwrap_or_default()
    }

    fn old_sizes(&self) -> Vec<Size> {
        self.old.iter().map(|child| child.size()).collect()
    }

    /// The name of the set of the current template, if it exists.
    fn new_name(&self) -> Option<&'a str> {
        self.new.map(|child| child.set.name())
    }

    /// The revision that the new set has, or will have.
    fn revision(&self) -> i64 {
        let next = self.old.iter().map(|child| child.revision()).max().unwrap_or_default() + 1;
        self.new.map_or(next, |new| new.revision().max(next))
    }

    /// Somebody changed the number of replicas since the sets were last scaled.
    fn is_scaled(&self) -> bool {
        let mut active = self.all().filter(|child| child.wanted() > 0);
        active
            .any(|child| child.set.annotation(DESIRED).is_some_and(|text| text != self.replicas.to_string()))
    }

    /// New pods as the surge allows; then old ones go as availability allows.
    fn roll(&self) -> Vec<Write> {
        let Some(new) = self.new else {
            return vec![self.create(rollout::grow_new(self.replicas, self.limits, 0, &self.old_sizes()))];
        };
        let size = rollout::grow_new(self.replicas, self.limits, new.wanted(), &self.old_sizes());
        if size != new.wanted() {
            return vec![self.resize(new, size)];
        }
        let sizes = rollout::shrink_old(self.replicas, self.limits, new.size(), &self.old_sizes());
        self.resize_all(&self.old, &sizes)
    }

    /// All old pods go; when they are gone, new ones come.
    fn recreate(&self) -> Vec<Write> {
        let writes = self.resize_all(&self.old, &vec![0; self.old.len()]);
        if !writes.is_empty() || self.old.iter().any(|child| child.has_pods) {
            return writes;
        }
        match self.new {
            None => vec![self.create(self.replicas)],
            Some(new) => self.resize_all(&[new], &[self.replicas]),
        }
    }

    /// The number of replicas changed: sets are scaled as they are, without going on with the rollout.
    fn scale(&self) -> Vec<Write> {
        let mut active: Vec<&Child> = self.all().filter(|child| child.wanted() > 0).collect();
        if active.len() < 2 {
            let only = active.first().copied().or(self.new).or(self.old.last().copied());
            return only.map(|child| self.resize_all(&[child], &[self.replicas])).unwrap_or_default();
        }
        let new = self.new_size();
        if new.wanted == self.replicas && new.available == self.replicas {
            return self.resize_all(&self.old, &vec![0; self.old.len()]);
        }
        if self.deployment.spec.strategy.kind == "Recreate" {
            return Vec::new();
        }
        let most = self.limits.most(self.replicas);
        let grows = most > active.iter().map(|child| child.wanted()).sum();
        // The largest has the rest; among equals the newest gains first and loses last.
        active.sort_by_key(|child| (child.set.created(), child.set.name().to_owned()));
        if grows {
            active.reverse();
        }
        active.sort_by_key(|child| std::cmp::Reverse(child.wanted()));
        let sizes: Vec<Size> = active.iter().map(|child| child.size()).collect();
        self.resize_all(&active, &rollout::proportional(most, &sizes))
    }

    fn resize_all(&self, children: &[&Child], sizes: &[i32]) -> Vec<Write> {
        let changed = |child: &Child, size: i32| {
            let stale = child.wanted() > 0
                && child.set.annotation(DESIRED).is_some_and(|text| text != self.replicas.to_string());
            child.wanted() != size || stale
        };
        let pairs = children.iter().zip(sizes);
        pairs
            .filter(|(child, size)| changed(child, **size))
            .map(|(child, size)| self.resize(child, *size))
            .collect()
    }

    fn resize(&self, child: &Child, size: i32) -> Write {
        // With the revision: a size is right only for what it was worked out from.
        let patch = json!({
            "metadata": {
                "resourceVersion": child.set.metadata.resource_version,
                "annotations": self.sizes(),
            },
            "spec": {"replicas": size},
        });
        let write = Write::patch(Kind::ReplicaSet, child.set.name(), patch);
        match scaling(child.wanted(), size) {
            Some(note) => write.telling(note),
            None => write,
        }
    }

    fn sizes(&self) -> Value {
        json!({DESIRED: self.replicas.to_string(), MAX: self.limits.most(self.replicas).to_string()})
    }

    /// The replica set of the current template.
    fn create(&self, size: i32) -> Write {
        let deployment = self.deployment;
        let mut template = deployment.spec.template.clone();
        let mut labels = template_labels(&template);
        labels.insert(HASH.to_owned(), json!(self.hash));
        put(&mut template, &["metadata", "labels"], labels.clone());
        let mut selector = json!(deployment.spec.selector);
        put(&mut selector, &["matchLabels", HASH], self.hash.clone());
        let mut annotations = self.inherited();
        annotations.insert(REVISION.to_owned(), json!(self.revision().to_string()));
        if let Value::Object(sizes) = self.sizes() {
            annotations.extend(sizes);
        }
        let set = json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": format!("{}-{}", deployment.name(), self.hash),
                "namespace": deployment.namespace(),
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": [controlled_by(deployment)],
            },
            "spec": {
                "replicas": size,
                "minReadySeconds": deployment.spec.min_ready_seconds,
                "selector": selector,
                "template": template,
            },
        });
        let write = Write::create(Kind::ReplicaSet, set);
        match scaling(0, size) {
            Some(note) => write.telling(note),
            None => write,
        }
    }

    /// The annotations of the deployment that its sets show too.
    fn inherited(&self) -> Map<String, Value> {
        let all = self.deployment.metadata.annotations.iter().flatten();
        let shared = all.filter(|(name, _)| !OWN.contains(&name.as_str()));
        shared.map(|(name, value)| (name.clone(), json!(value))).collect()
    }

    /// What the existing set of the current template should say: a set that is used again gets a new revision and
    /// remembers the old one.
    fn renew_annotations(&self) -> Option<Write> {
        let new = self.new?;
        let mut changes = self.inherited();
        changes.retain(|name, value| new.set.annotation(name) != value.as_str());
        let revision = self.revision();
        if new.revision() < revision {
            changes.insert(REVISION.to_owned(), json!(revision.to_string()));
            if new.revision() > 0 {
                let mut history: Vec<String> = Vec::new();
                history.extend(new.set.annotation(REVISION_HISTORY).map(str::to_owned));
                history.push(new.revision().to_string());
                changes.insert(REVISION_HISTORY.to_owned(), json!(history.join(",")));
            }
        }
        let mut patch = json!({});
        if !changes.is_empty() {
            put(&mut patch, &["metadata", "annotations"], changes);
        }
        if new.set.spec.min_ready_seconds != self.deployment.spec.min_ready_seconds {
            put(&mut patch, &["spec", "minReadySeconds"], self.deployment.spec.min_ready_seconds);
        }
        let changed = patch.as_object().is_some_and(|patch| !patch.is_empty());
        changed.then(|| Write::patch(Kind::ReplicaSet, new.set.name(), patch))
    }

    /// The revision that the deployment should show, if it does not: that of its new set.
    fn own_revision(&self) -> Option<String> {
        self.new?;
        let revision = self.revision().to_string();
        (self.deployment.annotation(REVISION) != Some(revision.as_str())).then_some(revision)
    }

    /// Old sets beyond the history limit go once the rollout is done.
    fn clean_up(&self) -> Vec<Write> {
        let limit =
            usize::try_from(self.deployment.spec.revision_history_limit.unwrap_or(10)).unwrap_or_default();
        if !self.deployment.spec.paused && !status::is_complete(self.deployment, &self.counts()) {
            return Vec::new();
        }
        let idle = |child: &&&Child| {
            let set = &child.set;
            child.wanted() == 0
                && set.status.replicas.unwrap_or_default() == 0
                && set.status.observed_generation >= set.generation()
                && !set.is_deleting()
        };
        let mut idle: Vec<_> = self.old.iter().filter(idle).collect();
        idle.sort_by_key(|child| child.revision());
        let surplus = idle.len().saturating_sub(limit);
        idle.into_iter().take(surplus).map(|child| Write::delete(child.set.as_ref())).collect()
    }
}

fn scaling(from: i32, to: i32) -> Option<Note> {
    let way = if to > from { "up" } else { "down" };
    let text = format!("Scaled {way} replica set {{}} from {from} to {to}");
    (from != to).then(|| Note::normal("ScalingReplicaSet", text))
}

/// The template as its deployment has it.
fn without_hash(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.shift_remove(HASH);
    }
    template
}
