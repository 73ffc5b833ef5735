//! Parses the text of `/metrics/resource` (Prometheus text format 0.0.4) into a [`Scrape`], without copies.
//!
//! ```text
//! line     grammar of one line
//! labels   container that a line belongs to
//! rows     collects lines into containers and pods
//! ```
//!
//! metrics-server discards a whole node for one malformed line; so does strict mode. Otherwise only the affected
//! container is lost, and lines of unused families are not parsed at all.

mod labels;
mod line;
mod rows;
#[cfg(test)]
mod tests;

use api::provider::Compat;
use jiff::Timestamp;

use super::Scrape;
use line::{Comment, ExpositionLine};
use rows::RowTable;

/// Why a response cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// A line is malformed.
    #[error("failed parsing metrics: line {line}: {flaw}: {excerpt:?}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The error.
        flaw: LineError,
        /// Start of the line.
        excerpt: Box<str>,
    },
    /// The kubelet reports `resource_scrape_error 1` and no samples.
    #[error("failed parsing metrics: the kubelet could not measure (resource_scrape_error is 1)")]
    NotMeasured,
    /// There is no sample of the node or of a container.
    #[error("failed parsing metrics: no metrics of the node or of a container")]
    Nothing,
}

/// Syntax error of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum LineError {
    /// The line does not start with a name, `{` or `#`.
    #[error("expected a metric name")]
    Start,
    /// There is no metric name.
    #[error("expected a metric name among the labels")]
    NoName,
    /// There is more than one metric name.
    #[error("the metric name is given twice")]
    NamedTwice,
    /// There is no name after `# HELP` or `# TYPE`.
    #[error("expected a metric name after HELP or TYPE")]
    CommentName,
    /// `# TYPE` names an unknown type.
    #[error("unknown metric type")]
    Type,
    /// A label name is expected.
    #[error("expected a label name")]
    LabelName,
    /// `=` is expected.
    #[error("expected = after a label name")]
    Equal,
    /// A terminated quoted text is expected.
    #[error("expected a quoted label value")]
    LabelValue,
    /// The labels do not identify a container.
    #[error("expected the labels container, namespace and pod")]
    Labels,
    /// Not UTF-8.
    #[error("not UTF-8")]
    Utf8,
    /// The value is missing.
    #[error("expected a value")]
    Value,
    /// The value is not a number.
    #[error("the value is not a number")]
    Number,
    /// The value exceeds the range of floating-point numbers.
    #[error("the value is out of range")]
    Range,
    /// The value is not followed by a timestamp in milliseconds or the line end.
    #[error("expected a timestamp in milliseconds or the end of the line")]
    Time,
    /// The timestamp is not followed by the line end.
    #[error("expected the end of the line")]
    End,
}

/// Parses a response. `sent` is the request time, used for samples without a timestamp.
pub fn parse(body: &[u8], sent: Timestamp, compat: Compat) -> Result<Scrape, ParseError> {
    let mut rows = RowTable::new(body.len(), sent, compat);
    let strict = compat.is_strict();
    for (number, text, ended) in lines(body) {
        let at = |flaw| error(number, text, flaw);
        // An unterminated last line means that the response is truncated.
        let must_be_good = strict || !ended;
        // metrics-server compares names from the start of the line, so it ignores an indented sample.
        let indented = strict && matches!(text.first(), Some(b' ' | b'\t'));
        let Some((family, rest)) = MetricFamily::of(text).filter(|_| !indented) else {
            if must_be_good && line::read(text).map_err(at)? == ExpositionLine::Comment(Comment::End) {
                break;
            }
            continue;
        };
        let (container_key, sample) = match labels::usual(rest) {
            Some((container_key, rest)) => (Some(container_key), line::sample(rest)),
            None => {
                let series = line::head(text).map_err(at)?;
                // metrics-server ignores the labels if a space precedes them; no kubelet writes that.
                let container_key = (family.is_of_containers() && series.is_joined())
                    .then(|| labels::container_key(series.labels, compat));
                let sample = series.sample();
                if !series.is_joined() {
                    if must_be_good {
                        sample.map_err(at)?;
                    }
                    continue;
                }
                (container_key.transpose().map_err(at)?.flatten(), sample)
            }
        };
        if must_be_good {
            sample.map_err(at)?;
        }
        rows.add(family, container_key, sample.ok());
    }
    let not_measured = rows.not_measured();
    let scrape = rows.into_scrape();
    if strict || scrape.node.is_some() || !scrape.pods.is_empty() {
        return Ok(scrape);
    }
    // No usable sample: report the first malformed line.
    match first_flaw(body) {
        Some(flawed) => Err(flawed),
        None if !scrape.incomplete.is_empty() => Ok(scrape),
        None if not_measured => Err(ParseError::NotMeasured),
        None => Err(ParseError::Nothing),
    }
}

/// Metric family of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetricFamily {
    ContainerCpu,
    ContainerMemory,
    ContainerStart,
    NodeCpu,
    NodeMemory,
    ScrapeError,
}

impl MetricFamily {
    /// Family of a line, if it is used, and the text after its name.
    fn of(text: &[u8]) -> Option<(Self, &[u8])> {
        let text = line::without_space(text);
        // Bytes 0 and 10 identify the family.
        let (family, name): (Self, &[u8]) = match (text.first()?, text.get(10)?) {
            (b'c', b'c') => (Self::ContainerCpu, b"container_cpu_usage_seconds_total"),
            (b'c', b'm') => (Self::ContainerMemory, b"container_memory_working_set_bytes"),
            (b'c', b's') => (Self::ContainerStart, b"container_start_time_seconds"),
            (b'n', b's') => (Self::NodeCpu, b"node_cpu_usage_seconds_total"),
            (b'n', b'y') => (Self::NodeMemory, b"node_memory_working_set_bytes"),
            (b'r', b'c') => (Self::ScrapeError, b"resource_scrape_error"),
            _ => return None,
        };
        let rest = text.strip_prefix(name)?;
        let more = rest.first().is_some_and(|next| line::is_of_name(*next));
        (!more).then_some((family, rest))
    }

    fn is_of_containers(self) -> bool {
        matches!(self, Self::ContainerCpu | Self::ContainerMemory | Self::ContainerStart)
    }
}

/// Lines with their number, and whether they are terminated.
fn lines(body: &[u8]) -> impl Iterator<Item = (usize, &[u8], bool)> {
    let mut rest = Some(body);
    let mut number = 0;
    std::iter::from_fn(move || {
        let text = rest.filter(|text| !text.is_empty())?;
        number += 1;
        let end = memchr::memchr(b'\n', text);
        rest = end.and_then(|end| text.get(end + 1..));
        Some((number, end.and_then(|end| text.get(..end)).unwrap_or(text), end.is_some()))
    })
}

fn first_flaw(body: &[u8]) -> Option<ParseError> {
    lines(body).find_map(|(number, text, _)| line::read(text).err().map(|flaw| error(number, text, flaw)))
}

fn error(line: usize, text: &[u8], flaw: LineError) -> ParseError {
    /// Bytes of a line shown in an error.
    const MAX_EXCERPT_BYTES: usize = 80;
    let shown = text.get(..MAX_EXCERPT_BYTES).unwrap_or(text);
    ParseError::Line { line, flaw, excerpt: String::from_utf8_lossy(shown).into() }
}
