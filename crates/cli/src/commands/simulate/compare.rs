//! `simulate --compare`: several configurations on the same load, in one table.

use api::table::Table;
use api::yaml::SourceFile;
use serde::Serialize;
use sim::report::FinishedRun;
use sim::{Scenario, Summary, WorkloadSummary};

use super::{SimulateArgs, play, stem};
use crate::failure::{CommandResult, Failure};
use crate::files;
use crate::output::{self, Format};
use crate::scenario;

/// The results of one configuration for one workload.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunResult<'a> {
    configuration: &'a str,
    workload: &'a str,
    changes: u64,
    #[serde(flatten)]
    summary: &'a WorkloadSummary,
}

pub(crate) fn run(args: &SimulateArgs) -> CommandResult {
    let given = files::read_all(&args.files)?;
    let variants = files::read_all(&args.compare)?;
    // Without FILE, the first configuration defines the load.
    let base: &[SourceFile] = if given.is_empty() { variants.get(..1).unwrap_or_default() } else { &given };
    let names = names(args);
    let mut runs = Vec::new();
    for (variant, name) in variants.iter().zip(&names) {
        let variation = args.variation(std::slice::from_ref(variant));
        let scenario = scenario::load(base, variation)?;
        if scenario.autoscalers.is_empty() {
            return Err(Failure::input(format!("{}: there is no autoscaler to compare", variant.name)));
        }
        let (recorder, summary) = play(args, &scenario)?;
        runs.push((name, scenario, recorder, summary));
    }
    let finished: Vec<FinishedRun<'_>> = runs
        .iter()
        .map(|(name, scenario, recorder, summary)| FinishedRun {
            name,
            about: "",
            scenario,
            summary,
            recorder,
        })
        .collect();
    let mut sources = given.clone();
    sources.extend(variants.iter().cloned());
    super::report(args, &finished, &sources)?;
    let results: Vec<RunResult<'_>> =
        runs.iter().flat_map(|(name, scenario, _, summary)| results(name, scenario, summary)).collect();
    match args.output {
        Format::Json | Format::Yaml => output::value(args.output, &results)?,
        Format::Table | Format::Wide => output::text_out(&table(&results).to_string())?,
    }
    if let Some(report) = &args.report {
        eprintln!("report: {}", report.display());
    }
    Ok(())
}

/// Distinct names of the configurations: the file name, with its folder where needed.
fn names(args: &SimulateArgs) -> Vec<String> {
    let short: Vec<String> = args.compare.iter().map(|path| stem(path)).collect();
    let is_unique = |name: &String| short.iter().filter(|other| *other == name).count() == 1;
    short
        .iter()
        .zip(&args.compare)
        .map(|(name, path)| if is_unique(name) { name.clone() } else { path.display().to_string() })
        .collect()
}

fn results<'a>(
    configuration: &'a str,
    scenario: &'a Scenario,
    summary: &'a Summary,
) -> impl Iterator<Item = RunResult<'a>> {
    scenario.workloads.iter().zip(&summary.workloads).enumerate().map(move |(index, (plan, workload))| {
        RunResult {
            configuration,
            workload: &plan.name,
            changes: scenario::changes(scenario, summary, index),
            summary: workload,
        }
    })
}

fn table(results: &[RunResult<'_>]) -> Table {
    let columns =
        ["Configuration", "Workload", "Pod-hours", "Unserved", "Share", "Changes", "Worst reaction", "Max"];
    let mut table = Table::new(columns);
    for row in results {
        table.rows.push(vec![
            row.configuration.to_owned(),
            row.workload.to_owned(),
            format!("{:.2}", row.summary.pod_hours),
            format!("{:.0} s", row.summary.short_seconds),
            format!("{:.2} %", row.summary.unserved_share * 100.0),
            row.changes.to_string(),
            format!("{:.0} s", row.summary.worst_reaction_seconds),
            row.summary.max_replicas.to_string(),
        ]);
    }
    table
}
