//! Exported metrics: families that are updated as things happen, and the writer of the text that Prometheus scrapes.

mod family;
mod join;

use std::fmt::{Display, Write as _};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

pub use family::{Counter, Family, Gauge, Histogram, LabelValues, Series};
pub use join::join_roles;

use crate::build_info::{REVISION, VERSION};

/// The content type of a [`MetricsWriter`] made by `default`.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The content type of a [`MetricsWriter`] made by [`MetricsWriter::open_metrics`].
pub const OPEN_METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Maximum length of a value of a label, in bytes: users choose names of triggers and metrics, which occur in several series.
const MAX_LABEL_BYTES: usize = 1024;

/// Writes metrics, one family after the other.
#[derive(Debug, Default)]
pub struct MetricsWriter {
    text: String,
    name: &'static str,
    format: TextFormat,
}

/// A text format that Prometheus reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TextFormat {
    #[default]
    Prometheus,
    /// Counters are announced without `_total`, times with a unit, and the text ends with `# EOF`.
    OpenMetrics,
}

/// Labels of a series.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

impl MetricsWriter {
    /// A writer of OpenMetrics.
    pub fn open_metrics() -> Self {
        Self { format: TextFormat::OpenMetrics, ..Self::default() }
    }

    /// Begins a family; the values that follow belong to it.
    pub fn family(&mut self, kind: &str, name: &'static str, help: &str) -> &mut Self {
        self.name = name;
        let is_open_metrics = self.format == TextFormat::OpenMetrics;
        let announced = match name.strip_suffix("_total") {
            Some(stem) if is_open_metrics && kind == "counter" => stem,
            _ => name,
        };
        let _ = writeln!(self.text, "# HELP {announced} {help}\n# TYPE {announced} {kind}");
        if is_open_metrics && announced.ends_with("_seconds") {
            let _ = writeln!(self.text, "# UNIT {announced} seconds");
        }
        self
    }

    /// Writes one value of the family.
    pub fn value(&mut self, labels: Labels<'_>, value: impl Display) -> &mut Self {
        self.line("", labels, None, &value);
        self
    }

    /// Writes a histogram: upper bounds, ascending and ending with infinity, with cumulative counts; and the sum.
    pub fn histogram(
        &mut self,
        labels: Labels<'_>,
        cumulative: impl IntoIterator<Item = (f64, u64)>,
        sum: f64,
    ) -> &mut Self {
        let mut count = 0;
        for (bound, up_to) in cumulative {
            count = up_to;
            self.line("_bucket", labels, Some(&bound_text(bound)), &up_to);
        }
        self.line("_sum", labels, None, &sum);
        self.line("_count", labels, None, &count);
        self
    }

    /// Appends families that were written elsewhere.
    pub fn written(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// The text.
    pub fn finish(mut self) -> String {
        if self.format == TextFormat::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, bound: Option<&str>, value: &dyn Display) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        let all = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        for (index, (name, value)) in all.enumerate() {
            self.text.push(if index == 0 { '{' } else { ',' });
            let _ = write!(self.text, "{name}=\"");
            let end = value.floor_char_boundary(MAX_LABEL_BYTES);
            for letter in value.get(..end).unwrap_or_default().chars() {
                match letter {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    other => self.text.push(other),
                }
            }
            if end < value.len() {
                // The hash tells values apart that begin alike.
                let mut hasher = DefaultHasher::new();
                value.hash(&mut hasher);
                let _ = write!(self.text, "…{:016x}", hasher.finish());
            }
            self.text.push('"');
        }
        if !labels.is_empty() || bound.is_some() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// The value of the label `le`, written as Go writes it: small bounds have an exponent of two digits.
fn bound_text(bound: f64) -> String {
    if !bound.is_finite() {
        return "+Inf".to_owned();
    }
    if bound == 0.0 || bound.abs() >= 1e-4 {
        return bound.to_string();
    }
    let text = format!("{bound:e}");
    match text.split_once("e-") {
        Some((digits, exponent)) => format!("{digits}e-{exponent:0>2}"),
        None => text,
    }
}

/// Writes the metrics about this process that every Prometheus client library exports, and those about its build.
pub fn process(writer: &mut MetricsWriter) {
    writer
        .family("gauge", "plimsoll_build_info", "1, with the version and the git revision of this program.")
        .value(&[("version", VERSION), ("revision", REVISION.unwrap_or_default())], 1);
    let read = |file: &str| std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let (status, stat) = (read("status"), read("stat"));
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    if let Some(kilobytes) = resident {
        writer
            .family("gauge", "process_resident_memory_bytes", "Resident memory size in bytes.")
            .value(&[], kilobytes * 1024);
    }
    // The fields from the third on follow the name, which may contain any character; ticks are hundredths of a second.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
    if let (Some(user), Some(system)) = (ticks(11), ticks(12)) {
        #[allow(
            clippy::cast_precision_loss,
            reason = "hundredths of seconds of any life of a process are exact"
        )]
        let seconds = (user + system) as f64 / 100.0;
        writer
            .family(
                "counter",
                "process_cpu_seconds_total",
                "Total user and system CPU time spent in seconds.",
            )
            .value(&[], seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_in_the_prometheus_format() {
        let mut writer = MetricsWriter::default();
        writer.family("gauge", "a", "What a is.").value(&[], 1).value(&[("x", "q\"\\\n"), ("y", "")], 0.5);
        writer.family("histogram", "h", "Times.").histogram(
            &[("n", "m")],
            [(0.5, 1), (f64::INFINITY, 3)],
            2.25,
        );
        assert_eq!(
            writer.finish(),
            "# HELP a What a is.\n# TYPE a gauge\na 1\na{x=\"q\\\"\\\\\\n\",y=\"\"} 0.5\n# HELP h Times.\n# TYPE h histogram\n\
             h_bucket{n=\"m\",le=\"0.5\"} 1\nh_bucket{n=\"m\",le=\"+Inf\"} 3\nh_sum{n=\"m\"} 2.25\nh_count{n=\"m\"} 3\n"
        );
    }

    #[test]
    fn long_labels_are_cut_and_stay_different() {
        let line = |value: &str| {
            let mut writer = MetricsWriter::default();
            writer.family("gauge", "a", "A.").value(&[("x", value)], 1);
            writer.finish().lines().last().unwrap_or_default().to_owned()
        };
        let fits = "ä".repeat(MAX_LABEL_BYTES / 2);
        assert_eq!(line(&fits), format!("a{{x=\"{fits}\"}} 1"));
        let (one, other) = (line(&format!("{fits}1")), line(&format!("{fits}{}", "2".repeat(1 << 20))));
        assert!(one.starts_with(&format!("a{{x=\"{fits}…")) && one.len() < MAX_LABEL_BYTES + 50, "{one}");
        assert!(one != other && one.len() == other.len());
    }

    #[test]
    fn bounds_are_written_as_in_go() {
        let written = [1e-8, 2.5e-5, 1e-4, 0.001, 60.0, f64::INFINITY].map(bound_text);
        assert_eq!(written, ["1e-08", "2.5e-05", "0.0001", "0.001", "60", "+Inf"]);
    }

    #[test]
    fn process_metrics_include_resident_memory() {
        let mut writer = MetricsWriter::default();
        process(&mut writer);
        let text = writer.finish();
        assert!(text.contains("process_resident_memory_bytes "), "{text}");
        assert!(text.contains("plimsoll_build_info{version=\""), "{text}");
    }
}
