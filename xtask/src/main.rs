//! Developer tasks: `cargo xtask --help`.

mod arrows;
mod conformance;
mod differential;
mod generate;
mod local;
mod real;
mod schemas;
mod vectors;

use std::process::ExitCode;

use clap::Parser;

/// What the makefile calls.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// Hold Plimsoll against recorded answers of the real thing.
    Conformance(conformance::Args),
    /// Hold Plimsoll's controller against Kubernetes' own, live on a real API server.
    Differential(differential::Args),
    /// Check that dependencies between our crates point one way, as docs/architecture.md says.
    Arrows,
    /// Write the files that are made from others: the definition of Autoscaler, the code of gRPC protocols.
    Generate(generate::Args),
    /// Run localkube with simulated nodes, for kubectl.
    Local(local::Args),
    /// Build and run a real Kubernetes control plane on loopback.
    #[command(subcommand)]
    Real(real::Real),
    /// Ask a real API server for the schemas that localkube embeds.
    Schemas,
    /// Compress vectors into tests/vectors.
    Vectors(vectors::Args),
}

fn main() -> anyhow::Result<ExitCode> {
    match Task::parse() {
        Task::Conformance(args) => conformance::run(&args),
        Task::Differential(args) => differential::run(&args),
        Task::Arrows => arrows::run(),
        Task::Generate(args) => generate::run(&args),
        Task::Local(args) => local::run(&args),
        Task::Real(args) => real::run(&args),
        Task::Schemas => schemas::run(),
        Task::Vectors(args) => vectors::run(&args),
    }
}
