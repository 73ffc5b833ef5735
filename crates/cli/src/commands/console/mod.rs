//! `plimsoll console`: the web console of a cluster, on loopback.
//!
//! ```text
//! start     the listener, the address with its token, the task that polls
//! listing   what the user may list: cluster-wide, or namespace by namespace
//! watched   the watched autoscalers, and what changed since the last publication
//! status    changes of an HPA's status, read without decoding the object
//! skim      fields of a JSON text without decoding it
//! latest    the latest pass about an autoscaler that decided what its record says
//! follow    list-and-watch of autoscalers, and only the new passes about them
//! poll      what changes into the feed, while a page is open: by watches, or by lists where the user may not watch
//! rows      autoscalers and problems as the frontend shows them
//! readings  metrics against targets, as numbers
//! manifest  fields of specs as manifests have them
//! recording a recording in the place of a cluster
//! samples   what the status of objects showed while the console ran
//! sources   metrics APIs, controller and operator, their health and latency
//! path      the path of one autoscaler
//! object    one autoscaler: why, conditions, events, YAML
//! passes    the recorded passes, incrementally
//! history   replicas, metrics and decisions over time
//! range     longer ranges, from Prometheus
//! whatif    recorded decisions replayed with other fields
//! backend   routes of the API
//! ```

mod backend;
mod follow;
mod history;
mod latest;
mod listing;
mod manifest;
mod object;
mod passes;
mod path;
mod poll;
mod range;
mod readings;
mod recording;
mod rows;
mod samples;
mod skim;
mod sources;
mod start;
mod status;
mod watched;
mod whatif;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use jiff::Timestamp;

use crate::failure::{CommandResult, Failure};
use crate::live::moment::moment;
use crate::live::screen::stop_requested;
use crate::live::{ClusterArgs, ClusterClient};
#[cfg(feature = "desk")]
pub(crate) use start::RunningConsole;
pub(crate) use start::{ConsoleOptions, start};

/// The port of the console, used if it is free.
pub(crate) const DEFAULT_PORT: u16 = 7437;

/// Show every autoscaler of a cluster in a browser, and why
///
/// Serves a web page on loopback that shows autoscalers, decisions, charts and problems of the cluster of your kubeconfig, with
/// your own rights: nothing is installed in the cluster and nothing new is exposed. Works with Kubernetes' own HPA controller;
/// what only Plimsoll's roles know is then missing, and the page says so.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll console                       # the cluster of the current context
  plimsoll console --context prod        # another one
  plimsoll console -n shop               # one namespace only
  plimsoll console --port 0 --no-browser # any free port; prints the address only
  plimsoll console --recording FOLDER    # of `controller --record FOLDER`, without a cluster

The address carries a token that the browser exchanges for a cookie. Ctrl-C ends the console.")]
pub(crate) struct ConsoleArgs {
    /// Port on loopback; without it, 7437 or, if that is taken, a free one.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Do not open a browser.
    #[arg(long)]
    no_browser: bool,
    /// Show a recording (`plimsoll controller --record`), a file or a folder, instead of a cluster: its last six hours.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["kubeconfig", "context"])]
    recording: Option<PathBuf>,
    /// With --recording: the end of the time that is shown, in UTC: a full time, a time of day, or how long ago; without it, the
    /// last pass.
    #[arg(long, value_name = "TIME", requires = "recording")]
    at: Option<String>,
    #[command(flatten, next_help_heading = "Cluster")]
    place: ClusterArgs,
}

pub(crate) fn run(args: &ConsoleArgs) -> CommandResult {
    // One thread reads the cluster while another answers the browser.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::Outside(format!("failed to start: {error}")))?;
    let outcome = runtime.block_on(async {
        // The pages show times in UTC, so the texts of `why` in them do too.
        let place = ClusterArgs { utc: true, ..args.place.clone() };
        let client = match &args.recording {
            None => ClusterClient::open(&place).await?,
            Some(path) => {
                place.use_zone();
                let at = args.at.as_deref().map(|text| moment(text, Timestamp::now())).transpose()?;
                recording::open(path, at)?
            }
        };
        let options = ConsoleOptions {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, args.port.unwrap_or(DEFAULT_PORT))),
            or_any_port: args.port.is_none(),
            namespace: args.place.namespace.clone(),
            lab: None,
        };
        let console = start(client, options).await?;
        println!("  console     {}", console.url());
        println!("  stop        Ctrl-C");
        if !args.no_browser {
            console.open_browser();
        }
        stop_requested().await;
        console.stop().await;
        Ok(())
    });
    // A DNS lookup may hang in a blocking thread; the process does not wait for it.
    runtime.shutdown_background();
    outcome
}
