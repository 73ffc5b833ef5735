//! Families of counters, gauges and histograms that are updated as things happen and exported on request.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use locks::MutexExt as _;

use super::{Labels, MetricsWriter};

/// The series of one metric, by the values of its `N` labels. A family without labels has its one series from the start.
#[derive(Debug)]
pub struct Family<S, const N: usize> {
    name: &'static str,
    help: &'static str,
    labels: [&'static str; N],
    new_series: fn() -> S,
    series: Mutex<BTreeMap<LabelValues<N>, S>>,
}

/// The values of the labels of a series, in the order of their names.
pub type LabelValues<const N: usize> = [Cow<'static, str>; N];

/// The value of a series.
pub trait Series {
    /// The type of the metric, as the text format names it.
    const TYPE: &'static str;

    /// Writes the lines of a series.
    fn write(&self, writer: &mut MetricsWriter, labels: Labels<'_>);
}

/// A number that only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter(u64);

/// A number that grows and shrinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauge(i64);

/// A distribution in buckets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Upper bounds, ascending, with the number of observations up to each.
    buckets: Vec<(f64, u64)>,
    count: u64,
    sum: f64,
}

impl<S: Series, const N: usize> Family<S, N> {
    /// A family of series that `new_series` makes.
    pub fn new(
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
        new_series: fn() -> S,
    ) -> Self {
        let family = Self { name, help, labels, new_series, series: Mutex::default() };
        if N == 0 {
            family.update(std::array::from_fn(|_| Cow::Borrowed("")), |_| ());
        }
        family
    }

    /// Adds a series that begins at its first value, so that it is exported before the first event.
    pub fn create(&self, labels: LabelValues<N>) {
        self.update(labels, |_| ());
    }

    /// Removes a series.
    pub fn remove(&self, labels: &LabelValues<N>) {
        self.lock().remove(labels);
    }

    /// Removes all series.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Exports the family; one that has no series is left out.
    pub fn export(&self, writer: &mut MetricsWriter) {
        let series = self.lock();
        if series.is_empty() {
            return;
        }
        writer.family(S::TYPE, self.name, self.help);
        for (values, one) in series.iter() {
            let labels: [(&str, &str); N] = std::array::from_fn(|index| {
                let value = values.get(index).map_or("", |value| &**value);
                (self.labels.get(index).copied().unwrap_or_default(), value)
            });
            one.write(writer, &labels);
        }
    }

    fn update(&self, labels: LabelValues<N>, change: impl FnOnce(&mut S)) {
        change(self.lock().entry(labels).or_insert_with(self.new_series));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<LabelValues<N>, S>> {
        self.series.locked()
    }
}

impl<const N: usize> Family<Counter, N> {
    /// A family of counters; its name ends in `_total`.
    pub fn counters(name: &'static str, help: &'static str, labels: [&'static str; N]) -> Self {
        Self::new(name, help, labels, Counter::default)
    }

    /// Counts one more.
    pub fn increment(&self, labels: LabelValues<N>) {
        self.update(labels, |counter| counter.0 += 1);
    }
}

impl<const N: usize> Family<Gauge, N> {
    /// A family of gauges.
    pub fn gauges(name: &'static str, help: &'static str, labels: [&'static str; N]) -> Self {
        Self::new(name, help, labels, Gauge::default)
    }

    /// Sets the value.
    pub fn set(&self, labels: LabelValues<N>, value: i64) {
        self.update(labels, |gauge| gauge.0 = value);
    }
}

impl<const N: usize> Family<Histogram, N> {
    /// Counts one observation.
    pub fn observe(&self, labels: LabelValues<N>, value: f64) {
        self.update(labels, |histogram| histogram.observe(value));
    }
}

impl Histogram {
    /// A histogram with `count` buckets whose bounds begin at `first` and double.
    pub fn doubling(first: f64, count: u32) -> Self {
        let bounds = std::iter::successors(Some(first), |bound| Some(bound * 2.0));
        let buckets = bounds.zip(0..count).map(|(bound, _)| (bound, 0)).collect();
        Self { buckets, ..Self::default() }
    }

    /// A histogram with these upper bounds, ascending and without infinity.
    pub fn with_bounds(bounds: &[f64]) -> Self {
        Self { buckets: bounds.iter().map(|bound| (*bound, 0)).collect(), ..Self::default() }
    }

    fn observe(&mut self, value: f64) {
        self.buckets.iter_mut().filter(|(bound, _)| value <= *bound).for_each(|(_, count)| *count += 1);
        self.count += 1;
        self.sum += value;
    }
}

impl Series for Counter {
    const TYPE: &'static str = "counter";

    fn write(&self, writer: &mut MetricsWriter, labels: Labels<'_>) {
        writer.value(labels, self.0);
    }
}

impl Series for Gauge {
    const TYPE: &'static str = "gauge";

    fn write(&self, writer: &mut MetricsWriter, labels: Labels<'_>) {
        writer.value(labels, self.0);
    }
}

impl Series for Histogram {
    const TYPE: &'static str = "histogram";

    fn write(&self, writer: &mut MetricsWriter, labels: Labels<'_>) {
        let cumulative = self.buckets.iter().copied().chain([(f64::INFINITY, self.count)]);
        writer.histogram(labels, cumulative, self.sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_exported_as_open_metrics() {
        let requests = Family::counters("requests_total", "Requests.", ["code"]);
        let (removed, leader) = (Family::gauges("removed", "?", ["n"]), Family::gauges("leader", "1.", []));
        let delay = Family::new("delay_seconds", "Delay.", [], || Histogram::doubling(0.5, 2));
        requests.increment(["200".into()]);
        requests.increment(["200".into()]);
        requests.increment([String::from("404").into()]);
        removed.set(["a".into()], 5);
        removed.remove(&["a".into()]);
        removed.set(["b".into()], 6);
        removed.clear();
        delay.observe([], 0.75);
        delay.observe([], 9.5);
        let mut writer = MetricsWriter::open_metrics();
        requests.export(&mut writer);
        removed.export(&mut writer);
        leader.export(&mut writer);
        delay.export(&mut writer);
        let expected = [
            "# HELP requests Requests.",
            "# TYPE requests counter",
            "requests_total{code=\"200\"} 2",
            "requests_total{code=\"404\"} 1",
            "# HELP leader 1.",
            "# TYPE leader gauge",
            "leader 0",
            "# HELP delay_seconds Delay.",
            "# TYPE delay_seconds histogram",
            "# UNIT delay_seconds seconds",
            "delay_seconds_bucket{le=\"0.5\"} 0",
            "delay_seconds_bucket{le=\"1\"} 1",
            "delay_seconds_bucket{le=\"+Inf\"} 2",
            "delay_seconds_sum 10.25",
            "delay_seconds_count 2",
            "# EOF",
        ];
        assert_eq!(writer.finish().lines().collect::<Vec<_>>(), expected);
    }
}
