//! Developer tasks: `cargo xtask --help`.

mod arrows;
mod conformance;
mod real;
mod vectors;

use std::process::ExitCode;

use clap::Parser;

/// What the makefile calls.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// Hold Plimsoll against recorded answers of the real thing.
    Conformance(conformance::Args),
    /// Check that dependencies between our crates point one way, as docs/architecture.md says.
    Arrows,
    /// Build and run a real Kubernetes control plane on loopback.
    #[command(subcommand)]
    Real(real::Real),
    /// Compress vectors into tests/vectors.
    Vectors(vectors::Args),
}

fn main() -> anyhow::Result<ExitCode> {
    match Task::parse() {
        Task::Conformance(args) => conformance::run(&args),
        Task::Arrows => arrows::run(),
        Task::Real(args) => real::run(&args),
        Task::Vectors(args) => vectors::run(&args),
    }
}
