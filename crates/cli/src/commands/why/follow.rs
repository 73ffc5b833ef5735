//! Decisions on a cluster as they are made.

use std::time::Duration;

use api::decisions::DecisionRecord;
use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};

use super::history::DecisionLine;
use super::live;
use super::{WhyArgs, pods};
use crate::failure::{CommandResult, Failure};
use crate::live::decisions::{MissingDecision, no_earlier_than, role_of};
use crate::live::moment::stamp;
use crate::live::page::Page;
use crate::live::screen::stop_requested;
use crate::live::{AutoscalerName, ClusterClient, RequestError};
use crate::output::{self, Format};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_RECONNECT_PAUSE: Duration = Duration::from_secs(15);

/// Selects new records. A connection begins with all stored records, and decisions that only repeat
/// arrive again.
#[derive(Debug, Default)]
struct DecisionFollower {
    /// The newest known version.
    seen: Option<Timestamp>,
    /// The last printed text.
    printed: Option<DecisionLine>,
}

impl DecisionFollower {
    /// Whether a record is to be shown: `every` one that is new, or only one that says something else.
    fn step(&mut self, record: &DecisionRecord, every: bool) -> bool {
        if self.seen.is_some_and(|seen| record.last <= seen) {
            return false;
        }
        self.seen = Some(record.last);
        let line = DecisionLine::of(record);
        let same = self.printed.as_ref().is_some_and(|printed| {
            (printed.from, printed.to, &printed.why, printed.recommended)
                == (line.from, line.to, &line.why, line.recommended)
        });
        self.printed = Some(line);
        every || !same
    }
}

pub(crate) async fn run(
    args: &WhyArgs,
    client: &ClusterClient,
    named: &AutoscalerName,
    since: Option<SignedDuration>,
) -> CommandResult {
    tokio::select! {
        outcome = follow(args, client, named, since) => outcome,
        () = stop_requested() => Ok(()),
    }
}

async fn follow(
    args: &WhyArgs,
    client: &ClusterClient,
    named: &AutoscalerName,
    since: Option<SignedDuration>,
) -> CommandResult {
    // A wrong name or a missing controller is reported at once; later failures are retried.
    let kept = live::records(client, named).await?;
    let now = no_earlier_than(Timestamp::now(), &kept);
    let from = since.and_then(|since| now.checked_sub(since).ok());
    let shown = match from {
        Some(from) => kept.iter().position(|record| record.last >= from).unwrap_or(kept.len()),
        None => kept.len().saturating_sub(1),
    };
    let mut follower = DecisionFollower::default();
    for record in kept.iter().skip(shown) {
        show(args, named, &mut follower, record)?;
    }
    follower.seen = follower.seen.max(kept.last().map(|record| record.last));
    let mut pause = FIRST_PAUSE;
    let mut warned = None;
    loop {
        let lost = match client.watch_decisions(&client.namespace, named).await {
            Ok(mut records) => loop {
                match records.next().await {
                    Some(Ok(record)) => {
                        pause = FIRST_PAUSE;
                        show(args, named, &mut follower, &record)?;
                    }
                    Some(Err(RequestError::Undecodable(error))) => {
                        // A new connection begins with all stored records, so the same one may come again.
                        if warned.as_ref() != Some(&error) {
                            let who = role_of(named.kind);
                            eprintln!(
                                "warning: a decision about {named} cannot be read: {error}\n  remedy: use a \
                                 `plimsoll` of the {who}'s version"
                            );
                        }
                        warned = Some(error);
                    }
                    Some(Err(error)) => break Some(error.to_string()),
                    // Servers end watches now and then.
                    None => break None,
                }
            },
            Err(MissingDecision::NoRecord) => {
                if let Err(error) = client.object(&client.namespace, named).await
                    && error.code() == Some(404)
                {
                    return Err(Failure::Outside(format!("{named} was deleted")));
                }
                None
            }
            Err(MissingDecision::Unavailable(why)) => Some(why.cause),
        };
        if let Some(lost) = lost {
            let who = role_of(named.kind);
            eprintln!("lost the {who}: {lost}; trying again in {} s", pause.as_secs());
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_RECONNECT_PAUSE);
    }
}

fn show(
    args: &WhyArgs,
    named: &AutoscalerName,
    follower: &mut DecisionFollower,
    record: &DecisionRecord,
) -> CommandResult {
    if !follower.step(record, args.verbose) {
        return Ok(());
    }
    let now = Timestamp::now();
    match args.output {
        // One value a line, so that a program can read them as they come.
        Format::Json => {
            let line = serde_json::to_string(record)
                .map_err(|e| Failure::Outside(format!("failed to write the output: {e}")))?;
            output::exact_out(&format!("{line}\n"))
        }
        Format::Yaml => {
            output::text_out("---\n")?;
            output::value(args.output, record)
        }
        Format::Table | Format::Wide if args.verbose => {
            let page = Page::stdout();
            let explanation = live::explanation(named, record, None, Some(record.last), now);
            let pods = if args.pods || args.output == Format::Wide {
                pods::table(page, &record.spec, &record.decision)
            } else {
                String::new()
            };
            output::text_out(&format!("{}{pods}\n", page.explanation(&explanation)))
        }
        Format::Table | Format::Wide => output::text_out(&short(named, record, now)),
    }
}

/// One line for one decision.
fn short(named: &AutoscalerName, record: &DecisionRecord, now: Timestamp) -> String {
    let line = DecisionLine::of(record);
    format!("{}  {named}  {:<9}  {}\n", stamp(record.decision.at, now), line.replicas(), line.why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::sample::{at, record};

    #[test]
    fn follow_prints_only_new_decisions() {
        let mut follower = DecisionFollower::default();
        let first = record("2026-01-05T09:15:00Z", 4, &[100; 4]);
        assert!(follower.step(&first, false));
        assert!(!follower.step(&first, false), "the same again, after a new connection");
        let mut again = first.clone();
        again.last = at("2026-01-05T09:15:15Z");
        again.times = 2;
        assert!(!follower.step(&again, false), "made again, and nothing else to say");
        again.last = at("2026-01-05T09:15:30Z");
        assert!(follower.step(&again, true), "unless every one is wanted");
        assert!(follower.step(&record("2026-01-05T09:15:45Z", 4, &[300; 4]), false));
    }

    #[test]
    fn decision_line_has_time_change_and_reason() {
        let named = AutoscalerName { kind: cluster::AutoscalerKind::Hpa, name: "web".into() };
        let grown = record("2026-01-05T09:14:45Z", 1, &[610]);
        assert_eq!(
            short(&named, &grown, at("2026-01-05T10:00:00Z")),
            "09:14:45  hpa/web  1 → 4      cpu wants 7; scale-up limit is 4 this time\n"
        );
    }
}
