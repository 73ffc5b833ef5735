//! `plimsoll top`: what needs attention, live.

#[cfg(feature = "terminal")]
mod full_screen;
mod overview;
mod problem;
mod view;

use std::io::IsTerminal as _;
use std::time::Duration;

use cluster::AutoscalerKind;

use super::get::{join, present};
use crate::failure::{CommandResult, Failure};
use crate::live::moment::length;
use crate::live::objects::ObjectFilter;
use crate::live::page::Page;
use crate::live::{ClusterArgs, ClusterClient};
use crate::output::{self, Format};
pub(crate) use overview::{AutoscalerLine, Overview};
pub(crate) use problem::{AutoscalerProblem, Grade, Problem, by_cause, grade, problems_of};

/// Show what needs attention first, live
///
/// One line per autoscaler: first those that cannot decide, then those at their upper bound whose metrics propose more,
/// then by the ratio of metric to target. On a terminal it fills the screen: Enter shows the chart of an autoscaler and
/// why it has its count, `/` filters, `p` shows problems by cause, `?` shows all keys.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll top -A
  plimsoll top -n shop --sort replicas
  plimsoll top -A --once
  plimsoll top -A -o json

q or Ctrl-C ends it. Without a terminal, and with --once, -o json or -o yaml, it prints once.")]
pub(crate) struct TopArgs {
    /// In all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Order of lines.
    #[arg(long, value_enum, default_value_t = Sort::Pressure)]
    sort: Sort,
    /// Print once instead of refreshing.
    #[arg(long)]
    once: bool,
    /// How often to refresh.
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    interval: String,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten, next_help_heading = "Cluster")]
    place: ClusterArgs,
}

/// Orders of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sort {
    /// What needs attention first.
    Pressure,
    /// By namespace and name.
    Name,
    /// Most replicas first.
    Replicas,
}

pub(crate) fn run(args: &TopArgs) -> CommandResult {
    let interval = length("--interval", &args.interval)?;
    let interval = Duration::try_from(interval).unwrap_or(Duration::from_secs(2));
    if interval < Duration::from_millis(100) {
        return Err(Failure::input("--interval: more than ten times a second is too often for a cluster"));
    }
    crate::live::run(async move {
        let client = ClusterClient::open(&args.place).await?;
        let overview = read_overview(args, &client, false).await?;
        if let Format::Json | Format::Yaml = args.output {
            return output::value(args.output, &overview);
        }
        #[cfg_attr(not(feature = "terminal"), allow(unused_variables))]
        let is_live = !args.once && std::io::stdout().is_terminal();
        #[cfg(feature = "terminal")]
        if is_live {
            return full_screen::run(args, &client, overview, interval).await;
        }
        let columns = view::TopColumns { namespace: args.all_namespaces };
        output::text_out(&columns.text(&overview, Page::stdout(), usize::MAX))
    })
}

async fn read_overview(args: &TopArgs, client: &ClusterClient, cached: bool) -> Result<Overview, Failure> {
    let scope = client.scope(args.all_namespaces);
    let filter = ObjectFilter { kinds: &AutoscalerKind::ALL, scope, labels: None, cached };
    let objects = client.objects(filter).await.map_err(|error| client.failure("list autoscalers", &error))?;
    let (mut records, unavailable) = client.latest_about(&objects, scope).await;
    let entries = join(objects, &mut records);
    Ok(Overview::of(&entries, unavailable.as_ref(), args.sort, present(&entries)))
}
