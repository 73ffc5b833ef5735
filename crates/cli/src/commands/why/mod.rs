//! `plimsoll why`: a decision as arithmetic, of a scenario or on a cluster.

mod follow;
mod history;
mod live;
mod object;
mod pods;
mod recording;
mod scenario;

pub(crate) use live::explanation as record_explanation;
pub(crate) use object::explanation as status_explanation;

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::profile::KubernetesProfileArg;
use crate::failure::{CommandResult, Failure};
use crate::live::moment::{check_form, length, moment};
use crate::live::named::WorkloadName;
use crate::live::{AutoscalerName, ClusterArgs, ClusterClient, named};
use crate::output::Format;

pub(crate) use live::pass_at;

/// Explain a decision as arithmetic a person can follow
///
/// On a cluster (hpa/NAME, autoscaler/NAME), reads a decision of the controller through the API server: which pods
/// count and which do not, ratio, tolerance, the proposal of each metric, each limit, and what would change the count
/// next. Of a ScaledObject (so/NAME), reads from the operator: the value of each trigger, which was active, fallback,
/// formula, cooldown; then the decision about its HPA, if it has one. Of a ScaledJob (sj/NAME): triggers, queue,
/// running and created jobs. With the files of a scenario, runs it up to that time.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll why hpa/php-apache -n shop                       # on a cluster, the last decision
  plimsoll why hpa/php-apache --at 09:10                    # the pass in force at 09:10 local time
  plimsoll why hpa/php-apache --at 10m                      # ten minutes ago
  plimsoll why hpa/php-apache --since 1h                    # a table; with -o wide of every pass
  plimsoll why hpa/php-apache --recording FOLDER --since 8h # of `plimsoll controller --record`
  plimsoll why hpa/php-apache --follow                      # a line for each new one, until Ctrl-C
  plimsoll why deploy/checkout -n shop                      # whichever autoscaler scales it
  plimsoll why so/orders-worker                             # a ScaledObject, also at zero
  plimsoll why sj/mails --since 1h                          # a ScaledJob: created jobs, and why
  plimsoll why so/orders-worker --since 1h -o yaml          # decisions of the last hour as YAML
  plimsoll why examples/php-apache.yaml --at 3m             # a scenario, three minutes after start
  plimsoll why examples/php-apache.yaml --at 09:03:00       # the scenario's own clock
  plimsoll why examples/php-apache.yaml --at 10m --since 5m # every decision of five minutes
  plimsoll why examples/multi-metric-outage.yaml --at 12m --pods
  plimsoll why examples/php-apache.yaml --at 3m -o json")]
pub(crate) struct WhyArgs {
    /// An autoscaler on a cluster (hpa/NAME, so/NAME, sj/NAME, or hpa NAME), a workload it scales (deploy/NAME), or the files of one scenario; - is standard input.
    #[arg(required = true, value_name = "AUTOSCALER|FILE")]
    files: Vec<PathBuf>,
    /// When. On a cluster: a local time of day (09:10, with --utc in UTC), RFC 3339, or how long ago (10m); without it, now. Of a
    /// scenario: from the start (3m, 1h30m), by its clock (09:03:00), or a full time; without it, the end.
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// A table of the decisions in so long before that moment, instead of one explained.
    #[arg(long, value_name = "DURATION")]
    since: Option<String>,
    /// Print each new decision on a cluster as it is made, until Ctrl-C.
    #[arg(short, long, conflicts_with = "at")]
    follow: bool,
    /// Read the passes of a recording (`plimsoll controller --record`), a file or a folder, instead of a cluster.
    #[arg(long, value_name = "PATH", conflicts_with = "follow")]
    recording: Option<PathBuf>,
    /// With --follow: explain each decision in full.
    #[arg(short, long, requires = "follow")]
    verbose: bool,
    /// Which autoscaler of a scenario, where there are several: NAME, hpa/NAME or NAMESPACE/NAME.
    #[arg(long, value_name = "NAME")]
    autoscaler: Option<String>,
    #[command(flatten)]
    kubernetes: KubernetesProfileArg,
    /// Also list every pod that was looked at.
    #[arg(long)]
    pods: bool,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten, next_help_heading = "Cluster")]
    place: ClusterArgs,
}

pub(crate) fn run(args: &WhyArgs) -> CommandResult {
    let words: Vec<&Path> = args.files.iter().map(PathBuf::as_path).collect();
    if let Some(names) = AutoscalerName::all(&words, |path| path.as_os_str() == "-" || path.exists()) {
        if args.autoscaler.is_some() {
            return Err(Failure::input(
                "--autoscaler chooses from a scenario; on a cluster write hpa/NAME or so/NAME",
            ));
        }
        args.kubernetes.only_for_files()?;
        for named in &names {
            named::check("name", &named.name)?;
        }
        return match &args.recording {
            Some(path) => recording::run(args, path, &names),
            None => crate::live::run(on_cluster(args, &names)),
        };
    }
    if args.recording.is_some() {
        return Err(Failure::input("--recording explains autoscalers by their names: hpa/NAME, so/NAME"));
    }
    if let Some(workload) = WorkloadName::parse(&words).filter(|_| words.iter().all(|word| !word.exists())) {
        args.kubernetes.only_for_files()?;
        named::check("name", &workload.name)?;
        return crate::live::run(async {
            let client = ClusterClient::open(&args.place).await?;
            let names = client.scaling(&client.namespace, &workload).await?;
            on_cluster(args, &names).await
        });
    }
    let only_live = args.place.given().or(args.follow.then_some("--follow"));
    let missing = args.files.iter().find(|file| file.as_os_str() != "-" && !file.exists());
    match (missing, only_live) {
        (Some(missing), _) => Err(Failure::input(not_a_file(missing, KINDS))),
        (None, Some(option)) => Err(Failure::input(format!(
            "{option} is for autoscalers on a cluster (plimsoll why hpa/NAME), and this is a file"
        ))),
        (None, None) => scenario::run(args),
    }
}

/// The kinds of objects on a cluster that `why` explains.
const KINDS: &str = "hpa, autoscaler, so, sj, deploy, sts, rs and rc";

/// A word that is neither a file nor an object of `kinds` on a cluster: says what it could have been.
pub(crate) fn not_a_file(path: &Path, kinds: &str) -> String {
    let text = format!("failed to read {}: no such file or folder", path.display());
    let words: Vec<&str> = path.to_str().unwrap_or_default().split('/').collect();
    match words.as_slice() {
        [name] if !name.is_empty() && !name.contains('.') => {
            format!("{text}\n  an autoscaler on a cluster is written hpa/{name}")
        }
        [kind, name] if !name.contains('.') => match named::nearest_kind(kind) {
            Some(kind) => format!("{text}\n  did you mean {kind}/{name}, on a cluster?"),
            None if Path::new(kind).is_dir() => text,
            None => format!("{text}\n  on a cluster, KIND/NAME is of the kinds {kinds}"),
        },
        _ => text,
    }
}

/// Explains autoscalers on a cluster.
async fn on_cluster(args: &WhyArgs, names: &[AutoscalerName]) -> CommandResult {
    args.place.use_zone();
    let now = Timestamp::now();
    if let Some(text) = &args.at {
        check_form(text, now)?;
    }
    let since = args.since.as_deref().map(|text| length("--since", text)).transpose()?;
    let client = ClusterClient::open(&args.place).await?;
    // Both options are relative to the clock of the cluster, which may be ahead.
    let is_relative = args.at.is_some() || since.is_some();
    let now = if is_relative { client.present(&client.namespace, names).await } else { now };
    let at = args.at.as_deref().map(|text| moment(text, now)).transpose()?;
    match names {
        [] => Err(Failure::input(
            "which one? Write hpa/NAME or so/NAME; `plimsoll get` lists the autoscalers there are",
        )),
        [named] if args.follow => follow::run(args, &client, named, since).await,
        _ if args.follow => Err(Failure::input("--follow takes one autoscaler")),
        names => match since {
            Some(since) => {
                let mut found = Vec::new();
                let until = at.unwrap_or(now);
                for named in names {
                    // Every pass with -o wide, otherwise equal ones in one line.
                    found.extend(if args.output == Format::Wide {
                        live::passes(
                            &client,
                            named,
                            until.checked_sub(since).unwrap_or(Timestamp::MIN),
                            until,
                        )
                        .await?
                    } else {
                        live::records(&client, named).await?
                    });
                }
                history::print(args, &found, at.unwrap_or(now), since, now)
            }
            None => {
                let mut explained = Vec::new();
                for named in names {
                    let mut one = live::explain_one(&client, named, at, now).await?;
                    one.hpa = live::explain_hpa(&client, &one, at, now).await.map(Box::new);
                    explained.push(one);
                }
                live::print(args, &explained)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_word_is_reported_with_the_accepted_forms() {
        let hint_of = |path: &str| {
            not_a_file(Path::new(path), "a and b").split_once('\n').map(|(_, hint)| hint.to_owned())
        };
        assert_eq!(hint_of("php-apache").unwrap(), "  an autoscaler on a cluster is written hpa/php-apache");
        assert_eq!(hint_of("hap/web").unwrap(), "  did you mean hpa/web, on a cluster?");
        assert_eq!(hint_of("pod/web").unwrap(), "  on a cluster, KIND/NAME is of the kinds a and b");
        assert_eq!(hint_of("src/web"), None, "a file of a folder");
        assert_eq!(hint_of("web.yaml"), None);
        assert_eq!(hint_of("some/dir/x"), None);
    }
}
