//! What the metrics APIs answer: the model's measurements as an autoscaler gets to see them.

use std::sync::Arc;

use engine::{MetricSamples, PodSamples, Sample};
use jiff::Timestamp;

use crate::load::LoadCurve;
use crate::random::Seed;
use crate::scenario::document::Signal;
use crate::time::{Millis, to_the_second};
use crate::workload::{ModelPod, ScrapeWindow, UsageMeter, Workload};

/// One metric of one autoscaler: what it asks for, and when it gets no answer.
#[derive(Clone, Debug)]
pub struct MetricInput {
    /// What it asks for.
    pub ask: MetricRequest,
    /// When it gets no answer.
    pub outages: Vec<OutageWindow>,
}

/// What a metric asks for.
#[derive(Clone, Debug)]
pub enum MetricRequest {
    /// A resource of pods: per workload that is looked at, what is added up in each pod.
    Resource {
        /// In the order of the workloads that are looked at.
        meters: Vec<UsageMeter>,
        /// From a measurement until it can be read.
        delay: Millis,
    },
    /// A custom metric of pods: per workload that is looked at, what tells it.
    Pods(Vec<Option<MetricSeries>>),
    /// Numbers that belong to no pod.
    Totals(Vec<MetricSeries>),
    /// Nothing: its selector or target is broken.
    Nothing,
}

/// Numbers over time.
#[derive(Clone, Debug)]
pub struct MetricSeries {
    /// The workload it tells of, by its place in the scenario.
    pub workload: usize,
    /// What it tells.
    pub value: SeriesValue,
    /// What that is multiplied with.
    pub scale: f64,
    /// From a measurement until it can be read.
    pub delay: Millis,
}

/// What a series tells.
#[derive(Clone, Debug)]
pub enum SeriesValue {
    /// Something about its workload.
    Signal(Signal),
    /// A curve of its own.
    Curve(Arc<LoadCurve>),
}

/// A time without an answer.
#[derive(Clone, Debug)]
pub struct OutageWindow {
    /// Its begin.
    pub from: Millis,
    /// Its end.
    pub to: Millis,
    /// What the API says instead.
    pub error: String,
    /// Only this share of the pods has no measurement.
    pub pods: Option<(f64, Seed)>,
}

impl MetricInput {
    /// How much work an answer is, in pods and shapes looked at, with at most so many pods per workload.
    pub fn effort(&self, pods: usize) -> usize {
        let ask = match &self.ask {
            MetricRequest::Resource { meters, .. } => pods.saturating_mul(meters.len()),
            MetricRequest::Pods(series) => pods.saturating_mul(series.len()),
            MetricRequest::Totals(series) => series.iter().map(MetricSeries::effort).sum(),
            MetricRequest::Nothing => 0,
        };
        ask.saturating_add(self.outages.len())
    }

    /// The answer at `now`. `used` is an earlier answer whose memory can be used again.
    pub fn read(
        &self,
        ground: &MetricsView<'_>,
        now: Millis,
        used: Result<MetricSamples, String>,
    ) -> Result<MetricSamples, String> {
        let failing = self.outages.iter().find(|outage| outage.from <= now && now < outage.to);
        if let Some(OutageWindow { error, pods: None, .. }) = failing {
            return Err(error.clone());
        }
        let mut list = List { ground, missing: failing.and_then(|outage| outage.pods), by_pod: memory(used) };
        match &self.ask {
            MetricRequest::Resource { meters, delay } => {
                for (workload, meter) in ground.looked_at().zip(meters) {
                    let window = workload.window(now - *delay);
                    list.add(workload, window, |pod, window| meter.read(pod.activity(window)?));
                }
                list.finish("no metrics returned from resource metrics API")
            }
            MetricRequest::Pods(series) => {
                for (workload, series) in ground.looked_at().zip(series) {
                    let window = series.as_ref().and_then(|series| workload.window(now - series.delay));
                    list.add(workload, window, |pod, window| series.as_ref()?.of_pod(pod, window));
                }
                list.finish("no metrics returned from custom metrics API")
            }
            MetricRequest::Totals(series) => {
                let window =
                    |series: &MetricSeries| ground.workloads.get(series.workload)?.window(now - series.delay);
                let total = |series: &MetricSeries| Some(milli(series.total(&window(series)?)));
                Ok(MetricSamples::Totals(series.iter().filter_map(total).collect()))
            }
            MetricRequest::Nothing => Ok(MetricSamples::NotAsked),
        }
    }
}

/// Where answers come from.
pub struct MetricsView<'a> {
    /// All workloads of the scenario.
    pub workloads: &'a [Workload],
    /// Those whose pods are looked at, by their place.
    pub places: &'a [usize],
    /// When virtual time begins.
    pub start: Timestamp,
}

impl<'a> MetricsView<'a> {
    /// The workloads whose pods are looked at.
    pub fn looked_at(&self) -> impl Iterator<Item = &'a Workload> {
        let workloads = self.workloads;
        self.places.iter().filter_map(|place| workloads.get(*place))
    }
}

/// A list of samples that grows pod by pod.
struct List<'a> {
    ground: &'a MetricsView<'a>,
    missing: Option<(f64, Seed)>,
    by_pod: Vec<Option<Sample>>,
}

impl List<'_> {
    fn add(
        &mut self,
        workload: &Workload,
        window: Option<ScrapeWindow>,
        read: impl Fn(&ModelPod, &ScrapeWindow) -> Option<i64>,
    ) {
        let Some(window) = window else {
            self.by_pod.extend(workload.fleet().pods().iter().map(|_| None));
            return;
        };
        let at = to_the_second(window.to.at.after(self.ground.start));
        let length = window.length().duration();
        let missing = self.missing;
        self.by_pod.extend(workload.fleet().pods().iter().map(|pod| {
            let lost = missing.is_some_and(|(share, seed)| seed.share(pod.number() as i64) < share);
            let milli = read(pod, &window).filter(|_| !lost)?;
            Some(Sample { at, window: length, milli })
        }));
    }

    fn finish(self, error: &str) -> Result<MetricSamples, String> {
        if self.by_pod.iter().all(Option::is_none) {
            return Err(error.to_owned());
        }
        Ok(MetricSamples::PerPod(PodSamples { by_pod: self.by_pod, stray: Vec::new() }))
    }
}

fn memory(used: Result<MetricSamples, String>) -> Vec<Option<Sample>> {
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

    /// A pod's own work, or its even share of the whole.
    fn of_pod(&self, pod: &ModelPod, window: &ScrapeWindow) -> Option<i64> {
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

fn milli(value: f64) -> i64 {
    (value * 1000.0).round() as i64
}
