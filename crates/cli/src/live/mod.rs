//! Common parts of commands that read a cluster.
//!
//! ```text
//! cluster_client  the cluster of the options, and requests to it
//! cluster_facts  facts of the cluster that explain a decision
//! request_error   errors of requests
//! decisions  what the controller has decided
//! decoded    lists of decisions, decoded item by item
//! objects    autoscalers as they are stored, and their events
//! named      `hpa/web`
//! moment     `09:10`, `10m`
//! local_zone the time zone of the user
//! page       text that fits its terminal
//! screen     a terminal that is drawn on
//! ```

pub(crate) mod cluster_client;
pub(crate) mod cluster_facts;
pub(crate) mod decisions;
pub(crate) mod decoded;
mod local_zone;
pub(crate) mod moment;
pub(crate) mod named;
pub(crate) mod objects;
pub(crate) mod page;
pub(crate) mod request_error;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod screen;

use std::path::PathBuf;

use crate::failure::{CommandResult, Failure};

pub(crate) use cluster_client::ClusterClient;
pub(crate) use named::AutoscalerName;
pub(crate) use request_error::RequestError;

/// Which cluster, and where in it.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ClusterArgs {
    /// Namespace; without it, that of the context.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Kubeconfig; without it, $KUBECONFIG, ~/.kube/config, or the service account of the pod.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; without it, the current one.
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Show and read times in UTC; without it, in the local time zone ($TZ, /etc/localtime).
    #[arg(long)]
    pub(crate) utc: bool,
}

/// Which part of a cluster to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope<'a> {
    /// All namespaces.
    All,
    /// One.
    Namespace(&'a str),
}

impl<'a> Scope<'a> {
    /// The namespace; empty for all.
    pub(crate) fn namespace(self) -> &'a str {
        match self {
            Self::All => "",
            Self::Namespace(namespace) => namespace,
        }
    }
}

impl ClusterArgs {
    /// Shows and reads times in the zone of the options.
    pub(crate) fn use_zone(&self) {
        engine::explain::show_times_in(if self.utc { jiff::tz::TimeZone::UTC } else { local_zone::find() });
    }

    /// The first option that only makes sense on a cluster, if one was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.namespace.is_some(), "--namespace"),
            (self.kubeconfig.is_some(), "--kubeconfig"),
            (self.context.is_some(), "--context"),
        ];
        given.iter().find(|(is, _)| *is).map(|(_, name)| *name)
    }
}

/// Runs a command that talks to a cluster. Ctrl-C ends it at the next point where it waits.
pub(crate) fn run(command: impl Future<Output = CommandResult>) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Outside(format!("failed to start: {error}")))?;
    let outcome = runtime.block_on(command);
    // A DNS lookup may hang in a blocking thread; the process does not wait for it.
    runtime.shutdown_background();
    outcome
}
