//! The shape of a scenario record (see the vectors' README).

use api::autoscaling::v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec};
use api::metrics::{ExternalMetricValueList, MetricValueList, PodMetricsList};
use api::pod::Pod;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RecordedScenario {
    pub(super) base: Timestamp,
    #[serde(default)]
    pub(super) direct_scale: bool,
    pub(super) config: Config,
    pub(super) hpas: Vec<HorizontalPodAutoscaler>,
    pub(super) pod_objects: Vec<Pod>,
    pub(super) steps: Vec<RecordedStep>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Config {
    pub(super) downscale_stabilization_seconds: f64,
    pub(super) tolerance: f64,
    pub(super) cpu_initialization_period_seconds: f64,
    pub(super) initial_readiness_delay_seconds: f64,
    pub(super) feature_gates: FeatureGates,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct FeatureGates {
    #[serde(rename = "HPAScaleToZero")]
    pub(super) scale_to_zero: bool,
    #[serde(rename = "HPAConfigurableTolerance")]
    pub(super) configurable_tolerance: bool,
    pub(super) pod_level_resources: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RecordedStep {
    pub(super) advance: f64,
    pub(super) hpa: usize,
    #[serde(default)]
    pub(super) ops: Vec<Op>,
    pub(super) scale: RecordedScale,
    pub(super) pods: Vec<usize>,
    #[serde(default)]
    pub(super) metrics: Metrics,
    pub(super) status_update_error: Option<ApiError>,
    pub(super) expect: Value,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "camelCase")]
pub(super) enum Op {
    Spec { hpa: usize, spec: Box<HorizontalPodAutoscalerSpec> },
    Delete { hpa: usize },
    Create { hpa: usize, object: Box<HorizontalPodAutoscaler> },
    Restart {},
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub(super) struct RecordedScale {
    pub(super) spec_replicas: i32,
    pub(super) status_replicas: i32,
    pub(super) selector: String,
    pub(super) error: Option<ApiError>,
    pub(super) update_errors: Vec<ApiError>,
    pub(super) refetch_errors: Vec<ApiError>,
}

#[derive(Clone, Deserialize)]
pub(super) struct ApiError {
    pub(super) code: u16,
    pub(super) reason: String,
    pub(super) message: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Metrics {
    pub(super) resource: Option<Resource>,
    pub(super) custom: Vec<Custom>,
    pub(super) external: Vec<External>,
}

#[derive(Deserialize)]
pub(super) struct Resource {
    #[serde(flatten)]
    pub(super) list: PodMetricsList,
    pub(super) error: Option<ApiError>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Custom {
    pub(super) resource: String,
    pub(super) name: String,
    pub(super) metric: String,
    #[serde(default)]
    pub(super) metric_selector: String,
    #[serde(flatten)]
    pub(super) list: MetricValueList,
    pub(super) error: Option<ApiError>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct External {
    pub(super) metric: String,
    #[serde(default)]
    pub(super) metric_selector: String,
    #[serde(flatten)]
    pub(super) list: ExternalMetricValueList,
    pub(super) error: Option<ApiError>,
}
