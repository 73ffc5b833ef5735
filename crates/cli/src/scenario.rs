//! Scenarios as commands use them: loading, naming, showing, summing up.

use std::io;
use std::path::Path;

use api::autoscaling::{print, v2};
use api::yaml::{SourceFile, nearest};
use api::{convert, plimsoll};
use engine::Status;
use engine::explain::plural;
use jiff::Timestamp;
use sim::scenario::{AutoscalerObject, AutoscalerPlan, Variation};
use sim::{AutoscalerSummary, Millis, Scenario, Summary, WorkloadSummary};

use crate::failure::Failure;
use crate::files;

/// Reads a scenario with the user's changes, and its trace files.
pub(crate) fn load(sources: &[SourceFile], variation: Variation<'_>) -> Result<Scenario, Failure> {
    let read = |path: &Path| files::bytes(path).map_err(|failure| io::Error::other(failure.to_string()));
    Ok(Scenario::load_varied(sources, variation, &read)?)
}

/// The selected autoscalers: all, or those of this name.
pub(crate) fn choose(scenario: &Scenario, name: Option<&str>) -> Result<Vec<usize>, Failure> {
    if scenario.autoscalers.is_empty() {
        return Err(Failure::input("this scenario has no autoscaler"));
    }
    let Some(name) = name else { return Ok((0..scenario.autoscalers.len()).collect()) };
    let is_meant = |plan: &AutoscalerPlan| {
        [plan.spec.name.clone(), plan.object.short_name(), plan.spec.key()].iter().any(|known| known == name)
    };
    let found: Vec<usize> = scenario
        .autoscalers
        .iter()
        .enumerate()
        .filter(|(_, plan)| is_meant(plan))
        .map(|(index, _)| index)
        .collect();
    if found.is_empty() {
        let names: Vec<String> = scenario.autoscalers.iter().map(|plan| plan.object.short_name()).collect();
        let plain = name.rsplit('/').next().unwrap_or(name);
        let near = nearest(plain, scenario.autoscalers.iter().map(|p| p.spec.name.as_str()));
        let near = near.map(|n| format!("; did you mean {n}?")).unwrap_or_default();
        return Err(Failure::input(format!(
            "there is no autoscaler {name}; there are {}{near}",
            names.join(", ")
        )));
    }
    Ok(found)
}

/// The selected time; the end if none is given.
pub(crate) fn moment(scenario: &Scenario, text: Option<&str>) -> Result<Millis, Failure> {
    let Some(text) = text else { return Ok(scenario.duration) };
    scenario.moment(text).ok_or_else(|| {
        let end = scenario.duration.after(scenario.start);
        Failure::input(format!(
            "--at {text}: not a moment of this scenario, which runs from {} to {end}; write 5m for five minutes after its \
             start, a time of day such as 09:05:00, or a full time",
            scenario.start
        ))
    })
}

/// How users call the kind of an autoscaler.
pub(crate) fn kind_of(plan: &AutoscalerPlan) -> &'static str {
    match &plan.object {
        AutoscalerObject::Hpa(_) => "hpa",
        AutoscalerObject::Autoscaler(_) => "autoscaler",
    }
}

/// The object as the API would show it with this status, created at the start of the scenario.
pub(crate) fn as_hpa(
    plan: &AutoscalerPlan,
    status: Option<&Status>,
    start: Timestamp,
) -> v2::HorizontalPodAutoscaler {
    let mut hpa = match &plan.object {
        AutoscalerObject::Hpa(hpa) => (**hpa).clone(),
        AutoscalerObject::Autoscaler(autoscaler) => plimsoll::v2_view((**autoscaler).clone()),
    };
    hpa.metadata.creation_timestamp = Some(start);
    if let Some(status) = status {
        hpa.status = convert::hpa_status(&hpa.spec, status);
    }
    hpa
}

/// The cells of `kubectl get hpa`.
pub(crate) fn row(
    plan: &AutoscalerPlan,
    status: Option<&Status>,
    start: Timestamp,
    now: Timestamp,
) -> Vec<String> {
    let row = print::Row::new(&as_hpa(plan, status, start), now);
    let cells = row.cells();
    cells.iter().map(|cell| cell.as_str().map_or_else(|| cell.to_string(), engine::explain::plain)).collect()
}

/// Pod-hours, unserved work, changes and reaction time of each workload, one line each.
pub(crate) fn summary_lines(scenario: &Scenario, summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, (plan, workload)) in scenario.workloads.iter().zip(&summary.workloads).enumerate() {
        let changes = changes(scenario, summary, index);
        lines.push(format!(
            "{}/{}: {:.1} pod-hours · {} · {} · {}",
            plan.kind.to_lowercase(),
            plan.name,
            workload.pod_hours,
            unserved(workload),
            plural(changes, "change"),
            reaction(workload),
        ));
    }
    lines
}

/// Changes made to a workload, by whichever autoscaler.
pub(crate) fn changes(scenario: &Scenario, summary: &Summary, workload: usize) -> u64 {
    let of_workload =
        |(plan, _): &(&AutoscalerPlan, &AutoscalerSummary)| plan.workload == workload && !plan.dry_run;
    let plans = scenario.autoscalers.iter().zip(&summary.autoscalers);
    plans.filter(of_workload).map(|(_, done)| done.ups + done.downs).sum()
}

fn unserved(workload: &WorkloadSummary) -> String {
    if workload.max_backlog > 0.0 {
        return format!(
            "at most {:.0} waiting, {:.0} s on average",
            workload.max_backlog, workload.mean_wait_seconds
        );
    }
    if workload.unserved <= 0.0 {
        return "all load served".to_owned();
    }
    format!("{:.2} % of load unserved over {:.0} s", workload.unserved_share * 100.0, workload.short_seconds)
}

fn reaction(workload: &WorkloadSummary) -> String {
    match workload.worst_reaction_seconds {
        seconds if seconds <= 0.0 => "never short of pods".to_owned(),
        seconds => format!("worst reaction {seconds:.0} s"),
    }
}
