//! A state restored from a snapshot decides like the original one, or holds changes longer.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

#[allow(dead_code, reason = "shared with other tests")]
mod arbitrary;
mod common;

use arbitrary::{Tick, behavior, spec, ticks};
use common::{Fixture, default_behavior, external, mk_rules, mk_spec, mk_state, noon, secs};
use engine::normalize::{Normalized, RateLimit};
use engine::spec::{Behavior, MetricTarget, ScalingPolicyType, Spec};
use engine::{ControllerConfig, Decision, ScaleOutcome, ScaleWriteResult, State, StateSnapshot};
use proptest::prelude::*;

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn json(decision: &Decision) -> serde_json::Value {
    serde_json::to_value(decision).unwrap()
}

/// What was stored at the last step, through its text, restored at once.
fn take_over(fixture: &Fixture) -> Fixture {
    let snapshot = fixture.state.snapshot(fixture.now, &fixture.spec, &fixture.config);
    let snapshot = StateSnapshot::parse(&snapshot.to_text()).unwrap();
    Fixture { state: snapshot.restore(fixture.now), ..fixture.clone() }
}

/// The same number of seconds between steps.
fn regular(mut ticks: Vec<Tick>, period: i64) -> Vec<Tick> {
    for tick in &mut ticks {
        tick.after = period;
    }
    ticks
}

/// The longest period of both directions is the same, so that no slot is reused that still counts.
fn even(mut spec: Spec, longest: i64) -> Spec {
    if let Some(behavior) = &mut spec.behavior {
        for rules in [&mut behavior.up, &mut behavior.down] {
            rules.policies[0].period = secs(longest);
            rules.policies.iter_mut().for_each(|p| p.period = p.period.min(secs(longest)));
        }
    }
    spec
}

/// So many replicas, for which a metric proposes exactly `wanted`.
fn proposing(spec: &Spec, state: State, current: i32, wanted: i32) -> Fixture {
    let metrics = vec![external(MetricTarget::AverageValue(1000.into()))];
    let spec = Spec { min: 1.into(), max: 1000.into(), metrics, ..spec.clone() };
    let mut fixture = Fixture::new(spec, current).totals(&[i64::from(wanted) * 1000]).with_state(state);
    fixture.config.tolerance = 0.0;
    fixture
}

/// The normalized recommendation after `later` seconds.
fn normalized(spec: &Spec, state: &State, later: i64, current: i32, wanted: i32) -> Normalized {
    let mut fixture = proposing(spec, state.clone(), current, wanted);
    fixture.now += secs(later);
    fixture.step(ScaleWriteResult::DryRun).normalized.unwrap()
}

proptest! {
    #![proptest_config(cases(200))]

    /// A take-over right after a recommendation changes nothing in the steps that follow, with and without `behavior`.
    #[test]
    fn restored_state_decides_the_same(
        spec in spec(), longest in 1..1800_i64, start in 1..60_i32, period in 1..120_i64,
        ticks in ticks(2..18), from in 0..12_usize,
    ) {
        let mut kept = Fixture::living(even(spec, longest), start, false);
        let mut taken = None;
        for (step, tick) in regular(ticks, period).iter().enumerate() {
            let decision = kept.live(tick);
            match &mut taken {
                Some(taken) => prop_assert_eq!(json(&Fixture::live(taken, tick)), json(&decision)),
                None if step >= from && decision.normalized.is_some() => taken = Some(take_over(&kept)),
                None => {}
            }
        }
    }

    /// Whatever the policies, and however irregular the steps: up to and with the next change nothing differs. After
    /// it another old slot may have been reused (T39).
    #[test]
    fn restored_state_decides_the_same_until_the_next_change(
        spec in spec(), start in 1..60_i32, ticks in ticks(2..18), from in 0..12_usize,
    ) {
        let mut kept = Fixture::living(spec, start, false);
        let mut taken = None;
        for (step, tick) in ticks.iter().enumerate() {
            let decision = kept.live(tick);
            if let Some(taken) = &mut taken {
                prop_assert_eq!(json(&Fixture::live(taken, tick)), json(&decision));
                if decision.outcome == ScaleOutcome::Scaled {
                    break;
                }
            } else if step >= from && decision.normalized.is_some() {
                taken = Some(take_over(&kept));
            }
        }
    }

    /// A snapshot taken right now covers, and what it covers needs no write.
    #[test]
    fn a_fresh_snapshot_covers(spec in spec(), start in 1..60_i32, ticks in ticks(1..12)) {
        let mut fixture = Fixture::living(spec, start, false);
        for tick in &ticks {
            fixture.live(tick);
            let snapshot = fixture.state.snapshot(fixture.now, &fixture.spec, &fixture.config);
            prop_assert!(snapshot.covers(&fixture.state, fixture.now, &fixture.spec, &fixture.config), "{snapshot}");
        }
    }

    /// Stored some steps ago, and still covering: at the moment of the take-over windows give the same, and whenever
    /// later they hold no less; rates are the same.
    #[test]
    fn an_older_snapshot_never_hastens_a_change(
        behavior in proptest::option::of(behavior()), stale in proptest::collection::vec(1..12_i32, 1..10),
        fresh in proptest::collection::vec(1..12_i32, 0..6), period in 1..60_i64, later in 0..400_i64,
        changes in proptest::collection::vec((1..5_i32, 0..600_i64), 0..4), current in 1..12_i32, wanted in 1..12_i32,
    ) {
        let spec = Spec { behavior, ..mk_spec([]) };
        let config = ControllerConfig::default();
        let (known, unknown) = (stale.len(), fresh.len());
        let ago = |step: usize| period * (known + unknown - 1 - step) as i64;
        let all: Vec<_> = stale.into_iter().chain(fresh).enumerate().map(|(i, n)| (n, ago(i))).collect();
        let taken_at = noon() - secs(ago(known - 1));
        let changes: Vec<_> = changes.into_iter().map(|(by, before)| (by, ago(known - 1) + before)).collect();
        let kept = mk_state(&all, &changes, &[]);
        let stored = mk_state(&all[..known], &changes, &[]).snapshot(taken_at, &spec, &config);
        let restored = stored.restore(noon());
        if !stored.covers(&kept, noon(), &spec, &config) {
            return Ok(());
        }
        let (newest, _) = all[all.len() - 1];
        let now = |state: &State| normalized(&spec, state, 0, current, newest).stabilized.replicas;
        prop_assert_eq!(now(&restored), now(&kept));
        let then = |state: &State| normalized(&spec, state, later, current, wanted);
        let (ours, theirs) = (then(&restored), then(&kept));
        if wanted <= current {
            prop_assert!(ours.stabilized.replicas >= theirs.stabilized.replicas, "{ours:?} {theirs:?}");
        } else if spec.behavior.is_some() {
            prop_assert!(ours.stabilized.replicas <= theirs.stabilized.replicas, "{ours:?} {theirs:?}");
        }
        let rates: Vec<Option<RateLimit>> = [1, 1000]
            .into_iter()
            .flat_map(|far| [&restored, &kept].map(|state| normalized(&spec, state, later + 1200, 12, far).limited.rate))
            .collect();
        prop_assert_eq!(rates[0], rates[1]);
        prop_assert_eq!(rates[2], rates[3]);
    }

    /// Even a snapshot that no longer covers holds a scale-down as long as nothing higher was recommended since, and a
    /// scale-up as long as nothing lower was.
    #[test]
    fn a_stale_snapshot_may_delay_but_not_hasten(
        behavior in proptest::option::of(behavior()), stale in proptest::collection::vec(1..12_i32, 1..10),
        fresh in proptest::collection::vec(1..12_i32, 0..6), period in 1..60_i64, later in 0..400_i64,
        current in 1..12_i32, wanted in 1..12_i32,
    ) {
        let spec = Spec { behavior, ..mk_spec([]) };
        let known = stale.len();
        let newest = stale[known - 1];
        let down = wanted <= current;
        let bounded = fresh.into_iter().map(|n| if down { n.min(newest) } else { n.max(newest) });
        let all: Vec<_> = stale.iter().copied().chain(bounded).collect();
        let ago = |step: usize| period * (all.len() - 1 - step) as i64;
        let all: Vec<_> = all.iter().enumerate().map(|(i, n)| (*n, ago(i))).collect();
        let taken_at = noon() - secs(ago(known - 1));
        let kept = mk_state(&all, &[], &[]);
        let restored = mk_state(&all[..known], &[], &[]).snapshot(taken_at, &spec, &ControllerConfig::default()).restore(noon());
        let then = |state: &State| normalized(&spec, state, later, current, wanted).stabilized.replicas;
        if down {
            prop_assert!(then(&restored) >= then(&kept));
        } else if spec.behavior.is_some() {
            prop_assert!(then(&restored) <= then(&kept));
        }
    }

    /// A state that is restored for a count holds it no less than the stored recommendations alone, however long nobody led.
    #[test]
    fn a_state_restored_for_a_count_never_hastens_a_change(
        behavior in proptest::option::of(behavior()), stale in proptest::collection::vec(1..12_i32, 1..10),
        changes in proptest::collection::vec((1..5_i32, 0..600_i64), 0..4), period in 1..60_i64,
        absence in 0..3000_i64, later in 0..400_i64, current in 1..12_i32, wanted in 1..12_i32,
    ) {
        let spec = Spec { min: 1.into(), max: 1000.into(), behavior, ..mk_spec([]) };
        let config = ControllerConfig::default();
        let newest = stale[stale.len() - 1];
        let ago = |step: usize| absence + period * (stale.len() - 1 - step) as i64;
        let all: Vec<_> = stale.iter().enumerate().map(|(i, n)| (*n, ago(i))).collect();
        let changes: Vec<_> = changes.into_iter().map(|(by, before)| (by, absence + before)).collect();
        let stored = mk_state(&all, &changes, &[]).snapshot(noon() - secs(absence), &spec, &config);
        let plain = stored.restore(noon());
        let unchanged = stored.restore_for(noon(), &spec, &config, newest.into());
        prop_assert_eq!(&unchanged, &plain);
        let restored = stored.restore_for(noon(), &spec, &config, current.into());
        let then = |state: &State| normalized(&spec, state, later, current, wanted).stabilized.replicas.get();
        if wanted <= current {
            prop_assert!(then(&restored) >= then(&plain).min(current));
        } else if spec.behavior.is_some() {
            prop_assert!(then(&restored) <= then(&plain).max(current));
        }
    }
}

/// Unlike Kubernetes (T37), the state survives a restart.
#[test]
fn windows_continue_after_a_leader_change() {
    let spec = mk_spec([]);
    let state = mk_state(&[(8, 200), (2, 185), (2, 0)], &[], &[]);
    let snapshot = state.snapshot(noon(), &spec, &ControllerConfig::default());
    let held = |later| {
        normalized(&spec, &snapshot.restore(noon() + secs(15)), later, 8, 2).stabilized.replicas.get()
    };
    assert_eq!((held(100), held(101)), (8, 2), "eight was recommended 200 s ago and holds for 300 s");
}

/// T39: an enlarged window brings an old slot of the state back. A snapshot does not hold that slot.
#[test]
fn t39_old_slots_are_not_in_the_snapshot() {
    let mut kept = proposing(&mk_spec([]), mk_state(&[(9, 400), (8, 350), (7, 100)], &[], &[]), 5, 5);
    let mut taken = take_over(&kept);
    for fixture in [&mut kept, &mut taken] {
        assert_eq!(fixture.clone().step(ScaleWriteResult::Done).desired, 7);
        fixture.config.downscale_stabilization = secs(500);
    }
    assert_eq!(kept.step(ScaleWriteResult::Done).desired, 9);
    assert_eq!(taken.step(ScaleWriteResult::Done).desired, 7);
}

/// T39 for changes: with periods of unequal length a slot can be reused that the other direction still counts, and
/// which one depends on slots too old for the snapshot.
#[test]
fn t39_old_slots_of_changes_are_not_in_the_snapshot() {
    let up = mk_rules(&[(ScalingPolicyType::Pods, 9, 15)]);
    let down = mk_rules(&[(ScalingPolicyType::Pods, 1, 600)]);
    let spec = Spec { behavior: Some(Behavior { up, down }), ..mk_spec([]) };
    let mut kept = proposing(&spec, mk_state(&[], &[(3, 100), (1, 700)], &[]), 5, 6);
    let mut taken = take_over(&kept);
    let shrink = |fixture: &mut Fixture| {
        fixture.step(ScaleWriteResult::Done);
        let mut fixture = proposing(&spec, fixture.state.clone(), 6, 1);
        fixture.now += secs(60);
        fixture.step(ScaleWriteResult::Done).normalized.unwrap().limited.rate.unwrap().period_start
    };
    assert_eq!(shrink(&mut kept), 2, "6 now, 1 and 3 added in ten minutes: the oldest slot was reused");
    assert_eq!(shrink(&mut taken), 5, "6 now, 1 added: the slot of the three was reused");
}

/// Shadow mode: scaling policies count changes of another controller like own changes.
#[test]
fn changes_of_other_clients_count_for_policies() {
    let spec = Spec { behavior: Some(default_behavior()), ..mk_spec([]) };
    let limit = |state: &State| normalized(&spec, state, 10, 9, 1000).limited.replicas;
    let mut state = mk_state(&[], &[], &[]);
    state.observed_change(noon(), &spec, 5.into(), 9.into());
    assert_eq!(limit(&state), 10, "five at the start of the period: doubled");
    assert_eq!(state, mk_state(&[], &[(4, 0)], &[]));
    state.observed_change(noon(), &spec, 9.into(), 7.into());
    state.observed_change(noon(), &spec, 7.into(), 7.into());
    assert_eq!(state, mk_state(&[], &[(4, 0)], &[(2, 0)]));
    let mut classic = State::default();
    classic.observed_change(noon(), &mk_spec([]), 5.into(), 9.into());
    assert_eq!(classic, State::default(), "without behavior changes do not count");
}

/// A clock that is set neither opens nor prolongs a window.
#[test]
fn state_moves_with_the_clock() {
    let state = mk_state(&[(8, 100), (2, 0)], &[(1, 30)], &[(2, 60)]);
    for by in [secs(3600), secs(-3600)] {
        let mut moved = state.clone();
        moved.shift(by);
        assert_ne!(moved, state);
        moved.shift(-by);
        assert_eq!(moved, state);
    }
    let mut far = state.clone();
    far.shift(jiff::SignedDuration::MAX);
    far.shift(jiff::SignedDuration::MIN);
}
