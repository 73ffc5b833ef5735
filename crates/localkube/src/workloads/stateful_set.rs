//! The stateful set controller.
//!
//! Persistent volume claims are not created; pods only refer to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::hash;
use super::objects::{Pod, StatefulSet, StatefulSetStatus, WorkloadKind};
use super::plan::{EventNote, ObjectWrite, ReconcilePlan, difference, pod_from, put};

const REVISION_LABEL: &str = "controller-revision-hash";
const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

/// A stateful set and its pods.
struct StatefulSetView<'a> {
    set: &'a StatefulSet,
    /// By ordinal.
    pods: BTreeMap<i32, &'a Arc<Pod>>,
    numbers: std::ops::Range<i32>,
    /// The current revision.
    current: String,
    /// The update revision.
    update: String,
    now: Timestamp,
}

/// The revision name of a set's template.
pub(crate) fn revision(set: &StatefulSet) -> String {
    format!("{}-{}", set.name(), hash::of(&set.spec.template))
}

/// The ordinal of a pod of this set.
pub(crate) fn number(set: &StatefulSet, pod: &Pod) -> Option<i32> {
    let number = pod.name().strip_prefix(set.name())?.strip_prefix('-')?;
    number.parse().ok().filter(|parsed: &i32| parsed.to_string() == number)
}

/// Plans a stateful set with these pods. `before` is the template of the previous revision, if it is known.
pub(crate) fn plan(
    set: &StatefulSet,
    pods: &[Arc<Pod>],
    before: Option<&Value>,
    now: Timestamp,
) -> ReconcilePlan {
    let view = StatefulSetView::of(set, pods, now);
    let mut plan = ReconcilePlan::default();
    if !set.is_deleting() {
        plan.writes = view.writes(before);
    }
    let not_yet = pods.iter().filter_map(|pod| pod.until_available(set.spec.min_ready_seconds, now));
    plan.requeue_after(not_yet.filter(|wait| !wait.is_zero()).min());
    plan.status = difference(&set.status, &view.status());
    plan
}

impl<'a> StatefulSetView<'a> {
    fn of(set: &'a StatefulSet, pods: &'a [Arc<Pod>], now: Timestamp) -> Self {
        let start = set.spec.ordinals.start;
        let update = revision(set);
        let current = match set.status.current_revision.as_str() {
            "" => update.clone(),
            known => known.to_owned(),
        };
        Self {
            set,
            pods: pods.iter().filter_map(|pod| Some((number(set, pod)?, pod))).collect(),
            numbers: start..start.saturating_add(set.spec.replicas.unwrap_or(1).max(0)),
            current,
            update,
            now,
        }
    }

    fn is_healthy(&self, pod: &Pod) -> bool {
        pod.is_running_and_ready()
            && !pod.is_deleting()
            && pod.is_available(self.set.spec.min_ready_seconds, self.now)
    }

    fn writes(&self, before: Option<&Value>) -> Vec<ObjectWrite> {
        let in_order = self.set.spec.pod_management_policy != "Parallel";
        let mut writes = Vec::new();
        for number in self.numbers.clone() {
            match self.pods.get(&number) {
                None => writes.push(self.create(number, before)),
                Some(pod) if pod.is_deleting() => {}
                // Finished pods are recreated.
                Some(pod) if pod.is_finished() => writes.push(self.delete(pod)),
                Some(pod) if self.is_healthy(pod) => continue,
                Some(_) => {}
            }
            if in_order {
                return writes;
            }
        }
        let surplus = || self.pods.iter().rev().filter(|(number, _)| !self.numbers.contains(number));
        for (_, pod) in surplus() {
            if !pod.is_deleting() {
                writes.push(self.delete(pod));
            }
            if in_order {
                return writes;
            }
        }
        if !writes.is_empty()
            || surplus().next().is_some()
            || self.set.spec.update_strategy.r#type == "OnDelete"
        {
            return writes;
        }
        self.update().into_iter().collect()
    }

    /// Deletes the last pod of an old revision, once the pods after it are healthy.
    fn update(&self) -> Option<ObjectWrite> {
        for (number, pod) in self.pods.iter().rev() {
            if *number < self.numbers.start + self.partition() {
                return None;
            }
            if pod.label(REVISION_LABEL) != Some(self.update.as_str()) && !pod.is_deleting() {
                return Some(self.delete(pod));
            }
            if !self.is_healthy(pod) {
                return None;
            }
        }
        None
    }

    fn partition(&self) -> i32 {
        let update = self.set.spec.update_strategy.rolling_update.as_ref();
        update.and_then(|update| update.partition).unwrap_or_default()
    }

    fn delete(&self, pod: &Pod) -> ObjectWrite {
        let text = format!("Delete Pod {{}} in StatefulSet {} successful", self.set.name());
        ObjectWrite::delete(pod).with_event(EventNote::normal("SuccessfulDelete", text))
    }

    /// Whether a pod is recreated from the previous revision: updates go from the last pod to the first.
    fn is_kept_back(&self, number: i32) -> bool {
        let is_old = |pod: &Pod| pod.label(REVISION_LABEL) == Some(self.current.as_str());
        self.set.spec.update_strategy.r#type != "OnDelete"
            && (number < self.numbers.start + self.partition()
                || self.pods.range(number + 1..self.numbers.end).any(|(_, pod)| is_old(pod)))
    }

    fn create(&self, number: i32, before: Option<&Value>) -> ObjectWrite {
        let set = self.set;
        let (template, revision) = match before.filter(|_| self.is_kept_back(number)) {
            Some(before) => (before, &self.current),
            None => (&set.spec.template, &self.update),
        };
        let name = format!("{}-{number}", set.name());
        let mut pod = pod_from(set, template);
        put(&mut pod, &["metadata", "name"], name.as_str());
        put(&mut pod, &["metadata", "labels", REVISION_LABEL], revision.as_str());
        put(&mut pod, &["metadata", "labels", POD_NAME_LABEL], name.as_str());
        put(&mut pod, &["metadata", "labels", POD_INDEX_LABEL], number.to_string());
        put(&mut pod, &["spec", "hostname"], name.as_str());
        put(&mut pod, &["spec", "subdomain"], set.spec.service_name.as_str());
        let claims = set.spec.volume_claim_templates.iter().filter_map(|claim| claim.metadata.name.as_ref());
        let mut volumes: Vec<Value> = claims
            .map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": format!("{claim}-{name}")}}))
            .collect();
        if let Some(others) = pod.pointer("/spec/volumes").and_then(Value::as_array) {
            let claimed =
                |other: &&Value| volumes.iter().all(|volume| volume.get("name") != other.get("name"));
            let others: Vec<Value> = others.iter().filter(claimed).cloned().collect();
            volumes.extend(others);
        }
        if !volumes.is_empty() {
            put(&mut pod, &["spec", "volumes"], volumes);
        }
        let text = format!("Create Pod {{}} in StatefulSet {} successful", set.name());
        ObjectWrite::create(WorkloadKind::Pod, pod).with_event(EventNote::normal("SuccessfulCreate", text))
    }

    fn status(&self) -> StatefulSetStatus {
        let count = |counts: &dyn Fn(&Pod) -> bool| {
            i32::try_from(self.pods.values().filter(|pod| counts(pod)).count()).unwrap_or(i32::MAX)
        };
        let made_from =
            |revision: &str, pod: &Pod| !pod.is_deleting() && pod.label(REVISION_LABEL) == Some(revision);
        let mut status = StatefulSetStatus {
            observed_generation: self.set.generation(),
            replicas: Some(count(&|_| true)),
            ready_replicas: count(&Pod::is_running_and_ready),
            available_replicas: Some(count(&|pod| {
                pod.is_running_and_ready() && pod.is_available(self.set.spec.min_ready_seconds, self.now)
            })),
            current_replicas: count(&|pod| made_from(&self.current, pod)),
            updated_replicas: count(&|pod| made_from(&self.update, pod)),
            current_revision: self.current.clone(),
            update_revision: self.update.clone(),
            collision_count: Some(0),
        };
        let all = status.replicas.unwrap_or_default();
        // The update is complete: the update revision becomes the current one.
        if self.set.spec.update_strategy.r#type != "OnDelete"
            && status.updated_replicas == all
            && status.ready_replicas == all
        {
            status.current_revision.clone_from(&status.update_revision);
            status.current_replicas = status.updated_replicas;
        }
        status
    }
}
