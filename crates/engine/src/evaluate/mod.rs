//! Step 2: evaluates each metric by itself. The result is a proposal or a failure (docs/spec/hpa.md 4).

mod arithmetic;
mod pod_group;
mod pods;
mod requests;
mod totals;
mod uncounted;

use jiff::Timestamp;
use quantity::{Format, Quantity};
use serde::{Deserialize, Serialize};

pub use arithmetic::{
    Arithmetic, AssumedUsage, ClassifiedPod, NoChangeReason, PerPodArithmetic, PerReplicaArithmetic,
    PodCounts, TotalArithmetic,
};
pub use pod_group::PodGroup;
pub use uncounted::{MAX_UNCOUNTED_PODS, UncountedPod, UncountedReason};

use crate::CowStr;
use crate::config::ControllerConfig;
use crate::detail::DecisionDetail;
use crate::error::{ErrorClass, RecordedError};
use crate::failure::{FailureCause, RequestFailure};
use crate::observe::{MetricSamples, Observation, PodSamples};
use crate::profile::ObjectMetricFailure;
use crate::report::CurrentMetricValue;
use crate::spec::{Metric, MetricId, MetricSource, MetricTarget, Tolerances, UtilizationBase};
use crate::units::{MilliValue, Replicas};

/// The result of evaluating one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// The metric's `type` in the API.
    #[serde(rename = "type")]
    pub kind: String,
    /// Name of the metric in messages.
    pub name: String,
    /// The proposal, or the reason why there is none.
    pub result: Result<Proposal, Box<MetricFailure>>,
}

/// The proposal of one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// Proposed replicas.
    pub replicas: Replicas,
    /// Current value of the metric, for the status.
    pub reading: CurrentMetricValue,
    /// The calculation that led to the count.
    pub sum: Arithmetic,
}

/// Why a metric has no proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricFailure {
    /// Reason of the condition and the event.
    pub reason: CowStr,
    /// Text of the event, and end of the condition's message.
    pub text: String,
    /// Text in the summary of all failures.
    pub summary: String,
    /// Class of the error.
    pub class: ErrorClass,
    /// Number of pods in each group, if pods were classified before the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodCounts>,
    /// What failed, for a diagnosis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<FailureCause>,
    /// Some of the pods that were not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<UncountedPod>,
}

/// Input of an evaluation other than the metric itself.
pub(crate) struct Context<'a> {
    pub(crate) now: Timestamp,
    pub(crate) seen: &'a Observation,
    pub(crate) config: &'a ControllerConfig,
    pub(crate) tolerances: Tolerances,
    pub(crate) current: Replicas,
    pub(crate) status_replicas: Replicas,
    /// Which pods are recorded with their group.
    pub(crate) detail: DecisionDetail,
}

/// An error text without the prefixes that depend on the type of the metric. The texts are those of Kubernetes.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
struct EvaluationError {
    text: String,
    pods: Option<PodCounts>,
    cause: Option<Box<FailureCause>>,
    uncounted: Vec<UncountedPod>,
}

impl EvaluationError {
    fn with_cause(self, cause: FailureCause) -> Self {
        Self { cause: Some(Box::new(cause)), ..self }
    }

    /// The failure that is reported, with the reason and texts of its type of metric.
    fn into_failure(self, reason: &'static str, text: String, summary: String) -> Box<MetricFailure> {
        Box::new(MetricFailure {
            reason: reason.into(),
            text,
            summary,
            class: ErrorClass::Internal,
            pods: self.pods,
            cause: self.cause.map(|cause| *cause),
            uncounted: self.uncounted,
        })
    }
}

impl From<String> for EvaluationError {
    fn from(text: String) -> Self {
        Self { text, pods: None, cause: None, uncounted: Vec::new() }
    }
}

/// An invalid selector of a metric.
impl From<&RecordedError> for EvaluationError {
    fn from(error: &RecordedError) -> Self {
        Self::from(error.text()).with_cause(FailureCause::InvalidSelector)
    }
}

impl From<&str> for EvaluationError {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Error text for samples whose shape does not fit the metric; only a defect of the caller leads to it.
const WRONG_SAMPLES: &str = "the metrics source gave an answer of another shape than the metric needs";

/// Evaluates metric number `index` of the spec.
pub(crate) fn evaluate(context: &Context<'_>, index: usize, metric: &Metric) -> Evaluation {
    let samples = context.seen.samples.get(index);
    let kind = metric.source.type_name().to_owned();
    let name = display_name(metric);
    let result = match &metric.source {
        MetricSource::Resource { name, of } => {
            let query = pods::PodQuery { resource: Some(name), container: None, of: *of };
            resource(context, samples, query, metric.target, "FailedGetResourceMetric", |res| {
                format!("failed to get {res} resource metric value: ")
            })
        }
        MetricSource::ContainerResource { name, container, of } => {
            let query = pods::PodQuery { resource: Some(name), container: Some(container), of: *of };
            resource(context, samples, query, metric.target, "FailedGetContainerResourceMetric", |_| {
                format!("failed to get {container} container metric value: ")
            })
        }
        MetricSource::Pods(id) => pods_metric(context, samples, id, metric.target),
        MetricSource::Object { kind, name, metric: id, .. } => {
            object(context, samples, id, (kind, name), metric.target)
        }
        MetricSource::External(id) => external(context, samples, id, metric),
        MetricSource::Unknown(kind) => {
            let text = format!("unknown metric source type \"{kind}\"");
            let summary = text.clone();
            let reason = "InvalidMetricSourceType".into();
            Err(Box::new(MetricFailure {
                reason,
                summary,
                text,
                class: ErrorClass::Spec,
                pods: None,
                cause: Some(FailureCause::UnknownSourceType),
                uncounted: Vec::new(),
            }))
        }
    };
    Evaluation { kind, name, result }
}

/// The name of a metric in conditions and events (docs/spec/hpa.md 4.1 – 4.5).
fn display_name(metric: &Metric) -> String {
    let utilization = matches!(metric.target, MetricTarget::Utilization(_));
    let base = |of: &UtilizationBase| match of {
        UtilizationBase::Requests => "request",
        UtilizationBase::Limits => "limit",
    };
    match &metric.source {
        MetricSource::Resource { name, of } if utilization => {
            format!("{name} resource utilization (percentage of {})", base(of))
        }
        MetricSource::ContainerResource { name, of, .. } if utilization => {
            format!("{name} container resource utilization (percentage of {})", base(of))
        }
        MetricSource::Resource { name, .. } | MetricSource::ContainerResource { name, .. } => {
            format!("{name} resource")
        }
        MetricSource::Pods(id) => format!("pods metric {}", id.name),
        // Kubernetes calls a per-replica object metric external (T23).
        MetricSource::Object { metric: id, .. } if matches!(metric.target, MetricTarget::AverageValue(_)) => {
            external_name(id)
        }
        MetricSource::Object { kind, metric: id, .. } => format!("{kind} metric {}", id.name),
        MetricSource::External(id) => external_name(id),
        MetricSource::Unknown(kind) => kind.clone(),
    }
}

fn external_name(id: &MetricId) -> String {
    format!("external metric {}({})", id.name, id.shown_selector)
}

/// Resource and ContainerResource (docs/spec/hpa.md 4.1, 4.2).
fn resource(
    context: &Context<'_>,
    samples: Option<&Result<MetricSamples, RecordedError>>,
    request: pods::PodQuery<'_>,
    target: MetricTarget,
    reason: &'static str,
    prefix: impl Fn(&str) -> String,
) -> Result<Proposal, Box<MetricFailure>> {
    let res = request.resource.unwrap_or_default();
    let fail = |error: EvaluationError, what: Option<&str>| {
        let text =
            what.map_or(error.text.clone(), |what| format!("failed to get {res} {what}: {}", error.text));
        let summary = format!("{}{text}", prefix(res));
        error.into_failure(reason, text, summary)
    };
    let what = match target {
        MetricTarget::AverageValue(_) => "usage",
        MetricTarget::Utilization(_) => "utilization",
        MetricTarget::Value(_) | MetricTarget::Missing => {
            let text = "invalid resource metric source: neither an average utilization target nor an average value \
                        (usage) target was set";
            return Err(fail(EvaluationError::from(text).with_cause(FailureCause::InvalidTarget), None));
        }
    };
    let proposal = per_pod_samples(samples, || format!("unable to get metrics for resource {res}"))
        .and_then(|samples| pods::evaluate(context, samples, request, target));
    proposal.map_err(|error| {
        // The metrics API has no samples of these pods: which pods these are says more than its empty list.
        let is_empty = error.cause.as_deref() == Some(&FailureCause::Request(RequestFailure::NoItems));
        let error = if is_empty { pods::without_samples(context, request, error) } else { error };
        fail(error, Some(what))
    })
}

/// Pods metrics (docs/spec/hpa.md 4.3).
fn pods_metric(
    context: &Context<'_>,
    samples: Option<&Result<MetricSamples, RecordedError>>,
    id: &MetricId,
    target: MetricTarget,
) -> Result<Proposal, Box<MetricFailure>> {
    let request = pods::PodQuery { resource: None, container: None, of: UtilizationBase::Requests };
    id.selector
        .as_ref()
        .map_err(EvaluationError::from)
        .and_then(|_| per_pod_samples(samples, || format!("unable to get metric {}", id.name)))
        .and_then(|samples| pods::evaluate(context, samples, request, target))
        .map_err(|error| {
            let summary = format!("failed to get pods metric value: {}", error.text);
            let text = error.text.clone();
            error.into_failure("FailedGetPodsMetric", text, summary)
        })
}

/// Object metrics (docs/spec/hpa.md 4.4).
fn object(
    context: &Context<'_>,
    samples: Option<&Result<MetricSamples, RecordedError>>,
    id: &MetricId,
    (kind, name): (&str, &str),
    target: MetricTarget,
) -> Result<Proposal, Box<MetricFailure>> {
    let ns = &context.seen.spec.namespace;
    let fetched = || {
        totals_of(samples, |e| {
            let failure = ObjectMetricFailure { metric: &id.name, kind, namespace: ns, name, error: e };
            (context.config.profile().object_metric_failure)(&failure)
        })
    };
    let mut prefix = "failed to get object metric value: ".to_owned();
    let result = match (&id.selector, target) {
        (Err(e), _) => Err(e.into()),
        (Ok(_), MetricTarget::Value(target)) => {
            fetched().and_then(|t| totals::against_total(context, totals::single(t), target))
        }
        (Ok(_), MetricTarget::AverageValue(target)) => {
            prefix = format!("{prefix}failed to get {} object metric: ", id.name);
            fetched().map(|t| totals::per_replica(context, totals::single(t), target, false))
        }
        (Ok(_), MetricTarget::Utilization(_) | MetricTarget::Missing) => {
            let text =
                "invalid object metric source: neither a value target nor an average value target was set";
            Err(EvaluationError::from(text).with_cause(FailureCause::InvalidTarget))
        }
    };
    result.map_err(|e: EvaluationError| {
        let (text, summary) = (e.text.clone(), format!("{prefix}{e}"));
        e.into_failure("FailedGetObjectMetric", text, summary)
    })
}

/// External metrics (docs/spec/hpa.md 4.5).
fn external(
    context: &Context<'_>,
    samples: Option<&Result<MetricSamples, RecordedError>>,
    id: &MetricId,
    metric: &Metric,
) -> Result<Proposal, Box<MetricFailure>> {
    let (ns, name) = (&context.seen.spec.namespace, &id.name);
    let fetched = || {
        id.selector.as_ref()?;
        totals_of(samples, |e| {
            format!("unable to get external metric {ns}/{name}/{}: {e}", id.shown_selector)
        })
    };
    let mut prefix = format!("failed to get {name} external metric value: ");
    let result = match metric.target {
        MetricTarget::AverageValue(target) => {
            prefix = format!("{prefix}failed to get {name} external metric: ");
            let usage = |t| totals::aggregated(metric.series, t).unwrap_or_else(|| totals::running_sum(t));
            fetched().map(|t| totals::per_replica(context, usage(t), target, true))
        }
        MetricTarget::Value(target) => {
            prefix = format!("{prefix}failed to get external metric {name}: ");
            let usage = |t| totals::aggregated(metric.series, t).unwrap_or_else(|| totals::sum(t));
            fetched().and_then(|t| totals::against_total(context, usage(t), target))
        }
        MetricTarget::Utilization(_) | MetricTarget::Missing => {
            let text =
                "invalid external metric source: neither a value target nor an average value target was set";
            Err(EvaluationError::from(text).with_cause(FailureCause::InvalidTarget))
        }
    };
    result.map_err(|e: EvaluationError| {
        let (text, summary) = (e.text.clone(), format!("{prefix}{e}"));
        e.into_failure("FailedGetExternalMetric", text, summary)
    })
}

/// An error of the request for the samples.
fn unfetched(text: String, error: &RecordedError) -> EvaluationError {
    let cause = error.failure().cloned().map(FailureCause::Request);
    EvaluationError { cause: cause.map(Box::new), ..text.into() }
}

fn per_pod_samples(
    samples: Option<&Result<MetricSamples, RecordedError>>,
    what: impl Fn() -> String,
) -> Result<&PodSamples, EvaluationError> {
    match samples {
        Some(Ok(MetricSamples::PerPod(samples))) => Ok(samples),
        Some(Err(error)) => Err(unfetched(format!("{}: {error}", what()), error)),
        Some(Ok(_)) | None => Err(format!("{}: {WRONG_SAMPLES}", what()).into()),
    }
}

fn totals_of(
    samples: Option<&Result<MetricSamples, RecordedError>>,
    describe: impl Fn(&str) -> String,
) -> Result<&[MilliValue], EvaluationError> {
    match samples {
        Some(Ok(MetricSamples::Totals(totals))) => Ok(totals),
        Some(Err(error)) => Err(unfetched(describe(error.text()), error)),
        Some(Ok(_)) | None => Err(describe(WRONG_SAMPLES).into()),
    }
}

/// The quantity that the status shows for `value`.
fn shown(value: MilliValue) -> Quantity {
    Quantity::from_milli(value.get(), Format::DecimalSi)
}
