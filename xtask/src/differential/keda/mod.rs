//! `cargo xtask differential keda`: KEDA 2.20.2's own operator and ours on the same real API server, over subject objects with
//! the same scripted sources, compared step by step.
//!
//! ```text
//! scenario    what happens to an object: a function of a seed and a number         pure
//! source      an external scaler and an HTTP API, asked by all
//! env      a control plane with KEDA and two operators of ours: strict and better
//! apply       actions are done to all subjects, and what can be seen is read
//! lane        change, wait until nothing changes, compare
//! view        what is compared, and the list of what is masked                     pure
//! judge       what differs, and which differences are deliberate                   pure
//! deliberate  the list of deliberate differences                                   pure
//! record      what was seen, on disk: it can be judged again without a cluster
//! spoil       what was recorded is spoiled, and must be found                      pure
//! report      what was found
//! ```

mod action;
mod apply;
mod deliberate;
mod env;
mod judge;
mod lane;
mod record;
mod report;
mod scenario;
mod source;
mod spoil;
mod view;

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use env::KedaEnv;
use lane::{Game, Play};
use report::Outcome;
use spoil::Spoiled;

use super::{Args, Format};

/// Runs it with these many steps, or judges again what was recorded.
pub(super) fn run(args: &Args, steps: usize) -> anyhow::Result<ExitCode> {
    let since = Instant::now();
    let (outcome, spoiled) = match &args.replay {
        Some(file) => record::judge_again(file, args.seed)?,
        None => (play(args, steps)?, Spoiled::default()),
    };
    if let Some(file) = &args.record {
        record::write(file, &outcome.record)?;
    }
    match args.output {
        Format::Table => print!("{}", outcome.text(args.seed, since, args.explain)),
        Format::Json => println!("{}", serde_json::to_string_pretty(&outcome)?),
    }
    if args.replay.is_some() && args.output == Format::Table {
        print!("{}", spoiled.text());
    }
    let whole = args.only.is_none() && outcome.steps >= WHOLE;
    let unused = if whole { outcome.unused() } else { Vec::new() };
    for entry in &unused {
        println!("no longer needed in the list of deliberate differences: {entry}");
    }
    let same = outcome.differences.is_empty() && outcome.refused.is_empty() && unused.is_empty();
    let same = same && spoiled.missed.is_empty();
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn play(args: &Args, steps: usize) -> anyhow::Result<Outcome> {
    let play = Play { seed: args.seed, steps, lanes: args.lanes.max(1), only: args.only, rush: args.rush };
    let plane = env::plane()?;
    let runtime = crate::local::runtime()?;
    let outcome = Mutex::new(Outcome::default());
    runtime.block_on(async {
        let mut env = KedaEnv::start(plane, args.sabotage, args.rush).await?;
        let (told, seen) = watch::channel(None);
        let game = Game::new(&env, play, seen, &outcome);
        let looking = apply::watch(env.client.clone(), told);
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

/// A run of so many steps needs all that is listed.
const WHOLE: usize = 200;
