//! A decision on a cluster.

use api::decisions::{DecisionMode, DecisionRecord};
use api::diagnosis::{ClusterFacts, Diagnosis, diagnose, explain_with_causes};
use cluster::AutoscalerKind;
use engine::explain::{Explanation, Row, clock};
use engine::{Decision, Spec, TriggerPoll};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::{WhyArgs, object, pods};
use crate::failure::{CommandResult, Failure};
use crate::live::decisions::{MissingDecision, role_of, silent};
use crate::live::moment::{stamp, zoned};
use crate::live::page::Page;
use crate::live::{AutoscalerName, ClusterClient, cluster_facts};
use crate::output::{self, Format};

/// What `-o json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExplainedDecision {
    autoscaler: String,
    namespace: String,
    explanation: Explanation,
    /// All causes, the most specific first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<Diagnosis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<DecisionMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<u64>,
    spec: Option<Spec>,
    /// None if the controller could not be reached and the explanation is from the object's status.
    decision: Option<Decision>,
    /// The values of triggers before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    round: Option<TriggerPoll>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Value>,
    /// The HPA of a ScaledObject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hpa: Option<Box<Self>>,
    /// What was read from the cluster for the causes.
    #[serde(skip)]
    cluster: Option<ClusterFacts>,
}

/// All stored records of one autoscaler.
pub(crate) async fn records(
    client: &ClusterClient,
    named: &AutoscalerName,
) -> Result<Vec<DecisionRecord>, Failure> {
    match client.decisions_of(&client.namespace, named).await {
        Ok(found) => Ok(found.or_warn()),
        Err(missing) => Err(without(client, named, &missing).await),
    }
}

/// Every pass of one autoscaler in a span of time.
pub(super) async fn passes(
    client: &ClusterClient,
    named: &AutoscalerName,
    since: Timestamp,
    until: Timestamp,
) -> Result<Vec<DecisionRecord>, Failure> {
    match client.passes_between(&client.namespace, named, since, until).await {
        Ok(found) => Ok(found.or_warn()),
        Err(missing) => Err(without(client, named, &missing).await),
    }
}

/// The pass of one autoscaler at a time, or an error that says what is kept.
pub(crate) async fn pass_at(
    client: &ClusterClient,
    named: &AutoscalerName,
    at: Timestamp,
    now: Timestamp,
) -> Result<DecisionRecord, Failure> {
    match client.decision_at(&client.namespace, named, at).await {
        Ok(found) => in_force(named, &found.or_warn(), Some(at), now).cloned(),
        Err(missing) => Err(without(client, named, &missing).await),
    }
}

/// Why there is no decision. A wrong name is the most likely reason, so it is checked first.
async fn without(client: &ClusterClient, named: &AutoscalerName, missing: &MissingDecision) -> Failure {
    if let Err(error) = client.object(&client.namespace, named).await {
        return client.lost(&client.namespace, named, &error).await;
    }
    Failure::Outside(match missing {
        MissingDecision::NoRecord => {
            let who = role_of(named.kind);
            format!(
                "{named} in {}: the {who} has not decided anything about it yet\n  remedy: wait {}; if it stays so, \
                 the {who}'s log says why",
                client.namespace,
                if named.kind.has_triggers() { "a polling interval" } else { "a sync period" },
            )
        }
        MissingDecision::Unavailable(why) => why.note(),
    })
}

/// The decision in force at a time; without one, an explanation from the object's status.
pub(super) async fn explain_one(
    client: &ClusterClient,
    named: &AutoscalerName,
    at: Option<Timestamp>,
    now: Timestamp,
) -> Result<ExplainedDecision, Failure> {
    let found = match at {
        Some(at) => client.decision_at(&client.namespace, named, at).await,
        None => client.decisions_of(&client.namespace, named).await,
    };
    let missing = match found {
        Ok(found) => {
            let records = found.or_warn();
            let record = in_force(named, &records, at, now)?;
            // The cluster explains only the latest decision.
            let cluster = match at {
                None => Some(cluster_facts::read(client, named, record).await),
                Some(_) => None,
            };
            let mut found = explained(named, record, cluster.as_ref(), at, now);
            found.cluster = cluster;
            return Ok(found);
        }
        // The object has no history.
        Err(missing) if at.is_some() => return Err(without(client, named, &missing).await),
        Err(missing) => missing,
    };
    let object = match client.object(&client.namespace, named).await {
        Ok(object) => object,
        Err(error) => return Err(client.lost(&client.namespace, named, &error).await),
    };
    // Events may be forbidden; the rest is still worth showing.
    let events = client.events(&client.namespace, named).await.unwrap_or_default();
    Ok(ExplainedDecision {
        autoscaler: named.to_string(),
        namespace: client.namespace.clone(),
        explanation: object::explanation(named, &object.hpa, &events, &missing, now),
        causes: object::cause(named, &object.hpa).into_iter().collect(),
        mode: None,
        first: None,
        last: None,
        times: None,
        spec: None,
        decision: None,
        round: None,
        object: Some(object.raw),
        hpa: None,
        cluster: None,
    })
}

/// The decision about the HPA of a ScaledObject, if it is available.
pub(super) async fn explain_hpa(
    client: &ClusterClient,
    of: &ExplainedDecision,
    at: Option<Timestamp>,
    now: Timestamp,
) -> Option<ExplainedDecision> {
    let name = of.round.as_ref()?.hpa.clone()?;
    explain_one(client, &AutoscalerName { kind: AutoscalerKind::Hpa, name }, at, now).await.ok()
}

/// Adds that nothing is decided about an object that is off or paused: its controller is not silent.
fn add_undecided(words: &mut Explanation, cluster: &ClusterFacts) {
    let (label, text) = match cluster {
        ClusterFacts { off: true, .. } => ("off", "by annotation: nothing is decided until it is removed"),
        ClusterFacts { paused: Some(_), .. } => {
            ("paused", "by annotation: nothing is asked and nothing changes until it is removed")
        }
        _ => return,
    };
    // The next change and what follows it apply only to an active object.
    words.rows.truncate(words.rows.iter().position(|row| row.label == "next").unwrap_or(words.rows.len()));
    words.rows.push(Row { label: label.into(), text: text.into(), decided: false });
}

/// The record in force at a moment; the last without one.
fn in_force<'a>(
    named: &AutoscalerName,
    records: &'a [DecisionRecord],
    at: Option<Timestamp>,
    now: Timestamp,
) -> Result<&'a DecisionRecord, Failure> {
    let found = match at {
        None => records.last(),
        Some(at) => records.iter().rev().find(|record| record.first <= at),
    };
    found.ok_or_else(|| {
        let first = records.first().map_or_else(|| "now".to_owned(), |record| zoned(record.first, now));
        Failure::Outside(format!(
            "{named}: no decision from before then is kept; the oldest that the {} has is from {first}",
            role_of(named.kind)
        ))
    })
}

pub(super) fn explained(
    named: &AutoscalerName,
    record: &DecisionRecord,
    cluster: Option<&ClusterFacts>,
    at: Option<Timestamp>,
    now: Timestamp,
) -> ExplainedDecision {
    ExplainedDecision {
        autoscaler: named.to_string(),
        namespace: record.metadata.namespace.clone(),
        explanation: explanation(named, record, cluster, at, now),
        causes: diagnose(&record.facts(cluster)),
        mode: Some(record.mode),
        first: Some(record.first),
        last: Some(record.last),
        times: Some(record.times),
        spec: Some(record.spec.clone()),
        decision: Some(record.decision.clone()),
        round: record.round.clone(),
        object: None,
        hpa: None,
        cluster: None,
    }
}

/// A record as text: the decision, its time and its mode.
pub(crate) fn explanation(
    named: &AutoscalerName,
    record: &DecisionRecord,
    cluster: Option<&ClusterFacts>,
    at: Option<Timestamp>,
    now: Timestamp,
) -> Explanation {
    let decision = &record.decision;
    let mut words = explain_with_causes(named.kind.short(), record, cluster);
    let when = zoned(decision.at, now);
    words.headline = words.headline.replacen(&clock(decision.at), &when, 1);
    let mut add_row = |label: &str, text: String| {
        words.rows.push(Row { label: label.into(), text, decided: false });
    };
    match record.mode {
        DecisionMode::Active => {}
        DecisionMode::Shadow => {
            add_row("mode", "shadow: another controller acts, and this one only compares".to_owned());
        }
        DecisionMode::DryRun => add_row("mode", "dry run: decided and recorded, never written".to_owned()),
        DecisionMode::Off => add_row("mode", "off: nothing more is decided about this object".to_owned()),
    }
    if record.times > 1 {
        add_row(
            "repeated",
            format!("{} times since {}, with the same outcome", record.times, stamp(record.first, now)),
        );
    }
    let who = role_of(named.kind);
    match at {
        Some(at) if silent(record, at) => {
            let until = stamp(at, now);
            add_row("note", format!("nothing was decided between then and {until}; was the {who} down?"));
        }
        None if silent(record, now) => {
            let age = api::age::since(Some(record.last), now);
            add_row("note", format!("that was {age} ago, and nothing since; does the {who} run?"));
        }
        _ => {}
    }
    if let Some(cluster) = cluster {
        add_undecided(&mut words, cluster);
    }
    words
}

pub(super) fn print(args: &WhyArgs, explained: &[ExplainedDecision]) -> CommandResult {
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

fn text(args: &WhyArgs, page: Page, one: &ExplainedDecision) -> String {
    let mut text = page.explanation(&one.explanation);
    if (args.pods || args.output == Format::Wide)
        && let (Some(spec), Some(decision)) = (&one.spec, &one.decision)
    {
        let known = one.cluster.as_ref().and_then(|cluster| cluster.pods.as_deref());
        let pods = pods::live_table(page, spec, decision, known);
        text += if pods.is_empty() && args.pods {
            "\nno pods were evaluated, or the record of that time has no names of pods\n"
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
