//! Metrics with one sample per pod: Resource, ContainerResource and Pods (docs/spec/hpa.md 5.3 – 5.6).
//!
//! One loop over the pods computes all sums, also those of the second calculation, without allocating.

use std::sync::Arc;

use jiff::Timestamp;
use quantity::{Format, Quantity};

use super::requests::{RequestedResource, absent_container};
use super::{
    Arithmetic, AssumedUsage, ClassifiedPod, Context, EvaluationError, MAX_UNCOUNTED_PODS, NoChangeReason,
    PerPodArithmetic, PodCounts, PodGroup, Proposal, UncountedPod,
};
use crate::detail::DecisionDetail;
use crate::failure::FailureCause;
use crate::observe::{PodSamples, Sample};
use crate::pod::{ConditionStatus, Pod, PodPhase, PodTemplate};
use crate::report::CurrentMetricValue;
use crate::spec::{MetricTarget, UtilizationBase};
use crate::units::{MilliValue, Replicas};

/// Which value of each pod is evaluated.
#[derive(Clone, Copy)]
pub(super) struct PodQuery<'a> {
    /// Resource; absent for custom metrics, for which readiness does not matter.
    pub(super) resource: Option<&'a str>,
    /// Container; absent for the whole pod.
    pub(super) container: Option<&'a str>,
    /// Base of utilization percentages.
    pub(super) of: UtilizationBase,
}

/// Sums over all pods. They are wide enough never to overflow, where Kubernetes would wrap.
#[derive(Default)]
struct Sums {
    tally: PodCounts,
    usage: i128,
    ready_requests: i128,
    missing_requests: i128,
    missing_fill: i128,
    unready_requests: i128,
    stray_usage: i128,
}

/// Time limits for the readiness of pods, computed once per metric.
struct ReadinessLimits {
    is_cpu: bool,
    initializing_since: Timestamp,
    readiness_delay: jiff::SignedDuration,
}

/// Computes average or utilization over pods and the proposed count (docs/spec/hpa.md 5.4, 5.5).
pub(super) fn evaluate(
    context: &Context<'_>,
    samples: &PodSamples,
    request: PodQuery<'_>,
    target: MetricTarget,
) -> Result<Proposal, EvaluationError> {
    let pods = &context.seen.pods;
    if pods.is_empty() {
        let error = EvaluationError::from("no pods returned by selector while calculating replica count");
        return Err(error.with_cause(FailureCause::NoPods));
    }
    let percent = if let MetricTarget::Utilization(percent) = target { Some(percent) } else { None };
    let Classified { sums, missing_request, detail, uncounted, oldest } =
        classify(context, samples, request, percent);
    if sums.tally.ready + sums.tally.stray == 0 {
        let text = "did not receive metrics for targeted pods (pods might be unready)";
        let cause = absent_container(pods, request.container).unwrap_or(FailureCause::NoSamples);
        return Err(EvaluationError {
            pods: Some(sums.tally),
            uncounted,
            ..EvaluationError::from(text).with_cause(cause)
        });
    }
    if let Some(missing) = missing_request {
        return Err(EvaluationError { pods: Some(sums.tally), uncounted, ..missing });
    }
    let calculate = |with: IncludedPods| match target {
        MetricTarget::Utilization(target) => sums.utilization(target, with),
        MetricTarget::AverageValue(target) | MetricTarget::Value(target) => Some(sums.average(target, with)),
        MetricTarget::Missing => None,
    };
    let no_pods = || EvaluationError {
        pods: Some(sums.tally),
        ..EvaluationError::from("no metrics returned matched known pods")
            .with_cause(FailureCause::ZeroRequests)
    };
    let first = calculate(IncludedPods::default()).ok_or_else(no_pods)?;

    let target = match target {
        MetricTarget::Utilization(t) => i64::from(t),
        MetricTarget::AverageValue(t) | MetricTarget::Value(t) => t.get(),
        MetricTarget::Missing => 0,
    };
    let mut sum = PerPodArithmetic {
        pods: sums.tally,
        usage: MilliValue::clamp(first.usage),
        requests: first.requests.map(MilliValue::clamp),
        found: first.found,
        target,
        ratio: first.ratio,
        assumed: None,
        count: sums.tally.ready,
        kept: None,
        detail,
        uncounted,
        oldest,
    };
    let replicas = decide(context, &sums, &calculate, &first, &mut sum).ok_or_else(no_pods)?;
    Ok(Proposal { replicas, reading: reading(request, percent, &first), sum: Arithmetic::PerPod(sum) })
}

/// Adds to `error` which pods have no sample, if none has one.
pub(super) fn without_samples(
    context: &Context<'_>,
    request: PodQuery<'_>,
    error: EvaluationError,
) -> EvaluationError {
    let pods = &context.seen.pods;
    let Classified { sums, uncounted, .. } = classify(context, &PodSamples::default(), request, None);
    let cause = if pods.is_empty() {
        FailureCause::NoPods
    } else {
        absent_container(pods, request.container).unwrap_or(FailureCause::NoSamples)
    };
    EvaluationError { pods: Some(sums.tally), uncounted, ..error }.with_cause(cause)
}

/// Computes the count, with a second calculation if some pods have no sample or are not ready.
fn decide(
    context: &Context<'_>,
    sums: &Sums,
    calculate: &impl Fn(IncludedPods) -> Option<Calculation>,
    first: &Calculation,
    sum: &mut PerPodArithmetic,
) -> Option<Replicas> {
    let current = context.current;
    let keep = |sum: &mut PerPodArithmetic, why| {
        sum.kept = Some(why);
        Some(current)
    };
    let ratio = first.ratio;
    let growing_with_unready = sums.tally.unready > 0 && ratio > 1.0;
    if !growing_with_unready && sums.tally.missing == 0 {
        if context.tolerances.contain(ratio) {
            return keep(sum, NoChangeReason::WithinTolerance);
        }
        return Some(Replicas::ceil(ratio * sums.tally.ready as f64));
    }
    // False at a ratio of exactly 1, and for a ratio that is not a number.
    let off_target = ratio.partial_cmp(&1.0).is_some_and(std::cmp::Ordering::is_ne);
    let with = IncludedPods { missing: off_target, full: ratio < 1.0, unready: growing_with_unready };
    let second = calculate(with)?;
    sum.assumed = Some(AssumedUsage {
        missing: if with.missing { sums.tally.missing } else { 0 },
        missing_usage: if with.full { MilliValue::clamp(second.filled) } else { MilliValue::default() },
        unready: if with.unready { sums.tally.unready } else { 0 },
        usage: MilliValue::clamp(second.usage),
        requests: second.requests.map(MilliValue::clamp),
        found: second.found,
        ratio: second.ratio,
    });
    sum.count = second.count;
    if context.tolerances.contain(second.ratio) {
        return keep(sum, NoChangeReason::WithinTolerance);
    }
    if (ratio < 1.0 && second.ratio > 1.0) || (ratio > 1.0 && second.ratio < 1.0) {
        return keep(sum, NoChangeReason::DirectionFlips);
    }
    let count = Replicas::ceil(second.ratio * second.count as f64);
    if (second.ratio < 1.0 && count > current) || (second.ratio > 1.0 && count < current) {
        return keep(sum, NoChangeReason::CountFlips);
    }
    Some(count)
}

/// Which pods a calculation includes in addition to the ready ones.
#[derive(Clone, Copy, Default)]
struct IncludedPods {
    /// Pods without a sample.
    missing: bool,
    /// Whether pods without a sample count as fully used; otherwise they count as idle.
    full: bool,
    /// Unready pods, which count as idle.
    unready: bool,
}

/// One calculation of the ratio.
struct Calculation {
    usage: i128,
    requests: Option<i128>,
    filled: i128,
    found: i64,
    /// Average over the ready pods, for the status.
    average: i64,
    ratio: f64,
    /// Number of samples in the calculation, including those of pods that do not exist (T13).
    count: i64,
}

impl Sums {
    fn participants(&self, with: IncludedPods) -> i64 {
        let t = &self.tally;
        t.ready
            + t.stray
            + if with.missing { t.missing } else { 0 }
            + if with.unready { t.unready } else { 0 }
    }

    /// Utilization in percent of the requests, rounded down before the ratio is computed (T2).
    fn utilization(&self, target: i32, with: IncludedPods) -> Option<Calculation> {
        let filled = if with.full { self.missing_fill } else { 0 };
        let usage = self.usage + filled;
        let requests = self.ready_requests
            + if with.missing { self.missing_requests } else { 0 }
            + if with.unready { self.unready_requests } else { 0 };
        let percent = clamp32((usage * 100).checked_div(requests)?);
        Some(Calculation {
            usage,
            requests: Some(requests),
            filled,
            found: i64::from(percent),
            average: clamp(usage.checked_div(i128::from(self.tally.ready)).unwrap_or_default()),
            ratio: f64::from(percent) / f64::from(target),
            count: self.participants(with),
        })
    }

    /// Plain average. It includes samples of pods that do not exist.
    fn average(&self, target: MilliValue, with: IncludedPods) -> Calculation {
        let filled = if with.full { i128::from(target.get()) * i128::from(self.tally.missing) } else { 0 };
        let usage = self.usage + self.stray_usage + filled;
        let count = self.participants(with);
        let average = clamp(usage.checked_div(i128::from(count)).unwrap_or_default());
        let ratio = average as f64 / target.as_f64();
        Calculation { usage, requests: None, filled, found: average, average, ratio, count }
    }
}

/// The result of [`classify`].
struct Classified {
    sums: Sums,
    /// The error of the first pod without a request.
    missing_request: Option<EvaluationError>,
    detail: Option<Vec<ClassifiedPod>>,
    uncounted: Vec<UncountedPod>,
    /// The oldest sample that counts.
    oldest: Option<Timestamp>,
}

/// Puts every pod into its group and computes the sums.
fn classify(
    context: &Context<'_>,
    samples: &PodSamples,
    request: PodQuery<'_>,
    percent: Option<i32>,
) -> Classified {
    let limits = ReadinessLimits::of(context, request.resource);
    let mut sums = Sums::default();
    let mut missing_request = None;
    let mut detail = (context.detail == DecisionDetail::Pods).then(Vec::new);
    let mut uncounted = Vec::new();
    let mut oldest: Option<Timestamp> = None;
    let mut last_shape: Option<(&Arc<PodTemplate>, MilliValue)> = None;
    let fill_percent = i128::from(percent.unwrap_or_default().max(100));
    for (index, pod) in context.seen.pods.iter().enumerate() {
        let sample = samples.by_pod.get(index).copied().flatten();
        let amount = match (percent, last_shape) {
            (None, _) => MilliValue::default(),
            (Some(_), Some((shape, amount))) if Arc::ptr_eq(shape, &pod.shape) => amount,
            (Some(_), _) => match requested(context, pod, request) {
                Ok(amount) => {
                    last_shape = Some((&pod.shape, amount));
                    amount
                }
                Err(missing) => {
                    missing_request.get_or_insert(missing);
                    MilliValue::default()
                }
            },
        };
        let group = limits.group(pod, sample.as_ref());
        sums.add(group, sample.map_or(MilliValue::default(), |s| s.milli), amount, fill_percent);
        if context.detail != DecisionDetail::Counts {
            if let Some(sample) = sample.filter(|_| group == PodGroup::Ready) {
                oldest = Some(oldest.map_or(sample.at, |oldest| oldest.min(sample.at)));
            }
            if uncounted.len() < MAX_UNCOUNTED_PODS {
                uncounted.extend(UncountedPod::of(pod, group));
            }
        }
        if let Some(detail) = &mut detail {
            let request = percent.map(|_| amount);
            detail.push(ClassifiedPod {
                name: pod.name.clone(),
                group,
                usage: sample.map(|s| s.milli),
                request,
            });
        }
    }
    sums.tally.stray = samples.stray.len() as i64;
    sums.stray_usage = samples.stray.iter().map(|s| i128::from(s.milli.get())).sum();
    Classified { sums, missing_request, detail, uncounted, oldest }
}

impl Sums {
    fn add(&mut self, group: PodGroup, usage: MilliValue, request: MilliValue, fill_percent: i128) {
        let request = i128::from(request.get());
        match group {
            PodGroup::Ready => {
                self.tally.ready += 1;
                self.usage += i128::from(usage.get());
                self.ready_requests += request;
            }
            PodGroup::Missing => {
                self.tally.missing += 1;
                self.missing_requests += request;
                self.missing_fill += request * fill_percent / 100;
            }
            PodGroup::Unready => {
                self.tally.unready += 1;
                self.unready_requests += request;
            }
            PodGroup::Ignored => self.tally.ignored += 1,
        }
    }
}

/// The request of a pod.
fn requested(context: &Context<'_>, pod: &Pod, request: PodQuery<'_>) -> Result<MilliValue, EvaluationError> {
    let resource = request.resource.unwrap_or_default();
    let pod_level = context.config.gates.pod_level_resources;
    let found = pod.shape.request(resource, request.container, request.of, pod_level);
    found.map_err(|missing| {
        let of = RequestedResource { resource, container: request.container, base: request.of };
        of.error(&context.seen.pods, pod, &missing)
    })
}

impl ReadinessLimits {
    fn of(context: &Context<'_>, resource: Option<&str>) -> Self {
        Self {
            is_cpu: resource == Some("cpu"),
            initializing_since: crate::state::before(context.now, context.config.cpu_initialization_period),
            readiness_delay: context.config.initial_readiness_delay,
        }
    }

    /// The group of a pod (docs/spec/hpa.md 5.3).
    fn group(&self, pod: &Pod, sample: Option<&Sample>) -> PodGroup {
        if pod.deleting || pod.phase == PodPhase::Failed {
            return PodGroup::Ignored;
        }
        if pod.phase == PodPhase::Pending {
            return PodGroup::Unready;
        }
        match sample {
            None => PodGroup::Missing,
            Some(sample) if self.is_cpu && self.cpu_unready(pod, sample) => PodGroup::Unready,
            Some(_) => PodGroup::Ready,
        }
    }

    /// Whether a cpu sample may show the start of the pod instead of its load (T18).
    fn cpu_unready(&self, pod: &Pod, sample: &Sample) -> bool {
        let (Some(ready), Some(started)) = (pod.ready, pod.started) else { return true };
        let unready = ready.status == ConditionStatus::False;
        if started > self.initializing_since {
            unready || sample.at.duration_since(ready.since) < sample.window
        } else {
            unready && ready.since.duration_since(started) < self.readiness_delay
        }
    }
}

/// The current value for the status, which is always that of the first calculation.
fn reading(request: PodQuery<'_>, percent: Option<i32>, first: &Calculation) -> CurrentMetricValue {
    let format = if request.resource == Some("memory") { Format::BinarySi } else { Format::DecimalSi };
    CurrentMetricValue {
        value: None,
        average_value: Some(Quantity::from_milli(first.average, format)),
        average_utilization: percent.map(|_| first.found as i32),
    }
}

fn clamp(value: i128) -> i64 {
    MilliValue::clamp(value).get()
}

fn clamp32(value: i128) -> i32 {
    i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
}
