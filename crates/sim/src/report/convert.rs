//! Converts runs of the simulator to a report page.

use jiff::Timestamp;

use super::limit_spans::LimitSpans;
use super::page::{
    Load, Metric, PageAutoscaler, PageChange, PageProblem, PageTrack, PageUnit, PageWorkload, ReportPage,
    Reproduce, Run, RunTotals, Series,
};
use super::recorder::{ReportRecorder, limit};
use super::words;
use crate::recording::{self, HoldReason, MetricTrack, Table};
use crate::scenario::{AutoscalerPlan, Scenario, WorkloadPlan};
use crate::summary::Summary;

/// A finished run.
#[derive(Clone, Copy, Debug)]
pub struct FinishedRun<'a> {
    /// Name of the run in comparisons, such as its file name.
    pub name: &'a str,
    /// Short description of the difference to other runs; may be empty.
    pub about: &'a str,
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Totals of the run.
    pub summary: &'a Summary,
    /// The recording.
    pub recorder: &'a ReportRecorder,
}

impl ReportPage {
    /// The page of one run or of a comparison. All runs have the workloads and the duration of the first.
    pub fn of(runs: &[FinishedRun<'_>], reproduce: Reproduce) -> Self {
        let Some(first) = runs.first() else {
            return Self { reproduce, ..Self::empty() };
        };
        let workloads: Vec<PageWorkload> =
            first.scenario.workloads.iter().map(|plan| workload(first.scenario, plan, runs)).collect();
        let mut page = Self {
            title: first.scenario.name.clone(),
            question: Vec::new(),
            start: first.scenario.start,
            seconds: first.scenario.duration.as_secs_f64(),
            runs: runs.iter().map(|r| Run { name: r.name.to_owned(), about: r.about.to_owned() }).collect(),
            workloads,
            notes: runs.iter().filter_map(note).collect(),
            reproduce: Reproduce { seed: reproduce.seed.or(Some(first.scenario.seed)), ..reproduce },
        };
        page.notes.dedup();
        page.question = page.workloads.iter().filter_map(question).collect();
        page
    }

    fn empty() -> Self {
        Self {
            title: "Nothing".to_owned(),
            question: Vec::new(),
            start: jiff::Timestamp::UNIX_EPOCH,
            seconds: 0.0,
            runs: Vec::new(),
            workloads: Vec::new(),
            notes: Vec::new(),
            reproduce: Reproduce::default(),
        }
    }
}

/// `Load of deployment/php-apache: 1 to 32 per second, 10.3 on average.`
fn question(workload: &PageWorkload) -> Option<String> {
    let load = workload.tracks.iter().find_map(|track| track.load.as_ref())?;
    let low = load.offered.iter().copied().reduce(f64::min)?;
    let high = load.offered.iter().copied().reduce(f64::max)?;
    if low == high {
        return Some(format!("Load of {}: {} per second.", workload.name, words::number(low)));
    }
    let (low, high) = (words::number(low), words::number(high));
    Some(format!("Load of {}: between {low} and {high} per second.", workload.name))
}

/// A note about the precision of the values of a run.
fn note(run: &FinishedRun<'_>) -> Option<String> {
    let ReportRecorder { recording, tracks, .. } = run.recorder;
    let stride = recording.autoscalers.iter().map(|track| track.table.stride).max().unwrap_or(1);
    let mut text = String::new();
    if stride > 1 {
        let length = words::length(run.scenario.sync_period.as_secs_f64() * f64::from(stride));
        text += &format!("One point of a line is the mean of {stride} decisions ({length}). ");
    }
    let gap = tracks.iter().flat_map(|track| &track.limit_spans).map(|limit| limit.gap).fold(0.0, f64::max);
    if gap > 0.0 {
        text += &format!("Limits that applied again within {} are drawn as one. ", words::length(gap));
    }
    (!text.is_empty()).then(|| text + "Sums are exact.")
}

fn workload(scenario: &Scenario, plan: &WorkloadPlan, runs: &[FinishedRun<'_>]) -> PageWorkload {
    let elsewhere =
        scenario.workloads.iter().any(|w| w.namespace != plan.namespace) || plan.namespace != "default";
    let place = if elsewhere { format!(" in {}", plan.namespace) } else { String::new() };
    let name = format!("{}/{}{place}", plan.kind.to_lowercase(), plan.name);
    PageWorkload { name, tracks: runs.iter().map(|run| track(run, plan)).collect() }
}

fn track(run: &FinishedRun<'_>, plan: &WorkloadPlan) -> PageTrack {
    let same = |other: &WorkloadPlan| {
        (&other.kind, &other.namespace, &other.name) == (&plan.kind, &plan.namespace, &plan.name)
    };
    let Some(index) = run.scenario.workloads.iter().position(same) else { return PageTrack::default() };
    let table = run.recorder.recording.workloads.get(index);
    let autoscalers = run.scenario.autoscalers.iter().enumerate().filter(|(_, plan)| plan.workload == index);
    PageTrack {
        totals: totals(run, index),
        load: table.map(load),
        ready: table.map(|table| series(table, "ready")).unwrap_or_default(),
        autoscalers: autoscalers.filter_map(|(index, plan)| autoscaler(run, index, plan)).collect(),
    }
}

fn totals(run: &FinishedRun<'_>, workload: usize) -> RunTotals {
    let Some(sums) = run.summary.workloads.get(workload) else { return RunTotals::default() };
    let plans = run.scenario.autoscalers.iter().zip(&run.summary.autoscalers);
    let autoscalers = plans.filter(|(plan, _)| plan.workload == workload);
    let acting = autoscalers.clone().filter(|(plan, _)| !plan.dry_run);
    // Pods with unlimited capacity are never overloaded, so these values are left out.
    let bounded = sums.used_share.is_some() || sums.short_seconds > 0.0;
    let known = |value: f64| bounded.then_some(value);
    RunTotals {
        pod_hours: sums.pod_hours,
        mean_replicas: sums.mean_replicas,
        min_replicas: sums.min_replicas,
        max_replicas: sums.max_replicas,
        short_seconds: known(sums.short_seconds),
        unserved_share: known(sums.unserved_share),
        worst_reaction_seconds: known(sums.worst_reaction_seconds),
        short_at_end: sums.short_at_end,
        max_backlog: (sums.max_backlog > 0.0).then_some(sums.max_backlog),
        used_share: sums.used_share,
        above_target_seconds: autoscalers.map(|(_, sums)| sums.above_target_seconds).reduce(f64::max),
        changes: acting.map(|(_, sums)| sums.ups + sums.downs).sum(),
    }
}

/// Load over time. Rates are means since the previous row, so each holds from there.
fn load(table: &Table) -> Load {
    let column = |name: &str| table.column(name).unwrap_or_default();
    let [offered, served, unserved, backlog] = ["offered", "served", "unserved", "backlog"].map(column);
    let mut load = Load::default();
    let mut begin = 0.0;
    let columns = offered.iter().zip(served).zip(unserved).zip(backlog);
    for (end, (((offered, served), unserved), backlog)) in table.seconds.iter().zip(columns) {
        if *end > begin {
            load.at.push(begin);
            load.offered.push(*offered);
            load.served.push(*served);
            load.unserved.push(*unserved);
            load.backlog.push(*backlog);
        }
        begin = *end;
    }
    load
}

/// Values over time. Unmerged rows hold from their time on, merged rows from the previous row.
fn series(table: &Table, name: &str) -> Series {
    rows(table, table.column(name).unwrap_or_default())
}

fn rows(table: &Table, values: &[f64]) -> Series {
    let begins = std::iter::once(&0.0).chain(&table.seconds);
    let times =
        table.seconds.iter().zip(begins).map(|(end, begin)| if table.stride > 1 { *begin } else { *end });
    times.zip(values.iter().map(|value| Some(*value).filter(|v| v.is_finite()))).collect()
}

fn autoscaler(run: &FinishedRun<'_>, index: usize, plan: &AutoscalerPlan) -> Option<PageAutoscaler> {
    let ReportRecorder { recording, whys, tracks, .. } = run.recorder;
    let (track, seen) = (recording.autoscalers.get(index)?, tracks.get(index)?);
    let own = recording.changes.iter().zip(whys).filter(|(change, _)| change.autoscaler == index);
    let changes: Vec<PageChange> = own.map(|(c, why)| change(c, why)).collect();
    let metrics = track.metrics.iter().enumerate().map(|(place, metric)| {
        // The first four columns are not metrics.
        let values = track.table.columns.get(4 + place).map(|column| column.values.as_slice());
        let mut series = rows(&track.table, values.unwrap_or_default());
        // Outside the bounds metrics are not evaluated, so they do not count as missing.
        let held = track.table.column("held").unwrap_or_default();
        let out = |code: &&f64| {
            [HoldReason::Min, HoldReason::Max].iter().any(|held| f64::from(held.code()) == **code)
        };
        let aside =
            held.iter().zip(&series.values).take_while(|(code, value)| out(code) && value.is_none()).count();
        series.at.drain(..aside);
        series.values.drain(..aside);
        metric_of(metric, series)
    });
    // Means would hide steps, so the changes are used if all of them are listed and were made.
    let exact = track.table.stride > 1 && recording.unlisted == 0 && !plan.dry_run && !changes.is_empty();
    let begin = changes.first().map(|first| (0.0, f64::from(first.from)));
    let steps = changes.iter().map(|change| (change.at, f64::from(change.to)));
    Some(PageAutoscaler {
        name: plan.object.short_name(),
        min: track.min,
        max: track.max,
        dry_run: plan.dry_run,
        desired: if exact {
            Series::complete(begin.into_iter().chain(steps))
        } else {
            series(&track.table, "desired")
        },
        metrics: metrics.collect(),
        changes,
        more_changes: seen.more_changes.clone(),
        limits: seen.limit_spans.iter().flat_map(|limit| limit.spans.iter().cloned()).collect(),
        limit_sums: seen.limit_spans.iter().filter_map(LimitSpans::sum).collect(),
        problems: recording
            .problems
            .iter()
            .filter(|t| t.autoscaler == index)
            .map(|t| problem(run, t))
            .collect(),
    })
}

fn change(change: &recording::ReplicaChange, why: &str) -> PageChange {
    let dry = if change.dry_run { " (dry run: not done)" } else { "" };
    PageChange {
        at: change.seconds,
        from: change.from,
        to: change.to,
        wanted: change.recommended.filter(|wanted| *wanted != change.to),
        why: format!("{why}{dry}"),
        limit: limit(change.held),
    }
}

fn problem(run: &FinishedRun<'_>, problem: &recording::RecordedProblem) -> PageProblem {
    let seconds = |at: Timestamp| at.duration_since(run.scenario.start).as_secs_f64();
    PageProblem {
        from: seconds(problem.since),
        to: seconds(problem.until),
        times: problem.count,
        reason: problem.reason.clone(),
        message: problem.message.clone(),
    }
}

fn metric_of(metric: &MetricTrack, series: Series) -> Metric {
    let unit = match metric.unit {
        recording::MetricUnit::Percent => PageUnit::Percent,
        recording::MetricUnit::Cores => PageUnit::Cores,
        recording::MetricUnit::Bytes => PageUnit::Bytes,
        recording::MetricUnit::Plain => PageUnit::Plain,
    };
    Metric { name: metric.label.clone(), unit, target: metric.target, series }
}
