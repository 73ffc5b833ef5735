//! Connects the metrics of an autoscaler with their sources and outages.

use api::selector::Selector;
use engine::spec::{Metric, MetricId, MetricSource};

use super::document::{MetricKind, Outage};
use super::faults::{Faults, meant};
use super::{MetricPlan, WorkloadPlan};
use crate::inputs::{MetricInput, MetricRequest, MetricSeries, OutageWindow};
use crate::random::Seed;
use crate::time::Millis;
use crate::workload::{ModelResource, UsageMeter};

const UNABLE: &str = "the server is currently unable to handle the request";

/// The parts of a scenario from which the inputs of one autoscaler are built.
pub(super) struct Wiring<'a> {
    pub(super) workloads: &'a [WorkloadPlan],
    /// Indexes of the selected workloads, the target first.
    pub(super) selected_workloads: &'a [usize],
    pub(super) outages: &'a [Outage],
    pub(super) delay: Millis,
    pub(super) seed: Seed,
}

impl Wiring<'_> {
    /// The input of the metric at `path`. A metric without a source in the scenario is a problem.
    pub(super) fn input(&self, faults: &mut Faults<'_>, path: &str, metric: &Metric) -> MetricInput {
        let request =
            if metric.is_queryable() { self.metric_request(faults, path, &metric.source) } else { None };
        MetricInput {
            request: request.unwrap_or(MetricRequest::Nothing),
            outages: self.failing(&metric.source),
        }
    }

    fn metric_request(
        &self,
        faults: &mut Faults<'_>,
        path: &str,
        source: &MetricSource,
    ) -> Option<MetricRequest> {
        match source {
            MetricSource::Resource { name, .. } => {
                self.resource(faults, &format!("{path}.resource"), name, None)
            }
            MetricSource::ContainerResource { name, container, .. } => {
                self.resource(faults, &format!("{path}.containerResource"), name, Some(container))
            }
            MetricSource::Pods(id) => {
                let selector = selector(id)?;
                let found = |place: &usize| -> Option<MetricSeries> {
                    let metrics = &self.workloads.get(*place)?.metrics;
                    let answers = |m: &&MetricPlan| m.answers(MetricKind::Pods, id, &selector);
                    metrics.iter().find(answers).map(|metric| metric.series(*place))
                };
                let series: Vec<Option<MetricSeries>> = self.selected_workloads.iter().map(found).collect();
                if series.iter().all(Option::is_none) {
                    self.unknown(faults, &format!("{path}.pods.metric"), MetricKind::Pods, id);
                }
                Some(MetricRequest::Pods(series))
            }
            MetricSource::Object { kind, name, metric: id, .. } => {
                let described = |plan: &MetricPlan| {
                    plan.object.as_ref().is_some_and(|object| object.kind == *kind && object.name == *name)
                };
                let series = self.totals(MetricKind::Object, id, described)?;
                let path = format!("{path}.object.metric");
                match series.len() {
                    0 => self.unknown(faults, &path, MetricKind::Object, id),
                    1 => {}
                    n => {
                        faults.add(&path, format!("{n} metrics of {kind} `{name}` are called `{}`", id.name));
                    }
                }
                Some(MetricRequest::Totals(series))
            }
            MetricSource::External(id) => {
                let series = self.totals(MetricKind::External, id, |_| true)?;
                if series.is_empty() {
                    self.unknown(faults, &format!("{path}.external.metric"), MetricKind::External, id);
                }
                Some(MetricRequest::Totals(series))
            }
            MetricSource::Unknown(_) => None,
        }
    }

    fn resource(
        &self,
        faults: &mut Faults<'_>,
        path: &str,
        name: &str,
        container: Option<&str>,
    ) -> Option<MetricRequest> {
        let Some(resource) = ModelResource::named(name) else {
            faults.add(&format!("{path}.name"), format!("the simulator knows cpu and memory, not `{name}`"));
            return None;
        };
        let workloads = || self.selected_workloads.iter().filter_map(|place| self.workloads.get(*place));
        let known = || workloads().flat_map(|w| w.containers.iter().map(|c| c.name.as_str()));
        if let Some(container) = container.filter(|container| !known().any(|name| name == *container)) {
            let known: Vec<&str> = known().collect();
            let message = format!("the pods have no container `{container}`");
            faults.add_with_hint(&format!("{path}.container"), message, meant(container, known));
        }
        let meters = workloads().map(|w| UsageMeter::new(&w.containers, resource, container)).collect();
        Some(MetricRequest::Resource { meters, delay: self.delay })
    }

    fn totals(
        &self,
        kind: MetricKind,
        id: &MetricId,
        fits: impl Fn(&MetricPlan) -> bool,
    ) -> Option<Vec<MetricSeries>> {
        let selector = selector(id)?;
        let all = self
            .workloads
            .iter()
            .enumerate()
            .flat_map(|(place, w)| w.metrics.iter().map(move |m| (place, m)));
        let fitting = all.filter(|(_, metric)| metric.answers(kind, id, &selector) && fits(metric));
        Some(fitting.map(|(place, metric)| metric.series(place)).collect())
    }

    fn unknown(&self, faults: &mut Faults<'_>, path: &str, kind: MetricKind, id: &MetricId) {
        let all = self.workloads.iter().flat_map(|w| &w.metrics).filter(|m| m.kind == kind);
        let known: Vec<&str> = all.map(|m| m.name.as_str()).collect();
        let message = if known.contains(&id.name.as_str()) {
            format!("metric `{}` exists, but not for this target, object or selector", id.name)
        } else {
            format!("nothing in the scenario serves metric `{}` as: {kind:?}", id.name)
        };
        let hint = meant(&id.name, known).filter(|hint| !hint.contains(&format!("`{}`", id.name)));
        let hint = hint.or_else(|| Some("list it under `metrics` of a workload".to_owned()));
        faults.add_with_hint(path, message, hint);
    }

    /// The outages that concern a metric.
    fn failing(&self, source: &MetricSource) -> Vec<OutageWindow> {
        let (resource, metric, api) = match source {
            MetricSource::Resource { name, .. } | MetricSource::ContainerResource { name, .. } => {
                (Some(name), None, "resource")
            }
            MetricSource::Pods(id) | MetricSource::Object { metric: id, .. } => {
                (None, Some(&id.name), "custom")
            }
            MetricSource::External(id) => (None, Some(&id.name), "external"),
            MetricSource::Unknown(_) => return Vec::new(),
        };
        let concerns = |outage: &&Outage| {
            let everything = outage.metric.is_none() && outage.resource.is_none();
            everything
                || outage.metric.is_some() && outage.metric.as_ref() == metric
                || outage.resource.is_some() && outage.resource.as_ref() == resource
        };
        let per_pod = !matches!(source, MetricSource::Object { .. } | MetricSource::External(_));
        let failing = |outage: &Outage| {
            let error = outage.error.as_deref().unwrap_or(UNABLE);
            OutageWindow {
                from: outage.from,
                to: outage.to.unwrap_or(Millis::NEVER),
                error: format!("unable to fetch metrics from {api} metrics API: {error}"),
                pods: outage.share.filter(|_| per_pod).map(|share| (share, self.seed)),
            }
        };
        self.outages.iter().filter(concerns).map(failing).collect()
    }
}

/// The selector of a metric; absent if it is invalid.
fn selector(id: &MetricId) -> Option<Selector> {
    Selector::parse(id.selector.as_deref().ok()?).ok()
}

impl MetricPlan {
    fn answers(&self, kind: MetricKind, id: &MetricId, selector: &Selector) -> bool {
        // The path of an external metric is in lower case (docs/spec/hpa.md Appendix C.3).
        let named = match kind {
            MetricKind::External => self.name.eq_ignore_ascii_case(&id.name),
            MetricKind::Pods | MetricKind::Object => self.name == id.name,
        };
        self.kind == kind && named && selector.matches_map(&self.labels)
    }

    fn series(&self, workload: usize) -> MetricSeries {
        MetricSeries { workload, value: self.value.clone(), scale: self.scale, delay: self.delay }
    }

    /// Whether two metrics have the same name, kind, object and labels.
    pub(super) fn is_same_series(&self, other: &Self) -> bool {
        let key = |m: &Self| (m.name.clone(), m.kind, m.object.clone(), m.labels.clone());
        key(self) == key(other)
    }
}

/// Checks the outages of a scenario. They must refer to its metrics.
pub(super) fn check_outages(faults: &mut Faults<'_>, outages: &[Outage], workloads: &[WorkloadPlan]) {
    for (index, outage) in outages.iter().enumerate() {
        let path = format!("spec.outages[{index}]");
        if outage.from < Millis::ZERO {
            faults.add(&format!("{path}.from"), "`from` must not be before the start of the scenario");
        }
        if outage.to.is_some_and(|to| to <= outage.from) {
            faults.add(&format!("{path}.to"), "`to` must be later than `from`");
        }
        if let Some(share) = outage.share {
            faults.number(&format!("{path}.share"), share, 0.0, 1.0);
        }
        match (&outage.metric, &outage.resource) {
            (Some(_), Some(_)) => {
                faults.add(&path, "an outage concerns a `metric` or a `resource`, not both");
            }
            (None, Some(resource)) if ModelResource::named(resource).is_none() => {
                faults.add(
                    &format!("{path}.resource"),
                    format!("expected `cpu` or `memory`, found `{resource}`"),
                );
            }
            (Some(metric), None) => {
                let known = || workloads.iter().flat_map(|w| w.metrics.iter()).filter(|m| m.name == *metric);
                if known().next().is_none() {
                    let names: Vec<&str> =
                        workloads.iter().flat_map(|w| w.metrics.iter().map(|m| m.name.as_str())).collect();
                    let message = format!("no workload has a metric `{metric}`");
                    faults.add_with_hint(&format!("{path}.metric"), message, meant(metric, names));
                } else if outage.share.is_some() && known().all(|m| m.kind != MetricKind::Pods) {
                    faults.add(
                        &format!("{path}.share"),
                        "`share` is for metrics of pods; this one belongs to no pod",
                    );
                }
            }
            _ => {}
        }
    }
}
