//! `passes`: what each pass saw and decided, in short and in the order in which passes were made, with a cursor for what is new.
//!
//! ```text
//! /apis/decisions.plimsoll.dev/v1alpha1/passes                             all namespaces
//! /apis/decisions.plimsoll.dev/v1alpha1/namespaces/{ns}/passes             … a namespace
//!     ?fieldSelector=metadata.name=hpa.web                                 … an autoscaler
//!     ?after=CURSOR      only passes that were made after an earlier answer, which gave the cursor
//!     ?since=TIME&until=TIME&limit=NUMBER
//!     ?detail=changed    with the whole record of each pass that decided something else than the pass before it
//!     ?detail=full       each with its whole record
//! ```

use engine::evaluate::{Arithmetic, Evaluation};
use engine::explain::short_name;
use engine::normalize::{ScalingLimit, StabilizationHold};
use engine::spec::{Metric, MetricSource, MetricTarget};
use engine::trigger_poll::{PolledTrigger, TriggerMetric};
use engine::{Decision, MilliValue, ScaleOutcome};
use jiff::Timestamp;
use quantity::{Format, Quantity};
use serde::{Deserialize, Serialize};

use super::{DecisionMode, DecisionRecord};

/// How many passes one answer has at most.
pub const MAX_PASSES: usize = 10_000;

/// Selects passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassQuery {
    /// Only of this namespace.
    pub namespace: Option<String>,
    /// Only of this autoscaler: `hpa.web`.
    pub name: Option<String>,
    /// Only those after the answer that had this cursor.
    pub after: Option<String>,
    /// Only from this time on.
    pub since: Option<Timestamp>,
    /// Only until this time.
    pub until: Option<Timestamp>,
    /// At most so many, the first ones; at most [`MAX_PASSES`].
    pub limit: Option<usize>,
    /// Which passes have their whole record.
    pub detail: PassDetail,
}

/// Which passes of an answer have their whole record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PassDetail {
    /// None.
    #[default]
    Short,
    /// Those that decided something else than the pass before them.
    Changed,
    /// All.
    Full,
}

/// The cursor is not one of this process: it was restarted, or another replica answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the cursor is not known here: the process was restarted or another replica answers; ask again without `after`"
)]
pub struct UnknownCursor;

/// Passes in the order in which they were made.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PassList {
    /// `PassList`.
    pub kind: String,
    /// [`super::API_VERSION`].
    pub api_version: String,
    /// The cursor.
    pub metadata: PassListMeta,
    /// The passes.
    pub items: Vec<PassItem>,
}

/// Where a list of passes ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PassListMeta {
    /// To be sent as `after` with the next request.
    pub cursor: String,
    /// Whether there are more passes already.
    pub remaining: bool,
    /// Whether passes after the given cursor were removed before they were read.
    pub lost: bool,
}

/// One pass in short.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PassItem {
    /// Namespace.
    pub namespace: String,
    /// Kind (in short), a dot, name: `hpa.web`.
    pub name: String,
    /// The time of the pass.
    pub at: Timestamp,
    /// Mode of the controller for this object.
    pub mode: DecisionMode,
    /// The replica count that was found; absent if it could not be read.
    pub current: Option<i32>,
    /// The desired replica count.
    pub desired: i32,
    /// The lower bound.
    pub min: i32,
    /// The upper bound.
    pub max: i32,
    /// `failed`, `kept`, `pending`, `scaled`, `dryRun` or `writeFailed`.
    pub outcome: String,
    /// Why, in one sentence.
    pub reason: String,
    /// What kept the count from the recommendation: `downWindow`, `upWindow`, `tooFew`, `tooMany`, `up` or `down`.
    pub limit: Option<String>,
    /// The error of the pass.
    pub error: Option<String>,
    /// Whether the replica count was changed.
    pub changed: bool,
    /// The metrics, in the order of the spec; of a ScaledObject with an HPA and of a ScaledJob, those of its triggers.
    pub metrics: Vec<PassMetric>,
    /// The whole record, with `detail=full` or `detail=changed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<Box<DecisionRecord>>,
}

/// The result of one metric in a pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PassMetric {
    /// The short name: `cpu`.
    pub name: String,
    /// The measured value: `61%` or `305m`.
    pub value: Option<String>,
    /// The target in the same unit.
    pub target: Option<String>,
    /// Value divided by target.
    pub ratio: Option<f64>,
    /// The proposed replica count.
    pub proposal: Option<i32>,
    /// Why there is no proposal.
    pub error: Option<String>,
}

impl PassItem {
    /// A record of one pass in short.
    pub fn of(record: &DecisionRecord) -> Self {
        let (spec, decision) = (&record.spec, &record.decision);
        let metric = |(metric, evaluation): (&Metric, &Evaluation)| PassMetric::of(metric, evaluation);
        let mut metrics: Vec<PassMetric> =
            spec.metrics.iter().zip(&decision.evaluations).map(metric).collect();
        if spec.metrics.is_empty() {
            let triggers = record.round.iter().flat_map(|round| &round.triggers);
            metrics.extend(triggers.flat_map(PassMetric::of_trigger));
        }
        Self {
            namespace: record.metadata.namespace.clone(),
            name: record.metadata.name.clone(),
            at: decision.at,
            mode: record.mode,
            current: decision.scale.as_ref().map(|scale| scale.spec_replicas.get()),
            desired: decision.desired.get(),
            min: spec.min.get(),
            max: spec.max.get(),
            outcome: outcome(&decision.outcome).to_owned(),
            reason: record.sentence(),
            limit: limit(decision).map(str::to_owned),
            error: decision.error.as_ref().map(|error| error.text.clone()),
            changed: decision.outcome == ScaleOutcome::Scaled,
            metrics,
            record: None,
        }
    }
}

impl PassMetric {
    fn of_trigger(trigger: &PolledTrigger) -> Vec<Self> {
        let amount = |value: MilliValue| Quantity::from_milli(value.get(), Format::DecimalSi).to_string();
        let failed = trigger.failure.as_ref().map(|error| Self {
            name: trigger.label().to_owned(),
            error: Some(error.clone()),
            ..Self::default()
        });
        let metric = |metric: &TriggerMetric| Self {
            name: if trigger.metrics.len() == 1 { trigger.label() } else { &metric.metric }.to_owned(),
            value: metric.value.map(amount),
            target: metric.target.map(amount),
            error: metric.failure.clone(),
            ..Self::default()
        };
        failed.into_iter().chain(trigger.metrics.iter().map(metric)).collect()
    }

    fn of(metric: &Metric, evaluation: &Evaluation) -> Self {
        let new = Self { name: short_name(metric), target: target(metric), ..Self::default() };
        match &evaluation.result {
            Ok(proposal) => {
                let ratio = match &proposal.sum {
                    Arithmetic::PerPod(sum) => Some(sum.ratio),
                    Arithmetic::Total(sum) => Some(sum.ratio),
                    Arithmetic::PerReplica(sum) => sum.ratio,
                };
                let reading = &proposal.reading;
                let percent = reading.average_utilization.map(|percent| format!("{percent}%"));
                let amount =
                    reading.average_value.as_ref().or(reading.value.as_ref()).map(ToString::to_string);
                Self {
                    value: percent.or(amount),
                    // JSON has no infinity.
                    ratio: ratio.filter(|ratio| ratio.is_finite()),
                    proposal: Some(proposal.replicas.get()),
                    ..new
                }
            }
            Err(failure) => Self { error: Some(failure.text.clone()), ..new },
        }
    }
}

fn target(metric: &Metric) -> Option<String> {
    let memory = matches!(&metric.source, MetricSource::Resource { name, .. } | MetricSource::ContainerResource { name, .. } if name == "memory");
    let format = if memory { Format::BinarySi } else { Format::DecimalSi };
    let amount = |value: MilliValue| Some(Quantity::from_milli(value.get(), format).to_string());
    match metric.target {
        MetricTarget::Utilization(percent) => Some(format!("{percent}%")),
        MetricTarget::AverageValue(value) | MetricTarget::Value(value) => amount(value),
        MetricTarget::Missing => None,
    }
}

fn outcome(outcome: &ScaleOutcome) -> &'static str {
    match outcome {
        ScaleOutcome::Failed => "failed",
        ScaleOutcome::Kept => "kept",
        ScaleOutcome::Pending => "pending",
        ScaleOutcome::Scaled => "scaled",
        ScaleOutcome::DryRun => "dryRun",
        ScaleOutcome::WriteFailed(_) => "writeFailed",
    }
}

fn limit(decision: &Decision) -> Option<&'static str> {
    let normalized = decision.normalized.as_ref()?;
    match (normalized.limited.limit, normalized.stabilized.hold) {
        (ScalingLimit::TooFew, _) => Some("tooFew"),
        (ScalingLimit::TooMany, _) => Some("tooMany"),
        (ScalingLimit::Up, _) => Some("up"),
        (ScalingLimit::Down, _) => Some("down"),
        (ScalingLimit::Within, StabilizationHold::Down) => Some("downWindow"),
        (ScalingLimit::Within, StabilizationHold::Up) => Some("upWindow"),
        (ScalingLimit::Within, StabilizationHold::None) => None,
    }
}
