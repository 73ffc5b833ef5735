//! An explanation from the autoscaler's own status when the controller cannot be reached.

use api::autoscaling::{print, v2};
use api::diagnosis::{Diagnosis, TargetCause};
use engine::explain::{Explanation, Row};
use jiff::Timestamp;

use crate::live::AutoscalerName;
use crate::live::cluster_facts::{is_off, paused};
use crate::live::decisions::{MissingDecision, role_of};
use crate::live::moment::zoned;
use crate::live::objects::{ObjectEvent, status_counts};

/// Events that are shown.
const MAX_EVENTS: usize = 5;

/// Why nothing is decided about an object, if its annotations turn decisions off.
pub(crate) fn cause(named: &AutoscalerName, hpa: &v2::HorizontalPodAutoscaler) -> Option<Diagnosis> {
    let annotations = &hpa.metadata.annotations;
    if is_off(named.kind, annotations) {
        return Some(Diagnosis::of(&TargetCause::Off));
    }
    paused(named.kind, annotations).map(|paused| Diagnosis::of(&TargetCause::Paused(paused.replicas)))
}

/// An explanation from the object, ending with the reason why there is no decision.
pub(crate) fn explanation(
    named: &AutoscalerName,
    hpa: &v2::HorizontalPodAutoscaler,
    events: &[ObjectEvent],
    missing: &MissingDecision,
    now: Timestamp,
) -> Explanation {
    let status = &hpa.status;
    let is_active = |c: &v2::HorizontalPodAutoscalerCondition| c.type_ == "Active" && c.status == "True";
    let what = match named.kind {
        // Their status has no replica count.
        kind if kind.has_triggers() && status.conditions.iter().any(is_active) => "active".to_owned(),
        kind if kind.has_triggers() => "not active".to_owned(),
        _ => match status_counts(status) {
            Some((current, desired)) if current == desired => format!("at {current}"),
            Some((current, desired)) => format!("at {current}, wants {desired}"),
            None => "replicas unknown".to_owned(),
        },
    };
    let mut rows = Vec::new();
    let mut add_row = |label: &str, text: String| {
        let goes_on =
            rows.iter().rev().find(|row: &&Row| !row.label.is_empty()).is_some_and(|row| row.label == label);
        let label = if goes_on { String::new() } else { label.to_owned() };
        rows.push(Row { label, text, decided: false });
    };
    let cause = cause(named, hpa);
    if let Some(Diagnosis { remedy, link, .. }) = &cause {
        add_row("remedy", format!("{remedy} ({link})"));
    }
    let target = &hpa.spec.scale_target_ref;
    add_row("target", format!("{}/{}", target.kind, target.name));
    let seen = status.current_metrics.as_deref().unwrap_or_default();
    for (index, metric) in hpa.spec.metrics.iter().enumerate() {
        let of_one =
            print::targets(std::slice::from_ref(metric), seen.get(index..=index).unwrap_or_default());
        add_row("metrics", format!("{of_one} (now/target)"));
    }
    let min = hpa.spec.min_replicas.unwrap_or(1);
    add_row("limits", format!("min {min}, max {}", hpa.spec.max_replicas));
    if let Some(last) = status.last_scale_time {
        add_row("scaled", zoned(last, now));
    }
    for condition in &status.conditions {
        add_row(
            "conditions",
            format!("{}={} ({}): {}", condition.type_, condition.status, condition.reason, condition.message),
        );
    }
    if status.conditions.is_empty() {
        add_row("conditions", "none: no controller has reconciled it yet".to_owned());
    }
    for event in events.iter().take(MAX_EVENTS) {
        let when = event.last().map_or_else(|| "some time".to_owned(), |_| age(event, now));
        let times =
            event.count.filter(|count| *count > 1).map(|n| format!(", {n} times")).unwrap_or_default();
        let word = |text: &Option<String>| text.clone().unwrap_or_default();
        add_row(
            "events",
            format!("{when} ago{times}: {}: {}", word(&event.reason), word(&event.message).trim()),
        );
    }
    match missing {
        MissingDecision::NoRecord => {
            add_row(
                "note",
                format!(
                    "the {} has not decided anything about it yet; this is all there is",
                    role_of(named.kind)
                ),
            );
        }
        MissingDecision::Unavailable(why) => {
            add_row("note", "this is all that the object itself shows; decisions cannot be read".to_owned());
            add_row("note", format!("cause: {}", why.cause));
            add_row("note", format!("remedy: {}", why.remedy));
        }
    }
    let because = cause.map(|cause| format!(": {}", cause.sentence)).unwrap_or_default();
    Explanation { headline: format!("{named} in {} · {what}{because}", hpa.metadata.namespace), rows }
}

fn age(event: &ObjectEvent, now: Timestamp) -> String {
    api::age::since(event.last(), now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::decisions::Unavailable;

    #[test]
    fn explanation_without_records_uses_status_and_events() {
        let hpa: v2::HorizontalPodAutoscaler = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 2, "maxReplicas": 5,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}]},
            "status": {"currentReplicas": 2, "desiredReplicas": 3, "currentMetrics": [
                {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 80}}}],
                "lastScaleTime": "2026-01-04T09:00:00Z",
                "conditions": [{"type": "AbleToScale", "status": "True", "reason": "SucceededRescale", "message": "done", "lastTransitionTime": null}]},
        }))
        .unwrap();
        let event: ObjectEvent =
            serde_json::from_value(serde_json::json!({"type": "Normal", "reason": "SuccessfulRescale",
            "message": "New size: 3", "count": 2, "lastTimestamp": "2026-01-05T08:58:00Z"}))
            .unwrap();
        let why = Unavailable { cause: "nobody there".into(), remedy: "start somebody".into() };
        let named = AutoscalerName { kind: cluster::AutoscalerKind::Hpa, name: "web".into() };
        let now = "2026-01-05T09:00:00Z".parse().unwrap();
        let text = explanation(&named, &hpa, &[event], &MissingDecision::Unavailable(why), now).to_string();
        assert_eq!(
            text,
            "\
hpa/web in shop · at 2, wants 3
target      Deployment/web
metrics     cpu: 80%/60% (now/target)
limits      min 2, max 5
scaled      2026-01-04 09:00:00 UTC
conditions  AbleToScale=True (SucceededRescale): done
events      2m ago, 2 times: SuccessfulRescale: New size: 3
note        this is all that the object itself shows; decisions cannot be read
            cause: nobody there
            remedy: start somebody
"
        );
    }

    #[test]
    fn object_that_is_off_is_reported_first() {
        let hpa: v2::HorizontalPodAutoscaler = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "web", "namespace": "shop", "annotations": {"plimsoll.dev/mode": "off"}},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 5},
        }))
        .unwrap();
        let named = AutoscalerName { kind: cluster::AutoscalerKind::Hpa, name: "web".into() };
        let now = "2026-01-05T09:00:00Z".parse().unwrap();
        let explained = explanation(&named, &hpa, &[], &MissingDecision::NoRecord, now);
        assert_eq!(explained.headline, "hpa/web in shop · replicas unknown: it is off: nothing is decided");
        assert!(explained.rows[0].text.ends_with("(docs/diagnosis.md#autoscaler-off)"), "{explained:?}");
    }
}
