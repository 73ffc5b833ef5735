//! The text of `/metrics/resource` (Prometheus text format 0.0.4) becomes a [`Scrape`], without copies.
//!
//! ```text
//! line     the grammar of one line
//! labels   which container a line is about
//! rows     lines become containers, containers become pods
//! ```
//!
//! metrics-server throws a whole node away for one line that it cannot read. So do we if asked to be strict; else only
//! what the line is about is lost, and lines of families that nobody uses are not even looked at.

mod labels;
mod line;
mod rows;
#[cfg(test)]
mod tests;

use api::provider::Compat;
use jiff::Timestamp;

use super::Scrape;
use line::{Comment, Line};
use rows::Rows;

/// Why the answer of a kubelet is worth nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// A line cannot be read.
    #[error("failed parsing metrics: line {line}: {flaw}: {excerpt:?}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        flaw: Flaw,
        /// How it begins.
        excerpt: Box<str>,
    },
    /// The kubelet says that it could not measure, and gives no numbers.
    #[error("failed parsing metrics: the kubelet could not measure (resource_scrape_error is 1)")]
    NotMeasured,
    /// There is nothing about the node or a container.
    #[error("failed parsing metrics: no metrics of the node or of a container")]
    Nothing,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Flaw {
    /// It starts with something else than a name, `{` or `#`.
    #[error("expected a metric name")]
    Start,
    /// There is no name anywhere.
    #[error("expected a metric name among the labels")]
    NoName,
    /// After `# HELP` or `# TYPE` there is no name.
    #[error("expected a metric name after HELP or TYPE")]
    CommentName,
    /// `# TYPE` names a type that does not exist.
    #[error("unknown metric type")]
    Type,
    /// Something else than the name of a label.
    #[error("expected a label name")]
    LabelName,
    /// Something else than `=`.
    #[error("expected = after a label name")]
    Equal,
    /// Something else than a quoted text that ends.
    #[error("expected a quoted label value")]
    LabelValue,
    /// The labels do not tell which container is meant.
    #[error("expected the labels container, namespace and pod")]
    Labels,
    /// Not UTF-8.
    #[error("not UTF-8")]
    Utf8,
    /// There is no value.
    #[error("expected a value")]
    Value,
    /// The value is not a number.
    #[error("the value is not a number")]
    Number,
    /// The value is beyond all floating-point numbers.
    #[error("the value is out of range")]
    Range,
    /// After the value comes something else than a time in whole milliseconds.
    #[error("expected a timestamp in milliseconds or the end of the line")]
    Time,
    /// After the time comes something else.
    #[error("expected the end of the line")]
    End,
}

/// What a kubelet said. `sent` is when it was asked: the time of lines that do not tell theirs.
pub fn parse(body: &[u8], sent: Timestamp, compat: Compat) -> Result<Scrape, ParseError> {
    let mut rows = Rows::new(body.len(), sent, compat);
    let strict = compat.is_strict();
    for (number, text, ended) in lines(body) {
        let at = |flaw| error(number, text, flaw);
        // A last line that breaks off tells that the answer does.
        let must_be_good = strict || !ended;
        let Some((family, rest)) = Family::of(text) else {
            if must_be_good && line::read(text).map_err(at)? == Line::Comment(Comment::End) {
                break;
            }
            continue;
        };
        let (whose, sample) = match labels::usual(rest) {
            Some((whose, rest)) => (Some(whose), line::sample(rest)),
            None => {
                let series = line::head(text).map_err(at)?;
                // Space between them hides the labels from metrics-server, and no kubelet writes it.
                let whose = (family.is_of_containers() && series.is_joined())
                    .then(|| labels::whose(series.labels, compat));
                let sample = series.sample();
                if !series.is_joined() {
                    if must_be_good {
                        sample.map_err(at)?;
                    }
                    continue;
                }
                (whose.transpose().map_err(at)?.flatten(), sample)
            }
        };
        if must_be_good {
            sample.map_err(at)?;
        }
        rows.add(family, whose, sample.ok());
    }
    let not_measured = rows.not_measured();
    let scrape = rows.into_scrape();
    if strict || scrape.node.is_some() || !scrape.pods.is_empty() {
        return Ok(scrape);
    }
    // Nothing can be used: the first line that cannot be read tells why.
    match first_flaw(body) {
        Some(flawed) => Err(flawed),
        None if !scrape.left_out.is_empty() => Ok(scrape),
        None if not_measured => Err(ParseError::NotMeasured),
        None => Err(ParseError::Nothing),
    }
}

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    ContainerCpu,
    ContainerMemory,
    ContainerStart,
    NodeCpu,
    NodeMemory,
    ScrapeError,
}

impl Family {
    /// The family of a line, if it is one that is used, and what follows its name.
    fn of(text: &[u8]) -> Option<(Self, &[u8])> {
        let text = line::without_space(text);
        // The first letter and the eleventh tell them apart.
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

/// Lines with their number, and whether they end.
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

fn error(line: usize, text: &[u8], flaw: Flaw) -> ParseError {
    /// As much as tells which line it is.
    const SHOWN: usize = 80;
    let shown = text.get(..SHOWN).unwrap_or(text);
    ParseError::Line { line, flaw, excerpt: String::from_utf8_lossy(shown).into() }
}
