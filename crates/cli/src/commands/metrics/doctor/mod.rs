//! `plimsoll metrics doctor`: who serves which metrics, what is missing, why, and what to do about it.
//!
//! ```text
//! look      reads the cluster                         needs a cluster
//! finding   evaluates what was read                   pure
//! page      prints the findings                       pure
//! ```

mod finding;
mod page;
mod read;
#[cfg(test)]
mod tests;

use api::reports::ProblemSeverity;
use jiff::Timestamp;

use crate::failure::{CommandResult, Failure};
use crate::live::page::Page;
use crate::live::{ClusterArgs, ClusterClient};
use crate::output::{self, Format};

/// Report who serves which metrics on a cluster, what is missing, why, and what to do
///
/// Looks at the APIServices of the three metrics groups and, where Plimsoll serves one, at its own report: nodes that cannot
/// be scraped and pods without metrics by cause, rules that match nothing, Prometheus and other servers behind it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll metrics doctor
  plimsoll metrics doctor --context prod -o json

Exit codes: 0 all is well, 1 something is wrong, 2 unknown.")]
pub(crate) struct DoctorArgs {
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    /// Kubeconfig; without it, $KUBECONFIG, ~/.kube/config, or the service account of the pod.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<std::path::PathBuf>,
    /// Context of the kubeconfig; without it, the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

pub(crate) fn run(args: &DoctorArgs) -> CommandResult {
    crate::live::run(async move {
        let place = ClusterArgs {
            namespace: None,
            kubeconfig: args.kubeconfig.clone(),
            context: args.context.clone(),
            ..ClusterArgs::default()
        };
        let client = ClusterClient::open(&place).await.map_err(cannot_tell)?;
        let findings = read::findings(&client).await.map_err(cannot_tell)?;
        match args.output {
            Format::Json | Format::Yaml => output::value(args.output, &findings)?,
            Format::Table | Format::Wide => {
                output::text_out(&page::text(&findings, Page::stdout(), Timestamp::now()))?;
            }
        }
        match (findings.grade(), findings.unknown.is_empty()) {
            (Some(ProblemSeverity::Error), _) => Err(Failure::Printed(1)),
            (_, false) => Err(Failure::Printed(2)),
            _ => Ok(()),
        }
    })
}

/// Without access to the cluster the result is unknown.
fn cannot_tell(failure: Failure) -> Failure {
    match failure {
        Failure::Outside(why) => Failure::Input(why),
        other => other,
    }
}
