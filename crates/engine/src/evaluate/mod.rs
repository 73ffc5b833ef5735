//! Step 2: each metric by itself becomes a proposal, or a failure that says why (docs/spec/hpa.md 4).

mod arithmetic;
mod pods;
mod totals;

use jiff::Timestamp;
use quantity::{Format, Quantity};
use serde::{Deserialize, Serialize};

pub use arithmetic::{
    Arithmetic, AssumedUsage, ClassifiedPod, NoChangeReason, PerPodArithmetic, PerReplicaArithmetic,
    PodCounts, PodGroup, TotalArithmetic,
};

use crate::CowStr;
use crate::config::ControllerConfig;
use crate::decision::ErrorClass;
use crate::observe::{MetricSamples, Observation};
use crate::report::CurrentMetricValue;
use crate::spec::{Metric, MetricId, MetricSource, MetricTarget, Tolerances};

/// What one metric said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// The metric's `type` in the API.
    #[serde(rename = "type")]
    pub kind: String,
    /// How messages name it.
    pub name: String,
    /// The proposal, or why there is none.
    pub result: Result<Proposal, Box<MetricFailure>>,
}

/// What one metric proposes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// How many replicas.
    pub replicas: i32,
    /// What the metric was found to be.
    pub reading: CurrentMetricValue,
    /// How the count came about.
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
    /// Whose fault it is.
    pub class: ErrorClass,
    /// How pods were sorted, where it got that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodCounts>,
}

/// What evaluating needs beside the metric.
pub(crate) struct Context<'a> {
    pub(crate) now: Timestamp,
    pub(crate) seen: &'a Observation,
    pub(crate) config: &'a ControllerConfig,
    pub(crate) tolerances: Tolerances,
    pub(crate) current: i32,
    pub(crate) status_replicas: i32,
    /// Whether each pod is to be recorded.
    pub(crate) detail: bool,
}

/// A failure before it is dressed up for its metric type.
struct Trouble {
    text: String,
    pods: Option<PodCounts>,
}

impl From<String> for Trouble {
    fn from(text: String) -> Self {
        Self { text, pods: None }
    }
}

const NO_SAMPLES: &str = "the metrics source gave an answer of another shape than the metric needs";

/// Evaluates metric number `index` of the spec.
pub(crate) fn evaluate(context: &Context<'_>, index: usize, metric: &Metric) -> Evaluation {
    let samples = context.seen.samples.get(index);
    let kind = metric.source.type_name().to_owned();
    let name = display_name(metric);
    let result = match &metric.source {
        MetricSource::Resource { name, of } => {
            let per_pod = pods::Request { resource: Some(name), container: None, of: *of };
            resource(context, samples, per_pod, metric.goal, "FailedGetResourceMetric", |res| {
                format!("failed to get {res} resource metric value: ")
            })
        }
        MetricSource::ContainerResource { name, container, of } => {
            let per_pod = pods::Request { resource: Some(name), container: Some(container), of: *of };
            resource(context, samples, per_pod, metric.goal, "FailedGetContainerResourceMetric", |_| {
                format!("failed to get {container} container metric value: ")
            })
        }
        MetricSource::Pods(id) => pods_metric(context, samples, id, metric.goal),
        MetricSource::Object { kind, name, metric: id, .. } => {
            object(context, samples, id, (kind, name), metric.goal)
        }
        MetricSource::External(id) => external(context, samples, id, metric.goal),
        MetricSource::Unknown(kind) => {
            let text = format!("unknown metric source type \"{kind}\"");
            let summary = text.clone();
            let reason = "InvalidMetricSourceType".into();
            Err(Box::new(MetricFailure { reason, summary, text, class: ErrorClass::Spec, pods: None }))
        }
    };
    Evaluation { kind, name, result }
}

/// How conditions and events name a metric (docs/spec/hpa.md 4.1 – 4.5).
fn display_name(metric: &Metric) -> String {
    let utilization = matches!(metric.goal, MetricTarget::Utilization(_));
    let share = |of: &crate::spec::UtilizationBase| match of {
        crate::spec::UtilizationBase::Requests => "request",
        crate::spec::UtilizationBase::Limits => "limit",
    };
    match &metric.source {
        MetricSource::Resource { name, of } if utilization => {
            format!("{name} resource utilization (percentage of {})", share(of))
        }
        MetricSource::ContainerResource { name, of, .. } if utilization => {
            format!("{name} container resource utilization (percentage of {})", share(of))
        }
        MetricSource::Resource { name, .. } | MetricSource::ContainerResource { name, .. } => {
            format!("{name} resource")
        }
        MetricSource::Pods(id) => format!("pods metric {}", id.name),
        // Kubernetes calls a per-replica object metric external (T23).
        MetricSource::Object { metric: id, .. } if matches!(metric.goal, MetricTarget::AverageValue(_)) => {
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
    samples: Option<&Result<MetricSamples, String>>,
    request: pods::Request<'_>,
    goal: MetricTarget,
    reason: &'static str,
    prefix: impl Fn(&str) -> String,
) -> Result<Proposal, Box<MetricFailure>> {
    let res = request.resource.unwrap_or_default();
    let fail = |trouble: Trouble, what: Option<&str>| {
        let text =
            what.map_or(trouble.text.clone(), |what| format!("failed to get {res} {what}: {}", trouble.text));
        failure(reason, format!("{}{text}", prefix(res)), text, trouble.pods)
    };
    let what = match goal {
        MetricTarget::AverageValue(_) => "usage",
        MetricTarget::Utilization(_) => "utilization",
        MetricTarget::Value(_) | MetricTarget::Missing => {
            let text = "invalid resource metric source: neither an average utilization target nor an average value \
                        (usage) target was set";
            return Err(fail(text.to_owned().into(), None));
        }
    };
    let found = per_pod_samples(samples, || format!("unable to get metrics for resource {res}"))
        .and_then(|samples| pods::evaluate(context, samples, request, goal));
    found.map_err(|trouble| fail(trouble, Some(what)))
}

/// Pods metrics (docs/spec/hpa.md 4.3).
fn pods_metric(
    context: &Context<'_>,
    samples: Option<&Result<MetricSamples, String>>,
    id: &MetricId,
    goal: MetricTarget,
) -> Result<Proposal, Box<MetricFailure>> {
    let request =
        pods::Request { resource: None, container: None, of: crate::spec::UtilizationBase::Requests };
    id.selector
        .as_ref()
        .map_err(|e| Trouble::from(e.clone()))
        .and_then(|_| per_pod_samples(samples, || format!("unable to get metric {}", id.name)))
        .and_then(|samples| pods::evaluate(context, samples, request, goal))
        .map_err(|t| {
            failure(
                "FailedGetPodsMetric",
                format!("failed to get pods metric value: {}", t.text),
                t.text,
                t.pods,
            )
        })
}

/// Object metrics (docs/spec/hpa.md 4.4).
fn object(
    context: &Context<'_>,
    samples: Option<&Result<MetricSamples, String>>,
    id: &MetricId,
    (kind, name): (&str, &str),
    goal: MetricTarget,
) -> Result<Proposal, Box<MetricFailure>> {
    let ns = &context.seen.spec.namespace;
    let fetched =
        || totals_of(samples, |e| format!("unable to get metric {}: {kind} on {ns} {name}/{e}", id.name));
    let mut prefix = "failed to get object metric value: ".to_owned();
    let result = match (&id.selector, goal) {
        (Err(e), _) => Err(e.clone()),
        (Ok(_), MetricTarget::Value(target)) => {
            fetched().and_then(|t| totals::against_total(context, totals::single(t), target))
        }
        (Ok(_), MetricTarget::AverageValue(target)) => {
            prefix = format!("{prefix}failed to get {} object metric: ", id.name);
            fetched().map(|t| totals::per_replica(context, totals::single(t), target, false))
        }
        (Ok(_), MetricTarget::Utilization(_) | MetricTarget::Missing) => {
            Err("invalid object metric source: neither a value target nor an average value target was set"
                .into())
        }
    };
    result.map_err(|text| failure("FailedGetObjectMetric", format!("{prefix}{text}"), text, None))
}

/// External metrics (docs/spec/hpa.md 4.5).
fn external(
    context: &Context<'_>,
    samples: Option<&Result<MetricSamples, String>>,
    id: &MetricId,
    goal: MetricTarget,
) -> Result<Proposal, Box<MetricFailure>> {
    let (ns, name) = (&context.seen.spec.namespace, &id.name);
    let fetched = || {
        id.selector.as_ref().map_err(Clone::clone)?;
        totals_of(samples, |e| {
            format!("unable to get external metric {ns}/{name}/{}: {e}", id.shown_selector)
        })
    };
    let mut prefix = format!("failed to get {name} external metric value: ");
    let result = match goal {
        MetricTarget::AverageValue(target) => {
            prefix = format!("{prefix}failed to get {name} external metric: ");
            fetched().map(|t| totals::per_replica(context, totals::running_sum(t), target, true))
        }
        MetricTarget::Value(target) => {
            prefix = format!("{prefix}failed to get external metric {name}: ");
            fetched().and_then(|t| totals::against_total(context, totals::sum(t), target))
        }
        MetricTarget::Utilization(_) | MetricTarget::Missing => {
            Err("invalid external metric source: neither a value target nor an average value target was set"
                .into())
        }
    };
    result.map_err(|text| failure("FailedGetExternalMetric", format!("{prefix}{text}"), text, None))
}

fn failure(
    reason: &'static str,
    summary: String,
    text: String,
    pods: Option<PodCounts>,
) -> Box<MetricFailure> {
    Box::new(MetricFailure { reason: reason.into(), text, summary, class: ErrorClass::Internal, pods })
}

fn per_pod_samples(
    samples: Option<&Result<MetricSamples, String>>,
    what: impl Fn() -> String,
) -> Result<&crate::observe::PodSamples, Trouble> {
    match samples {
        Some(Ok(MetricSamples::PerPod(samples))) => Ok(samples),
        Some(Err(error)) => Err(format!("{}: {error}", what()).into()),
        Some(Ok(_)) | None => Err(format!("{}: {NO_SAMPLES}", what()).into()),
    }
}

fn totals_of(
    samples: Option<&Result<MetricSamples, String>>,
    dress: impl Fn(&str) -> String,
) -> Result<&[i64], String> {
    match samples {
        Some(Ok(MetricSamples::Totals(totals))) => Ok(totals),
        Some(Err(error)) => Err(dress(error)),
        Some(Ok(_)) | None => Err(dress(NO_SAMPLES)),
    }
}

/// `milli` as the API shows it.
fn shown(milli: i64) -> Quantity {
    Quantity::from_milli(milli, Format::DecimalSi)
}
