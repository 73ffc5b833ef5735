//! `cargo xtask differential keda`: KEDA's own operator (`--keda`: which release) and ours on the same real API server, over copies of objects with
//! the same scripted sources, compared step by step.
//!
//! ```text
//! scenario         the steps of an object: a function of a seed and a number         pure
//! source           an external scaler and an HTTP API, polled by all operators
//! env              a control plane with KEDA and two operators of ours: strict and better
//! apply            applies actions to all copies, and reads their state
//! scenario_runner  change, wait until nothing changes, compare
//! view             the compared fields, and the list of masked values                pure
//! facts            the settings on which deliberate differences depend               pure
//! classify         the differences, and which of them are deliberate                 pure
//! deliberate       the list of deliberate differences                                pure
//! record           views on disk, which can be compared again without a cluster
//! mutation         mutates recorded views, which must be detected                    pure
//! report           the result
//! ```

mod action;
mod apply;
mod classify;
mod deliberate;
mod env;
mod facts;
mod mutation;
mod record;
mod report;
mod scenario;
mod scenario_runner;
mod source;
mod view;

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use env::KedaEnv;
use mutation::MutationResult;
use report::KedaOutcome;
use scenario_runner::{KedaRun, KedaRunOptions};

use super::{DifferentialArgs, Format};

/// Runs this many steps, or compares recorded views again.
pub(super) fn run(args: &DifferentialArgs, steps: usize) -> anyhow::Result<ExitCode> {
    let since = Instant::now();
    let (outcome, mutated) = match &args.replay {
        Some(file) => record::compare_again(file, args.seed)?,
        None => (run_live(args, steps)?, MutationResult::default()),
    };
    if let Some(file) = &args.record {
        record::write(file, &outcome.record)?;
    }
    match args.output {
        Format::Table => print!("{}", outcome.text(args.seed, since, args.explain)),
        Format::Json => println!("{}", serde_json::to_string_pretty(&outcome)?),
    }
    if args.replay.is_some() && args.output == Format::Table {
        print!("{}", mutated.text());
    }
    let whole = args.only.is_none() && outcome.steps >= WHOLE_RUN_STEPS;
    let unused = if whole { outcome.unused() } else { Vec::new() };
    for entry in &unused {
        println!("no longer needed in the list of deliberate differences: {entry}");
    }
    let same = outcome.differences.is_empty() && outcome.refused.is_empty() && unused.is_empty();
    let same = same && mutated.missed.is_empty();
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_live(args: &DifferentialArgs, steps: usize) -> anyhow::Result<KedaOutcome> {
    let options = KedaRunOptions {
        seed: args.seed,
        steps,
        concurrent_scenarios: args.concurrent_scenarios.max(1),
        only: args.only,
        rush: args.rush,
    };
    let plane = env::plane()?;
    let runtime = crate::local::runtime()?;
    let outcome = Mutex::new(KedaOutcome::default());
    runtime.block_on(async {
        let mut env = KedaEnv::start(plane, &args.keda, args.sabotage, args.rush).await?;
        let (reported, seen) = watch::channel(None);
        let game = KedaRun::new(&env, options, seen, &outcome);
        let looking = apply::watch(env.client.clone(), reported);
        let played = tokio::select! {
            played = game.run() => played,
            looked = looking => looked,
        };
        if let Some(file) = std::env::var_os("PLIMSOLL_KEDA_LOG") {
            std::fs::write(file, env.keda_log())?;
        }
        env.check()?;
        played
    })?;
    runtime.shutdown_timeout(Duration::from_secs(5));
    Ok(outcome.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// A run of this many steps must use every listed difference.
const WHOLE_RUN_STEPS: usize = 200;
