//! The data of the charts, as JSON that is safe within a script element.

use serde::Serialize;

use super::page::{Limit, Load, Mark, Metric, PageAutoscaler, PageTrack, ReportPage, Run, Series};
use super::thin::Thin;

/// Maximum rows per series, divided among all runs, and the minimum of each run.
const MAX_ROWS_OF_ALL_RUNS: usize = 4000;
const MIN_ROWS_PER_RUN: usize = 1000;
/// Maximum number of spans of an autoscaler that are written with their sentences.
const MAX_EXPLAINED_SPANS: usize = 2000;

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
    dry_run: bool,
    desired: Series,
    metrics: Vec<Metric>,
    changes: Changes,
    limits: Spans<'a>,
}

/// Changes in columns. Their reasons are in the table of changes, in the same order; changes that it does not list have none.
#[derive(Serialize)]
struct Changes {
    at: Vec<f64>,
    from: Vec<i32>,
    to: Vec<i32>,
    wanted: Vec<Option<i32>>,
    /// Indexes in the list of limits.
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

pub(super) fn json(page: &ReportPage) -> String {
    let thin = Thin { rows: (MAX_ROWS_OF_ALL_RUNS / page.runs.len().max(1)).max(MIN_ROWS_PER_RUN) };
    let data = Data {
        start: page.start.as_millisecond() as f64 / 1000.0,
        seconds: page.seconds,
        runs: page.runs.iter().map(|Run { name, .. }| name.as_str()).collect(),
        limits: Limit::ALL.map(|id| LimitText { id, label: id.label(), meaning: id.meaning() }),
        workloads: page
            .workloads
            .iter()
            .map(|w| WorkloadData {
                name: &w.name,
                tracks: w.tracks.iter().map(|t| track(t, thin)).collect(),
            })
            .collect(),
    };
    // NaN becomes null; serialization cannot fail otherwise.
    let text = serde_json::to_string(&data).unwrap_or_else(|_| "null".to_owned());
    // These characters occur only within JSON strings. A script element would end at the first `</script`.
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn track(track: &PageTrack, thin: Thin) -> TrackData<'_> {
    TrackData {
        load: track.load.as_ref().map(|load| thin.load(load)),
        ready: thin.series(&track.ready),
        autoscalers: track.autoscalers.iter().map(|a| autoscaler(a, thin)).collect(),
    }
}

fn autoscaler(autoscaler: &PageAutoscaler, thin: Thin) -> AutoscalerData<'_> {
    let PageAutoscaler { changes, more_changes, limits, .. } = autoscaler;
    let listed = changes.iter().map(|c| Mark { at: c.at, from: c.from, to: c.to });
    let marks: Vec<Mark> = listed.chain(more_changes.iter().copied()).collect();
    let place = |limit: Limit| Limit::ALL.iter().position(|other| *other == limit);
    let explained = if limits.len() <= MAX_EXPLAINED_SPANS { limits.len() } else { 0 };
    AutoscalerData {
        name: &autoscaler.name,
        min: autoscaler.min,
        max: autoscaler.max,
        dry_run: autoscaler.dry_run,
        desired: thin.series(&autoscaler.desired),
        metrics: autoscaler
            .metrics
            .iter()
            .map(|m| Metric { series: thin.series(&m.series), ..m.clone() })
            .collect(),
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
