//! `plimsoll top`: what needs attention, live.

mod overview;
mod problem;
mod view;

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use cluster::AutoscalerKind;
use jiff::Timestamp;

use super::get::{join, pause};
use crate::failure::{Failure, Outcome};
use crate::live::moment::length;
use crate::live::objects::Which;
use crate::live::page::Page;
use crate::live::screen::{Screen, asked_to_stop};
use crate::live::{ClusterArgs, ClusterClient, Scope};
use crate::output::{self, Format};
pub(crate) use overview::{AutoscalerLine, Overview};
pub(crate) use problem::{Grade, Problem};

/// Show what needs attention first, live
///
/// One line per autoscaler: first those that cannot decide, then those at their upper bound that want more, then by the
/// ratio of metric to target. Problems stand at the top, grouped by cause.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll top -A
  plimsoll top -n shop --sort replicas
  plimsoll top -A --once
  plimsoll top -A -o json

Ctrl-C ends it. Without a terminal, and with -o json or yaml, it looks once.")]
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

pub(crate) fn run(args: &TopArgs) -> Outcome {
    let interval = length("--interval", &args.interval)?;
    let interval = Duration::try_from(interval).unwrap_or(Duration::from_secs(2));
    if interval < Duration::from_millis(100) {
        return Err(Failure::input("--interval: more than ten times a second is too often for a cluster"));
    }
    crate::live::run(async move {
        let site = ClusterClient::open(&args.place).await?;
        let overview = look(args, &site, false).await?;
        match args.output {
            Format::Json | Format::Yaml => return output::value(args.output, &overview),
            Format::Table | Format::Wide if args.once || !std::io::stdout().is_terminal() => {
                let columns = view::TopColumns { namespace: args.all_namespaces };
                return output::text_out(&columns.text(&overview, Page::stdout(), usize::MAX));
            }
            Format::Table | Format::Wide => {}
        }
        live(args, &site, overview, interval).await
    })
}

/// Draws until the user quits.
async fn live(args: &TopArgs, site: &ClusterClient, first: Overview, interval: Duration) -> Outcome {
    let columns = view::TopColumns { namespace: args.all_namespaces };
    let place = match site.scope(args.all_namespaces) {
        Scope::All => "all namespaces".to_owned(),
        Scope::Namespace(namespace) => format!("namespace {namespace}"),
    };
    let mut screen = Screen::enter()?;
    let mut overview = first;
    let mut lost = None;
    let mut wait = interval;
    let stop = asked_to_stop();
    tokio::pin!(stop);
    loop {
        let page = Page::stdout();
        let head = view::head(page, &place, &overview, lost.as_deref(), Timestamp::now());
        let height = terminal_size::terminal_size().map_or(usize::MAX, |(_, height)| height.0.into());
        let rest = columns.text(&overview, page, height.saturating_sub(head.lines().count()));
        screen.draw(&format!("{head}{rest}"))?;
        let next = async {
            tokio::time::sleep(wait).await;
            let began = Instant::now();
            (look(args, site, true).await, pause(interval, began))
        };
        tokio::select! {
            () = &mut stop => return screen.leave(),
            (next, pause) = next => {
                wait = pause;
                match next {
                    Ok(next) => {
                        overview = next;
                        lost = None;
                    }
                    // The last view stays, with its age.
                    Err(failure) => lost = Some(failure.to_string()),
                }
            }
        }
    }
}

async fn look(args: &TopArgs, site: &ClusterClient, cached: bool) -> Result<Overview, Failure> {
    let scope = site.scope(args.all_namespaces);
    let which = Which { kinds: &AutoscalerKind::ALL, scope, labels: None, cached };
    let objects = site.objects(which).await.map_err(|trouble| site.failure("list autoscalers", &trouble))?;
    let (mut records, unavailable) = site.latest_about(&objects, scope).await;
    let entries = join(objects, &mut records);
    Ok(Overview::of(&entries, unavailable.as_ref(), args.sort, Timestamp::now()))
}
