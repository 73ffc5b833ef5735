//! A number per pod: Resource, ContainerResource and Pods metrics (docs/spec/hpa.md 5.3 – 5.6).
//!
//! One pass over the pods, no allocation: everything the second look needs is summed in the first.

use std::sync::Arc;

use jiff::Timestamp;
use quantity::{Format, Quantity};

use super::totals::ceil;
use super::{
    Arithmetic, AssumedUsage, ClassifiedPod, Context, NoChangeReason, PerPodArithmetic, PodCounts, PodGroup,
    Proposal, Trouble,
};
use crate::observe::{PodSamples, Sample};
use crate::pod::{ConditionStatus, MissingRequest, Pod, PodPhase, PodTemplate};
use crate::report::CurrentMetricValue;
use crate::spec::{MetricTarget, UtilizationBase};

/// What is asked of each pod.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    /// Resource; absent for custom metrics, where readiness is irrelevant.
    pub(super) resource: Option<&'a str>,
    /// Container; absent for the whole pod.
    pub(super) container: Option<&'a str>,
    /// What a percentage is a percentage of.
    pub(super) of: UtilizationBase,
}

/// Sums over one pass. Wide enough never to overflow, where Kubernetes would wrap.
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

/// Moments that decide about readiness, computed once.
struct Cutoffs {
    is_cpu: bool,
    initializing_since: Timestamp,
    readiness_delay: jiff::SignedDuration,
}

/// Average or percentage over pods, and the count it asks for (docs/spec/hpa.md 5.4, 5.5).
pub(super) fn evaluate(
    context: &Context<'_>,
    samples: &PodSamples,
    request: Request<'_>,
    goal: MetricTarget,
) -> Result<Proposal, Trouble> {
    let pods = &context.seen.pods;
    if pods.is_empty() {
        return Err("no pods returned by selector while calculating replica count".to_owned().into());
    }
    let percent = if let MetricTarget::Utilization(percent) = goal { Some(percent) } else { None };
    let (sums, first_unrequested, detail) = sort(context, samples, request, percent);
    let trouble = |text: String| Trouble { text, pods: Some(sums.tally) };
    if sums.tally.ready + sums.tally.stray == 0 {
        return Err(trouble("did not receive metrics for targeted pods (pods might be unready)".into()));
    }
    if let Some(text) = first_unrequested {
        return Err(trouble(text));
    }
    let look = |with: With| match goal {
        MetricTarget::Utilization(target) => sums.utilization(target, with),
        MetricTarget::AverageValue(target) | MetricTarget::Value(target) => Some(sums.average(target, with)),
        MetricTarget::Missing => None,
    };
    let nobody = || trouble("no metrics returned matched known pods".into());
    let first = look(With::default()).ok_or_else(nobody)?;

    let target = match goal {
        MetricTarget::Utilization(t) => i64::from(t),
        MetricTarget::AverageValue(t) | MetricTarget::Value(t) => t,
        MetricTarget::Missing => 0,
    };
    let mut sum = PerPodArithmetic {
        pods: sums.tally,
        usage: clamp(first.usage),
        requests: first.requests.map(clamp),
        found: first.found,
        target,
        ratio: first.ratio,
        assumed: None,
        count: sums.tally.ready,
        kept: None,
        detail,
    };
    let replicas = decide(context, &sums, &look, &first, &mut sum).ok_or_else(nobody)?;
    Ok(Proposal { replicas, reading: reading(request, percent, &first), sum: Arithmetic::PerPod(sum) })
}

/// The count, with a second look when pods are missing or not ready.
fn decide(
    context: &Context<'_>,
    sums: &Sums,
    look: &impl Fn(With) -> Option<Look>,
    first: &Look,
    sum: &mut PerPodArithmetic,
) -> Option<i32> {
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
        return Some(ceil(ratio * sums.tally.ready as f64));
    }
    // Neither at exactly 1 nor when there is no ratio at all.
    let off_target = ratio.partial_cmp(&1.0).is_some_and(std::cmp::Ordering::is_ne);
    let with = With { missing: off_target, full: ratio < 1.0, unready: growing_with_unready };
    let second = look(with)?;
    sum.assumed = Some(AssumedUsage {
        missing: if with.missing { sums.tally.missing } else { 0 },
        missing_usage: if with.full { clamp(second.filled) } else { 0 },
        unready: if with.unready { sums.tally.unready } else { 0 },
        usage: clamp(second.usage),
        requests: second.requests.map(clamp),
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
    let count = ceil(second.ratio * second.count as f64);
    if (second.ratio < 1.0 && count > current) || (second.ratio > 1.0 && count < current) {
        return keep(sum, NoChangeReason::CountFlips);
    }
    Some(count)
}

/// Which pods outside the ready ones take part in a look.
#[derive(Clone, Copy, Default)]
struct With {
    /// Pods without a sample,
    missing: bool,
    /// … as if fully used (else idle).
    full: bool,
    /// Pods not ready, as if idle.
    unready: bool,
}

/// One computation of the ratio.
struct Look {
    usage: i128,
    requests: Option<i128>,
    filled: i128,
    found: i64,
    /// Average over the pods that count, for the status.
    average: i64,
    ratio: f64,
    /// Samples that took part, strays included (T13).
    count: i64,
}

impl Sums {
    fn participants(&self, with: With) -> i64 {
        let t = &self.tally;
        t.ready
            + t.stray
            + if with.missing { t.missing } else { 0 }
            + if with.unready { t.unready } else { 0 }
    }

    /// Percentage of requests, cut to a whole number before the ratio is taken (T2).
    fn utilization(&self, target: i32, with: With) -> Option<Look> {
        let filled = if with.full { self.missing_fill } else { 0 };
        let usage = self.usage + filled;
        let requests = self.ready_requests
            + if with.missing { self.missing_requests } else { 0 }
            + if with.unready { self.unready_requests } else { 0 };
        let percent = clamp32((usage * 100).checked_div(requests)?);
        Some(Look {
            usage,
            requests: Some(requests),
            filled,
            found: i64::from(percent),
            average: clamp(usage.checked_div(i128::from(self.tally.ready)).unwrap_or_default()),
            ratio: f64::from(percent) / f64::from(target),
            count: self.participants(with),
        })
    }

    /// Plain average; strays are part of it.
    fn average(&self, target: i64, with: With) -> Look {
        let filled = if with.full { i128::from(target) * i128::from(self.tally.missing) } else { 0 };
        let usage = self.usage + self.stray_usage + filled;
        let count = self.participants(with);
        let average = clamp(usage.checked_div(i128::from(count)).unwrap_or_default());
        let ratio = average as f64 / target as f64;
        Look { usage, requests: None, filled, found: average, average, ratio, count }
    }
}

/// Sorts every pod into its group and sums as it goes. Also the first pod whose request is not known.
fn sort(
    context: &Context<'_>,
    samples: &PodSamples,
    request: Request<'_>,
    percent: Option<i32>,
) -> (Sums, Option<String>, Option<Vec<ClassifiedPod>>) {
    let cutoffs = Cutoffs::of(context, request.resource);
    let mut sums = Sums::default();
    let mut unrequested = None;
    let mut detail = context.detail.then(Vec::new);
    let mut last_shape: Option<(&Arc<PodTemplate>, i64)> = None;
    let fill_percent = i128::from(percent.unwrap_or_default().max(100));
    for (index, pod) in context.seen.pods.iter().enumerate() {
        let sample = samples.by_pod.get(index).copied().flatten();
        let amount = match (percent, last_shape) {
            (None, _) => 0,
            (Some(_), Some((shape, amount))) if Arc::ptr_eq(shape, &pod.shape) => amount,
            (Some(_), _) => match requested(context, pod, request) {
                Ok(amount) => {
                    last_shape = Some((&pod.shape, amount));
                    amount
                }
                Err(text) => {
                    unrequested.get_or_insert(text);
                    0
                }
            },
        };
        let group = cutoffs.group(pod, sample.as_ref());
        sums.add(group, sample.map_or(0, |s| s.milli), amount, fill_percent);
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
    sums.stray_usage = samples.stray.iter().map(|s| i128::from(s.milli)).sum();
    (sums, unrequested, detail)
}

impl Sums {
    fn add(&mut self, group: PodGroup, usage: i64, request: i64, fill_percent: i128) {
        let request = i128::from(request);
        match group {
            PodGroup::Ready => {
                self.tally.ready += 1;
                self.usage += i128::from(usage);
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

fn requested(context: &Context<'_>, pod: &Pod, request: Request<'_>) -> Result<i64, String> {
    let resource = request.resource.unwrap_or_default();
    let pod_level = context.config.gates.pod_level_resources;
    let noun = match request.of {
        UtilizationBase::Requests => "request",
        UtilizationBase::Limits => "limit",
    };
    pod.shape.request(resource, request.container, request.of, pod_level).map_err(|why| match why {
        MissingRequest::Container(container) => {
            format!("missing {noun} for {resource} in container {container} of Pod {}", pod.name)
        }
        MissingRequest::Absent => {
            format!("container {} not found in Pod {}", request.container.unwrap_or_default(), pod.name)
        }
        MissingRequest::Pod => format!("missing pod-level {noun} for {resource} in Pod {}", pod.name),
    })
}

impl Cutoffs {
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

    /// Whether a cpu sample says more about starting up than about load (T18).
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

/// The status slot: always from the first look.
fn reading(request: Request<'_>, percent: Option<i32>, first: &Look) -> CurrentMetricValue {
    let format = if request.resource == Some("memory") { Format::BinarySi } else { Format::DecimalSi };
    CurrentMetricValue {
        value: None,
        average_value: Some(Quantity::from_milli(first.average, format)),
        average_utilization: percent.map(|_| first.found as i32),
    }
}

fn clamp(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

fn clamp32(value: i128) -> i32 {
    i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
}
