//! One autoscaler: why, conditions, events, YAML.

use jiff::Timestamp;
use serde_json::{Value, json};
use web_console::ApiError;

use super::path::{ObjectPath, failed};
use super::rows;
use super::whatif::WhatIfFields;
use crate::commands::get::Entry;
use crate::commands::why::{record_explanation, status_explanation};
use crate::live::decisions::{DecodedDecisions, MissingDecision};
use crate::live::objects::ObjectEvent;
use crate::live::{ClusterClient, cluster_facts};

/// Events that are shown.
const MAX_EVENTS: usize = 100;

/// Everything about one autoscaler but its history.
pub(super) async fn detail(
    client: &ClusterClient,
    path: &ObjectPath<'_>,
    now: Timestamp,
) -> Result<Value, ApiError> {
    let named = path.autoscaler()?;
    let object = client.object(path.namespace, &named).await.map_err(|error| failed(&error))?;
    // Events may be forbidden; the rest is still worth showing.
    let (events, events_error) = match client.events(path.namespace, &named).await {
        Ok(events) => (events, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let (mut found, missing) = match client.decisions_of(path.namespace, &named).await {
        Ok(found) => (found, MissingDecision::NoRecord),
        Err(missing) => (DecodedDecisions::default(), missing),
    };
    let record = found.records.pop();
    let mut why = match &record {
        Some(record) => {
            let facts = cluster_facts::of_annotations(named.kind, &object.hpa.metadata.annotations);
            record_explanation(&named, record, Some(&facts), None, now)
        }
        None => status_explanation(&named, &object.hpa, &events, &missing, now),
    };
    why.rows.extend(found.warning());
    // Triggers are not metrics that can be replayed.
    let spec = record.as_ref().map(|record| &record.spec).filter(|_| !named.kind.has_triggers());
    let fields = spec.and_then(WhatIfFields::of);
    let (mut yaml, conditions) = (api::yaml::to_yaml(&object.raw), conditions(&object.raw));
    if client.recording().is_some() {
        yaml.insert_str(0, "# Rebuilt from recorded decisions: what they do not use is missing.\n");
    }
    let entries = [Entry { object, record }];
    let overview = rows::overview(&entries, None, now);
    let row = rows::rows(&entries, &overview).into_iter().next();
    let row: Option<Value> = row.and_then(|row| serde_json::from_str(&row.json()).ok());
    Ok(json!({
        "row": row, "why": why, "conditions": conditions, "events": shown(&events, now), "eventsError": events_error,
        "yaml": yaml, "fields": fields,
    }))
}

/// The conditions of a status, of any kind.
fn conditions(raw: &Value) -> Vec<Value> {
    let all = raw.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    all.map(|condition| {
        let text = |name: &str| condition.get(name).and_then(Value::as_str).unwrap_or_default();
        let since = text("lastTransitionTime").parse::<Timestamp>().ok().map(Timestamp::as_second);
        json!({"type": text("type"), "status": text("status"), "reason": text("reason"), "message": text("message"), "since": since})
    })
    .collect()
}

fn shown(events: &[ObjectEvent], now: Timestamp) -> Vec<Value> {
    let event = |event: &ObjectEvent| {
        let text = event.describe(now);
        json!({"type": text.type_, "reason": text.reason, "message": text.message, "from": text.from,
            "at": event.last().map(Timestamp::as_second), "count": event.count.unwrap_or(1)})
    };
    events.iter().take(MAX_EVENTS).map(event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_of_every_kind_are_read() {
        let raw = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "AbleToScale", "status": "True", "lastTransitionTime": "1970-01-01T00:01:00Z"}]}});
        let found = conditions(&raw);
        assert_eq!((&found[0]["since"], &found[1]["since"]), (&Value::Null, &json!(60)));
        assert!(conditions(&json!({})).is_empty());
    }
}
