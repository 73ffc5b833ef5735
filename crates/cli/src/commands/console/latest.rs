//! New passes as the list of autoscalers needs them, and what is kept of the latest pass about an autoscaler.

use std::borrow::Cow;

use api::autoscaling::print::TargetsTemplate;
use api::decisions::DecisionRecord;
use api::decisions::passes::PassListMeta;
use engine::explain;
use jiff::Timestamp;
use serde::Deserialize;

/// An answer with new passes. It borrows from the text of the answer.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct NewPasses<'a> {
    pub(super) metadata: PassListMeta,
    #[serde(borrow)]
    pub(super) items: Vec<NewPass<'a>>,
}

/// The fields of a [`PassItem`](api::decisions::passes::PassItem) that rows show.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct NewPass<'a> {
    #[serde(borrow)]
    pub(super) namespace: Cow<'a, str>,
    /// `hpa.web`.
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    pub(super) at: Timestamp,
    pub(super) current: Option<i32>,
    pub(super) desired: i32,
    #[serde(borrow)]
    pub(super) reason: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) metrics: Vec<NewPassMetric<'a>>,
    /// None unless the pass decided something else than the one before it.
    pub(super) record: Option<Box<DecisionRecord>>,
}

/// The result of one metric in a new pass.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct NewPassMetric<'a> {
    #[serde(borrow)]
    pub(super) value: Option<BorrowedText<'a>>,
    pub(super) ratio: Option<f64>,
}

/// A text without escapes is borrowed.
#[derive(Deserialize)]
pub(super) struct BorrowedText<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// What rows show of the latest pass, which decided the same as the record.
pub(super) struct LatestPass {
    pub(super) reason: String,
    /// Metrics against targets.
    pub(super) metrics: String,
    /// The highest ratio of a metric to its target.
    pub(super) pressure: Option<f64>,
    /// The replica count that was found; none if it could not be read.
    pub(super) replicas: Option<i32>,
}

impl LatestPass {
    /// What rows show of a pass about an autoscaler with these targets.
    pub(super) fn new(pass: NewPass<'_>, targets: &TargetsTemplate) -> Self {
        let value = |index: usize| pass.metrics.get(index)?.value.as_ref().map(|text| &*text.0);
        let text = targets.with(value);
        let ratios = pass.metrics.iter().filter_map(|metric| metric.ratio);
        Self {
            metrics: explain::plain(&text),
            pressure: ratios.max_by(f64::total_cmp),
            replicas: pass.current,
            reason: pass.reason.into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use api::decisions::passes::PassItem;

    use super::*;
    use crate::live::sample::{hpa, record_of};

    #[test]
    fn row_shows_what_a_pass_found() {
        let item = PassItem::of(&record_of("web", "2026-01-05T09:15:00Z", 1, &[610]));
        let text = serde_json::json!({"metadata": {"cursor": "c"}, "items": [item]}).to_string();
        let mut passes: NewPasses<'_> = serde_json::from_str(&text).unwrap();
        let pass = passes.items.remove(0);
        assert_eq!((&*passes.metadata.cursor, &*pass.namespace, &*pass.name), ("c", "shop", "hpa.web"));
        assert_eq!((pass.at, pass.desired), (item.at, 4));
        assert!(matches!(pass.name, Cow::Borrowed(_)), "names are not copied");
        let hpa: api::autoscaling::v2::HorizontalPodAutoscaler = serde_json::from_value(hpa("web")).unwrap();
        let targets = TargetsTemplate::new(&hpa.spec.metrics);
        let latest = LatestPass::new(pass, &targets);
        assert_eq!(
            (latest.metrics.as_str(), latest.pressure, latest.replicas),
            ("cpu: 305%/50%", Some(6.1), Some(1))
        );
        assert_eq!(latest.reason, item.reason);
        let unread = LatestPass::new(NewPass::default(), &targets);
        assert_eq!((unread.metrics.as_str(), unread.pressure), ("cpu: <unknown>/50%", None));
    }
}
