//! Load from a file: rows of `time,value`.

use api::yaml::{Diagnostic, SourceFile};
use jiff::Timestamp;

use crate::time::Millis;

/// Maximum number of rows of a trace.
const MAX_TRACE_ROWS: usize = 2_000_000;
/// Times from this number on are Unix seconds; smaller ones are seconds since the start of the scenario.
const FIRST_UNIX_SECONDS: f64 = 1e9;
/// Maximum of times and values.
const MAX_TRACE_NUMBER: f64 = 1e12;

/// A recorded load.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    times: Vec<i64>,
    values: Vec<f64>,
    interpolate: bool,
    /// Time from one repetition to the next; absent if the trace does not repeat.
    period: Option<i64>,
}

/// How a trace file is read.
#[derive(Clone, Debug)]
pub struct TraceOptions<'a> {
    /// Name of the column with the values; absent: the second.
    pub column: Option<&'a str>,
    /// Whether values between rows are interpolated; otherwise each row holds until the next.
    pub interpolate: bool,
    /// Whether the trace starts again after its last row.
    pub repeat: bool,
    /// Whether times are shifted so that the first row is at the start of the scenario.
    pub from_start: bool,
    /// Factor for the values.
    pub scale: f64,
    /// When the scenario begins.
    pub start: Timestamp,
}

impl Trace {
    /// Reads a file.
    pub fn parse(source: &SourceFile, reading: &TraceOptions<'_>) -> Result<Self, Diagnostic> {
        let mut rows = TraceRows::new(source);
        let mut column = 1;
        let mut first = true;
        let (mut times, mut values) = (Vec::new(), Vec::new());
        while let Some(row) = rows.next() {
            let time = moment(row.field(0), reading.start);
            if std::mem::take(&mut first) {
                if let Some(name) = reading.column {
                    column = row.find(name).ok_or_else(|| row.no_column(name, time.is_some()))?;
                }
                let header = time.is_none() && number(row.field(column)).is_none();
                if header || reading.column.is_some() {
                    continue;
                }
            }
            let time = time.ok_or_else(|| {
                row.problem(0, format!("expected a time in seconds or as RFC 3339, found `{}`", row.field(0)))
            })?;
            if row.fields.len() <= column {
                return Err(row.problem(0, "expected `time,value`, found only one field"));
            }
            let value = number(row.field(column)).ok_or_else(|| {
                row.problem(column, format!("expected a number, found `{}`", row.field(column)))
            })?;
            if times.last().is_some_and(|last| *last >= time) {
                return Err(row.problem(0, "the time is not later than that of the row before"));
            }
            if times.len() == MAX_TRACE_ROWS {
                return Err(row.problem(0, format!("a trace has at most {MAX_TRACE_ROWS} rows")));
            }
            times.push(time);
            values.push(value * reading.scale);
        }
        let (Some(&begin), Some(&end)) = (times.first(), times.last()) else {
            return Err(Diagnostic::at(source, source.span(0, 0), "the trace has no rows")
                .with_hint("expected lines such as `60,12.5`"));
        };
        if reading.from_start {
            for time in &mut times {
                *time -= begin;
            }
        }
        // The last row lasts as long as the one before it, so that 24 hourly rows make a day.
        let last =
            times.len().checked_sub(2).and_then(|i| times.get(i)).zip(times.last()).map_or(1, |(a, b)| b - a);
        let period = reading.repeat.then_some(end - begin + last);
        Ok(Self { times, values, interpolate: reading.interpolate, period })
    }

    /// First and last time.
    pub fn range(&self) -> (Millis, Millis) {
        let at = |time: Option<&i64>| Millis(time.copied().unwrap_or_default());
        (at(self.times.first()), at(self.times.last()))
    }

    /// Whether it repeats.
    pub fn repeats(&self) -> bool {
        self.period.is_some()
    }

    /// The level at a time. Before the first row it is that of the first, after the last row that of the last.
    pub fn at(&self, now: Millis) -> f64 {
        let begin = self.times.first().copied().unwrap_or_default();
        let now = match self.period {
            Some(period) => begin + (now.0 - begin).rem_euclid(period),
            None => now.0,
        };
        let next = self.times.partition_point(|time| *time <= now);
        let row = |index: usize| Some((*self.times.get(index)?, *self.values.get(index)?));
        let Some((left_time, left)) = next.checked_sub(1).and_then(row) else {
            return self.values.first().copied().unwrap_or_default();
        };
        let right = row(next).or_else(|| Some((begin + self.period?, *self.values.first()?)));
        match right {
            Some((right_time, right)) if self.interpolate => {
                left + (right - left) * Millis(now - left_time).fraction_of(Millis(right_time - left_time))
            }
            _ => left,
        }
    }
}

/// Milliseconds from the start of the scenario.
fn moment(text: &str, start: Timestamp) -> Option<i64> {
    if let Some(seconds) = number(text) {
        let millis = (seconds * 1000.0).round() as i64;
        return Some(if seconds >= FIRST_UNIX_SECONDS { millis - start.as_millisecond() } else { millis });
    }
    let at: Timestamp = text.parse().ok()?;
    Some(at.as_millisecond() - start.as_millisecond())
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|n: &f64| n.abs() <= MAX_TRACE_NUMBER)
}

/// The rows of a file, without comments and empty lines.
struct TraceRows<'a> {
    source: &'a SourceFile,
    at: usize,
    separator: Option<char>,
}

/// One row.
struct TraceRow<'a> {
    source: &'a SourceFile,
    /// Byte offset and text of each field.
    fields: Vec<(usize, &'a str)>,
}

impl<'a> TraceRows<'a> {
    fn new(source: &'a SourceFile) -> Self {
        let at = if source.text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
        Self { source, at, separator: None }
    }

    fn next(&mut self) -> Option<TraceRow<'a>> {
        loop {
            let rest = self.source.text.get(self.at..).filter(|rest| !rest.is_empty())?;
            let line = rest.split('\n').next().unwrap_or_default();
            let begin = self.at;
            self.at += line.len() + 1;
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            let separator = *self
                .separator
                .get_or_insert_with(|| *[',', ';', '\t'].iter().find(|s| line.contains(**s)).unwrap_or(&','));
            let mut fields = Vec::new();
            let mut place = begin;
            for field in line.split(separator) {
                let text = field.trim();
                let lead = field.len() - field.trim_start().len();
                fields.push((place + lead, text.trim_matches('"')));
                place += field.len() + separator.len_utf8();
            }
            return Some(TraceRow { source: self.source, fields });
        }
    }
}

impl<'a> TraceRow<'a> {
    fn field(&self, index: usize) -> &'a str {
        self.fields.get(index).map_or("", |(_, text)| *text)
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|(_, text)| *text == name)
    }

    fn problem(&self, index: usize, message: impl AsRef<str>) -> Diagnostic {
        let (start, text) = self.fields.get(index).or(self.fields.first()).copied().unwrap_or_default();
        Diagnostic::at(self.source, self.source.span(start, start + text.len()), message)
    }

    fn no_column(&self, name: &str, data: bool) -> Diagnostic {
        if data {
            return self.problem(0, format!("the first row has no names, so there is no column `{name}`"));
        }
        let names: Vec<&str> = self.fields.iter().map(|(_, text)| *text).collect();
        self.problem(0, format!("there is no column `{name}`"))
            .with_hint(format!("columns: {}", names.join(", ")))
    }
}
