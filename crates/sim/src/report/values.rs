//! The charts as tables, for readers who cannot see them. The run is divided into equal parts.

use super::page::{Load, PageTrack, PageWorkload, ReportPage, Series};
use super::{HtmlText, words};

/// Number of parts of a run.
const CHART_TABLE_ROWS: usize = 30;

/// One column: its heading, and its cell for a part of the run.
struct ChartTableColumn<'a> {
    head: String,
    cell: Box<dyn Fn(f64, f64) -> String + 'a>,
}

pub(super) fn write(out: &mut String, page: &ReportPage) {
    if page.workloads.is_empty() {
        return;
    }
    *out += "<section id=\"values\">\n<h2>Charts as tables</h2>\n";
    for workload in &page.workloads {
        table(out, page, workload);
    }
    *out += "</section>\n";
}

fn table(out: &mut String, page: &ReportPage, workload: &PageWorkload) {
    let mut columns = Vec::new();
    if let Some(load) = workload.tracks.iter().find_map(|track| track.load.as_ref()) {
        columns.push(rate("offered /s".to_owned(), load, &load.offered));
    }
    for (index, track) in workload.tracks.iter().enumerate() {
        let run = page.runs.get(index).filter(|_| page.runs.len() > 1);
        let prefix = run.map(|run| format!("{}: ", run.name)).unwrap_or_default();
        track_columns(&mut columns, &prefix, track);
    }
    *out +=
        &format!("<details><summary>{} in {CHART_TABLE_ROWS} parts</summary>\n", HtmlText(&workload.name));
    *out += "<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">from</th>";
    for column in &columns {
        *out += &format!("<th scope=\"col\" class=\"n\">{}</th>", HtmlText(&column.head));
    }
    *out += "</tr></thead>\n<tbody>\n";
    for part in 0..CHART_TABLE_ROWS {
        let bound = |part: usize| page.seconds * part as f64 / CHART_TABLE_ROWS as f64;
        let (from, to) = (bound(part), bound(part + 1));
        *out += &format!("<tr><th scope=\"row\">{}</th>", words::moment(page, from.round()));
        for column in &columns {
            *out += &format!("<td class=\"n\">{}</td>", HtmlText(&(column.cell)(from, to)));
        }
        *out += "</tr>\n";
    }
    *out += "</tbody></table></div></details>\n";
}

fn track_columns<'a>(columns: &mut Vec<ChartTableColumn<'a>>, prefix: &str, track: &'a PageTrack) {
    if let Some(load) = &track.load {
        columns.push(rate(format!("{prefix}served /s"), load, &load.served));
        columns.push(rate(format!("{prefix}unserved /s"), load, &load.unserved));
        if load.backlog.iter().any(|backlog| *backlog > 0.0) {
            columns.push(rate(format!("{prefix}waiting"), load, &load.backlog));
        }
    }
    for autoscaler in &track.autoscalers {
        for metric in &autoscaler.metrics {
            let show = |value| words::amount(metric.unit, value);
            let target = metric.target.map(|t| format!(" of {}", show(t))).unwrap_or_default();
            let cell = move |from, to| {
                let mean = mean(metric.series.rows(), from, to);
                let partly = if mean.missing && mean.value.is_some() { " (partly missing)" } else { "" };
                mean.value.map_or_else(|| "missing".to_owned(), |value| show(value) + partly)
            };
            columns.push(ChartTableColumn {
                head: format!("{prefix}{}{target}", metric.name),
                cell: Box::new(cell),
            });
        }
    }
    columns.push(count(format!("{prefix}ready"), &track.ready));
    for autoscaler in &track.autoscalers {
        columns.push(count(format!("{prefix}desired"), &autoscaler.desired));
    }
}

fn rate<'a>(head: String, load: &'a Load, values: &'a [f64]) -> ChartTableColumn<'a> {
    let cell = move |from, to| {
        let rows = load.at.iter().copied().zip(values.iter().copied().map(Some));
        mean(rows, from, to).value.map_or_else(|| "–".to_owned(), words::number)
    };
    ChartTableColumn { head, cell: Box::new(cell) }
}

fn count(head: String, series: &Series) -> ChartTableColumn<'_> {
    let cell = |from, to| {
        let mut values = pieces(series.rows(), from, to).filter_map(|(_, value)| value);
        let Some(first) = values.next() else { return "–".to_owned() };
        let (low, high) = values.fold((first, first), |(low, high), v| (low.min(v), high.max(v)));
        if low == high {
            words::number(low)
        } else {
            format!("{} – {}", words::number(low), words::number(high))
        }
    };
    ChartTableColumn { head, cell: Box::new(cell) }
}

/// A mean over time, and whether the value was missing for a part of the time.
struct Mean {
    value: Option<f64>,
    missing: bool,
}

fn mean(rows: impl Iterator<Item = (f64, Option<f64>)>, from: f64, to: f64) -> Mean {
    let (mut sum, mut weight, mut missing) = (0.0, 0.0, false);
    for (length, value) in pieces(rows, from, to) {
        match value {
            Some(value) => {
                sum += value * length;
                weight += length;
            }
            None => missing = true,
        }
    }
    Mean { value: (weight > 0.0).then(|| sum / weight), missing }
}

/// The values between `from` and `to`, each with its duration.
fn pieces(
    rows: impl Iterator<Item = (f64, Option<f64>)>,
    from: f64,
    to: f64,
) -> impl Iterator<Item = (f64, Option<f64>)> {
    let mut rows = rows.peekable();
    std::iter::from_fn(move || {
        let (at, value) = rows.next()?;
        let until = rows.peek().map_or(f64::INFINITY, |next| next.0);
        Some((until.min(to) - at.max(from), value))
    })
    .filter(|(length, _)| *length > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_weighted_by_time_and_mark_missing_values() {
        let series: Series = [(0.0, Some(2.0)), (10.0, None), (20.0, Some(4.0))].into_iter().collect();
        let of = |from, to| mean(series.rows(), from, to);
        assert_eq!((of(0.0, 10.0).value, of(0.0, 10.0).missing), (Some(2.0), false));
        assert_eq!((of(5.0, 25.0).value, of(5.0, 25.0).missing), (Some(3.0), true));
        assert_eq!((of(12.0, 18.0).value, of(12.0, 18.0).missing), (None, true));
        assert_eq!(of(20.0, 99.0).value, Some(4.0));
    }
}
