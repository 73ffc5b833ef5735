use serde_json::json;

use super::*;
use crate::live::objects::sample as object;
use crate::live::sample::{at, record_of};

const NOW: &str = "2026-01-05T09:15:00Z";

fn entries() -> Vec<Entry> {
    let status = |replicas: i32, cpu: i32| {
        json!({"currentReplicas": replicas, "desiredReplicas": replicas, "currentMetrics":
            [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": cpu}}}]})
    };
    let lost = json!({"currentReplicas": 2, "desiredReplicas": 2, "conditions": [
        {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "message": "fine"},
        {"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric", "message": "no metrics"}]});
    vec![
        Entry {
            object: object("php-apache", status(4, 305)),
            record: Some(record_of("php-apache", "2026-01-05T09:14:45Z", 1, &[610])),
        },
        Entry {
            object: object("web", status(4, 50)),
            record: Some(record_of("web", "2026-01-05T09:10:00Z", 4, &[100; 4])),
        },
        Entry { object: object("lost", lost), record: None },
    ]
}

#[test]
fn table_has_the_columns_of_kubectl_and_the_last_decision() {
    let columns = GetColumns { namespace: false, wide: false, compact: false };
    assert_eq!(
        columns.table(&entries(), at(NOW)).to_string(),
        "\
NAME             REFERENCE               TARGETS              MINPODS   MAXPODS   REPLICAS   AGE   LAST DECISION
hpa/php-apache   Deployment/php-apache   cpu: 305%/50%        1         10        4          15m   1 → 4: cpu wants 7; scale-up limit is 4 this time
hpa/web          Deployment/web          cpu: 50%/50%         1         10        4          15m   cpu 50 % of 50 %: close enough
hpa/lost         Deployment/lost         cpu: <unknown>/50%   1         10        2          15m   FailedGetResourceMetric: no metrics
"
    );
}

#[test]
fn wide_table_adds_recommendation_and_limit() {
    let table = GetColumns { namespace: true, wide: true, compact: false }.table(&entries(), at(NOW));
    let cells = |row: usize| table.rows[row][8..11].join(" | ");
    assert_eq!(table.columns[8..11].join(" | "), "Wanted | Limited by | Since");
    assert_eq!(cells(0), "7 | up rate | 15s");
    assert_eq!(cells(1), "4 | - | 5m");
    assert_eq!(cells(2), "- | - | -");
    assert_eq!(table.rows[0][0], "shop");
}

#[test]
fn narrow_table_merges_bounds_and_replicas() {
    let columns = GetColumns { namespace: false, wide: false, compact: true };
    let text = columns.table(&entries(), at(NOW)).to_string();
    let row = text.lines().nth(1).unwrap();
    assert!(
        row.starts_with(
            "hpa/php-apache   Deployment/php-apache   cpu: 305%/50%        4 of 1–10   15m   1 → 4"
        ),
        "{text}"
    );
}

#[test]
fn watch_prints_changed_rows_in_growing_columns() {
    let columns = GetColumns { namespace: false, wide: false, compact: false };
    let mut table = StreamedTable::default();
    let mut all = entries();
    let changed = table.changed(&all);
    assert_eq!(table.lines(columns, &changed, at(NOW)).lines().count(), 4);
    assert!(table.changed(&all).is_empty());
    all[1].record = Some(record_of("web", "2026-01-05T09:15:00Z", 4, &[200; 4]));
    let changed = table.changed(&all);
    let text = table.lines(columns, &changed, at(NOW));
    assert_eq!(
        text,
        "hpa/web          Deployment/web          cpu: 50%/50%         1         10        4          15m   4 → 8: cpu 100 % of 50 %\n"
    );
}

#[test]
fn objects_that_are_not_scaled_are_marked() {
    let annotated = |name: &str, value: &str, record: Option<DecisionRecord>| {
        let mut object = object("web", json!({"currentReplicas": 4, "desiredReplicas": 4}));
        object.hpa.metadata.annotations.insert(name.to_owned(), value.to_owned());
        Entry { object, record }
    };
    let record = || Some(record_of("web", "2026-01-05T09:10:00Z", 4, &[100; 4]));
    let off = annotated("plimsoll.dev/mode", "off", record()).sentence();
    assert_eq!(off, "off: nothing is decided (annotation plimsoll.dev/mode)");
    let mut shadow = annotated("plimsoll.dev/mode", "shadow", record());
    shadow.record.as_mut().unwrap().mode = DecisionMode::Shadow;
    assert_eq!(shadow.sentence(), "shadow; cpu 50 % of 50 %: close enough");
    assert_eq!(annotated("plimsoll.dev/mode", "dry-run", None).sentence(), "dry run; not reconciled yet");
    assert_eq!(annotated("other", "off", record()).sentence(), "cpu 50 % of 50 %: close enough");
    for (name, value, expected) in [
        ("autoscaling.keda.sh/paused", "true", "paused; not reconciled yet"),
        ("autoscaling.keda.sh/paused", "false", "not reconciled yet"),
        ("autoscaling.keda.sh/paused-replicas", "3", "paused at 3; not reconciled yet"),
    ] {
        let mut entry = annotated(name, value, None);
        entry.object.kind = AutoscalerKind::ScaledObject;
        assert_eq!(entry.sentence(), expected, "{name}: {value}");
    }
}

#[test]
fn count_that_no_controller_has_written_is_missing() {
    let record = || Some(record_of("web", "2026-01-05T09:10:00Z", 4, &[100; 4]));
    let entry = |status, record| Entry { object: object("web", status), record };
    let columns = GetColumns { namespace: false, wide: false, compact: false };
    assert_eq!(columns.table(&[entry(json!({}), None)], at(NOW)).rows[0][5], "-");
    let zero = json!({"currentReplicas": 0, "desiredReplicas": 0, "conditions": [{"type": "AbleToScale", "status": "True"}]});
    assert_eq!(entry(zero, None).replicas(), Some(0));
    let mut decided = entry(json!({}), record());
    assert_eq!(decided.replicas(), Some(4));
    decided.object.hpa.metadata.annotations.insert(MODE_ANNOTATION.to_owned(), "off".to_owned());
    assert_eq!(decided.replicas(), None, "the decision is outdated");
}
