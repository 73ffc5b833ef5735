//! `cargo xtask differential [hpa]`: Kubernetes' own HPA controller and ours on the same real API server, over copy workloads
//! with the same scripted metrics, compared step by step.
//!
//! ```text
//! scenario   what happens to a workload: a function of a seed and a number        pure
//! env     a control plane with both controllers, which can be held
//! apply      actions are done to both copies, and what can be seen is read
//! rounds     hold, change, let go, wait until nothing changes, hold, compare
//! compare    what is compared, and the list of what is masked                     pure
//! report     what was found
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
use report::{Outcome, Progress};
use rounds::Play;

/// Compares Plimsoll with what it replaces, live.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What is compared.
    #[arg(value_enum, default_value_t = What::Hpa)]
    what: What,
    /// How many steps are compared, in all lanes together; default: 500 for the HPA controller, 200 for KEDA.
    #[arg(long)]
    steps: Option<usize>,
    /// What chance depends on.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many workloads are played with at once.
    #[arg(long, default_value_t = 10)]
    lanes: usize,
    /// Play this scenario alone.
    #[arg(long, value_name = "SCENARIO")]
    only: Option<u64>,
    /// Let ours decide otherwise (by another tolerance, without secrets): the run must find differences, else it proves nothing.
    #[arg(long, hide = true)]
    sabotage: bool,
    /// Change objects also while their sources are asked, which take their time: what KEDA then does is chance, and differs.
    #[arg(long, hide = true)]
    rush: bool,
    /// Show what each entry of the list of deliberate differences excused (KEDA).
    #[arg(long)]
    explain: bool,
    /// Write down what was seen after each step, one JSON object a line (KEDA).
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Judge again what was written down, without a cluster (KEDA).
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    replay: Option<PathBuf>,
    /// How the outcome is shown.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
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
const TO_ZERO: u64 = 1_000_000;

/// The settings, with the number of their first scenario.
fn settings(sabotage: bool) -> [(Setting, u64); 2] {
    let usual = Setting {
        name: "as Kubernetes comes",
        to_zero: false,
        stabilization: Duration::ZERO,
        tolerance: 0.1,
        sabotage,
    };
    let to_zero = Setting {
        name: "HPAScaleToZero",
        to_zero: true,
        stabilization: Duration::from_secs(1),
        tolerance: 0.02,
        sabotage,
    };
    [(usual, 0), (to_zero, TO_ZERO)]
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Hpa => run_hpa(args, args.steps.unwrap_or(500)),
        What::Keda => keda::run(args, args.steps.unwrap_or(200)),
    }
}

fn run_hpa(args: &Args, steps: usize) -> anyhow::Result<ExitCode> {
    let (mut outcome, mut progress) = (Outcome::default(), Progress::new(steps));
    // A quarter with scaling to zero.
    let to_zero = steps / 4;
    for ((setting, first), steps) in settings(args.sabotage).iter().zip([steps - to_zero, to_zero]) {
        let elsewhere = args.only.is_some_and(|only| (only >= TO_ZERO) != setting.to_zero);
        if steps == 0 || elsewhere {
            continue;
        }
        progress.note(&format!("starting a control plane: {}", setting.name));
        let plane = env::plane(setting)?;
        let play = Play { seed: args.seed, steps, lanes: args.lanes.max(1), first: *first, only: args.only };
        let runtime = crate::local::runtime()?;
        runtime.block_on(async {
            let env = HpaEnv::start(plane, setting).await?;
            rounds::play(&env, setting, play, &mut outcome, &mut progress).await
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
