#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use api::decisions::{DecisionMeta, DifferenceList, DifferenceRecord};
use cluster::AutoscalerKey;
use engine::{Decision, ScaleOutcome, Spec, Status};
use jiff::{SignedDuration, Timestamp};

use super::{FIELDS, MAX_DIFFERENCES, Shadow, page};
use crate::hpa::records::tests::{PERIOD, at, mk_spec, once};

#[path = "../../../../sim/src/report/digest.rs"]
mod digest;

/// Compares autoscalers of ten replicas every 15 s.
struct ShadowRun {
    shadow: Shadow,
    key: AutoscalerKey,
    spec: Spec,
    now: i64,
}

impl ShadowRun {
    fn new() -> Self {
        Self {
            shadow: Shadow::default(),
            key: AutoscalerKey::hpa("shop", "web"),
            spec: mk_spec("web"),
            now: 0,
        }
    }

    /// Compares our decision with their status; returns the fields in which a difference begins.
    fn compare(&mut self, theirs: &Status, ours: &Decision) -> Vec<String> {
        let begun = self.shadow.compare(at(self.now), &self.key, theirs, &self.spec, ours, &[], PERIOD);
        self.now += 15;
        begun.into_iter().map(|record| record.field).collect()
    }

    /// Compares two desired counts, with all else equal.
    fn counts(&mut self, theirs: i32, ours: i32) -> bool {
        let ours = wanting(ours);
        let theirs = Status { desired_replicas: theirs.into(), ..ours.status.clone() };
        !self.compare(&theirs, &ours).is_empty()
    }

    fn items(&self) -> Vec<DifferenceRecord> {
        self.shadow.report(None).items
    }
}

fn wanting(desired: i32) -> Decision {
    let mut decision = once(0, &mk_spec("web"), Some(250));
    decision.desired = desired.into();
    decision.status.desired_replicas = desired.into();
    decision
}

/// The status of `decision` with another reason of a condition.
fn saying(decision: &Decision, kind: &'static str, status: bool, reason: &'static str) -> Status {
    let mut other = decision.status.clone();
    other.set(at(0), kind, status, reason, "");
    other
}

#[test]
fn a_difference_counts_at_two_decisions_a_period_apart() {
    let mut life = ShadowRun::new();
    assert!(!life.counts(10, 10));
    assert!(!life.counts(10, 12), "perhaps timing");
    assert!(life.counts(10, 12), "no");
    assert!(!life.counts(10, 13), "told once");
    assert_eq!(life.shadow.differing(), 1);
    let item = &life.items()[0];
    assert_eq!((item.since, item.last, item.over), (at(15), at(45), false));
    assert_eq!((&*item.field, &*item.theirs, &*item.ours), ("desiredReplicas", "10", "13"));
    assert_eq!(item.why, "cpu 50 % of 50 %: close enough");
    assert_eq!((&*item.metadata.name, &*item.metadata.namespace), ("hpa.web", "shop"));
    assert!(!life.counts(13, 13));
    let item = &life.items()[0];
    assert_eq!((item.last, item.over), (at(45), true), "over as soon as both agree once");
    assert_eq!(life.shadow.differing(), 0);
    assert!(!life.counts(10, 12));
    assert!(life.counts(10, 12), "another one");
    assert_eq!(life.items().iter().map(|item| item.over).collect::<Vec<_>>(), [false, true], "newest first");
    assert_eq!(life.shadow.counts().differences, [2, 0, 0, 0]);
    assert_eq!(life.shadow.counts().compared, 7);
}

#[test]
fn decisions_sooner_than_a_period_are_not_enough() {
    let mut life = ShadowRun::new();
    for (second, counts) in [(0, false), (5, false), (14, false), (15, true)] {
        life.now = second;
        assert_eq!(life.counts(10, 12), counts, "after {second} s");
    }
}

#[test]
fn a_clock_set_back_restarts_the_comparison() {
    let mut life = ShadowRun::new();
    for (second, counts) in [(3600, false), (0, false), (14, false), (15, true)] {
        life.now = second;
        assert_eq!(life.counts(10, 12), counts, "at {second} s");
    }
}

/// `(theirs, ours)` decision by decision: only timing differences.
#[test]
fn a_side_that_adopts_the_other_value_is_only_out_of_step() {
    let steps: [&[(i32, i32)]; 5] = [
        &[(10, 12), (11, 14), (13, 16), (15, 18)],
        &[(10, 8), (9, 7), (8, 6)],
        &[(10, 12), (12, 14), (14, 16)],
        &[(12, 10), (14, 12), (16, 14)],
        &[(10, 12), (12, 12), (10, 12), (12, 12)],
    ];
    for steps in steps {
        let mut life = ShadowRun::new();
        assert!(!steps.iter().any(|&(theirs, ours)| life.counts(theirs, ours)), "{steps:?}");
    }
    let apart: [&[(i32, i32)]; 3] =
        [&[(10, 12), (10, 13)], &[(10, 12), (9, 12)], &[(10, 12), (11, 14), (11, 14)]];
    for steps in apart {
        let mut life = ShadowRun::new();
        assert!(steps.iter().any(|&(theirs, ours)| life.counts(theirs, ours)), "{steps:?}");
    }
}

#[test]
fn conditions_are_compared_by_status_and_reason() {
    let ours = wanting(10);
    let cases = [
        ("AbleToScale", true, "ScaleDownStabilized", "True ScaleDownStabilized"),
        ("AbleToScale", false, "FailedGetScale", "False FailedGetScale"),
        ("AbleToScale", false, "FailedUpdateScale", "False FailedUpdateScale"),
        ("ScalingActive", false, "FailedGetResourceMetric", "False FailedGetResourceMetric"),
        ("ScalingLimited", true, "TooManyReplicas", "True TooManyReplicas"),
        ("ScalingLimited", true, "SucceededRescale", "True SucceededRescale"),
    ];
    for (kind, status, reason, shown) in cases {
        let mut life = ShadowRun::new();
        let theirs = saying(&ours, kind, status, reason);
        assert_eq!(life.compare(&theirs, &ours), [""; 0]);
        assert_eq!(life.compare(&theirs, &ours), [kind]);
        assert_eq!(life.items()[0].theirs, shown);
    }
    let mut life = ShadowRun::new();
    let mut theirs = ours.status.clone();
    theirs.unset("ScalingLimited");
    life.compare(&theirs, &ours);
    assert_eq!(life.compare(&theirs, &ours), ["ScalingLimited"]);
    assert_eq!((&*life.items()[0].theirs, &*life.items()[0].ours), ("not there", "False DesiredWithinRange"));
    let message = saying(&ours, "ScalingActive", true, "ValidMetricFound");
    let mut life = ShadowRun::new();
    life.compare(&message, &ours);
    assert!(life.compare(&message, &ours).is_empty(), "messages hold numbers of the moment");
}

#[test]
fn conditions_that_follow_are_only_out_of_step() {
    let (one, two) = (wanting(10), wanting(10));
    let held = saying(&one, "AbleToScale", true, "ScaleDownStabilized");
    let mut ours_held = two.clone();
    ours_held.status = held.clone();
    let mut life = ShadowRun::new();
    // We are ahead: they adopt our earlier value while ours has changed again.
    for (theirs, ours) in [(&one.status, &ours_held), (&held, &one), (&one.status, &ours_held), (&held, &one)]
    {
        assert!(life.compare(theirs, ours).is_empty());
    }
}

/// Shadow mode never writes, so the result of a write is no difference.
#[test]
fn reasons_about_writes_are_no_difference() {
    let ours = wanting(10);
    let theirs = saying(&ours, "AbleToScale", true, "SucceededRescale");
    let mut life = ShadowRun::new();
    for _ in 0..3 {
        assert!(life.compare(&theirs, &ours).is_empty());
    }
    let mut left_over = ours.clone();
    left_over.status = theirs;
    for _ in 0..3 {
        assert!(life.compare(&ours.status, &left_over).is_empty());
    }
    let failed = saying(&ours, "AbleToScale", false, "FailedUpdateScale");
    let mut writing = ours.clone();
    writing.outcome = ScaleOutcome::DryRun;
    for _ in 0..3 {
        assert!(life.compare(&failed, &writing).is_empty());
    }
    assert_eq!(life.shadow.counts().differences, [0; FIELDS.len()]);
}

#[test]
fn an_autoscaler_without_their_status_is_not_compared() {
    let mut life = ShadowRun::new();
    for _ in 0..3 {
        assert!(life.compare(&Status::default(), &wanting(12)).is_empty());
    }
    assert_eq!(
        life.shadow.report(None),
        DifferenceList {
            api_version: "decisions.plimsoll.dev/v1alpha1".into(),
            kind: "DifferenceList".into(),
            ..DifferenceList::default()
        }
    );
}

#[test]
fn reports_cover_all_or_one_namespace() {
    let mut life = ShadowRun::new();
    for _ in 0..3 {
        life.counts(10, 12);
    }
    life.key = AutoscalerKey::autoscaler("bank", "api");
    for _ in 0..2 {
        life.counts(10, 10);
    }
    let all = life.shadow.report(None);
    assert_eq!((all.autoscalers, all.compared, all.since, all.items.len()), (2, 5, Some(at(0)), 1));
    let bank = life.shadow.report(Some("bank"));
    assert_eq!((bank.autoscalers, bank.compared, bank.since, bank.items.len()), (1, 2, Some(at(45)), 0));
    life.shadow.forget(&AutoscalerKey::hpa("shop", "web"));
    let all = life.shadow.report(None);
    assert_eq!((all.autoscalers, all.compared, all.items[0].over), (1, 5, true));
    assert_eq!(life.shadow.differing(), 0);
    life.shadow.forget(&AutoscalerKey::hpa("shop", "never"));
}

/// What the other side decided between two terms is not known.
#[test]
fn comparisons_end_with_the_term_of_a_leader() {
    let mut life = ShadowRun::new();
    assert!(!life.counts(10, 12));
    life.shadow.clear();
    life.now = 3600;
    assert!(!life.counts(10, 12), "the doubt of the earlier term does not count");
    assert!(life.counts(10, 12));
    life.shadow.clear();
    assert_eq!((life.shadow.differing(), life.items()[0].over), (0, true));
    assert_eq!(life.shadow.counts().compared, 3);
    assert_eq!(life.shadow.report(None).autoscalers, 0);
}

/// The oldest ended differences are dropped first; dropping an open one does no harm.
#[test]
fn the_oldest_differences_are_dropped() {
    let mut life = ShadowRun::new();
    let open = MAX_DIFFERENCES + 5;
    for n in 0..open {
        life.key = AutoscalerKey::hpa("shop", &format!("h{n}"));
        life.counts(10, 12);
        life.counts(10, 12);
        if n == 7 {
            life.counts(10, 10);
        }
    }
    let names: Vec<_> = life.items().into_iter().map(|item| item.metadata.name).collect();
    assert_eq!(names.len(), MAX_DIFFERENCES);
    assert_eq!((&*names[0], &*names[MAX_DIFFERENCES - 1]), ("hpa.h1004", "hpa.h4"));
    assert!(!names.contains(&"hpa.h7".to_owned()));
    assert_eq!(life.shadow.differing(), open - 1);
    life.key = AutoscalerKey::hpa("shop", "h0");
    assert!(!life.counts(10, 12));
    assert!(!life.counts(10, 10));
    assert_eq!(life.shadow.differing(), open - 2);
}

fn difference(name: &str, since: i64, over: bool) -> DifferenceRecord {
    DifferenceRecord {
        api_version: "v".into(),
        kind: "Difference".into(),
        metadata: DecisionMeta { name: name.into(), namespace: "shop".into() },
        since: at(since),
        last: at(since + 600),
        over,
        field: "desiredReplicas".into(),
        theirs: "10".into(),
        ours: "12".into(),
        why: "cpu 61 % of 50 %".into(),
    }
}

/// The page of these differences among 412 autoscalers, three hours after the first comparison.
fn page_of(items: Vec<DifferenceRecord>) -> String {
    let list = DifferenceList {
        autoscalers: 412,
        compared: 296_640,
        since: Some(at(0)),
        items,
        ..DifferenceList::default()
    };
    page(&list, at(3 * 3600 + 59))
}

fn answer(html: &str) -> &str {
    let (_, rest) = html.split_once("<p class=\"answer\">").unwrap();
    rest.split_once("</p>").unwrap().0
}

#[test]
fn the_page_begins_with_the_verdict() {
    let (open, over) = (|name| difference(name, 60, false), |name| difference(name, 60, true));
    let none = page_of(vec![]);
    assert_eq!(answer(&none), "412 autoscalers compared over 3 h: no difference.");
    assert!(none.contains("296,640 decisions compared from 2026-01-01 12:00:00 to 2026-01-01 15:00:59."));
    assert!(!none.contains("<table"));
    let two = page_of(vec![open("hpa.a"), open("hpa.b"), over("hpa.b")]);
    assert_eq!(answer(&two), "2 of 412 autoscalers differ.");
    let some = page_of(vec![over("hpa.a"), open("hpa.b")]);
    assert_eq!(answer(&some), "1 of 412 autoscalers differ; 1 more differed for a while.");
    assert!(some.find("hpa/b in shop") < some.find("hpa/a in shop"), "those that differ now come first");
    assert!(some.contains("plimsoll why hpa/b -n shop --at 2026-01-01T12:11:00Z"));
    assert!(some.contains("kubectl describe hpa/b -n shop"));
    let past = page_of(vec![over("autoscaler.a")]);
    assert_eq!(
        answer(&past),
        "412 autoscalers compared over 3 h: no difference now, 1 differed for a while."
    );
    assert!(past.contains("kubectl describe autoscaler.plimsoll.dev/a -n shop"));
    assert!(!past.contains("of timing: decided"));
    let list = DifferenceList {
        autoscalers: 9,
        compared: 90,
        timing: 28,
        since: Some(at(0)),
        ..DifferenceList::default()
    };
    assert!(page(&list, at(60)).contains("28 differences of timing: decided again"));
    let nothing = page(&DifferenceList::default(), at(0));
    assert_eq!(answer(&nothing), "Nothing was compared yet: no autoscaler is in shadow mode.");
}

#[test]
fn names_are_escaped() {
    let evil = "</pre><script>alert('x')</script>\"&\u{1b}";
    let mut item = difference(&format!("hpa.{evil}"), 0, false);
    item.metadata.namespace = evil.into();
    (item.field, item.theirs, item.ours, item.why) = (evil.into(), evil.into(), evil.into(), evil.into());
    let html = page_of(vec![item]);
    assert!(!html.contains("<script") && !html.contains('\u{1b}'));
    assert_eq!(html.matches("</pre>").count(), 1);
    for part in ["http:", "https:", "src=", "href=", "url("] {
        assert!(!html.contains(part), "{part}: nothing is loaded");
    }
}

#[test]
fn only_the_style_of_the_page_is_used() {
    assert_eq!(super::page::STYLE_DIGEST, digest::allow(super::page::STYLE), "write this to page.rs");
    assert!(page_of(vec![]).contains(&format!("style-src {};", super::page::STYLE_DIGEST)));
}

#[test]
fn durations_are_rounded() {
    let over = |seconds| {
        let list =
            DifferenceList { autoscalers: 1, compared: 1, since: Some(at(0)), ..DifferenceList::default() };
        let generated: Timestamp = at(0) + SignedDuration::from_secs(seconds);
        answer(&page(&list, generated)).to_owned()
    };
    for (seconds, span) in
        [(45, "45 s"), (720, "12 min"), (7199, "119 min"), (7200, "2 h"), (300_000, "3 d"), (-5, "0 s")]
    {
        assert_eq!(over(seconds), format!("1 autoscaler compared over {span}: no difference."));
    }
}
