#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use jiff::{SignedDuration, Timestamp};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::{MAX_TEXT_BYTES, SnapshotError, StateSnapshot};
use crate::config::ControllerConfig;
use crate::spec::{
    Behavior, FailurePolicy, Metric, MetricSource, MetricTarget, ScalingPolicy, ScalingPolicyType,
    ScalingRules, SelectPolicy, Spec, TargetRef, UtilizationBase,
};
use crate::state::{ScaleEvent, State, TimestampedReplicas};

const NOON: i64 = 1_767_268_800;

fn noon() -> Timestamp {
    Timestamp::from_second(NOON).unwrap()
}

fn secs(n: i64) -> SignedDuration {
    SignedDuration::from_secs(n)
}

fn at(second: i64) -> Timestamp {
    noon() + secs(second)
}

/// A spec with these windows and one policy of this period each way; without windows, without `behavior`.
fn mk_spec(windows: Option<(i64, i64)>, period: i64) -> Spec {
    let rules = |window| ScalingRules {
        window: Some(secs(window)),
        select: SelectPolicy::Max,
        policies: vec![ScalingPolicy { kind: ScalingPolicyType::Pods, value: 4, period: secs(period) }],
        tolerance: None,
    };
    Spec {
        namespace: "ns".into(),
        name: "h".into(),
        target: TargetRef { kind: "Deployment".into(), name: "d".into() },
        min: 1.into(),
        max: 10.into(),
        metrics: Vec::new(),
        behavior: windows.map(|(up, down)| Behavior { up: rules(up), down: rules(down) }),
        ..Spec::default()
    }
}

fn last_good(keep: i64) -> Spec {
    let source = MetricSource::Resource { name: "cpu".into(), of: UtilizationBase::Requests };
    let on_failure = FailurePolicy::LastGood(secs(keep));
    Spec {
        metrics: vec![Metric { on_failure, ..Metric::new(source, MetricTarget::Utilization(50)) }],
        ..mk_spec(None, 60)
    }
}

/// A state with these recommendations and changes, each with its second after noon.
fn mk_state(recommended: &[(i32, i64)], ups: &[(i32, i64)], downs: &[(i32, i64)]) -> State {
    let changes = |list: &[(i32, i64)]| list.iter().map(|&(by, s)| ScaleEvent::new(by, at(s))).collect();
    State {
        recommendations: recommended
            .iter()
            .map(|&(value, s)| TimestampedReplicas { value: value.into(), at: at(s) })
            .collect(),
        ups: changes(ups),
        downs: changes(downs),
        ..State::default()
    }
}

/// The text of the snapshot of `state` at second `now`, with `noon` in place of that time.
fn snapshot_text(state: &State, now: i64, spec: &Spec) -> String {
    state.snapshot(at(now), spec, &ControllerConfig::default()).to_text().replace(&NOON.to_string(), "noon")
}

#[test]
fn snapshot_drops_recommendations_that_a_later_one_exceeds() {
    let state = mk_state(&[(9, -400), (5, 0), (8, 15), (8, 30), (6, 45), (3, 60), (4, 75)], &[], &[]);
    assert_eq!(snapshot_text(&state, 75, &mk_spec(None, 60)), "1;r=8@1767268830,6@+15,4@+30");
    let both = mk_spec(Some((300, 300)), 60);
    assert_eq!(snapshot_text(&state, 75, &both), "1;r=8@1767268830,6@+15,3@+15,4@+15");
    let up = mk_spec(Some((300, 0)), 60);
    assert_eq!(snapshot_text(&state, 75, &up), "1;r=3@1767268860,4@+15");
    // A window of zero holds nothing, but the newest recommendation is always kept.
    assert_eq!(snapshot_text(&state, 75, &mk_spec(Some((0, 0)), 60)), "1;r=4@1767268875");
    assert_eq!(snapshot_text(&state, 9000, &both), "1;r=4@1767268875");
}

/// The edge of a window belongs to it only without `behavior`.
#[test]
fn window_edges_match_the_engine() {
    let state = mk_state(&[(8, 0), (3, 300)], &[], &[]);
    assert_eq!(snapshot_text(&state, 300, &mk_spec(None, 60)), "1;r=8@noon,3@+300");
    assert_eq!(snapshot_text(&state, 300, &mk_spec(Some((0, 300)), 60)), "1;r=3@1767269100");
}

#[test]
fn changes_are_kept_for_the_longest_period_of_either_direction() {
    let mut spec = mk_spec(Some((0, 0)), 60);
    spec.behavior.as_mut().unwrap().down.policies[0].period = secs(600);
    let state = mk_state(&[(5, 0)], &[(1, -601), (2, -600), (3, -599), (4, 0)], &[(5, -599)]);
    assert_eq!(snapshot_text(&state, 0, &spec), "1;r=5@noon;u=3@1767268201,4@+599;d=5@1767268201");
    assert_eq!(snapshot_text(&state, 0, &mk_spec(None, 60)), "1;r=5@noon", "no policy, nothing to count");
}

/// Half a second later is a second later: a window may become longer, never shorter.
#[test]
fn times_are_rounded_up() {
    let mut state = mk_state(&[(8, 0)], &[(2, 0)], &[]);
    state.recommendations[0].at += SignedDuration::from_millis(1);
    state.ups[0].at += SignedDuration::from_millis(999);
    let text = snapshot_text(&state, 1, &mk_spec(Some((0, 300)), 60));
    assert_eq!(text, "1;r=8@1767268801;u=2@1767268801");
}

/// What was recommended within one second keeps its order: the newest is the newest.
#[test]
fn order_within_a_second_is_kept() {
    let mut state = mk_state(&[(8, 0), (3, 0)], &[], &[]);
    assert_eq!(snapshot_text(&state, 0, &mk_spec(None, 60)), "1;r=8@noon,3@+0");
    state.recommendations[0].at += SignedDuration::from_millis(2);
    state.recommendations[1].at += SignedDuration::from_millis(1);
    assert_eq!(snapshot_text(&state, 1, &mk_spec(None, 60)), "1;r=8@1767268801");
}

#[test]
fn restore_repeats_the_newest_recommendation() {
    let snapshot = mk_state(&[(8, 0), (6, 45)], &[(2, 0)], &[(1, 50)]).snapshot(
        at(50),
        &mk_spec(Some((0, 300)), 60),
        &ControllerConfig::default(),
    );
    let state = snapshot.restore(at(100));
    assert_eq!(state, mk_state(&[(8, 0), (6, 45), (6, 100)], &[(2, 0)], &[(1, 50)]));
    assert_eq!(StateSnapshot::default().restore(at(0)), State::default(), "nothing is restored as nothing");
}

#[test]
fn restore_moves_future_times_to_now() {
    let snapshot =
        StateSnapshot::parse("1;r=8@1767268800,6@+3600;u=2@1767272400;g=cpu=4@1767272400").unwrap();
    let state = snapshot.restore(at(10));
    let good = [("cpu".to_owned(), TimestampedReplicas { value: 4.into(), at: at(10) })].into();
    assert_eq!(state, State { last_good: good, ..mk_state(&[(8, 0), (6, 10)], &[(2, 10)], &[]) });
}

#[test]
fn a_count_that_the_snapshot_does_not_explain_counts_as_recommended() {
    let config = ControllerConfig::default();
    let (classic, both) = (mk_spec(None, 60), mk_spec(Some((300, 300)), 60));
    let restored = |spec: &Spec, recommended: &[(i32, i64)], now: i64, current: i32| {
        let stored = mk_state(recommended, &[], &[]).snapshot(at(15), spec, &config);
        stored.restore_for(at(now), spec, &config, current.into())
    };
    let expected = |recommended: &[(i32, i64)]| mk_state(recommended, &[], &[]);
    assert_eq!(restored(&classic, &[(3, 15)], 100, 8), expected(&[(3, 15), (3, 100), (8, 100)]));
    assert_eq!(restored(&both, &[(8, 15)], 100, 4), expected(&[(8, 15), (8, 100), (4, 100)]));
    // The snapshot or a bound explains the count.
    let known = expected(&[(8, 0), (3, 15), (3, 100)]);
    assert_eq!(restored(&classic, &[(8, 0), (3, 15)], 100, 8), known);
    assert_eq!(restored(&classic, &[(8, 15)], 100, 4), expected(&[(8, 15), (8, 100)]), "no window holds it");
    assert_eq!(restored(&both, &[(20, 15)], 100, 10), expected(&[(20, 15), (20, 100)]), "the upper bound");
    assert_eq!(restored(&both, &[(0, 15)], 100, 1), expected(&[(0, 15), (0, 100)]), "the lower bound");
    // Its window has ended since, or a policy has led to it.
    let ended = expected(&[(8, 0), (3, 15), (3, 1000)]);
    assert_eq!(restored(&both, &[(8, 0), (3, 15)], 1000, 8), ended);
    assert_eq!(restored(&both, &[(8, 0), (3, 15)], 1000, 5), ended);
    // Long after it, another client may have changed the count, unless it is that of the newest recommendation.
    let seeded = expected(&[(8, 0), (3, 15), (5, 1300)]);
    assert_eq!(restored(&both, &[(8, 0), (3, 15)], 1300, 5), seeded);
    let steady = expected(&[(8, 0), (3, 15), (3, 86_400)]);
    assert_eq!(restored(&both, &[(8, 0), (3, 15)], 86_400, 3), steady);
    let changes = mk_state(&[(3, 15)], &[], &[(1, 10)]).snapshot(at(15), &both, &config);
    let limited = mk_state(&[(3, 15), (3, 60)], &[], &[(1, 10)]);
    assert_eq!(changes.restore_for(at(60), &both, &config, 7.into()), limited);
    let later = changes.restore_for(at(200), &both, &config, 7.into());
    assert_eq!(later.recommendations.last(), Some(&TimestampedReplicas { value: 7.into(), at: at(200) }));
    // A limited scale-up is not held for another window, however short its periods are.
    let rising = mk_state(&[(80, 15)], &[(4, 10)], &[]).snapshot(at(15), &both, &config);
    let goes_on = mk_state(&[(80, 15), (80, 200)], &[(4, 10)], &[]);
    assert_eq!(rising.restore_for(at(200), &both, &config, 7.into()), goes_on);
    let later = rising.restore_for(at(1000), &both, &config, 7.into());
    assert_eq!(later.recommendations.last(), Some(&TimestampedReplicas { value: 7.into(), at: at(1000) }));
    // A scale-up does not lead to a count above all recommendations, nor a scale-down to one below.
    let added = mk_state(&[(3, 15)], &[(1, 10)], &[]).snapshot(at(15), &both, &config);
    let seeded = mk_state(&[(3, 15), (3, 60), (7, 60)], &[(1, 10)], &[]);
    assert_eq!(added.restore_for(at(60), &both, &config, 7.into()), seeded);
    let removed = mk_state(&[(8, 15)], &[], &[(1, 10)]).snapshot(at(15), &both, &config);
    let seeded = mk_state(&[(8, 15), (8, 60), (4, 60)], &[], &[(1, 10)]);
    assert_eq!(removed.restore_for(at(60), &both, &config, 4.into()), seeded);
    // A direction that is disabled keeps such a count for as long as the spec stays.
    let mut disabled = both.clone();
    let rules = disabled.behavior.as_mut().unwrap();
    (rules.up.select, rules.down.select) = (SelectPolicy::Disabled, SelectPolicy::Disabled);
    assert_eq!(restored(&disabled, &[(3, 15)], 1000, 7), expected(&[(3, 15), (3, 1000)]));
    assert_eq!(restored(&disabled, &[(8, 15)], 1000, 4), expected(&[(8, 15), (8, 1000)]));
    // After all windows the newest recommendation counts only if the target still has its count.
    assert_eq!(restored(&classic, &[(8, 15)], 1000, 8), expected(&[(8, 15), (8, 1000)]));
    assert_eq!(restored(&classic, &[(8, 15)], 1000, 3), expected(&[(8, 15), (3, 1000)]));
    let with_lower = mk_state(&[(2, 0), (8, 15)], &[], &[]).snapshot(at(15), &both, &config);
    let seeded = with_lower.restore_for(at(1000), &classic, &config, 3.into());
    assert_eq!(seeded, expected(&[(2, 0), (8, 15), (3, 1000)]), "repeating eight would scale up");
    assert_eq!(restored(&classic, &[], 1000, 3), State::default(), "the first step seeds it");
}

#[test]
fn last_good_proposals_are_kept_while_they_are_valid() {
    let name = "cpu/cpu resource utilization (percentage of request)/0".to_owned();
    let mut state = mk_state(&[(4, 0)], &[], &[]);
    state.last_good = [(name, TimestampedReplicas { value: 4.into(), at: at(0) })].into();
    let text = snapshot_text(&state, 100, &last_good(100));
    assert_eq!(text, "1;r=4@noon;g=cpu/cpu resource utilization (percentage of request)/0=4@noon");
    assert!(text.len() < 120, "{} bytes", text.len());
    assert_eq!(snapshot_text(&state, 101, &last_good(100)), "1;r=4@noon");
    assert_eq!(snapshot_text(&state, 0, &mk_spec(None, 60)), "1;r=4@noon", "no metric needs it");
    let back = state.snapshot(at(0), &last_good(100), &ControllerConfig::default()).restore(at(0));
    assert_eq!(back, state);
}

/// A day of ups and downs, behavior with both windows: what is written stays short.
#[test]
fn typical_snapshots_are_short() {
    let spec = mk_spec(Some((60, 300)), 60);
    let mut state = State::default();
    let mut longest = 0;
    for step in 0..5760_i64 {
        let now = at(step * 15);
        let wanted = 10 + (8.0 * (step as f64 / 200.0).sin()) as i32 + i32::from(step % 7 == 0);
        state.recommendations.retain(|r| r.at >= now - secs(300));
        state.recommendations.push(TimestampedReplicas { value: wanted.into(), at: now });
        if step % 3 == 0 {
            let changed = wanted + if step % 2 == 0 { 1 } else { -1 };
            state.observed_change(now, &spec, wanted.into(), changed.into());
        }
        longest = longest.max(state.snapshot(now, &spec, &ControllerConfig::default()).to_text().len());
    }
    assert!(longest < 120, "{longest} bytes");
}

/// However long windows and lists are, what is written can be read.
#[test]
fn long_lists_are_merged_so_that_holds_never_become_shorter() {
    let mut spec = mk_spec(Some((86_400, 86_400)), 86_400);
    spec.metrics = last_good(1_000_000).metrics;
    let falling: Vec<_> = (0..3600).map(|s| (i32::MAX - s as i32 * 500_000, s)).collect();
    let rising: Vec<_> = (3600..7200).map(|s| (s as i32 * 290_000, s)).collect();
    let changes: Vec<_> = (0..7200).map(|s| (300_000, s)).collect();
    let mut state = mk_state(&[falling, rising].concat(), &changes, &changes);
    let name = |n: u32| format!("{n}{}", "😀=".repeat(40));
    state.last_good =
        (0..99).map(|n| (name(n), TimestampedReplicas { value: i32::MAX.into(), at: at(0) })).collect();
    let config = ControllerConfig::default();
    let snapshot = state.snapshot(at(7200), &spec, &config);
    let text = snapshot.to_text();
    assert!(text.len() <= MAX_TEXT_BYTES, "{} bytes", text.len());
    assert_eq!(StateSnapshot::parse(&text).unwrap(), snapshot);
    assert!(!snapshot.last_good.is_empty());
    // Whatever the cutoff: nothing higher is forgotten that would hold a scale-down, nor lower that would hold a
    // scale-up, and no change is forgotten.
    let restored = snapshot.restore(at(7200));
    for cutoff in (0..7199).step_by(41) {
        let range = |state: &State| {
            let later = state.recommendations.iter().filter(|r| r.at > at(cutoff));
            (later.clone().map(|r| r.value).max(), later.map(|r| r.value).min())
        };
        let sum = |list: &[ScaleEvent]| {
            list.iter().filter(|c| c.at > at(cutoff)).map(|c| i64::from(c.by)).sum::<i64>()
        };
        let ((high, low), (exact_high, exact_low)) = (range(&restored), range(&state));
        assert!(high >= exact_high && low <= exact_low, "after {cutoff}: {high:?} {low:?}");
        assert!(sum(&restored.ups) >= sum(&state.ups) && sum(&restored.downs) >= sum(&state.downs));
    }
}

#[test]
fn a_snapshot_covers_until_something_would_be_lost() {
    let config = ControllerConfig::default();
    let spec = mk_spec(Some((0, 300)), 60);
    let stored = mk_state(&[(8, 0), (6, 15)], &[(2, 0)], &[]).snapshot(at(15), &spec, &config);
    let covers = |recommended: &[(i32, i64)], ups: &[(i32, i64)], now| {
        stored.covers(&mk_state(recommended, ups, &[]), at(now), &spec, &config)
    };
    assert!(covers(&[(8, 0), (6, 15)], &[(2, 0)], 15));
    assert!(covers(&[(8, 0), (6, 15), (6, 30), (6, 45)], &[(2, 0)], 45), "nothing new");
    assert!(covers(&[(8, 0), (6, 15), (5, 30)], &[(2, 0)], 30), "six is held longer, eight decides now");
    assert!(!covers(&[(8, 0), (6, 15), (7, 30)], &[(2, 0)], 30), "eight decides now, seven later");
    assert!(!covers(&[(8, 0), (6, 15), (9, 30)], &[(2, 0)], 30), "nine decides");
    assert!(!covers(&[(8, 0), (6, 15), (6, 30)], &[(2, 0), (1, 30)], 30), "a change is not known");
    assert!(covers(&[(8, 0), (6, 15), (6, 100)], &[], 100), "a change no longer matters");
    assert!(!covers(&[(8, 0), (6, 15), (5, 300)], &[], 400), "six is no longer held, but would be");
    assert!(covers(&[(6, 15)], &[], 3600), "nothing was recommended for long");
    assert!(!covers(&[], &[], 30), "a state that knows nothing is seeded with the current count");
    assert!(StateSnapshot::default().covers(&State::default(), at(0), &spec, &config));
}

#[test]
fn covers_checks_the_scale_up_window() {
    let config = ControllerConfig::default();
    let spec = mk_spec(Some((120, 0)), 60);
    let stored = mk_state(&[(3, 0), (6, 15)], &[], &[]).snapshot(at(15), &spec, &config);
    let covers = |recommended: &[(i32, i64)], now| {
        stored.covers(&mk_state(recommended, &[], &[]), at(now), &spec, &config)
    };
    assert!(covers(&[(3, 0), (6, 15), (7, 30)], 30));
    assert!(!covers(&[(3, 0), (6, 15), (5, 30)], 30));
    assert!(!covers(&[(3, 0), (6, 15), (2, 30)], 30));
}

/// A clock that was set back does not make every step write.
#[test]
fn covers_accepts_future_times() {
    let (config, spec) = (ControllerConfig::default(), mk_spec(Some((0, 300)), 60));
    let state = mk_state(&[(8, 3600), (6, 3615)], &[(2, 3600)], &[]);
    let stored = state.snapshot(at(10), &spec, &config);
    assert!(stored.covers(&state, at(10), &spec, &config));
    assert!(stored.covers(&state, at(25), &spec, &config));
}

#[test]
fn parser_accepts_only_canonical_text() {
    let good = "1;r=8@1763200000,6@+45;u=2@1763200000;d=1@1763200045,3@+0;g=a%2Cb/0=4@1763200000";
    assert_eq!(StateSnapshot::parse(good).unwrap().to_text(), good);
    assert_eq!(StateSnapshot::parse("1").unwrap(), StateSnapshot::default());
    let syntax = |expected, at| SnapshotError::Syntax { expected, at };
    let cases = [
        ("", SnapshotError::Version),
        ("2;r=8@1763200000", SnapshotError::Version),
        ("11;r=8@1763200000", SnapshotError::Version),
        ("1;", syntax("end", 1)),
        ("1;r=", syntax("number", 4)),
        ("1;r=8", syntax("@", 5)),
        ("1;r=-8@1763200000", syntax("number", 4)),
        ("1;r=08@1763200000", syntax("number", 4)),
        ("1;r=2147483648@1763200000", syntax("count", 14)),
        ("1;r=99999999999999999999@1763200000", syntax("number", 4)),
        ("1;r=8@253402207201", syntax("time", 18)),
        ("1;r=8@9223372036854775807", syntax("time", 25)),
        ("1;r=8@1763200000,6@9223372036854775807", syntax("+", 19)),
        ("1;r=8@1763200000,6@+9223372036854775807", syntax("time", 39)),
        ("1;r=8@1763200000,6@+-5", syntax("number", 20)),
        ("1;r=8@1763200000,", syntax("number", 17)),
        ("1;r=8@1763200000 ", syntax("end", 16)),
        ("1;r=8@1763200000;r=8@1763200000", syntax("end", 16)),
        ("1;u=8@1763200000;r=8@1763200000", syntax("end", 16)),
        ("1;u=0@1763200000", syntax("change", 16)),
        ("1;g=a=-0@1763200000", syntax("count", 8)),
        ("1;g=a=-2147483649@1763200000", syntax("count", 17)),
        ("1;g=%2c=4@1763200000", syntax("escape", 4)),
        ("1;g=%41=4@1763200000", syntax("escape", 4)),
        ("1;g=%F=4@1763200000", syntax("escape", 4)),
        ("1;g=%FF=4@1763200000", syntax("name", 7)),
        ("1;g=b=4@1763200000,a=4@1763200000", syntax("later name", 20)),
        ("1;g=ä=4@1763200000", syntax("=", 4)),
    ];
    for (text, error) in cases {
        assert_eq!(StateSnapshot::parse(text), Err(error), "{text}");
    }
    let long = format!("1;r={}", "8@1763200000,".repeat(1000));
    assert_eq!(StateSnapshot::parse(&long), Err(SnapshotError::TooLong(13_004)));
    assert_eq!(SnapshotError::Version.to_string(), "state snapshot has another version than 1");
}

fn stamped(least: i32) -> impl Strategy<Value = TimestampedReplicas> {
    (prop_oneof![9 => least.max(-100)..100_i32, 1 => least..=i32::MAX], 0..2_000_000_000_i64).prop_map(
        |(value, second)| TimestampedReplicas {
            value: value.into(),
            at: Timestamp::from_second(second).unwrap(),
        },
    )
}

fn list(least: i32) -> impl Strategy<Value = Vec<TimestampedReplicas>> {
    vec(stamped(least), 0..8).prop_map(|mut list| {
        list.sort_by_key(|s| s.at);
        list
    })
}

fn snapshot() -> impl Strategy<Value = StateSnapshot> {
    let name = prop_oneof![3 => "[ -~]{0,20}", 1 => any::<String>()];
    (list(0), list(1), list(1), btree_map(name, stamped(i32::MIN), 0..4)).prop_map(
        |(recommendations, ups, downs, last_good)| StateSnapshot { recommendations, ups, downs, last_good },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn written_text_parses_to_the_same_snapshot(snapshot in snapshot()) {
        prop_assert_eq!(StateSnapshot::parse(&snapshot.to_text()), Ok(snapshot));
    }

    /// No other text parses to the same snapshot.
    #[test]
    fn a_snapshot_has_exactly_one_text(snapshot in snapshot(), place: prop::sample::Index, new in "[0-9@+,;=%rudg]{0,2}") {
        let text = snapshot.to_text();
        let place = place.index(text.len());
        let end = (place + 1).min(text.len());
        let mut damaged = text.clone().into_bytes();
        damaged.splice(place..end, new.bytes());
        if let Ok(damaged) = String::from_utf8(damaged)
            && let Ok(other) = StateSnapshot::parse(&damaged)
        {
            prop_assert_eq!(other.to_text(), damaged);
        }
    }

    #[test]
    fn any_text_parses_or_is_an_error(text: String, tail in "[0-9@+,;=%rudgäA-F]{0,40}") {
        drop(StateSnapshot::parse(&text));
        for start in ["1", "1;r=", "1;u=", "1;g="] {
            if let Ok(snapshot) = StateSnapshot::parse(&format!("{start}{tail}")) {
                drop(snapshot.restore(noon()));
            }
        }
    }
}

/// What version 0.1.0 stored is read as it is; a later form has another number, and is refused.
#[test]
fn texts_of_version_0_1_0_are_read() {
    for text in include_str!("../../../../tests/stored/v0.1.0/memory.txt").lines() {
        assert_eq!(StateSnapshot::parse(text).unwrap().to_text(), text);
        let later = format!("2{}", text.strip_prefix('1').unwrap());
        assert_eq!(StateSnapshot::parse(&later), Err(SnapshotError::Version));
    }
}
