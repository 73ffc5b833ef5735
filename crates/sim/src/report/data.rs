//! What the script draws, as JSON that can stand within a script element.

use serde::Serialize;

use super::page::{Autoscaler, Limit, Load, Mark, Metric, Page, Run, Series, Track};

/// Rows per series beyond which extremes stand for the rest.
const ROWS: usize = 4000;
/// Spans of an autoscaler beyond which they go without their sentences.
const EXPLAINED: usize = 2000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    start: f64,
    seconds: f64,
    runs: Vec<&'a str>,
    limits: [LimitText; 6],
    workloads: Vec<WorkloadData<'a>>,
}

#[derive(Serialize)]
struct LimitText {
    id: Limit,
    label: &'static str,
    meaning: &'static str,
}

#[derive(Serialize)]
struct WorkloadData<'a> {
    name: &'a str,
    tracks: Vec<TrackData<'a>>,
}

#[derive(Serialize)]
struct TrackData<'a> {
    load: Option<Load>,
    ready: Series,
    autoscalers: Vec<AutoscalerData<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AutoscalerData<'a> {
    name: &'a str,
    min: i32,
    max: i32,
    desired: Series,
    metrics: Vec<Metric>,
    changes: Changes,
    limits: Spans<'a>,
}

/// Changes in columns. Their reasons are in the table of changes, in the same order; those beyond it have none.
#[derive(Serialize)]
struct Changes {
    at: Vec<f64>,
    from: Vec<i32>,
    to: Vec<i32>,
    wanted: Vec<Option<i32>>,
    /// Places in the list of limits.
    limit: Vec<Option<usize>>,
}

/// Spans in columns.
#[derive(Serialize)]
struct Spans<'a> {
    from: Vec<f64>,
    to: Vec<f64>,
    limit: Vec<Option<usize>>,
    decisions: Vec<usize>,
    why: Vec<&'a str>,
}

pub(super) fn json(page: &Page) -> String {
    let data = Data {
        start: page.start.as_millisecond() as f64 / 1000.0,
        seconds: page.seconds,
        runs: page.runs.iter().map(|Run { name, .. }| name.as_str()).collect(),
        limits: Limit::ALL.map(|id| LimitText { id, label: id.label(), meaning: id.meaning() }),
        workloads: page
            .workloads
            .iter()
            .map(|workload| WorkloadData {
                name: &workload.name,
                tracks: workload.tracks.iter().map(track).collect(),
            })
            .collect(),
    };
    // Numbers that are none become null; nothing else in there can fail.
    let text = serde_json::to_string(&data).unwrap_or_else(|_| "null".to_owned());
    // Within strings only: JSON has no other use for these, and a script element ends at the first `</script`.
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn track(track: &Track) -> TrackData<'_> {
    TrackData {
        load: track.load.as_ref().map(thin_load),
        ready: thin(&track.ready),
        autoscalers: track.autoscalers.iter().map(autoscaler).collect(),
    }
}

fn autoscaler(autoscaler: &Autoscaler) -> AutoscalerData<'_> {
    let Autoscaler { changes, more_changes, limits, .. } = autoscaler;
    let listed = changes.iter().map(|c| Mark { at: c.at, from: c.from, to: c.to });
    let marks: Vec<Mark> = listed.chain(more_changes.iter().copied()).collect();
    let place = |limit: Limit| Limit::ALL.iter().position(|other| *other == limit);
    let explained = if limits.len() <= EXPLAINED { limits.len() } else { 0 };
    AutoscalerData {
        name: &autoscaler.name,
        min: autoscaler.min,
        max: autoscaler.max,
        desired: thin(&autoscaler.desired),
        metrics: autoscaler.metrics.iter().map(|m| Metric { series: thin(&m.series), ..m.clone() }).collect(),
        changes: Changes {
            at: marks.iter().map(|mark| mark.at).collect(),
            from: marks.iter().map(|mark| mark.from).collect(),
            to: marks.iter().map(|mark| mark.to).collect(),
            wanted: changes.iter().map(|change| change.wanted).collect(),
            limit: changes.iter().map(|change| change.limit.and_then(place)).collect(),
        },
        limits: Spans {
            from: limits.iter().map(|span| span.from).collect(),
            to: limits.iter().map(|span| span.to).collect(),
            limit: limits.iter().map(|span| place(span.limit)).collect(),
            decisions: limits.iter().map(|span| span.decisions).collect(),
            why: limits.iter().take(explained).map(|span| span.why.as_str()).collect(),
        },
    }
}

fn thin(series: &Series) -> Series {
    let rows: Vec<(f64, Option<f64>)> =
        series.rows().map(|(at, value)| (at, value.filter(|v| v.is_finite()).map(rounded))).collect();
    // What holds until the next row need not be said again.
    let mut kept: Vec<(f64, Option<f64>)> = Vec::new();
    for row in rows {
        if kept.last().is_none_or(|last| last.1 != row.1) {
            kept.push(row);
        }
    }
    let values: Vec<Option<f64>> = kept.iter().map(|row| row.1).collect();
    let keep = extremes(kept.len(), &[&values]);
    kept.into_iter().zip(keep).filter_map(|(row, keep)| keep.then_some(row)).collect()
}

fn thin_load(load: &Load) -> Load {
    let columns = [&load.offered, &load.served, &load.unserved, &load.backlog];
    let optional: Vec<Vec<Option<f64>>> =
        columns.iter().map(|c| c.iter().copied().map(Some).collect()).collect();
    let keep = extremes(load.at.len(), &optional.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let pick = |column: &[f64]| {
        column.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(v, _)| rounded(*v)).collect()
    };
    Load {
        at: load.at.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(at, _)| *at).collect(),
        offered: pick(&load.offered),
        served: pick(&load.served),
        unserved: pick(&load.unserved),
        backlog: pick(&load.backlog),
    }
}

/// Which of `rows` to draw: all, or of each stretch the first and last, every column's extremes, and the edges of gaps.
fn extremes(rows: usize, columns: &[&[Option<f64>]]) -> Vec<bool> {
    if rows <= ROWS {
        return vec![true; rows];
    }
    let mut keep = vec![false; rows];
    let per_stretch = 2 + 2 * columns.len();
    let stretch = (rows * per_stretch).div_ceil(ROWS);
    let mut mark = |row: usize| {
        if let Some(keep) = keep.get_mut(row) {
            *keep = true;
        }
    };
    for first in (0..rows).step_by(stretch) {
        let last = (first + stretch).min(rows) - 1;
        mark(first);
        mark(last);
        for column in columns {
            let known = (first..=last).filter_map(|row| Some((row, column.get(row).copied().flatten()?)));
            let (low, high) = known.fold(
                (None, None),
                |(low, high): (Option<(usize, f64)>, Option<(usize, f64)>), (row, v)| {
                    (
                        low.filter(|l| l.1 <= v).or(Some((row, v))),
                        high.filter(|h| h.1 >= v).or(Some((row, v))),
                    )
                },
            );
            low.iter().chain(&high).for_each(|(row, _)| mark(*row));
        }
    }
    for column in columns {
        for (row, pair) in column.windows(2).enumerate() {
            if let [a, b] = pair
                && a.is_none() != b.is_none()
            {
                mark(row);
                mark(row + 1);
            }
        }
    }
    keep
}

/// Six significant digits.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(5 - value.abs().log10().floor() as i32);
    let rounded = (value * scale).round() / scale;
    if rounded.is_finite() { rounded } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_series_keep_extremes_and_gaps() {
        let value = |row: usize| match row {
            50_000 => Some(99.0),
            70_000..70_010 => None,
            _ => Some((row % 7) as f64),
        };
        let series: Series = (0..100_000).map(|row| (row as f64, value(row))).collect();
        let thinned = thin(&series);
        assert!(thinned.at.len() <= ROWS + 100, "{}", thinned.at.len());
        assert!(thinned.rows().any(|row| row == (50_000.0, Some(99.0))));
        assert!(thinned.rows().any(|row| row == (70_000.0, None)));
        assert!(thinned.rows().any(|row| row.0 == 70_010.0 && row.1.is_some()));
    }

    #[test]
    fn numbers_lose_only_digits_nobody_sees() {
        for (value, shown) in
            [(0.1 + 0.2, 0.3), (123_456.78, 123_457.0), (-1e-9, -1e-9), (f64::NAN, 0.0), (1e300, 1e300)]
        {
            assert_eq!(rounded(value), shown);
        }
    }
}
