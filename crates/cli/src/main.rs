//! The `plimsoll` binary: one file per command.

#![allow(clippy::disallowed_methods, reason = "the binary owns the clock of the machine")]

mod certificates;
mod commands;
mod control_characters;
#[cfg(test)]
mod documentation;
mod failure;
mod files;
mod flags;
mod hosting;
mod instance;
mod invoked;
mod leader_history;
mod lease_thread;
mod live;
mod logs;
mod main_runtime;
mod open_files;
mod output;
#[cfg(feature = "desk")]
mod own_file;
mod plugin_completion;
mod probe_thread;
mod program;
mod scenario;
mod serving;
mod stored_decisions;
mod telemetry;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

/// Watches and requests allocate many short-lived objects; jemalloc returns their memory to the system.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The arguments of `plimsoll`; its description is that of the package.
#[derive(Parser)]
#[command(name = "plimsoll", version, about, propagate_version = true, after_help = commands::EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    open_files::raise_limit();
    let result = match invoked::words_to_complete() {
        Some(words) => output::exact_out(&plugin_completion::answer(Cli::command(), &words)),
        None => {
            let found = Cli::from_arg_matches(&invoked::command().get_matches_from(invoked::words()));
            commands::run(found.unwrap_or_else(|error| error.exit()).command)
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
