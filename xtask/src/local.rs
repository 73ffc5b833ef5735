//! `cargo xtask local`: localkube with simulated nodes, for use with kubectl.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use localkube::clock::Clock;
use localkube::nodes::{Nodes, Plan};
use localkube::{Cluster, Options};
use tokio::runtime::{Builder, Runtime};

/// Runs localkube until it is interrupted.
#[derive(clap::Args)]
pub(crate) struct LocalArgs {
    /// How many simulated nodes there are.
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// Where the kubeconfig is written.
    #[arg(long, value_name = "FILE", default_value = ".plimsoll/local/kubeconfig")]
    kubeconfig: PathBuf,
}

pub(crate) fn run(args: &LocalArgs) -> anyhow::Result<ExitCode> {
    runtime()?.block_on(serve(args))
}

pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build().context("failed to start threads")
}

/// Starts simulated nodes on any cluster.
pub(crate) async fn nodes(client: kube::Client, count: usize, clock: Clock) -> anyhow::Result<Nodes> {
    let plan = Plan { count, clock, ..Plan::default() };
    Nodes::start(client, plan).await.context("failed to start the simulated nodes")
}

async fn serve(args: &LocalArgs) -> anyhow::Result<ExitCode> {
    let start = std::time::Instant::now();
    let running = Cluster::start(Options::default()).await.context("failed to start localkube")?;
    let server = running.serve().await.context("failed to listen")?;
    if let Some(folder) = args.kubeconfig.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&args.kubeconfig, &server.kubeconfig)
        .with_context(|| format!("failed to write {}", args.kubeconfig.display()))?;
    println!("localkube ready in {} ms at {}", start.elapsed().as_millis(), server.url);
    println!(
        "\n  kubectl     export KUBECONFIG={}\n  stop        Ctrl-C",
        args.kubeconfig.canonicalize()?.display()
    );
    let nodes = nodes(running.client(), args.nodes, running.clock()).await?;
    tokio::signal::ctrl_c().await?;
    drop(nodes);
    Ok(ExitCode::SUCCESS)
}
