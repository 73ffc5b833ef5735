//! Developer tasks: `cargo xtask --help`.

mod arrows;
mod conformance;
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
    /// Compress vectors into tests/vectors.
    Vectors(vectors::Args),
}

fn main() -> anyhow::Result<ExitCode> {
    match Task::parse() {
        Task::Conformance(args) => conformance::run(&args),
        Task::Arrows => arrows::run(),
        Task::Vectors(args) => vectors::run(&args),
    }
}
