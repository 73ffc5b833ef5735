//! Developer tasks: `cargo xtask --help`.

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]

mod arrows;
mod chart;
mod check;
mod conformance;
mod differential;
mod generate;
mod help;
mod image;
mod local;
mod real;
mod release;
mod schemas;
mod upstream;
mod vectors;

use std::process::ExitCode;

use clap::Parser;

/// Developer tasks, which the makefile calls.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// Compare Plimsoll with recorded answers of the programs that it replaces.
    Conformance(conformance::ConformanceArgs),
    /// Compare Plimsoll with Kubernetes' HPA controller or with KEDA, live on a real API server.
    Differential(differential::DifferentialArgs),
    /// Check that dependencies between crates follow docs/architecture.md, and look for import cycles among modules.
    Arrows(arrows::ArrowsArgs),
    /// Render the plain manifests of deploy/ from the Helm chart.
    Chart(chart::ChartArgs),
    /// Check references to docs/spec, links between pages and the length of files.
    Check(check::CheckArgs),
    /// Write the generated files: resource definitions, reference pages, code of gRPC protocols.
    Generate(generate::GenerateArgs),
    /// Write the container image as an OCI layout, without a container engine.
    Image(image::ImageArgs),
    /// Run localkube with simulated nodes, for kubectl.
    Local(local::LocalArgs),
    /// Build and run a real Kubernetes control plane on loopback.
    #[command(subcommand)]
    Real(real::Real),
    /// Write the files of a release: archives, chart, manifests, checksums, the plugin manifest of krew.
    Release(release::ReleaseArgs),
    /// Ask a real API server for the schemas that localkube embeds.
    Schemas,
    /// Compare releases of Kubernetes or KEDA by their sources.
    #[command(subcommand)]
    Upstream(upstream::UpstreamArgs),
    /// Compress vectors into tests/vectors.
    Vectors(vectors::VectorsArgs),
}

fn main() -> anyhow::Result<ExitCode> {
    match Task::parse() {
        Task::Conformance(args) => conformance::run(&args),
        Task::Differential(args) => differential::run(&args),
        Task::Arrows(args) => arrows::run(&args),
        Task::Chart(args) => chart::run(&args),
        Task::Check(args) => check::run(&args),
        Task::Generate(args) => generate::run(&args),
        Task::Image(args) => image::run(&args),
        Task::Local(args) => local::run(&args),
        Task::Real(args) => real::run(&args),
        Task::Release(args) => release::run(&args),
        Task::Schemas => schemas::run(),
        Task::Upstream(args) => upstream::run(&args),
        Task::Vectors(args) => vectors::run(&args),
    }
}
