//! The `Scenario` document. The comments of the fields are also the reference in `docs/simulate.md`.

mod load;

use std::collections::BTreeMap;

use api::meta::ObjectMeta;
use jiff::Timestamp;
use quantity::Quantity;
use serde::{Deserialize, Serialize};

pub use load::{
    Alignment, DailyShape, LoadShape, NoiseShape, RampShape, SpikeShape, StepShape, TraceShape, WaveShape,
    WeeklyShape,
};

use crate::inputs::Signal;
use crate::time::Millis;
use crate::workload::PodFailure;

/// A simulation: duration, behavior of workloads, load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScenarioDocument {
    /// `plimsoll.dev/v1alpha1`.
    pub api_version: String,
    /// `Scenario`.
    pub kind: String,
    /// The name is shown in reports.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Spec.
    pub spec: ScenarioSpec,
}

/// Spec of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScenarioSpec {
    /// Start of virtual time, in UTC; default `2026-01-05T00:00:00Z`, a Monday.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// Duration of the simulation, such as `30m` or `30d`; at most 400 days.
    pub duration: Millis,
    /// Seed of the random numbers for noise and failing pods: the same seed gives the same run. Default 0.
    #[serde(default)]
    pub seed: u64,
    /// Time between two evaluations of the load; default `1s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<Millis>,
    /// Settings of the controller; the defaults are those of kube-controller-manager.
    #[serde(default)]
    pub controller: ControllerSettings,
    /// Timing of metrics.
    #[serde(default)]
    pub metrics_pipeline: MetricsPipeline,
    /// The workloads with their behavior and load.
    pub workloads: Vec<WorkloadSettings>,
    /// Times during which metrics cannot be read.
    #[serde(default)]
    pub outages: Vec<Outage>,
}

/// Settings of the controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllerSettings {
    /// Time between two decisions about the same autoscaler; default `15s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_period: Option<Millis>,
    /// Scale-down stabilization window; default `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downscale_stabilization: Option<Millis>,
    /// Tolerance: how far the ratio of usage to target may differ from 1 without a change; default 0.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Time after a pod's start in which its cpu samples count only if the pod is ready; default `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_initialization_period: Option<Millis>,
    /// Time after a pod's start in which becoming unready counts as not yet ready; default `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_readiness_delay: Option<Millis>,
    /// Kubernetes feature gates: `HPAScaleToZero`, `HPAConfigurableTolerance`, `PodLevelResources`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_gates: BTreeMap<String, bool>,
}

/// Timing of metrics: every pod is sampled once per `resolution`, and a sample can be read `delay` later.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricsPipeline {
    /// Time between two samples, and the window of each sample; default `15s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Millis>,
    /// Time from the end of a sample until it can be read; default `5s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Millis>,
}

/// Behavior and load of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSettings {
    /// The Deployment, StatefulSet or ReplicaSet of the manifests.
    pub target: Target,
    /// Delays and failures of its pods.
    #[serde(default)]
    pub pods: PodSettings,
    /// Capacity of its pods.
    #[serde(default)]
    pub serves: ServiceSettings,
    /// Resource usage of each container; a container that is not listed uses nothing.
    #[serde(default)]
    pub containers: Vec<ContainerSettings>,
    /// The work that arrives, in units per second: the sum of these shapes, never below zero.
    pub load: Vec<LoadShape>,
    /// Custom and external metrics of this workload.
    #[serde(default)]
    pub metrics: Vec<MetricSettings>,
}

/// A workload by kind and name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// `Deployment`, `StatefulSet` or `ReplicaSet`; default `Deployment`.
    #[serde(default = "deployment")]
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace; default `default`.
    #[serde(default = "default_namespace")]
    pub namespace: String,
}

/// Delays and failures of pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSettings {
    /// Time from creation until all containers run; default `3s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_delay: Option<Millis>,
    /// Time from running until ready; default `7s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_delay: Option<Millis>,
    /// Time from deletion until the pod is gone, in which it takes no work; default `5s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_delay: Option<Millis>,
    /// Share of new pods that fail, from 0 to 1; default 0. Pods that exist at the start do not fail.
    pub failing: f64,
    /// How they fail: `NeverReady` (the default) or `Failed`.
    pub failure: PodFailure,
}

/// Capacity of pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSettings {
    /// Units of work per second that one ready pod can do; default: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_pod: Option<f64>,
    /// Whether work that cannot be done at once waits; otherwise it is lost. Default false.
    pub queue: bool,
    /// Units of work that can wait; further work is lost. Default: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_limit: Option<f64>,
}

/// Resource usage of one container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerSettings {
    /// Name in the manifest.
    pub name: String,
    /// Usage of cpu; never more than the container's limit.
    #[serde(default)]
    pub cpu: UsageSettings,
    /// Usage of memory; never more than the container's limit.
    #[serde(default)]
    pub memory: UsageSettings,
}

/// Usage of one resource by one container of one pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageSettings {
    /// Usage without work, such as `2m` or `20Mi`; default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Quantity>,
    /// Additional usage for each unit of work per second that the pod does; default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_unit: Option<Quantity>,
    /// Usage from running until ready, instead of `idle`; default: the same as `idle`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting: Option<Quantity>,
}

/// A custom or external metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricSettings {
    /// Name.
    pub name: String,
    /// Which API serves it.
    #[serde(rename = "as")]
    pub served_as: MetricKind,
    /// The object that it describes; required with `as: Object`, not allowed otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<DescribedObject>,
    /// Labels that a metric selector can match.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The property of the workload that it reports; this or `load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Signal>,
    /// A load curve that is independent of the workload; only for metrics that are not per pod.
    #[serde(default)]
    pub load: Vec<LoadShape>,
    /// Factor for the value; default 1.
    #[serde(default = "one")]
    pub scale: f64,
    /// Time from a sample until it can be read; default: that of the metrics pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Millis>,
}

/// Which API serves a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MetricKind {
    /// `custom.metrics.k8s.io`, a number per pod.
    Pods,
    /// `custom.metrics.k8s.io`, a number of one object.
    Object,
    /// `external.metrics.k8s.io`.
    External,
}

/// The object a metric describes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DescribedObject {
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// A time during which metrics cannot be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outage {
    /// The custom or external metric that fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The resource that fails: `cpu` or `memory`. Without this and `metric`, all metrics fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Start, from the start of the scenario.
    pub from: Millis,
    /// End; default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Millis>,
    /// Share of the pods without a sample, from 0 to 1; default: the API returns an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Error text of the API; default `the server is currently unable to handle the request`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

fn deployment() -> String {
    "Deployment".to_owned()
}

fn default_namespace() -> String {
    "default".to_owned()
}

fn one() -> f64 {
    1.0
}
