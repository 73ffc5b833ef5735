//! The deployment controller: one replica set per template, and rollouts.

pub(crate) mod rollout;
mod status;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::hash;
use super::objects::{Deployment, ReplicaSet, WorkloadKind};
use super::plan::{EventNote, ObjectWrite, ReconcilePlan, controlled_by, difference, put, template_labels};
use rollout::{ReplicaSetSize, RolloutLimits};

const TEMPLATE_HASH_LABEL: &str = "pod-template-hash";
const REVISION_ANNOTATION: &str = "deployment.kubernetes.io/revision";
const REVISION_HISTORY_ANNOTATION: &str = "deployment.kubernetes.io/revision-history";
const DESIRED_REPLICAS_ANNOTATION: &str = "deployment.kubernetes.io/desired-replicas";
const MAX_REPLICAS_ANNOTATION: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations of a deployment that its replica sets do not inherit.
const OWN_ANNOTATIONS: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION_ANNOTATION,
    REVISION_HISTORY_ANNOTATION,
    DESIRED_REPLICAS_ANNOTATION,
    MAX_REPLICAS_ANNOTATION,
];

/// A replica set of the deployment.
#[derive(Clone, Debug)]
pub(crate) struct ChildReplicaSet {
    pub(crate) set: Arc<ReplicaSet>,
    /// Whether it has unfinished pods; computed only for the `Recreate` strategy.
    pub(crate) has_pods: bool,
}

/// A deployment and its replica sets.
struct Rollout<'a> {
    deployment: &'a Deployment,
    replicas: i32,
    limits: RolloutLimits,
    hash: String,
    /// The replica set of the current template.
    new: Option<&'a ChildReplicaSet>,
    /// The other replica sets, oldest first.
    old: Vec<&'a ChildReplicaSet>,
}

/// Plans a deployment with these replica sets.
pub(crate) fn plan(deployment: &Deployment, sets: &[ChildReplicaSet], now: Timestamp) -> ReconcilePlan {
    let rollout = Rollout::of(deployment, sets);
    let mut plan = ReconcilePlan::default();
    if !deployment.is_deleting() {
        plan.writes.extend(rollout.renew_annotations());
        if !plan.writes.is_empty() {
            // The annotations are written first: a resize uses the observed state.
        } else if deployment.spec.paused || rollout.is_scaled() {
            plan.writes.extend(rollout.scale());
        } else if deployment.spec.strategy.r#type == "Recreate" {
            plan.writes.extend(rollout.recreate());
        } else {
            plan.writes.extend(rollout.roll());
        }
        plan.writes.extend(rollout.clean_up());
    }
    let creates =
        plan.writes.iter().any(|write| matches!(write.change, super::plan::WriteOperation::Create(_)));
    let status = rollout.status(creates, now);
    plan.requeue_after(rollout.deadline(&status, now));
    plan.status = difference(&deployment.status, &status);
    if let Some(revision) = rollout.own_revision() {
        // Written with the status, where it does not change the generation.
        let patch = plan.status.get_or_insert_with(|| json!({}));
        put(patch, &["metadata", "annotations", REVISION_ANNOTATION], revision);
    }
    plan
}

impl ChildReplicaSet {
    fn wanted(&self) -> i32 {
        self.set.spec.replicas.unwrap_or(1)
    }

    fn size(&self) -> ReplicaSetSize {
        let number = |name| self.set.annotation(name).and_then(|text| text.parse().ok());
        ReplicaSetSize {
            wanted: self.wanted(),
            available: self.set.status.available_replicas,
            most: number(MAX_REPLICAS_ANNOTATION).unwrap_or_default(),
        }
    }

    fn revision(&self) -> i64 {
        self.set.annotation(REVISION_ANNOTATION).and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

impl<'a> Rollout<'a> {
    fn of(deployment: &'a Deployment, sets: &'a [ChildReplicaSet]) -> Self {
        let replicas = deployment.spec.replicas.unwrap_or(1);
        let hash = hash::of(&deployment.spec.template);
        let mut all: Vec<&ChildReplicaSet> = sets.iter().collect();
        all.sort_by_key(|child| (child.set.created(), child.set.name()));
        let new = all.iter().copied().find(|child| hash::of(&without_hash(&child.set.spec.template)) == hash);
        let old = all.into_iter().filter(|child| new.is_none_or(|new| new.set.uid() != child.set.uid()));
        Self {
            deployment,
            replicas,
            limits: RolloutLimits::of(&deployment.spec, replicas),
            hash,
            new,
            old: old.collect(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &'a ChildReplicaSet> {
        self.new.into_iter().chain(self.old.iter().copied())
    }

    fn new_size(&self) -> ReplicaSetSize {
        self.new.map(ChildReplicaSet::size).unwrap_or_default()
    }

    fn old_sizes(&self) -> Vec<ReplicaSetSize> {
        self.old.iter().map(|child| child.size()).collect()
    }

    /// The name of the replica set of the current template, if it exists.
    fn new_name(&self) -> Option<&'a str> {
        self.new.map(|child| child.set.name())
    }

    /// The revision of the new replica set.
    fn revision(&self) -> i64 {
        let next = self.old.iter().map(|child| child.revision()).max().unwrap_or_default() + 1;
        self.new.map_or(next, |new| new.revision().max(next))
    }

    /// Whether the number of replicas changed since the replica sets were last scaled.
    fn is_scaled(&self) -> bool {
        let mut active = self.all().filter(|child| child.wanted() > 0);
        active.any(|child| {
            child
                .set
                .annotation(DESIRED_REPLICAS_ANNOTATION)
                .is_some_and(|text| text != self.replicas.to_string())
        })
    }

    /// Rolling update: grows the new replica set within the surge, then shrinks old ones within the availability.
    fn roll(&self) -> Vec<ObjectWrite> {
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

    /// Recreate: scales down all old replica sets, then creates the new one.
    fn recreate(&self) -> Vec<ObjectWrite> {
        let writes = self.resize_all(&self.old, &vec![0; self.old.len()]);
        if !writes.is_empty() || self.old.iter().any(|child| child.has_pods) {
            return writes;
        }
        match self.new {
            None => vec![self.create(self.replicas)],
            Some(new) => self.resize_all(&[new], &[self.replicas]),
        }
    }

    /// Scales the replica sets without continuing the rollout.
    fn scale(&self) -> Vec<ObjectWrite> {
        let mut active: Vec<&ChildReplicaSet> = self.all().filter(|child| child.wanted() > 0).collect();
        if active.len() < 2 {
            let only = active.first().copied().or(self.new).or(self.old.last().copied());
            return only.map(|child| self.resize_all(&[child], &[self.replicas])).unwrap_or_default();
        }
        let new = self.new_size();
        if new.wanted == self.replicas && new.available == self.replicas {
            return self.resize_all(&self.old, &vec![0; self.old.len()]);
        }
        if self.deployment.spec.strategy.r#type == "Recreate" {
            return Vec::new();
        }
        let most = self.limits.most(self.replicas);
        let grows = most > active.iter().map(|child| child.wanted()).sum();
        // The largest gets the remainder; among equals the newest grows first and shrinks last.
        active.sort_by_key(|child| (child.set.created(), child.set.name().to_owned()));
        if grows {
            active.reverse();
        }
        active.sort_by_key(|child| std::cmp::Reverse(child.wanted()));
        let sizes: Vec<ReplicaSetSize> = active.iter().map(|child| child.size()).collect();
        self.resize_all(&active, &rollout::proportional(most, &sizes))
    }

    fn resize_all(&self, children: &[&ChildReplicaSet], sizes: &[i32]) -> Vec<ObjectWrite> {
        let changed = |child: &ChildReplicaSet, size: i32| {
            let stale = child.wanted() > 0
                && child
                    .set
                    .annotation(DESIRED_REPLICAS_ANNOTATION)
                    .is_some_and(|text| text != self.replicas.to_string());
            child.wanted() != size || stale
        };
        let pairs = children.iter().zip(sizes);
        pairs
            .filter(|(child, size)| changed(child, **size))
            .map(|(child, size)| self.resize(child, *size))
            .collect()
    }

    fn resize(&self, child: &ChildReplicaSet, size: i32) -> ObjectWrite {
        // With the revision: the size is valid only for the observed state.
        let patch = json!({
            "metadata": {
                "resourceVersion": child.set.metadata.resource_version,
                "annotations": self.sizes(),
            },
            "spec": {"replicas": size},
        });
        let write = ObjectWrite::patch(WorkloadKind::ReplicaSet, child.set.name(), patch);
        match scaling(child.wanted(), size) {
            Some(note) => write.with_event(note),
            None => write,
        }
    }

    fn sizes(&self) -> Value {
        json!({DESIRED_REPLICAS_ANNOTATION: self.replicas.to_string(), MAX_REPLICAS_ANNOTATION: self.limits.most(self.replicas).to_string()})
    }

    /// Creates the replica set of the current template.
    fn create(&self, size: i32) -> ObjectWrite {
        let deployment = self.deployment;
        let mut template = deployment.spec.template.clone();
        let mut labels = template_labels(&template);
        labels.insert(TEMPLATE_HASH_LABEL.to_owned(), json!(self.hash));
        put(&mut template, &["metadata", "labels"], labels.clone());
        let mut selector = json!(deployment.spec.selector);
        put(&mut selector, &["matchLabels", TEMPLATE_HASH_LABEL], self.hash.clone());
        let mut annotations = self.inherited();
        annotations.insert(REVISION_ANNOTATION.to_owned(), json!(self.revision().to_string()));
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
        let write = ObjectWrite::create(WorkloadKind::ReplicaSet, set);
        match scaling(0, size) {
            Some(note) => write.with_event(note),
            None => write,
        }
    }

    /// The annotations that replica sets inherit.
    fn inherited(&self) -> Map<String, Value> {
        let all = self.deployment.metadata.annotations.iter().flatten();
        let shared = all.filter(|(name, _)| !OWN_ANNOTATIONS.contains(&name.as_str()));
        shared.map(|(name, value)| (name.clone(), json!(value))).collect()
    }

    /// Updates the annotations of the existing replica set of the current template; a reused one gets a new revision
    /// and keeps its history.
    fn renew_annotations(&self) -> Option<ObjectWrite> {
        let new = self.new?;
        let mut changes = self.inherited();
        changes.retain(|name, value| new.set.annotation(name) != value.as_str());
        let revision = self.revision();
        if new.revision() < revision {
            changes.insert(REVISION_ANNOTATION.to_owned(), json!(revision.to_string()));
            if new.revision() > 0 {
                let mut history: Vec<String> = Vec::new();
                history.extend(new.set.annotation(REVISION_HISTORY_ANNOTATION).map(str::to_owned));
                history.push(new.revision().to_string());
                changes.insert(REVISION_HISTORY_ANNOTATION.to_owned(), json!(history.join(",")));
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
        changed.then(|| ObjectWrite::patch(WorkloadKind::ReplicaSet, new.set.name(), patch))
    }

    /// The revision annotation of the deployment, if it must change.
    fn own_revision(&self) -> Option<String> {
        self.new?;
        let revision = self.revision().to_string();
        (self.deployment.annotation(REVISION_ANNOTATION) != Some(revision.as_str())).then_some(revision)
    }

    /// Deletes old replica sets beyond the history limit after the rollout.
    fn clean_up(&self) -> Vec<ObjectWrite> {
        let limit =
            usize::try_from(self.deployment.spec.revision_history_limit.unwrap_or(10)).unwrap_or_default();
        if !self.deployment.spec.paused && !status::is_complete(self.deployment, &self.counts()) {
            return Vec::new();
        }
        let idle = |child: &&&ChildReplicaSet| {
            let set = &child.set;
            child.wanted() == 0
                && set.status.replicas.unwrap_or_default() == 0
                && set.status.observed_generation >= set.generation()
                && !set.is_deleting()
        };
        let mut idle: Vec<_> = self.old.iter().filter(idle).collect();
        idle.sort_by_key(|child| child.revision());
        let surplus = idle.len().saturating_sub(limit);
        idle.into_iter().take(surplus).map(|child| ObjectWrite::delete(child.set.as_ref())).collect()
    }
}

fn scaling(from: i32, to: i32) -> Option<EventNote> {
    let way = if to > from { "up" } else { "down" };
    let text = format!("Scaled {way} replica set {{}} from {from} to {to}");
    (from != to).then(|| EventNote::normal("ScalingReplicaSet", text))
}

/// The template without the hash label.
fn without_hash(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.shift_remove(TEMPLATE_HASH_LABEL);
    }
    template
}
