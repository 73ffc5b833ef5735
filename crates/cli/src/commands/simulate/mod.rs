//! `plimsoll simulate`: what autoscalers would do, in virtual time.

mod compare;
mod progress;
mod watch;

use std::path::{Path, PathBuf};

use api::yaml::SourceFile;
use serde::Serialize;
use sim::report::page::{File, Reproduce};
use sim::report::{FinishedRun, ReportPage, ReportRecorder};
use sim::scenario::Variation;
use sim::{Recording, Scenario, Simulation, Summary};

use super::profile::KubernetesProfileArg;
use crate::failure::{CommandResult, Failure};
use crate::files;
use crate::output::{self, Format};
use crate::scenario;

/// Run autoscalers in virtual time over simulated workloads and load
///
/// A scenario is a YAML file with ordinary manifests (Deployment, HorizontalPodAutoscaler, Autoscaler) and one document
/// of kind Scenario that says what load there is and for how long. Every decision is made by the engine that runs on
/// clusters. The same files give the same run.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll simulate examples/php-apache.yaml
  plimsoll simulate examples/php-apache.yaml --speed 60          # a minute per second
  plimsoll simulate examples/php-apache.yaml --report report.html
  plimsoll simulate examples/month.yaml --quiet -o json > month.json
  plimsoll simulate --compare examples/behavior-tuning.yaml examples/behavior-tuning-b.yaml")]
pub(crate) struct SimulateArgs {
    /// Files of one scenario, read together; - is standard input.
    #[arg(required_unless_present = "compare")]
    files: Vec<PathBuf>,
    /// Put several configurations on the same load: each file's autoscalers (and workloads) replace those of FILE, or of
    /// the first file named here.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    compare: Vec<PathBuf>,
    /// Live, at so many virtual seconds per second; without it, at once.
    #[arg(long, value_name = "FACTOR")]
    speed: Option<f64>,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    /// Also write one self-contained HTML page with charts.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Choose other random numbers than the scenario does.
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    kubernetes: KubernetesProfileArg,
    /// Print only the summary.
    #[arg(short, long)]
    quiet: bool,
}

impl SimulateArgs {
    /// The user's changes to the scenario, with the autoscalers of these files.
    fn variation<'a>(&self, sources: &'a [SourceFile]) -> Variation<'a> {
        let kubernetes = self.kubernetes.version();
        Variation { sources, seed: self.seed, kubernetes, ..Variation::default() }
    }
}

/// What `-o json` and `-o yaml` print.
#[derive(Serialize)]
struct SimulationOutput<'a> {
    name: &'a str,
    summary: &'a Summary,
    recording: &'a Recording,
}

pub(crate) fn run(args: &SimulateArgs) -> CommandResult {
    if args.speed.is_some_and(|speed| !speed.is_finite() || speed <= 0.0) {
        return Err(Failure::input("--speed must be a number above 0"));
    }
    if let Some(report) = &args.report {
        files::check_writable(report)?;
    }
    if !args.compare.is_empty() {
        return compare::run(args);
    }
    let sources = files::read_all(&args.files)?;
    let scenario = scenario::load(&sources, args.variation(&[]))?;
    let (recorder, summary) = play(args, &scenario)?;
    let name = args.files.first().map(|file| stem(file)).unwrap_or_default();
    report(
        args,
        &[FinishedRun {
            name: &name,
            about: "",
            scenario: &scenario,
            summary: &summary,
            recorder: &recorder,
        }],
        &sources,
    )?;
    match args.output {
        Format::Json | Format::Yaml => {
            let recording = recorder.recording();
            output::value(
                args.output,
                &SimulationOutput { name: &scenario.name, summary: &summary, recording },
            )?;
        }
        Format::Table | Format::Wide => output::text_out(&closing(args, &scenario, &summary))?,
    }
    if let Some(report) = &args.report {
        eprintln!("report: {}", report.display());
    }
    Ok(())
}

/// Writes the report, if one is requested.
fn report(args: &SimulateArgs, runs: &[FinishedRun<'_>], sources: &[SourceFile]) -> CommandResult {
    let Some(path) = &args.report else { return Ok(()) };
    let file = |source: &SourceFile| File { name: source.name.to_string(), text: source.text.to_string() };
    let reproduce = Reproduce {
        command: command_line(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: args.seed,
        files: sources.iter().map(file).collect(),
    };
    files::write(path, &sim::report::html(&ReportPage::of(runs, reproduce)))
}

/// Runs a scenario; prints the table as it goes, if one is requested.
fn play(args: &SimulateArgs, scenario: &Scenario) -> Result<(ReportRecorder, Summary), Failure> {
    let table = matches!(args.output, Format::Table | Format::Wide) && !args.quiet && args.compare.is_empty();
    let mut watch = watch::Watch::new(scenario, table.then_some(args.output), args.speed);
    let summary = Simulation::new(scenario).run(&mut watch);
    Ok((watch.finish()?, summary))
}

/// What a run cost and what it gave, in one line per workload.
fn closing(args: &SimulateArgs, scenario: &Scenario, summary: &Summary) -> String {
    let mut text = if args.quiet { String::new() } else { "\n".to_owned() };
    for line in scenario::summary_lines(scenario, summary) {
        text += &format!("{line}\n");
    }
    text
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The command as it can be typed again.
fn command_line() -> String {
    let quoted = |arg: String| {
        let plain =
            !arg.is_empty() && arg.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c));
        if plain { arg } else { format!("'{}'", arg.replace('\'', "'\\''")) }
    };
    let words: Vec<String> = std::env::args().skip(1).map(quoted).collect();
    format!("plimsoll {}", words.join(" "))
}
