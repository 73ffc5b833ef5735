//! `plimsoll lint`: likely mistakes in autoscalers, compared with their targets.
//!
//! ```text
//! gather   autoscalers and targets, from files or a cluster
//! rules    what is likely wrong
//! ```

mod gather;
mod rules;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::path::PathBuf;

use engine::explain::plural;
use serde_json::json;

use self::gather::Gathered;
use self::rules::{LintFinding, lint};
use super::profile::KubernetesProfileArg;
use crate::failure::{CommandResult, Failure};
use crate::live::page::{Page, Paint};
use crate::live::{ClusterArgs, ClusterClient};
use crate::output::{self, Format};

/// Find likely mistakes in autoscalers, compared with their targets
///
/// What is valid and yet cannot work: requests or limits that are missing, containers that do not exist, targets that the pods exceed
/// without work or can never exceed, two autoscalers on one target, behavior with which nothing can change. Reads manifests of
/// autoscalers (HorizontalPodAutoscaler, Autoscaler, ScaledObject) and of their targets (Deployment, StatefulSet, ReplicaSet), or those
/// of a cluster. `plimsoll validate` finds what the API server refuses.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll lint hpa.yaml deployment.yaml
  helm template ./chart | plimsoll lint -
  plimsoll lint --cluster -n shop
  plimsoll lint --cluster -A -o json

Exit codes: 0 nothing was found, 3 something was, 1 the cluster cannot be read, 2 the input was wrong.")]
pub(crate) struct AutoscalerLintArgs {
    /// Files with manifests; - is standard input.
    #[arg(required_unless_present = "cluster", conflicts_with = "cluster")]
    files: Vec<PathBuf>,
    /// Read the autoscalers and targets of a cluster.
    #[arg(long)]
    cluster: bool,
    /// With --cluster: in all namespaces.
    #[arg(short = 'A', long, requires = "cluster", conflicts_with = "namespace")]
    all_namespaces: bool,
    #[command(flatten)]
    kubernetes: KubernetesProfileArg,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten, next_help_heading = "Cluster")]
    place: ClusterArgs,
}

pub(crate) fn run(args: &AutoscalerLintArgs) -> CommandResult {
    if !args.cluster {
        if let Some(option) = args.place.given() {
            return Err(Failure::input(format!(
                "{option} is for a cluster: add --cluster, and leave the files out"
            )));
        }
        return report(args, &gather::from_files(&args.files, args.kubernetes.version())?);
    }
    args.kubernetes.only_for_files()?;
    crate::live::run(async {
        let client = ClusterClient::open(&args.place).await?;
        report(args, &gather::from_cluster(&client, client.scope(args.all_namespaces)).await?)
    })
}

fn report(args: &AutoscalerLintArgs, gathered: &Gathered) -> CommandResult {
    let Gathered { autoscalers, targets } = gathered;
    if autoscalers.is_empty() && !args.cluster {
        return Err(Failure::input("there is no autoscaler in these files"));
    }
    let (found, unknown) = lint(autoscalers, targets);
    match args.output {
        Format::Json | Format::Yaml => {
            output::value(
                args.output,
                &json!({"findings": found, "notCompared": unknown, "autoscalers": autoscalers.len()}),
            )?;
        }
        Format::Table | Format::Wide => {
            output::text_out(&text(Page::stdout(), &found, &unknown, autoscalers.len()))?;
        }
    }
    if found.is_empty() { Ok(()) } else { Err(Failure::Printed(3)) }
}

fn text(page: Page, found: &[LintFinding], unknown: &[String], count: usize) -> String {
    let mut text = String::new();
    for LintFinding { autoscaler, namespace, place, rule, field, message, remedy } in found {
        let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
        let mark = page.paint(Paint::Red, "✗");
        let _ = writeln!(text, "{mark} {place}{namespace}/{autoscaler}: {message} ({rule})");
        let _ = writeln!(text, "    {field}\n    remedy: {remedy}");
    }
    for note in unknown {
        let _ = writeln!(text, "{} {note}", page.paint(Paint::Dim, "·"));
    }
    let _ = writeln!(text, "{} in {}", plural(found.len(), "finding"), plural(count, "autoscaler"));
    text
}
