//! A decision on a cluster.

use api::decisions::{DecisionRecord, Mode};
use engine::explain::{Explanation, Row, clock, explain};
use engine::{Decision, Spec};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::{Args, follow, history, object, pods};
use crate::failure::{Failure, Outcome};
use crate::live::decisions::{Missing, silent};
use crate::live::moment::{length, moment, stamp};
use crate::live::page::Page;
use crate::live::{Named, Site};
use crate::output::{self, Format};

/// What `-o json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Explained {
    autoscaler: String,
    namespace: String,
    explanation: Explanation,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<u64>,
    spec: Option<Spec>,
    /// None if the controller could not be asked, and the explanation is only what the object tells.
    decision: Option<Decision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Value>,
}

pub(crate) async fn run(args: &Args, names: &[Named]) -> Outcome {
    let now = Timestamp::now();
    let at = args.at.as_deref().map(|text| moment(text, now)).transpose()?;
    let since = args.since.as_deref().map(|text| length("--since", text)).transpose()?;
    let site = Site::open(&args.place).await?;
    match names {
        [] => {
            Err(Failure::input("which one? Write hpa/NAME; `plimsoll get` lists the autoscalers there are"))
        }
        [named] if args.follow => follow::run(args, &site, named, since).await,
        _ if args.follow => Err(Failure::input("--follow takes one autoscaler")),
        names => match since {
            Some(since) => {
                let mut found = Vec::new();
                for named in names {
                    found.extend(records(&site, named).await?);
                }
                history::print(args, &found, at.unwrap_or(now), since, now)
            }
            None => {
                let mut explained = Vec::new();
                for named in names {
                    explained.push(one(&site, named, at, now).await?);
                }
                print(args, &explained)
            }
        },
    }
}

/// All that is kept of one autoscaler; a failure in words if that cannot be had.
pub(crate) async fn records(site: &Site, named: &Named) -> Result<Vec<DecisionRecord>, Failure> {
    match site.decisions_of(&site.namespace, named).await {
        Ok(records) => Ok(records),
        Err(missing) => Err(without(site, named, &missing).await),
    }
}

/// Why there is no decision to show. That the name is wrong is the likelier reason, so that is looked at first.
async fn without(site: &Site, named: &Named, missing: &Missing) -> Failure {
    if let Err(trouble) = site.object(&site.namespace, named).await {
        return site.lost(&site.namespace, named, &trouble).await;
    }
    Failure::Outside(match missing {
        Missing::NoRecord => format!(
            "{named} in {}: the controller has not decided anything about it yet\n  remedy: wait a sync period; if it \
             stays so, the controller's log says why",
            site.namespace
        ),
        Missing::Unavailable(why) => {
            format!("decisions cannot be read: {}\n  remedy: {}", why.cause, why.remedy)
        }
    })
}

/// The decision in force at a moment; without one that can be had, what the object tells about now.
async fn one(
    site: &Site,
    named: &Named,
    at: Option<Timestamp>,
    now: Timestamp,
) -> Result<Explained, Failure> {
    let missing = match site.decisions_of(&site.namespace, named).await {
        Ok(records) => return Ok(explained(named, in_force(named, &records, at, now)?, at, now)),
        // The object does not know its past.
        Err(missing) if at.is_some() => return Err(without(site, named, &missing).await),
        Err(missing) => missing,
    };
    let object = match site.object(&site.namespace, named).await {
        Ok(object) => object,
        Err(trouble) => return Err(site.lost(&site.namespace, named, &trouble).await),
    };
    // Events may be forbidden; the rest is still worth showing.
    let events = site.events(&site.namespace, named).await.unwrap_or_default();
    Ok(Explained {
        autoscaler: named.to_string(),
        namespace: site.namespace.clone(),
        explanation: object::explanation(named, &object.hpa, &events, &missing, now),
        mode: None,
        first: None,
        last: None,
        times: None,
        spec: None,
        decision: None,
        object: Some(object.raw),
    })
}

/// The record in force at a moment; the last without one.
fn in_force<'a>(
    named: &Named,
    records: &'a [DecisionRecord],
    at: Option<Timestamp>,
    now: Timestamp,
) -> Result<&'a DecisionRecord, Failure> {
    let found = match at {
        None => records.last(),
        Some(at) => records.iter().rev().find(|record| record.first <= at),
    };
    found.ok_or_else(|| {
        let first = records.first().map_or_else(|| "now".to_owned(), |record| stamp(record.first, now));
        Failure::Outside(format!(
            "{named}: no decision from before then is kept; the oldest that the controller has is from {first} UTC"
        ))
    })
}

fn explained(named: &Named, record: &DecisionRecord, at: Option<Timestamp>, now: Timestamp) -> Explained {
    Explained {
        autoscaler: named.to_string(),
        namespace: record.metadata.namespace.clone(),
        explanation: explanation(named, record, at, now),
        mode: Some(record.mode),
        first: Some(record.first),
        last: Some(record.last),
        times: Some(record.times),
        spec: Some(record.spec.clone()),
        decision: Some(record.decision.clone()),
        object: None,
    }
}

/// A record in words: the decision, and what is to be known about when and by whom it was made.
pub(crate) fn explanation(
    named: &Named,
    record: &DecisionRecord,
    at: Option<Timestamp>,
    now: Timestamp,
) -> Explanation {
    let decision = &record.decision;
    let mut words = explain(named.kind.short(), &record.spec, decision, record.period);
    let when = format!("{} UTC", stamp(decision.at, now));
    words.headline = words.headline.replacen(&clock(decision.at), &when, 1);
    let mut say = |label: &str, text: String| {
        words.rows.push(Row { label: label.into(), text, decided: false });
    };
    match record.mode {
        Mode::Active => {}
        Mode::Shadow => {
            say("mode", "shadow: another controller acts, and this one only compares".to_owned());
        }
        Mode::DryRun => say("mode", "dry run: decided and recorded, never written".to_owned()),
        Mode::Off => say("mode", "off: nothing more is decided about this object".to_owned()),
    }
    if record.times > 1 {
        say(
            "repeated",
            format!("{} times since {}, with the same outcome", record.times, stamp(record.first, now)),
        );
    }
    match at {
        Some(at) if silent(record, at) => {
            let until = stamp(at, now);
            say("note", format!("nothing was decided between then and {until}; was the controller down?"));
        }
        None if silent(record, now) => {
            let age = api::age::since(Some(record.last), now);
            say("note", format!("that was {age} ago, and nothing since; does the controller run?"));
        }
        _ => {}
    }
    words
}

fn print(args: &Args, explained: &[Explained]) -> Outcome {
    match (args.output, explained) {
        (Format::Json | Format::Yaml, [only]) => output::value(args.output, only),
        (Format::Json | Format::Yaml, all) => output::value(args.output, &all),
        (Format::Table | Format::Wide, all) => {
            let page = Page::stdout();
            let texts: Vec<String> = all.iter().map(|one| text(args, page, one)).collect();
            output::text_out(&texts.join("\n"))
        }
    }
}

fn text(args: &Args, page: Page, one: &Explained) -> String {
    let mut text = page.explanation(&one.explanation);
    if (args.pods || args.output == Format::Wide)
        && let (Some(spec), Some(decision)) = (&one.spec, &one.decision)
    {
        let pods = pods::table(page, spec, decision);
        text += if pods.is_empty() && args.pods {
            "\nthe controller recorded how many pods were looked at, not which\n"
        } else {
            &pods
        };
    }
    text
}

#[cfg(test)]
mod tests;
