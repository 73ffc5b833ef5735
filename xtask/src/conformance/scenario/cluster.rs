//! A controller and its simulated cluster, for one scenario.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::Context as _;
use api::autoscaling::v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus};
use api::overlap::SelectorRegistry;
use api::scale::{ResourceKind, normalize_selector, resolve, resolve_described};
use api::selector::Selector;
use api::{convert, metrics};
use engine::ScaleWriteResult;
use engine::act::{ScaleWrite, ScaleWriteAction, ScaleWriteError};
use engine::spec::{Metric, MetricSource};
use engine::{
    ControllerConfig, Decision, Gates, MetricSamples, Observation, PodSelection, RecordedError, Scale,
    ScaleReadError, Spec, State,
};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::record::{self, ApiError, Op, RecordedScenario, RecordedStep};

pub(super) struct ScenarioCluster<'a> {
    scenario: &'a RecordedScenario,
    config: Arc<ControllerConfig>,
    kinds: Vec<ResourceKind>,
    now: Timestamp,
    stored: Vec<Option<HorizontalPodAutoscaler>>,
    states: BTreeMap<usize, State>,
    registry: SelectorRegistry,
}

/// The result of one step.
#[derive(Default)]
pub(super) struct PlayedCluster {
    pub(super) deleted: bool,
    pub(super) decision: Option<Decision>,
    pub(super) scale_to: Option<i32>,
    pub(super) attempts: Vec<i32>,
    pub(super) status_written: bool,
    pub(super) status: Value,
    pub(super) rejected: Option<Value>,
    pub(super) metric_labels: Vec<Value>,
    pub(super) logged: Vec<String>,
    pub(super) requests: Vec<String>,
}

impl<'a> ScenarioCluster<'a> {
    pub(super) fn new(scenario: &'a RecordedScenario) -> Self {
        let seconds = SignedDuration::from_secs_f64;
        let config = &scenario.config;
        let gates = &config.feature_gates;
        let mut cluster = Self {
            scenario,
            config: Arc::new(ControllerConfig {
                downscale_stabilization: seconds(config.downscale_stabilization_seconds),
                tolerance: config.tolerance,
                cpu_initialization_period: seconds(config.cpu_initialization_period_seconds),
                initial_readiness_delay: seconds(config.initial_readiness_delay_seconds),
                gates: Gates {
                    scale_to_zero: gates.scale_to_zero,
                    configurable_tolerance: gates.configurable_tolerance,
                    pod_level_resources: gates.pod_level_resources,
                    ..Gates::default()
                },
                // The vectors were recorded with the default release.
                ..ControllerConfig::default()
            }),
            kinds: kinds(),
            now: scenario.base,
            stored: scenario.hpas.iter().cloned().map(Some).collect(),
            states: BTreeMap::new(),
            registry: SelectorRegistry::default(),
        };
        cluster.register_all();
        cluster
    }

    fn register_all(&mut self) {
        for hpa in self.stored.iter().flatten() {
            self.registry.register(&hpa.metadata.namespace, &hpa.metadata.name);
        }
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Spec { hpa, spec } => {
                if let Some(Some(stored)) = self.stored.get_mut(*hpa) {
                    stored.spec = (**spec).clone();
                }
            }
            Op::Delete { hpa } => {
                if let Some(gone) = self.stored.get_mut(*hpa).and_then(Option::take) {
                    self.registry.remove(&gone.metadata.namespace, &gone.metadata.name);
                }
            }
            Op::Create { hpa, object } => {
                if let Some(slot) = self.stored.get_mut(*hpa) {
                    self.registry.register(&object.metadata.namespace, &object.metadata.name);
                    *slot = Some((**object).clone());
                }
            }
            Op::Restart {} => {
                self.states.clear();
                self.registry = SelectorRegistry::default();
                self.register_all();
            }
        }
    }

    pub(super) fn play(&mut self, step: &RecordedStep) -> anyhow::Result<PlayedCluster> {
        // The recording cut fractions to whole nanoseconds.
        self.now += SignedDuration::from_nanos((step.advance * 1e9) as i64);
        for op in &step.ops {
            self.apply(op);
        }
        let Some(hpa) = self.stored.get(step.hpa).cloned().flatten() else {
            self.states.remove(&step.hpa);
            return Ok(PlayedCluster { deleted: true, ..PlayedCluster::default() });
        };
        let mut played = PlayedCluster::default();
        let seen = self.observe(step, &hpa, &mut played);
        let mut state = self.states.remove(&step.hpa).unwrap_or_default();
        let mut decision = state.step(self.now, &seen);
        if let Some(replicas) = decision.write() {
            let written = write(step, replicas.get(), &seen.spec.reference(), &mut played);
            state.settle(self.now, &seen, &mut decision, written);
        }
        // The state must survive a snapshot and its restore.
        let saved = serde_json::to_string(&state)?;
        self.states.insert(step.hpa, serde_json::from_str(&saved)?);
        self.store(step, &hpa, &mut decision, &mut played)?;
        played.metric_labels = decision
            .metric_labels(&seen.status)
            .map(|(kind, action, error)| json!([kind, action, error]))
            .collect();
        played.logged.extend(decision.logged.iter().cloned());
        played.decision = Some(decision);
        Ok(played)
    }

    /// Writes the status if it changed, as the API would store it.
    fn store(
        &mut self,
        step: &RecordedStep,
        hpa: &HorizontalPodAutoscaler,
        decision: &mut Decision,
        played: &mut PlayedCluster,
    ) -> anyhow::Result<()> {
        // The API server returns what it parsed: quantities in canonical form.
        let as_json = |status: &HorizontalPodAutoscalerStatus| -> anyhow::Result<Value> {
            let sent = serde_json::to_value(status)?;
            Ok(serde_json::to_value(HorizontalPodAutoscalerStatus::deserialize(sent)?)?)
        };
        let new = convert::stored_status(&hpa.spec, None, decision, &hpa.status);
        let changed = !convert::same_status(&hpa.status, &new);
        played.status = as_json(&hpa.status)?;
        let result = match &step.status_update_error {
            Some(error) if changed => {
                played.rejected = Some(as_json(&new)?);
                Err(error.message.clone())
            }
            _ => Ok(()),
        };
        if changed && result.is_ok() {
            played.status_written = true;
            played.status = as_json(&new)?;
            if let Some(Some(stored)) = self.stored.get_mut(step.hpa) {
                stored.status = serde_json::from_value(played.status.clone())
                    .context("failed to read the status back")?;
            }
        }
        decision.status_written(&hpa.metadata.name, result.map_err(Into::into));
        Ok(())
    }

    fn observe(
        &mut self,
        step: &RecordedStep,
        hpa: &HorizontalPodAutoscaler,
        played: &mut PlayedCluster,
    ) -> Observation {
        let spec = Arc::new(convert::spec_of_hpa(hpa));
        let status = convert::engine_status(&hpa.status);
        let scale = self.scale(step, hpa);
        let mut seen = Observation {
            config: self.config.clone(),
            spec: spec.clone(),
            status,
            scale,
            selection: PodSelection::Ours,
            pods: Vec::new(),
            samples: Vec::new(),
        };
        let Ok(scale) = &seen.scale else { return seen };
        if !Observation::needs_metrics(&self.config, &spec, &seen.status, scale) {
            return seen;
        }
        match Selector::parse(&scale.selector) {
            Err(error) => seen.selection = PodSelection::Invalid(error.to_string()),
            Ok(selector) => {
                let pods: Vec<&api::pod::Pod> = step
                    .pods
                    .iter()
                    .filter_map(|index| self.scenario.pod_objects.get(*index))
                    .filter(|p| {
                        p.metadata.namespace == spec.namespace && selector.matches_map(&p.metadata.labels)
                    })
                    .collect();
                self.registry.select(&spec.namespace, &spec.name, selector);
                let keys = self.registry.selecting(&spec.namespace, &pods.iter().map(|p| &p.metadata.labels));
                if keys.len() > 1 {
                    seen.selection = PodSelection::Shared(keys);
                } else {
                    let mut shapes = HashMap::new();
                    seen.pods = pods.iter().map(|pod| view(pod, &mut shapes)).collect();
                    let samples =
                        spec.metrics.iter().map(|metric| self.fetch(step, &spec, &seen, metric, played));
                    seen.samples = samples.collect();
                }
            }
        }
        seen
    }

    fn scale(&self, step: &RecordedStep, hpa: &HorizontalPodAutoscaler) -> Result<Scale, ScaleReadError> {
        resolve(&self.kinds, &hpa.spec.scale_target_ref)?;
        if let Some(error) = &step.scale.error {
            return Err(ScaleReadError::Query(error.message.clone().into()));
        }
        let text = &step.scale.selector;
        let selector = if self.scenario.direct_scale {
            text.clone()
        } else {
            normalize_selector(text).map_err(|error| ScaleReadError::Query(error.to_string().into()))?
        };
        let record::RecordedScale { spec_replicas, status_replicas, .. } = step.scale;
        Ok(Scale { spec_replicas: spec_replicas.into(), status_replicas: status_replicas.into(), selector })
    }

    fn fetch(
        &self,
        step: &RecordedStep,
        spec: &Spec,
        seen: &Observation,
        metric: &Metric,
        played: &mut PlayedCluster,
    ) -> Result<MetricSamples, RecordedError> {
        let described = match &metric.source {
            MetricSource::Object { kind, api_version, .. } => {
                Some(resolve_described(&self.kinds, api_version.as_deref(), kind))
            }
            _ => None,
        };
        let resource = match &described {
            Some(Ok(kind)) => kind.group_resource(),
            Some(Err(error)) if metric.is_queryable() => {
                return metrics::object_total(Err(&error.to_string()));
            }
            _ => String::new(),
        };
        let selector = seen.scale.as_ref().map_or("", |s| s.selector.as_str());
        let Some(query) = metrics::Query::of(&spec.namespace, selector, metric, &resource) else {
            return Ok(MetricSamples::NotQueried);
        };
        played.requests.push(shown(&query));
        answer(step, spec, seen, metric, &resource)
    }
}

/// The recorded response of a metrics API.
fn answer(
    step: &RecordedStep,
    spec: &Spec,
    seen: &Observation,
    metric: &Metric,
    resource: &str,
) -> Result<MetricSamples, RecordedError> {
    let custom = |resource: &str, name: &str, id: &engine::spec::MetricId| {
        let selector = id.selector.as_deref().unwrap_or_default();
        let found = step.metrics.custom.iter().find(|c| {
            c.resource == resource && c.name == name && c.metric == id.name && c.metric_selector == selector
        });
        found.map_or(Err("no such answer was recorded"), |c| either(&c.list, c.error.as_ref()))
    };
    match &metric.source {
        MetricSource::Resource { name, .. } => resource_answer(step, seen, name, None),
        MetricSource::ContainerResource { name, container, .. } => {
            resource_answer(step, seen, name, Some(container))
        }
        MetricSource::Pods(id) => {
            metrics::pods_samples(custom("pods", "*", id)).map(|s| metrics::join_samples(&seen.pods, s))
        }
        MetricSource::Object { name, metric: id, .. } => {
            let name = if resource == "namespaces" { &spec.namespace } else { name };
            metrics::object_total(custom(resource, name, id))
        }
        MetricSource::External(id) => {
            let selector = id.selector.as_deref().unwrap_or_default();
            let found =
                step.metrics.external.iter().find(|e| e.metric == id.name && e.metric_selector == selector);
            metrics::external_totals(
                found.map_or(Err("no such answer was recorded"), |e| either(&e.list, e.error.as_ref())),
            )
        }
        MetricSource::Unknown(_) => Ok(MetricSamples::NotQueried),
    }
}

fn resource_answer(
    step: &RecordedStep,
    seen: &Observation,
    resource: &str,
    container: Option<&str>,
) -> Result<MetricSamples, RecordedError> {
    let found = step.metrics.resource.as_ref();
    let list = found.map_or(Err("no such answer was recorded"), |r| either(&r.list, r.error.as_ref()));
    metrics::resource_samples(list, resource, container).map(|s| metrics::join_samples(&seen.pods, s))
}

fn either<'a, T>(list: &'a T, error: Option<&'a ApiError>) -> Result<&'a T, &'a str> {
    error.map_or(Ok(list), |e| Err(e.message.as_str()))
}

/// Writes the scale, with the recorded result.
fn write(
    step: &RecordedStep,
    replicas: i32,
    reference: &str,
    played: &mut PlayedCluster,
) -> ScaleWriteResult {
    let (mut write, mut next) = ScaleWrite::start();
    loop {
        next = match next {
            ScaleWriteAction::Put => {
                let attempt = played.attempts.len();
                played.attempts.push(replicas);
                let error = step.scale.update_errors.get(attempt).map(|e| ScaleWriteError {
                    text: e.message.clone(),
                    conflict: e.code == 409 && e.reason == "Conflict",
                });
                write.put(error.map_or(Ok(()), Err))
            }
            ScaleWriteAction::Refetch => {
                if let Some(error) = step.scale.refetch_errors.get(played.attempts.len() - 1) {
                    played.logged.push(format!(
                        "error getting latest scale for {reference} during conflict retry: {}",
                        error.message
                    ));
                }
                write.refetched()
            }
            ScaleWriteAction::Wait(_) => write.waited(),
            ScaleWriteAction::Done(Ok(())) => {
                played.scale_to = Some(replicas);
                return ScaleWriteResult::Done;
            }
            ScaleWriteAction::Done(Err(error)) => return ScaleWriteResult::Failed(error),
        }
    }
}

/// Pods of the same spec share a shape, as they do in the live index.
fn view(pod: &api::pod::Pod, shapes: &mut HashMap<String, Arc<engine::PodTemplate>>) -> engine::Pod {
    let key = serde_json::to_string(&pod.spec).unwrap_or_default();
    let shape = shapes.entry(key).or_insert_with(|| Arc::new(pod.spec.shape())).clone();
    pod.view(shape)
}

fn shown(query: &metrics::Query) -> String {
    let parameters: Vec<String> =
        query.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mark = if parameters.is_empty() { "" } else { "?" };
    format!("GET {}{mark}{}", query.path, parameters.join("&"))
}

/// What discovery of the recorded cluster lists.
fn kinds() -> Vec<ResourceKind> {
    [
        ("", "Pod", "pods"),
        ("", "Service", "services"),
        ("", "ReplicationController", "replicationcontrollers"),
        ("", "ConfigMap", "configmaps"),
        ("", "Namespace", "namespaces"),
        ("", "Node", "nodes"),
        ("apps", "Deployment", "deployments"),
        ("apps", "ReplicaSet", "replicasets"),
        ("apps", "StatefulSet", "statefulsets"),
        ("apps", "DaemonSet", "daemonsets"),
        ("batch", "Job", "jobs"),
        ("networking.k8s.io", "Ingress", "ingresses"),
        ("example.com", "Widget", "widgets"),
    ]
    .into_iter()
    .map(|(group, kind, resource)| ResourceKind {
        group: group.into(),
        kind: kind.into(),
        resource: resource.into(),
    })
    .collect()
}
