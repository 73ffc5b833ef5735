//! `cargo xtask differential [hpa]`: Kubernetes' own HPA controller and ours on the same real API server, over copy workloads
//! with the same scripted metrics, compared step by step.
//!
//! ```text
//! scenario   the steps of a workload: a function of a seed and a number           pure
//! env        a control plane with both controllers, which can be held
//! apply      applies actions to both copies, and reads their state
//! rounds     hold, change, release, wait until nothing changes, hold, compare
//! compare    the compared fields, and the list of masked values                   pure
//! report     the result
//! ```
//!
//! Both controllers are held while something is changed, so that none of them sees half of a change: theirs at the
//! scale, with which each of its passes begins, ours by its mode.
//!
//! `cargo xtask differential keda` is the same of KEDA's operator and ours: see [`keda`].

mod action;
mod apply;
mod compare;
mod env;
mod keda;
mod report;
mod rounds;
mod scenario;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;

use env::{HpaEnv, Setting};
use report::{HpaOutcome, Progress};
use rounds::HpaRunOptions;
use testbed::Release;

use crate::real::ReleaseArg;

/// Compares Plimsoll with the program it replaces on one live cluster.
#[derive(clap::Args)]
pub(crate) struct DifferentialArgs {
    /// What is compared.
    #[arg(value_enum, default_value_t = Comparison::Hpa)]
    what: Comparison,
    /// How many steps are compared, in all scenarios together; default: 500 for the HPA controller, 200 for KEDA.
    #[arg(long)]
    steps: Option<usize>,
    #[command(flatten)]
    release: ReleaseArg,
    /// Seed of the random scenarios.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many workloads are compared at once.
    #[arg(long = "lanes", value_name = "NUMBER", default_value_t = 10)]
    concurrent_scenarios: usize,
    /// Play this scenario alone.
    #[arg(long, value_name = "SCENARIO")]
    only: Option<u64>,
    /// Configure Plimsoll differently (other tolerance, no Secrets): the run must find differences.
    #[arg(long, hide = true)]
    sabotage: bool,
    /// Change objects also while slow sources are polled: KEDA's result is then random, and differs.
    #[arg(long, hide = true)]
    rush: bool,
    /// Show what each deliberate difference excused (KEDA).
    #[arg(long)]
    explain: bool,
    /// Record the views after each step, one JSON object per line (KEDA).
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Compare recorded views again, without a cluster (KEDA).
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    replay: Option<PathBuf>,
    /// Release of KEDA to compare with; ours gets the same profile.
    #[arg(long, value_name = "RELEASE", value_parser = testbed::keda::RELEASES, default_value = testbed::keda::RELEASES[0])]
    keda: String,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Comparison {
    /// Kubernetes' HPA controller.
    Hpa,
    /// KEDA's operator.
    Keda,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// Scenarios from this number on are played with scaling to zero.
const FIRST_SCALE_TO_ZERO_SCENARIO: u64 = 1_000_000;

/// The settings, with the number of their first scenario.
fn settings(release: Release, sabotage: bool) -> [(Setting, u64); 2] {
    let usual = Setting {
        name: "as Kubernetes comes",
        release,
        to_zero: false,
        stabilization: Duration::ZERO,
        tolerance: 0.1,
        sabotage,
    };
    let to_zero = Setting {
        name: "HPAScaleToZero",
        release,
        to_zero: true,
        stabilization: Duration::from_secs(1),
        tolerance: 0.02,
        sabotage,
    };
    [(usual, 0), (to_zero, FIRST_SCALE_TO_ZERO_SCENARIO)]
}

pub(crate) fn run(args: &DifferentialArgs) -> anyhow::Result<ExitCode> {
    match args.what {
        Comparison::Hpa => run_hpa(args, args.steps.unwrap_or(500)),
        Comparison::Keda => keda::run(args, args.steps.unwrap_or(200)),
    }
}

fn run_hpa(args: &DifferentialArgs, steps: usize) -> anyhow::Result<ExitCode> {
    let (mut outcome, mut progress) = (HpaOutcome::default(), Progress::new(steps));
    // A quarter with scaling to zero.
    let to_zero = steps / 4;
    for ((setting, first), steps) in
        settings(args.release.release(), args.sabotage).iter().zip([steps - to_zero, to_zero])
    {
        let elsewhere =
            args.only.is_some_and(|only| (only >= FIRST_SCALE_TO_ZERO_SCENARIO) != setting.to_zero);
        if steps == 0 || elsewhere {
            continue;
        }
        progress.note(&format!("starting a control plane: {}, {}", setting.release, setting.name));
        let plane = env::plane(setting)?;
        let options = HpaRunOptions {
            seed: args.seed,
            steps,
            concurrent_scenarios: args.concurrent_scenarios.max(1),
            first: *first,
            only: args.only,
        };
        let runtime = crate::local::runtime()?;
        runtime.block_on(async {
            let env = HpaEnv::start(plane, setting).await?;
            rounds::run(&env, setting, options, &mut outcome, &mut progress).await
        })?;
        runtime.shutdown_timeout(Duration::from_secs(5));
    }
    progress.end();
    match args.output {
        Format::Table => print!("{}", outcome.text(args.seed, progress.since())),
        Format::Json => println!("{}", outcome.json(args.seed, progress.since())?),
    }
    let same = outcome.differences.is_empty() && outcome.refused.is_empty();
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
