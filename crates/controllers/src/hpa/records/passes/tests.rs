#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;

use api::decisions::DecisionMode;
use api::decisions::passes::{PassDetail, PassQuery, UnknownCursor};
use cluster::AutoscalerKey;
use engine::{Decision, Spec};
use jiff::SignedDuration;

use crate::hpa::records::tests::{PERIOD, at, mk_spec, once};
use crate::hpa::records::{HistoryLimits, Records};

fn add(records: &Records, spec: &Arc<Spec>, decision: &Decision) {
    records.add(&AutoscalerKey::hpa("shop", &spec.name), DecisionMode::Active, PERIOD, spec, decision);
}

#[test]
fn cursor_returns_what_is_new() {
    let records = Records::default();
    let specs: Vec<_> = (0..3).map(|n| Arc::new(mk_spec(&format!("web-{n}")))).collect();
    let decide = |seconds: std::ops::Range<i64>| {
        for second in seconds {
            for spec in &specs {
                add(&records, spec, &once(second * 15, spec, Some(250)));
            }
        }
    };
    decide(0..100);
    let query_passes = |query: PassQuery| {
        let list = records.passes(&query).unwrap();
        let items = list.items.iter().map(|item| (item.at, item.name.clone())).collect::<Vec<_>>();
        (items, list.metadata)
    };
    let (all, end) = query_passes(PassQuery::default());
    assert_eq!((all.len(), end.remaining, end.lost), (300, false, false));
    assert!(all.is_sorted(), "in the order in which they were made");
    // In pages.
    let (mut paged, mut after) = (Vec::new(), None);
    loop {
        let (items, meta) = query_passes(PassQuery { after, limit: Some(7), ..PassQuery::default() });
        paged.extend(items);
        after = Some(meta.cursor);
        if !meta.remaining {
            break;
        }
    }
    assert_eq!(paged, all);
    assert_eq!(after.as_ref(), Some(&end.cursor));
    assert!(query_passes(PassQuery { after: after.clone(), ..PassQuery::default() }).0.is_empty());
    decide(100..102);
    let (new, _) = query_passes(PassQuery { after: after.clone(), ..PassQuery::default() });
    assert_eq!(new.len(), 6);
    let one = PassQuery { name: Some("hpa.web-1".into()), since: Some(at(1500)), ..PassQuery::default() };
    assert_eq!(query_passes(one).0, [(at(1500), "hpa.web-1".into()), (at(1515), "hpa.web-1".into())]);
    let full =
        records.passes(&PassQuery { after, detail: PassDetail::Full, ..PassQuery::default() }).unwrap();
    assert_eq!(full.items[5].record.as_ref().unwrap().decision.at, at(1515));
    for cursor in ["", "1", "0-1", "x-1", "1-x"] {
        let query = PassQuery { after: Some(cursor.into()), ..PassQuery::default() };
        assert_eq!(records.passes(&query).unwrap_err(), UnknownCursor, "{cursor}");
    }
}

#[test]
fn passes_that_decide_something_else_can_have_their_whole_record() {
    let records = Records::default();
    let spec = Arc::new(mk_spec("web"));
    for (second, milli) in [(0, 250), (15, 250), (30, 400)] {
        add(&records, &spec, &once(second, &spec, Some(milli)));
    }
    let list = records.passes(&PassQuery { detail: PassDetail::Changed, ..PassQuery::default() }).unwrap();
    let is_whole: Vec<bool> = list.items.iter().map(|item| item.record.is_some()).collect();
    assert_eq!(is_whole, [true, false, true]);
}

#[test]
fn cursor_that_is_too_old_reports_lost_passes() {
    let records =
        Records::new(HistoryLimits { age: SignedDuration::from_mins(5), ..HistoryLimits::default() });
    let spec = Arc::new(mk_spec("web"));
    add(&records, &spec, &once(0, &spec, Some(250)));
    let cursor = records.passes(&PassQuery::default()).unwrap().metadata.cursor;
    for n in 1..200 {
        add(&records, &spec, &once(n * 15, &spec, Some(250)));
    }
    let list = records.passes(&PassQuery { after: Some(cursor), ..PassQuery::default() }).unwrap();
    assert!(list.metadata.lost && list.items.len() < 199, "{:?}", list.metadata);
}
