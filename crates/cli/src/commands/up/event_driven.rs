//! The objects of files on which the operator acts.

use api::keda::{ScaledJob, ScaledObject};
use api::meta::ObjectMeta;
use api::yaml::{Document, Node};
use cluster::AutoscalerKind;
use sim::scenario::WorkloadPlan;

use super::queue::{Queue, QueueWorkers};
use crate::failure::Failure;

/// A ScaledObject or ScaledJob.
#[derive(Clone, Debug)]
pub(super) struct EventDrivenObject {
    kind: AutoscalerKind,
    pub(super) namespace: String,
    name: String,
    /// What it scales; a ScaledJob creates Jobs instead.
    target: Option<TargetWorkload>,
    /// Whether a trigger reads the simulated queue.
    reads_queue: bool,
}

/// A scale target in the namespace of its object.
#[derive(Clone, Debug)]
struct TargetWorkload {
    kind: String,
    name: String,
}

impl EventDrivenObject {
    /// Those among the documents.
    pub(super) fn all(documents: &[Document]) -> Result<Vec<Self>, Failure> {
        let mut found = Vec::new();
        for document in documents {
            match document.root.get("kind").and_then(Node::as_str) {
                Some("ScaledObject") => {
                    let object: ScaledObject = document.decode_lenient()?;
                    found.push(Self::of_object(&object));
                }
                Some("ScaledJob") => {
                    let job: ScaledJob = document.decode_lenient()?;
                    found.push(Self::of_job(&job));
                }
                _ => {}
            }
        }
        Ok(found)
    }

    fn of_object(object: &ScaledObject) -> Self {
        let name = object.spec.scale_target_ref.name.clone();
        Self {
            kind: AutoscalerKind::ScaledObject,
            namespace: namespace(&object.metadata),
            name: object.metadata.name.clone(),
            target: Some(TargetWorkload { kind: object.target_kind().to_owned(), name }),
            reads_queue: object.spec.triggers.iter().any(Queue::is_read_by),
        }
    }

    fn of_job(job: &ScaledJob) -> Self {
        Self {
            kind: AutoscalerKind::ScaledJob,
            namespace: namespace(&job.metadata),
            name: job.metadata.name.clone(),
            target: None,
            reads_queue: false,
        }
    }

    /// Its name as `plimsoll why` takes it: `so/orders-worker`.
    pub(super) fn short_name(&self) -> String {
        format!("{}/{}", self.kind.short(), self.name)
    }

    /// The name of the workload that it scales.
    pub(super) fn target_name(&self) -> Option<&str> {
        self.target.as_ref().map(|target| target.name.as_str())
    }

    /// Whether it scales this workload.
    pub(super) fn scales(&self, plan: &WorkloadPlan) -> bool {
        let is_plan = |target: &TargetWorkload| target.kind == plan.kind && target.name == plan.name;
        self.namespace == plan.namespace && self.target.as_ref().is_some_and(is_plan)
    }

    /// Its target, if a trigger reads the simulated queue.
    pub(super) fn queue_workers(&self) -> Option<QueueWorkers> {
        let target = self.target.as_ref().filter(|_| self.reads_queue)?;
        let resource = match target.kind.as_str() {
            "Deployment" => "deployments",
            "StatefulSet" => "statefulsets",
            "ReplicaSet" => "replicasets",
            _ => return None,
        };
        Some(QueueWorkers { namespace: self.namespace.clone(), resource, name: target.name.clone() })
    }
}

/// The namespace in which an object is created.
fn namespace(metadata: &ObjectMeta) -> String {
    if metadata.namespace.is_empty() { "default".to_owned() } else { metadata.namespace.clone() }
}

#[cfg(test)]
mod tests {
    use api::yaml::{self, SourceFile};

    use super::*;

    const OBJECTS: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: orders, namespace: shop}
spec:
  scaleTargetRef: {kind: StatefulSet, name: worker}
  triggers:
  - {type: cron, metadata: {timezone: Etc/UTC, start: 0 6 * * *, end: 0 20 * * *, desiredReplicas: '2'}}
  - {type: metrics-api, metadata: {url: 'http://127.0.0.1:7438/queues/orders', valueLocation: messages, targetValue: '5'}}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledJob
metadata: {name: mails}
spec:
  jobTargetRef: {template: {spec: {containers: [{name: a, image: b}]}}}
  triggers: []
";

    #[test]
    fn names_and_targets_of_objects_are_read() {
        let documents = yaml::parse(&SourceFile::new("f", OBJECTS)).unwrap();
        let found = EventDrivenObject::all(&documents).unwrap();
        let names: Vec<String> = found.iter().map(EventDrivenObject::short_name).collect();
        assert_eq!(names, ["so/orders", "sj/mails"]);
        assert_eq!(found[0].target_name(), Some("worker"));
        let workers =
            QueueWorkers { namespace: "shop".into(), resource: "statefulsets", name: "worker".into() };
        assert_eq!(found[0].queue_workers(), Some(workers));
        assert_eq!((found[1].namespace.as_str(), found[1].target_name()), ("default", None));
        assert_eq!(found[1].queue_workers(), None);
    }
}
