//! Responses of the metrics APIs: the model's samples as an autoscaler reads them.

use std::sync::Arc;

use engine::{MetricSamples, MilliValue, PodSamples, RecordedError, RequestFailure, Sample};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::load::LoadCurve;
use crate::random::Seed;
use crate::time::{Millis, to_the_second};
use crate::workload::{ModelPod, ScrapeWindow, UsageMeter, Workload};

/// One metric of one autoscaler: its query and the outages that affect it.
#[derive(Clone, Debug)]
pub struct MetricInput {
    /// What is read.
    pub request: MetricRequest,
    /// When it cannot be read.
    pub outages: Vec<OutageWindow>,
}

/// What a metric reads.
#[derive(Clone, Debug)]
pub enum MetricRequest {
    /// A resource of pods: one meter per selected workload.
    Resource {
        /// In the order of the selected workloads.
        meters: Vec<UsageMeter>,
        /// Time from a sample until it can be read.
        delay: Millis,
    },
    /// A custom metric of pods: the series of each selected workload, if it has one.
    Pods(Vec<Option<MetricSeries>>),
    /// Series without a pod.
    Totals(Vec<MetricSeries>),
    /// Nothing, since the selector or target is invalid.
    Nothing,
}

/// Values over time.
#[derive(Clone, Debug)]
pub struct MetricSeries {
    /// Index of its workload in the scenario.
    pub workload: usize,
    /// Source of the values.
    pub value: SeriesValue,
    /// Factor for the values.
    pub scale: f64,
    /// Time from a sample until it can be read.
    pub delay: Millis,
}

/// Source of the values of a series.
#[derive(Clone, Debug)]
pub enum SeriesValue {
    /// A property of its workload.
    Signal(Signal),
    /// A load curve.
    Curve(Arc<LoadCurve>),
}

/// The property of a workload that a metric reports.
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

/// A time in which a metric cannot be read.
#[derive(Clone, Debug)]
pub struct OutageWindow {
    /// Start.
    pub from: Millis,
    /// End.
    pub to: Millis,
    /// Error text of the API.
    pub error: String,
    /// Share of the pods without a sample; absent if the whole request fails.
    pub pods: Option<(f64, Seed)>,
}

impl MetricInput {
    /// Estimated cost of one read, in pods and load shapes, with at most `pods` pods per workload.
    pub fn effort(&self, pods: usize) -> usize {
        let request = match &self.request {
            MetricRequest::Resource { meters, .. } => pods.saturating_mul(meters.len()),
            MetricRequest::Pods(series) => pods.saturating_mul(series.len()),
            MetricRequest::Totals(series) => series.iter().map(MetricSeries::effort).sum(),
            MetricRequest::Nothing => 0,
        };
        request.saturating_add(self.outages.len())
    }

    /// Reads the metric at `now`. The allocation of `used`, an earlier result, is reused.
    pub fn read(
        &self,
        view: &MetricsView<'_>,
        now: Millis,
        used: Result<MetricSamples, RecordedError>,
    ) -> Result<MetricSamples, RecordedError> {
        let failing = self.outages.iter().find(|outage| outage.from <= now && now < outage.to);
        if let Some(OutageWindow { error, pods: None, .. }) = failing {
            return Err(RecordedError::new(error.as_str(), Some(RequestFailure::Unavailable)));
        }
        let mut list =
            SampleList { view, missing: failing.and_then(|outage| outage.pods), by_pod: recycled(used) };
        match &self.request {
            MetricRequest::Resource { meters, delay } => {
                for (workload, meter) in view.selected().zip(meters) {
                    let window = workload.window(now - *delay);
                    list.add(workload, window, |pod, window| meter.read(pod.activity(window)?));
                }
                list.finish("no metrics returned from resource metrics API")
            }
            MetricRequest::Pods(series) => {
                for (workload, series) in view.selected().zip(series) {
                    let window = series.as_ref().and_then(|series| workload.window(now - series.delay));
                    list.add(workload, window, |pod, window| series.as_ref()?.of_pod(pod, window));
                }
                list.finish("no metrics returned from custom metrics API")
            }
            MetricRequest::Totals(series) => {
                let window =
                    |series: &MetricSeries| view.workloads.get(series.workload)?.window(now - series.delay);
                let total = |series: &MetricSeries| Some(milli(series.total(&window(series)?)));
                Ok(MetricSamples::Totals(series.iter().filter_map(total).collect()))
            }
            MetricRequest::Nothing => Ok(MetricSamples::NotQueried),
        }
    }
}

impl MetricInput {
    /// When the oldest series of a metric without pods was measured.
    pub fn oldest(&self, view: &MetricsView<'_>, now: Millis) -> Option<Timestamp> {
        let MetricRequest::Totals(series) = &self.request else { return None };
        let window = |series: &MetricSeries| view.workloads.get(series.workload)?.window(now - series.delay);
        let taken = series.iter().filter_map(window).map(|window| window.to.at).min()?;
        Some(to_the_second(taken.after(view.start)))
    }
}

/// The part of a simulation that metrics read.
pub struct MetricsView<'a> {
    /// All workloads of the scenario.
    pub workloads: &'a [Workload],
    /// Indexes of the workloads whose pods are selected.
    pub places: &'a [usize],
    /// When virtual time begins.
    pub start: Timestamp,
}

impl<'a> MetricsView<'a> {
    /// The workloads whose pods are selected.
    pub fn selected(&self) -> impl Iterator<Item = &'a Workload> {
        let workloads = self.workloads;
        self.places.iter().filter_map(|place| workloads.get(*place))
    }
}

/// Samples in the order of the pods.
struct SampleList<'a> {
    view: &'a MetricsView<'a>,
    missing: Option<(f64, Seed)>,
    by_pod: Vec<Option<Sample>>,
}

impl SampleList<'_> {
    fn add(
        &mut self,
        workload: &Workload,
        window: Option<ScrapeWindow>,
        read: impl Fn(&ModelPod, &ScrapeWindow) -> Option<MilliValue>,
    ) {
        let Some(window) = window else {
            self.by_pod.extend(workload.fleet().pods().iter().map(|_| None));
            return;
        };
        let at = to_the_second(window.to.at.after(self.view.start));
        let length = window.length().duration();
        let missing = self.missing;
        self.by_pod.extend(workload.fleet().pods().iter().map(|pod| {
            let lost = missing.is_some_and(|(share, seed)| seed.fraction(pod.number() as i64) < share);
            let milli = read(pod, &window).filter(|_| !lost)?;
            Some(Sample { at, window: length, milli })
        }));
    }

    fn finish(self, error: &str) -> Result<MetricSamples, RecordedError> {
        if self.by_pod.iter().all(Option::is_none) {
            return Err(RecordedError::new(error, Some(RequestFailure::NoItems)));
        }
        Ok(MetricSamples::PerPod(PodSamples { by_pod: self.by_pod, stray: Vec::new() }))
    }
}

/// The emptied vector of an earlier result.
fn recycled(used: Result<MetricSamples, RecordedError>) -> Vec<Option<Sample>> {
    match used {
        Ok(MetricSamples::PerPod(PodSamples { mut by_pod, .. })) => {
            by_pod.clear();
            by_pod
        }
        _ => Vec::new(),
    }
}

impl MetricSeries {
    fn effort(&self) -> usize {
        match &self.value {
            SeriesValue::Signal(_) => 1,
            SeriesValue::Curve(load) => 1 + load.len(),
        }
    }

    fn total(&self, window: &ScrapeWindow) -> f64 {
        let value = match &self.value {
            SeriesValue::Signal(Signal::Offered) => window.rates().offered,
            SeriesValue::Signal(Signal::Served) => window.rates().served,
            SeriesValue::Signal(Signal::Unserved) => window.rates().lost,
            SeriesValue::Signal(Signal::Backlog) => window.to.backlog,
            SeriesValue::Curve(load) => load.at(window.to.at),
        };
        value * self.scale
    }

    /// The work of the pod itself, or an equal share of the workload's value.
    fn of_pod(&self, pod: &ModelPod, window: &ScrapeWindow) -> Option<MilliValue> {
        let activity = pod.activity(window)?;
        let value = match &self.value {
            SeriesValue::Signal(Signal::Served) => activity.work * self.scale,
            _ if pod.worked_at_end(window) && window.to.ready > 0 => {
                self.total(window) / window.to.ready as f64
            }
            _ => 0.0,
        };
        Some(milli(value))
    }
}

fn milli(value: f64) -> MilliValue {
    MilliValue::new((value * 1000.0).round() as i64)
}
