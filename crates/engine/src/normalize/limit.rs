//! Rate limits and bounds: how far one step may change the count (docs/spec/hpa.md 6.2, 6.3, 6.4).

use jiff::Timestamp;

use super::{Limited, RateLimit, ScalingLimit};
use crate::spec::{Behavior, ScalingPolicyType, ScalingRules, SelectPolicy, Spec};
use crate::state::{ScaleEvent, State, before};
use crate::units::Replicas;

/// Limits a step of an object without `behavior`: at most the double count, or 4.
pub(super) fn classic(spec: &Spec, current: Replicas, wanted: Replicas) -> Limited {
    let most = Replicas::new((2.0 * f64::from(current.get())).max(4.0) as i32);
    let rate = Some(RateLimit { replicas: most, policy: None, period_start: current });
    let (high, why) =
        if spec.max > most { (most, ScalingLimit::Up) } else { (spec.max, ScalingLimit::TooMany) };
    let (replicas, limit) = if wanted < spec.min {
        (spec.min, ScalingLimit::TooFew)
    } else if wanted > high {
        (high, why)
    } else {
        (wanted, ScalingLimit::Within)
    };
    Limited { replicas, limit, rate }
}

/// Limits a step of an object with `behavior`. Only the bound in the direction of the change applies.
pub(super) fn with_behavior(
    state: &State,
    now: Timestamp,
    behavior: &Behavior,
    spec: &Spec,
    current: Replicas,
    wanted: Replicas,
) -> Limited {
    let within = |rate| Limited { replicas: wanted, limit: ScalingLimit::Within, rate };
    if wanted > current {
        let mut rate = allowed(state, now, &behavior.up, current, Direction::Up);
        rate.replicas = rate.replicas.max(current);
        let (cap, limit) = if spec.max > rate.replicas {
            (rate.replicas, ScalingLimit::Up)
        } else {
            (spec.max, ScalingLimit::TooMany)
        };
        if wanted > cap {
            return Limited { replicas: cap, limit, rate: Some(rate) };
        }
        within(Some(rate))
    } else if wanted < current {
        let mut rate = allowed(state, now, &behavior.down, current, Direction::Down);
        rate.replicas = rate.replicas.min(current);
        let (floor, limit) = if spec.min < rate.replicas {
            (rate.replicas, ScalingLimit::Down)
        } else {
            (spec.min, ScalingLimit::TooFew)
        };
        if wanted < floor {
            return Limited { replicas: floor, limit, rate: Some(rate) };
        }
        within(Some(rate))
    } else {
        within(None)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// The count that all policies of a direction allow together.
fn allowed(
    state: &State,
    now: Timestamp,
    rules: &ScalingRules,
    current: Replicas,
    direction: Direction,
) -> RateLimit {
    let stay = RateLimit { replicas: current, policy: None, period_start: current };
    if rules.select == SelectPolicy::Disabled {
        return stay;
    }
    let highest = (direction == Direction::Up) == (rules.select == SelectPolicy::Max);
    let each = rules.policies.iter().enumerate().map(|(index, policy)| {
        let since = before(now, policy.period);
        // Scale-ups and scale-downs of the period count in both directions (T40).
        let start =
            current.get().wrapping_sub(recent(&state.ups, since)).wrapping_add(recent(&state.downs, since));
        let percent = f64::from(policy.value) / 100.0;
        let replicas = match (direction, policy.kind) {
            // The sum wraps as in Kubernetes, so that a huge value blocks the change (T32).
            (Direction::Up, ScalingPolicyType::Pods) => start.wrapping_add(policy.value),
            (Direction::Down, ScalingPolicyType::Pods) => start.wrapping_sub(policy.value),
            (Direction::Up, ScalingPolicyType::Percent) => {
                as_i32((f64::from(start) * (1.0 + percent)).ceil())
            }
            (Direction::Down, ScalingPolicyType::Percent) => as_i32(f64::from(start) * (1.0 - percent)),
        };
        RateLimit { replicas: replicas.into(), policy: Some(index), period_start: start.into() }
    });
    let chosen = if highest {
        each.reduce(|best, next| if next.replicas > best.replicas { next } else { best })
    } else {
        each.reduce(|best, next| if next.replicas < best.replicas { next } else { best })
    };
    chosen.unwrap_or(stay)
}

/// Sum of the changes after `since`.
fn recent(changes: &[ScaleEvent], since: Timestamp) -> i32 {
    changes.iter().filter(|c| c.at > since).fold(0_i32, |sum, c| sum.wrapping_add(c.by))
}

/// Converts a count. One that does not fit becomes the smallest count, as in Kubernetes, so that the limit blocks (T32).
fn as_i32(value: f64) -> i32 {
    if value > f64::from(i32::MIN) - 1.0 && value < f64::from(i32::MAX) + 1.0 {
        value as i32
    } else {
        i32::MIN
    }
}
