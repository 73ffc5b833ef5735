//! A decision on a cluster.

use api::autoscaling::v2::HorizontalPodAutoscalerCondition;
use api::decisions::{DecisionMode, DecisionRecord};
use cluster::AutoscalerKind;
use engine::explain::{Explanation, Row, clock};
use engine::{Decision, Spec, TriggerPoll};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::{Args, follow, history, object, pods};
use crate::failure::{Failure, Outcome};
use crate::live::decisions::{Missing, decider, silent};
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
    mode: Option<DecisionMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<u64>,
    spec: Option<Spec>,
    /// None if the controller could not be asked, and the explanation is only what the object tells.
    decision: Option<Decision>,
    /// What triggers said before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    round: Option<TriggerPoll>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Value>,
    /// The HPA that a ScaledObject acts through.
    #[serde(skip_serializing_if = "Option::is_none")]
    hpa: Option<Box<Self>>,
}

pub(crate) async fn run(args: &Args, names: &[Named]) -> Outcome {
    let now = Timestamp::now();
    let at = args.at.as_deref().map(|text| moment(text, now)).transpose()?;
    let since = args.since.as_deref().map(|text| length("--since", text)).transpose()?;
    let site = Site::open(&args.place).await?;
    match names {
        [] => Err(Failure::input(
            "which one? Write hpa/NAME or so/NAME; `plimsoll get` lists the autoscalers there are",
        )),
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
                    let mut one = one(&site, named, at, now).await?;
                    one.hpa = behind(&site, &one, at, now).await.map(Box::new);
                    explained.push(one);
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
        Missing::NoRecord => {
            let who = decider(named.kind);
            format!(
                "{named} in {}: the {who} has not decided anything about it yet\n  remedy: wait {}; if it stays so, \
                 the {who}'s log says why",
                site.namespace,
                if named.kind == AutoscalerKind::ScaledObject {
                    "a polling interval"
                } else {
                    "a sync period"
                },
            )
        }
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
        Ok(records) => {
            let mut found = explained(named, in_force(named, &records, at, now)?, at, now);
            if named.kind == AutoscalerKind::ScaledObject && at.is_none() {
                paused(site, named, &mut found.explanation).await;
            }
            return Ok(found);
        }
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
        round: None,
        object: Some(object.raw),
        hpa: None,
    })
}

/// The decision about the HPA that a ScaledObject acts through, as far as that can be had.
async fn behind(site: &Site, of: &Explained, at: Option<Timestamp>, now: Timestamp) -> Option<Explained> {
    let name = of.round.as_ref()?.hpa.clone()?;
    one(site, &Named { kind: AutoscalerKind::Hpa, name }, at, now).await.ok()
}

/// Says that nobody decides about an object that is paused.
async fn paused(site: &Site, named: &Named, words: &mut Explanation) {
    let Ok(object) = site.object(&site.namespace, named).await else { return };
    let is_paused = |c: &HorizontalPodAutoscalerCondition| c.type_ == "Paused" && c.status == "True";
    if object.hpa.status.conditions.iter().any(is_paused) {
        // What would change it next, and all that follows, is about one that goes on.
        words
            .rows
            .truncate(words.rows.iter().position(|row| row.label == "next").unwrap_or(words.rows.len()));
        let text = "by annotation: nothing is asked and nothing changes until it is removed";
        words.rows.push(Row { label: "paused".into(), text: text.into(), decided: false });
    }
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
            "{named}: no decision from before then is kept; the oldest that the {} has is from {first} UTC",
            decider(named.kind)
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
        round: record.round.clone(),
        object: None,
        hpa: None,
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
    let mut words = record.explain(named.kind.short());
    let when = format!("{} UTC", stamp(decision.at, now));
    words.headline = words.headline.replacen(&clock(decision.at), &when, 1);
    let mut say = |label: &str, text: String| {
        words.rows.push(Row { label: label.into(), text, decided: false });
    };
    match record.mode {
        DecisionMode::Active => {}
        DecisionMode::Shadow => {
            say("mode", "shadow: another controller acts, and this one only compares".to_owned());
        }
        DecisionMode::DryRun => say("mode", "dry run: decided and recorded, never written".to_owned()),
        DecisionMode::Off => say("mode", "off: nothing more is decided about this object".to_owned()),
    }
    if record.times > 1 {
        say(
            "repeated",
            format!("{} times since {}, with the same outcome", record.times, stamp(record.first, now)),
        );
    }
    let who = decider(named.kind);
    match at {
        Some(at) if silent(record, at) => {
            let until = stamp(at, now);
            say("note", format!("nothing was decided between then and {until}; was the {who} down?"));
        }
        None if silent(record, now) => {
            let age = api::age::since(Some(record.last), now);
            say("note", format!("that was {age} ago, and nothing since; does the {who} run?"));
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
    if let Some(hpa) = &one.hpa {
        text += &format!("\n{}", self::text(args, page, hpa));
    }
    text
}

#[cfg(test)]
mod tests;
