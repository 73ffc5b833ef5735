//! Replicas, metrics and decisions of one autoscaler over time.

use api::decisions::DecisionRecord;
use engine::ScaleOutcome;
use jiff::Timestamp;
use locks::MutexExt as _;
use serde_json::{Value, json};
use web_console::ApiError;

use super::passes::{self, PassPoints};
use super::path::{ObjectPath, failed};
use super::readings::{self, seconds};
use super::samples::Samples;
use crate::commands::get::limited_by;
use crate::commands::why::record_explanation;
use crate::live::ClusterClient;
use crate::live::decisions::MissingDecision;

/// Milliseconds by which a decision's time may differ from the one that a client names, because JSON numbers are rounded.
const ROUNDING_MILLISECONDS: i64 = 1;

/// The recorded decisions as a chart; without them, what the status showed while the console ran.
pub(super) async fn history(
    client: &ClusterClient,
    path: &ObjectPath<'_>,
    samples: &std::sync::Mutex<Samples>,
    after: Option<&str>,
    now: Timestamp,
) -> Result<Value, ApiError> {
    let named = path.autoscaler()?;
    if after.is_some()
        && let Some(found) = passes::read(client, path.namespace, &named, after, now).await
        && !found.reset
    {
        return Ok(of_new_passes(found));
    }
    match client.decisions_of(path.namespace, &named).await {
        Ok(decoded) => {
            let mut history = of_records(&decoded.records);
            // Passes have every value; decisions only the last of each run of equal ones.
            if let Some(found) = passes::read(client, path.namespace, &named, None, now).await
                && let Some(fields) = history.as_object_mut()
            {
                let PassPoints { points, headings, cursor, reset, .. } = found;
                fields.insert("source".into(), json!("passes"));
                fields.insert("points".into(), Value::from(points));
                fields.insert("metrics".into(), Value::from(headings));
                fields.insert("cursor".into(), json!(cursor));
                fields.insert("reset".into(), json!(reset));
            }
            Ok(history)
        }
        Err(missing) => {
            let note = match missing {
                MissingDecision::NoRecord => "nothing was decided about it yet".to_owned(),
                MissingDecision::Unavailable(why) => format!("{}; remedy: {}", why.cause, why.remedy),
            };
            let object = client.object(path.namespace, &named).await.map_err(|error| failed(&error))?;
            let headings: Vec<Value> =
                readings::of_object(&object.hpa).iter().map(readings::Reading::heading).collect();
            let points = samples.locked().points(&path.id());
            let note = format!(
                "The chart shows the status since this console was started, without decisions: {note}."
            );
            Ok(
                json!({"source": "status", "note": note, "cursor": null, "reset": true, "metrics": headings, "points": points, "marks": []}),
            )
        }
    }
}

/// What is new since the last answer.
fn of_new_passes(found: PassPoints) -> Value {
    let PassPoints { points, headings, cursor, records, continued, .. } = found;
    let marks: Vec<Value> = records.iter().map(mark).collect();
    let continued = continued.map(|(times, until)| json!({"times": times, "until": seconds(until)}));
    json!({"source": "passes", "note": "", "cursor": cursor, "reset": false, "metrics": headings, "points": points, "marks": marks,
        "continued": continued})
}

/// Points and marks of recorded decisions, which are sorted by time.
fn of_records(records: &[DecisionRecord]) -> Value {
    let headings = records.last().map(readings::of_record).unwrap_or_default();
    let headings: Vec<Value> = headings.iter().map(readings::Reading::heading).collect();
    let points: Vec<Value> = records.iter().flat_map(points).collect();
    let marks: Vec<Value> = records.iter().map(mark).collect();
    json!({"source": "decisions", "note": "", "cursor": null, "reset": true, "metrics": headings, "points": points, "marks": marks})
}

/// A decision that was repeated has a point at its begin and one at its end.
fn points(record: &DecisionRecord) -> Vec<Value> {
    let decision = &record.decision;
    let current =
        if decision.outcome == ScaleOutcome::Scaled { decision.desired } else { decision.current() };
    // A scale that could not be read is missing, not zero.
    let current = decision.scale.as_ref().map(|_| current.get());
    let wanted =
        decision.recommendation.as_ref().map_or(decision.desired, |recommended| recommended.replicas);
    let held = match limited_by(decision) {
        "up window" | "down window" => "window",
        "up rate" | "down rate" => "rate",
        "-" => "",
        bound => bound,
    };
    let values: Vec<Option<f64>> =
        readings::of_record(record).into_iter().map(|reading| reading.value).collect();
    let point = |at: Timestamp| {
        json!({"t": seconds(at), "current": current, "desired": current.map(|_| wanted.get()), "min": record.spec.min.get(),
            "max": record.spec.max.get(), "values": values, "held": held})
    };
    let last = (record.last > record.first).then(|| point(record.last));
    [Some(point(record.first)), last].into_iter().flatten().collect()
}

fn mark(record: &DecisionRecord) -> Value {
    let decision = &record.decision;
    // A scale that could not be read is missing, not zero.
    let scale = decision.scale.as_ref();
    json!({
        "t": seconds(record.first),
        "until": seconds(record.last),
        "times": record.times,
        "from": scale.map(|scale| scale.spec_replicas.get()),
        "to": scale.map(|_| decision.desired.get()),
        "changed": decision.outcome == ScaleOutcome::Scaled,
        "failed": matches!(decision.outcome, ScaleOutcome::Failed | ScaleOutcome::WriteFailed(_)),
        "sentence": record.sentence(),
    })
}

/// The explanation of the decision in force at a time (seconds since 1970).
pub(super) async fn why(
    client: &ClusterClient,
    path: &ObjectPath<'_>,
    at: f64,
    now: Timestamp,
) -> Result<Value, ApiError> {
    let bad = || ApiError::new(400, "`at` is a time in seconds since 1970");
    if !at.is_finite() {
        return Err(bad());
    }
    let at =
        Timestamp::from_millisecond(((at * 1000.0).round() as i64).saturating_add(ROUNDING_MILLISECONDS))
            .map_err(|_| bad())?;
    let named = path.autoscaler()?;
    let records = match client.decision_at(path.namespace, &named, at).await {
        Ok(found) => found.records,
        Err(MissingDecision::NoRecord) => return Err(ApiError::new(404, "no decision is recorded")),
        Err(MissingDecision::Unavailable(why)) => return Err(ApiError::new(503, why.cause)),
    };
    let record = records.iter().rev().find(|record| record.first <= at);
    let record = record.ok_or_else(|| ApiError::new(404, "no decision from before then is kept"))?;
    serde_json::to_value(record_explanation(&named, record, None, Some(at), now))
        .map_err(|error| ApiError::new(500, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::sample::{at, record_of};

    #[test]
    fn decisions_become_points_and_marks() {
        let mut calm = record_of("web", "2026-01-05T09:15:00Z", 4, &[100; 4]);
        calm.times = 4;
        calm.last = at("2026-01-05T09:15:45Z");
        let failed = record_of("web", "2026-01-05T09:16:00Z", 4, &[]);
        let mut unread = record_of("web", "2026-01-05T09:16:15Z", 4, &[]);
        unread.decision.scale = None;
        let history =
            of_records(&[record_of("web", "2026-01-05T09:14:45Z", 1, &[610]), calm, failed, unread]);
        assert_eq!(history["metrics"], json!([{"name": "cpu", "unit": "%", "target": 50.0}]));
        let points = history["points"].as_array().unwrap();
        let shown: Vec<_> = points
            .iter()
            .map(|p| (p["current"].clone(), p["desired"].clone(), p["values"][0].clone(), p["held"].clone()))
            .collect();
        assert_eq!(shown[0], (json!(4), json!(7), json!(305.0), json!("rate")));
        assert_eq!(shown[1], shown[2], "a repeated decision has a begin and an end");
        assert_eq!((shown.len(), &shown[3].2), (5, &Value::Null), "a missing metric is not zero");
        let marks = history["marks"].as_array().unwrap();
        assert_eq!(
            (&marks[0]["changed"], &marks[1]["times"], &marks[2]["failed"]),
            (&json!(true), &json!(4), &json!(true))
        );
        assert_eq!(marks[2]["from"], json!(4));
        assert_eq!(
            (&marks[3]["from"], &marks[3]["to"]),
            (&Value::Null, &Value::Null),
            "nor is a missing count"
        );
    }
}
