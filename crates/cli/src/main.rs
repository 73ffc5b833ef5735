//! The `plimsoll` binary: one file per command.

mod commands;
mod failure;
mod files;
mod output;
mod scenario;

use std::process::ExitCode;

use clap::Parser;

/// Many small objects come and go; this one gives memory back.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Keeps Kubernetes workloads at their line, and can say why.
#[derive(Parser)]
#[command(name = "plimsoll", version, about, propagate_version = true, after_help = commands::EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match commands::run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
