//! The `Scenario` document as it is written. The sentences on these fields are the user's reference.

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

use crate::time::Millis;
use crate::workload::PodFailure;

/// A simulation: how long, how workloads behave, and what load they get.
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
    /// What happens.
    pub spec: ScenarioSpec,
}

/// What happens in a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScenarioSpec {
    /// When virtual time begins, in UTC; default `2026-01-05T00:00:00Z`, a Monday.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// How long the simulation runs, such as `30m` or `30d`; at most 400 days.
    pub duration: Millis,
    /// Chooses the random numbers of noise and of failing pods: the same seed gives the same run. Default 0.
    #[serde(default)]
    pub seed: u64,
    /// How often the load is looked at; default `1s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<Millis>,
    /// Settings of the controller; those left out are as in kube-controller-manager.
    #[serde(default)]
    pub controller: ControllerSettings,
    /// How metrics come about.
    #[serde(default)]
    pub metrics_pipeline: MetricsPipeline,
    /// How each workload behaves and what load it gets.
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
    /// How long a higher recommendation holds back a scale-down; default `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downscale_stabilization: Option<Millis>,
    /// How far usage may be from its target, as a share, before it counts; default 0.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// How long after its start a pod's cpu usage is looked at with suspicion; default `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_initialization_period: Option<Millis>,
    /// How long after its start a pod may be unready without ever having been ready; default `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_readiness_delay: Option<Millis>,
    /// Kubernetes feature gates: `HPAScaleToZero`, `HPAConfigurableTolerance`, `PodLevelResources`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_gates: BTreeMap<String, bool>,
}

/// How metrics come about: every pod is looked at once per `resolution`, and what was seen can be read `delay` later.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricsPipeline {
    /// Time between two measurements, and the length over which each is averaged; default `15s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Millis>,
    /// From the end of a measurement until it can be read; default `5s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Millis>,
}

/// How one workload behaves and what load it gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSettings {
    /// The Deployment, StatefulSet or ReplicaSet among the manifests that is meant.
    pub target: Target,
    /// How its pods come and go.
    #[serde(default)]
    pub pods: PodSettings,
    /// How much work its pods can do.
    #[serde(default)]
    pub serves: ServiceSettings,
    /// What each container uses; a container that is not listed uses nothing.
    #[serde(default)]
    pub containers: Vec<ContainerSettings>,
    /// The work that arrives, in units per second: the sum of these shapes, never below zero.
    pub load: Vec<LoadShape>,
    /// Custom and external metrics that tell about this workload.
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
    /// Its name.
    pub name: String,
    /// Its namespace; default `default`.
    #[serde(default = "default_namespace")]
    pub namespace: String,
}

/// How pods come and go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSettings {
    /// From creation until all containers run; default `3s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_delay: Option<Millis>,
    /// From running until ready to take work; default `7s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_delay: Option<Millis>,
    /// From deletion until gone; the pod takes no work meanwhile. Default `5s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_delay: Option<Millis>,
    /// Share of new pods that fail, from 0 to 1; default 0. Pods that exist at the start do not fail.
    pub failing: f64,
    /// How they fail: `NeverReady` (the default) or `Failed`.
    pub failure: PodFailure,
}

/// How much work pods can do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSettings {
    /// Units of work per second that one ready pod can do; default: any amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_pod: Option<f64>,
    /// Whether work that cannot be done at once waits; otherwise it is lost. Default false.
    pub queue: bool,
    /// Units of work that may wait; what is beyond is lost. Default: any amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_limit: Option<f64>,
}

/// What one container uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerSettings {
    /// Its name in the manifest.
    pub name: String,
    /// Use of cpu; never more than the container's limit.
    #[serde(default)]
    pub cpu: UsageSettings,
    /// Use of memory; never more than the container's limit.
    #[serde(default)]
    pub memory: UsageSettings,
}

/// Use of one resource by one container of one pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageSettings {
    /// Use without work, such as `2m` or `20Mi`; default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Quantity>,
    /// More for each unit of work per second that this pod does; default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_unit: Option<Quantity>,
    /// Use from running until ready, in place of `idle`; default: the same as `idle`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting: Option<Quantity>,
}

/// A custom or external metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricSettings {
    /// Its name.
    pub name: String,
    /// Which API serves it.
    #[serde(rename = "as")]
    pub served_as: MetricKind,
    /// The object it describes; only, and always, with `as: Object`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<DescribedObject>,
    /// Labels that a metric selector can match.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// What it tells; this or `load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Signal>,
    /// A curve of its own, independent of the workload; only for metrics that are not per pod.
    #[serde(default)]
    pub load: Vec<LoadShape>,
    /// What the value is multiplied with; default 1.
    #[serde(default = "one")]
    pub scale: f64,
    /// From a measurement until it can be read; default: that of the metrics pipeline.
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

/// What a metric tells of its workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Signal {
    /// Units of work per second that arrive.
    Offered,
    /// Units of work per second that are done.
    Served,
    /// Units of work per second that are lost.
    Unserved,
    /// Units of work that wait.
    Backlog,
}

/// The object a metric describes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DescribedObject {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// A time during which metrics cannot be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outage {
    /// The custom or external metric that fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The resource that fails: `cpu` or `memory`. Without this and `metric`, everything fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// When it begins, from the start of the scenario.
    pub from: Millis,
    /// When it ends; default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Millis>,
    /// Share of the pods without a measurement, from 0 to 1; default: the API answers with an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// What the API says; default `the server is currently unable to handle the request`.
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
