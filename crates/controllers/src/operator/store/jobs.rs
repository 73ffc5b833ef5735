//! Jobs of ScaledJobs, and their pods.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use api::keda::annotations::SCALED_JOB_NAME;
use cluster::watch::{View, WatchEvent};
use keda::jobs::{JobPodView, JobView};
use runtime::{StoreChange, Versioned};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::ObjectStore;
use crate::operator::id::NamespacedName;

/// Names of deleted jobs that are remembered: more than creations are under way at once.
const MAX_REMEMBERED_DELETIONS: usize = 1024;

/// A job, reduced to what the operator needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    namespace: String,
    version: String,
    /// The ScaledJob that its label names.
    of: Arc<str>,
    view: JobView,
}

/// A pod of a job, reduced to what the operator needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobPod {
    namespace: String,
    name: String,
    version: String,
    job: Arc<str>,
    view: JobPodView,
}

impl<'de> Deserialize<'de> for Job {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let job = Value::deserialize(deserializer)?;
        let label = job.pointer("/metadata/labels").and_then(|labels| labels.get(SCALED_JOB_NAME));
        Ok(Self {
            namespace: text(&job, "namespace"),
            version: text(&job, "resourceVersion"),
            of: label.and_then(Value::as_str).unwrap_or_default().into(),
            view: JobView::read(&job),
        })
    }
}

impl<'de> Deserialize<'de> for JobPod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pod = Value::deserialize(deserializer)?;
        let label = pod.pointer("/metadata/labels").and_then(|labels| labels.get("job-name"));
        Ok(Self {
            namespace: text(&pod, "namespace"),
            name: text(&pod, "name"),
            version: text(&pod, "resourceVersion"),
            job: label.and_then(Value::as_str).unwrap_or_default().into(),
            view: JobPodView::read(&pod),
        })
    }
}

fn text(object: &Value, field: &str) -> String {
    let field = object.get("metadata").and_then(|metadata| metadata.get(field));
    field.and_then(Value::as_str).unwrap_or_default().to_owned()
}

impl View for Job {
    fn key(&self) -> (&str, &str) {
        (&self.namespace, &self.view.name)
    }
}

impl View for JobPod {
    fn key(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }
}

impl Versioned for Job {
    fn resource_version(&self) -> &str {
        &self.version
    }
}

impl Versioned for JobPod {
    fn resource_version(&self) -> &str {
        &self.version
    }
}

/// All jobs of ScaledJobs, and their pods.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    all: ObjectStore<Job>,
    pods: ObjectStore<JobPod>,
    /// Names of jobs by ScaledJob, and of pods by job.
    of_scaled_job: Index,
    of_job: Index,
    /// The last deleted jobs: a job may be deleted before the response to its creation arrives, and its name is not used again.
    gone: VecDeque<NamespacedName>,
}

#[derive(Debug, Default)]
struct Index(HashMap<NamespacedName, BTreeSet<Arc<str>>>);

impl Index {
    fn add(&mut self, namespace: &Arc<str>, of: &Arc<str>, name: &Arc<str>) {
        let of = NamespacedName { namespace: namespace.clone(), name: of.clone() };
        self.0.entry(of).or_default().insert(name.clone());
    }

    fn remove(&mut self, namespace: &Arc<str>, of: &Arc<str>, name: &Arc<str>) {
        let of = NamespacedName { namespace: namespace.clone(), name: of.clone() };
        if let Some(names) = self.0.get_mut(&of) {
            names.remove(name);
            if names.is_empty() {
                self.0.remove(&of);
            }
        }
    }

    fn names<'a>(&'a self, of: &NamespacedName) -> impl Iterator<Item = &'a Arc<str>> + use<'a> {
        self.0.get(of).into_iter().flatten()
    }
}

impl Jobs {
    /// The jobs of a ScaledJob, with their pods.
    pub(crate) fn of(&self, scaled_job: &NamespacedName) -> Vec<JobView> {
        let named =
            |name: &Arc<str>| NamespacedName { namespace: scaled_job.namespace.clone(), name: name.clone() };
        let jobs = self.of_scaled_job.names(scaled_job).filter_map(|name| self.all.get(&named(name)));
        jobs.map(|job| {
            let pods = self.of_job.names(&named(&job.view.name.as_str().into()));
            let pods = pods.filter_map(|name| self.pods.get(&named(name))).map(|pod| pod.view.clone());
            JobView { pods: Some(pods.collect()), ..job.view.clone() }
        })
        .collect()
    }

    /// Adds a job that we created, before the watch delivers it, unless it is deleted already.
    pub(crate) fn add_created(&mut self, job: Job) {
        let (namespace, name) = job.key();
        if !self.was_deleted(namespace, name) {
            self.apply_job("", WatchEvent::Applied(job));
        }
    }

    /// Whether a job with this name was deleted not long ago, or is to be avoided.
    fn was_deleted(&self, namespace: &str, name: &str) -> bool {
        self.gone.iter().any(|gone| (&*gone.namespace, &*gone.name) == (namespace, name))
    }

    /// Whether the watch has delivered a job with this name, or its deletion.
    pub(crate) fn is_known(&self, namespace: &str, name: &str) -> bool {
        let named = NamespacedName { namespace: namespace.into(), name: name.into() };
        self.all.get(&named).is_some() || self.was_deleted(namespace, name)
    }

    /// Remembers a name that no new job is given.
    pub(crate) fn avoid(&mut self, name: NamespacedName) {
        self.gone.push_back(name);
        let many = self.gone.len().saturating_sub(MAX_REMEMBERED_DELETIONS);
        self.gone.drain(..many);
    }

    /// Applies an event of the watch of jobs.
    pub(crate) fn apply_job(&mut self, scope: &str, event: WatchEvent<Job>) {
        let named = |job: Job| (NamespacedName::new(&job.namespace, &job.view.name), job);
        match self.all.apply(scope, event.map(named)) {
            StoreChange::Applied(name, old) => {
                if let Some(old) = old {
                    self.of_scaled_job.remove(&name.namespace, &old.of, &name.name);
                }
                if let Some(job) = self.all.get(&name) {
                    self.of_scaled_job.add(&name.namespace, &job.of, &name.name);
                }
            }
            StoreChange::Deleted(gone) => {
                for (name, old) in gone {
                    self.of_scaled_job.remove(&name.namespace, &old.of, &name.name);
                    self.avoid(name);
                }
            }
            StoreChange::Unreadable(name, old, _) => {
                if let Some(old) = old {
                    self.of_scaled_job.remove(&name.namespace, &old.of, &name.name);
                }
            }
            StoreChange::Unchanged => {}
        }
    }

    /// Applies an event of the watch of pods.
    pub(crate) fn apply_pod(&mut self, scope: &str, event: WatchEvent<JobPod>) {
        let named = |pod: JobPod| (NamespacedName::new(&pod.namespace, &pod.name), pod);
        match self.pods.apply(scope, event.map(named)) {
            StoreChange::Applied(name, old) => {
                if let Some(old) = old {
                    self.of_job.remove(&name.namespace, &old.job, &name.name);
                }
                if let Some(pod) = self.pods.get(&name) {
                    self.of_job.add(&name.namespace, &pod.job, &name.name);
                }
            }
            StoreChange::Deleted(gone) => {
                for (name, old) in gone {
                    self.of_job.remove(&name.namespace, &old.job, &name.name);
                }
            }
            StoreChange::Unreadable(name, old, _) => {
                if let Some(old) = old {
                    self.of_job.remove(&name.namespace, &old.job, &name.name);
                }
            }
            StoreChange::Unchanged => {}
        }
    }
}
