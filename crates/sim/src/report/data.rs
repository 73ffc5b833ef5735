//! What the script draws, as JSON that can stand within a script element.

use serde::Serialize;

use super::page::{Autoscaler, Limit, Load, Mark, Metric, ReportPage, Run, Series, Track};
use super::thin::Thin;

/// Rows per series, which several runs share, and those that each run has at least.
const ROWS: usize = 4000;
const FEWEST: usize = 1000;
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
    dry_run: bool,
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

pub(super) fn json(page: &ReportPage) -> String {
    let thin = Thin { rows: (ROWS / page.runs.len().max(1)).max(FEWEST) };
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
    // Numbers that are none become null; nothing else in there can fail.
    let text = serde_json::to_string(&data).unwrap_or_else(|_| "null".to_owned());
    // Within strings only: JSON has no other use for these, and a script element ends at the first `</script`.
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn track(track: &Track, thin: Thin) -> TrackData<'_> {
    TrackData {
        load: track.load.as_ref().map(|load| thin.load(load)),
        ready: thin.series(&track.ready),
        autoscalers: track.autoscalers.iter().map(|a| autoscaler(a, thin)).collect(),
    }
}

fn autoscaler(autoscaler: &Autoscaler, thin: Thin) -> AutoscalerData<'_> {
    let Autoscaler { changes, more_changes, limits, .. } = autoscaler;
    let listed = changes.iter().map(|c| Mark { at: c.at, from: c.from, to: c.to });
    let marks: Vec<Mark> = listed.chain(more_changes.iter().copied()).collect();
    let place = |limit: Limit| Limit::ALL.iter().position(|other| *other == limit);
    let explained = if limits.len() <= EXPLAINED { limits.len() } else { 0 };
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
