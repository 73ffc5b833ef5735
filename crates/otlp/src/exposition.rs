//! Reads the text of `/metrics`, as [`runtime::exported_metrics::MetricsWriter`] writes it.

use crate::wire::KeyValue;

/// A metric with all its series.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricFamily {
    /// Name.
    pub name: String,
    /// Help text.
    pub help: String,
    /// Unit, such as `s`; empty if there is none.
    pub unit: &'static str,
    /// Type.
    pub kind: FamilyKind,
    /// One for each series.
    pub points: Vec<MetricPoint>,
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyKind {
    /// A value at this moment.
    Gauge,
    /// A sum that only grows.
    Counter,
    /// A sum that grows and shrinks.
    UpDownCounter,
    /// A distribution.
    Histogram,
}

/// The value of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricPoint {
    /// Labels.
    pub attributes: Vec<KeyValue>,
    /// Value.
    pub value: PointValue,
}

/// The value of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum PointValue {
    /// A number.
    Number(f64),
    /// A distribution.
    Histogram(Buckets),
}

/// A distribution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buckets {
    /// Upper bounds, ascending and without infinity.
    pub bounds: Vec<f64>,
    /// Observations up to each bound, and all of them.
    pub cumulative: Vec<u64>,
    /// Sum of all observations.
    pub sum: f64,
}

impl MetricPoint {
    /// The text of an attribute.
    pub fn attribute(&self, key: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|attribute| attribute.key == key)?;
        found.value.as_ref()?.string_value.as_deref()
    }
}

/// Reads all families that have series. Lines that cannot be read are left out.
pub fn parse(text: &str) -> Vec<MetricFamily> {
    let mut families: Vec<MetricFamily> = Vec::new();
    let mut help = "";
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            families.extend(rest.split_once(' ').map(|(name, kind)| family(name, kind, help)));
        } else if !line.starts_with('#')
            && let Some(family) = families.last_mut()
            && let Some(sample) = Sample::parse(line)
        {
            family.add(sample);
        }
    }
    families.retain(|family| !family.points.is_empty());
    families
}

fn family(name: &str, kind: &str, help: &str) -> MetricFamily {
    let kind = match kind {
        "counter" => FamilyKind::Counter,
        "histogram" => FamilyKind::Histogram,
        _ => FamilyKind::Gauge,
    };
    // OpenMetrics announces counters without `_total`.
    let name = match kind {
        FamilyKind::Counter if !name.ends_with("_total") => format!("{name}_total"),
        _ => name.to_owned(),
    };
    let stem = name.strip_suffix("_total").unwrap_or(&name);
    let unit = if stem.ends_with("_seconds") {
        "s"
    } else if stem.ends_with("_bytes") {
        "By"
    } else {
        ""
    };
    MetricFamily { unit, kind, help: help.to_owned(), points: Vec::new(), name }
}

impl MetricFamily {
    fn add(&mut self, sample: Sample<'_>) {
        let Sample { name, mut labels, value } = sample;
        if self.kind != FamilyKind::Histogram {
            let value = PointValue::Number(value);
            self.points.push(MetricPoint { attributes: attributes(labels), value });
            return;
        }
        let bound = match labels.iter().position(|(key, _)| *key == "le") {
            Some(at) => labels.remove(at).1.parse::<f64>().ok(),
            None => None,
        };
        let attributes = attributes(labels);
        // The lines of a series follow each other.
        if self.points.last().is_none_or(|point| point.attributes != attributes) {
            let value = PointValue::Histogram(Buckets::default());
            self.points.push(MetricPoint { attributes, value });
        }
        let Some(PointValue::Histogram(buckets)) = self.points.last_mut().map(|point| &mut point.value)
        else {
            return;
        };
        if name.ends_with("_bucket") {
            buckets.cumulative.push(value as u64);
            buckets.bounds.extend(bound.filter(|bound| bound.is_finite()));
        } else if name.ends_with("_sum") {
            buckets.sum = value;
        }
    }
}

fn attributes(labels: Vec<(&str, String)>) -> Vec<KeyValue> {
    labels.into_iter().map(|(key, value)| KeyValue::text(key, value)).collect()
}

/// One line.
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

impl<'a> Sample<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (name, labels, value) = match line.split_once('{') {
            None => {
                let (name, value) = line.split_once(' ')?;
                (name, Vec::new(), value)
            }
            Some((name, rest)) => {
                let (labels, value) = labels(rest)?;
                (name, labels, value)
            }
        };
        Some(Self { name, labels, value: value.trim().parse().ok()? })
    }
}

/// The labels after the opening brace, and the text after the closing one.
fn labels(mut rest: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut found = Vec::new();
    loop {
        let (key, quoted) = rest.split_once("=\"")?;
        let (value, after) = unquoted(quoted)?;
        found.push((key, value));
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Some((found, after.strip_prefix('}')?)),
        }
    }
}

/// The value of a label up to its closing quote, and the text after it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use runtime::exported_metrics::MetricsWriter;

    use super::*;

    #[test]
    fn everything_that_is_written_is_read() {
        let mut writer = MetricsWriter::default();
        writer.family("gauge", "a_bytes", "What a is.").value(&[("x", "q\"\\\n,}"), ("y", "")], 0.5);
        writer.family("gauge", "empty", "Without series.");
        writer.family("counter", "c_total", "Count.").value(&[], 7);
        writer.family("histogram", "h_seconds", "Times.");
        writer.histogram(&[("n", "m")], [(0.5, 1), (f64::INFINITY, 3)], 2.25);
        writer.histogram(&[("n", "o")], [(1e-8, 0), (f64::INFINITY, 0)], 0.0);
        let read = parse(&writer.finish());
        let [gauge, counter, histogram] = &*read else { panic!("{read:?}") };
        assert_eq!((&*gauge.name, &*gauge.help, gauge.unit), ("a_bytes", "What a is.", "By"));
        assert_eq!(gauge.kind, FamilyKind::Gauge);
        let point = &gauge.points[0];
        assert_eq!((point.attribute("x"), point.attribute("y")), (Some("q\"\\\n,}"), Some("")));
        assert_eq!(point.value, PointValue::Number(0.5));
        assert_eq!((&*counter.name, counter.kind, counter.unit), ("c_total", FamilyKind::Counter, ""));
        assert_eq!(counter.points, [MetricPoint { attributes: vec![], value: PointValue::Number(7.0) }]);
        assert_eq!((&*histogram.name, histogram.unit), ("h_seconds", "s"));
        let value = |bounds: f64, cumulative: [u64; 2], sum| {
            PointValue::Histogram(Buckets { bounds: vec![bounds], cumulative: cumulative.to_vec(), sum })
        };
        let points: Vec<_> =
            histogram.points.iter().map(|point| (point.attribute("n"), &point.value)).collect();
        let expected = [(Some("m"), &value(0.5, [1, 3], 2.25)), (Some("o"), &value(1e-8, [0, 0], 0.0))];
        assert_eq!(points, expected);
    }

    #[test]
    fn counters_of_open_metrics_have_their_whole_name() {
        let mut writer = MetricsWriter::open_metrics();
        writer.family("counter", "c_seconds_total", "Count.").value(&[], 7);
        let read = parse(&writer.finish());
        assert_eq!((&*read[0].name, read[0].unit), ("c_seconds_total", "s"));
    }

    #[test]
    fn lines_that_cannot_be_read_are_left_out() {
        let text = "stray 1\n# TYPE a gauge\na{x=\"open 1\na\na{x=\"1\"} many\na{x=\"1\"} 2\n# TYPE\n";
        let read = parse(text);
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].points.len(), 1);
        assert_eq!(read[0].points[0].value, PointValue::Number(2.0));
    }
}
