//! The arithmetic of rollouts.

use crate::workloads::objects::{DeploymentSpec, IntOrPercent};

/// The limits of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RolloutLimits {
    /// Maximum number of additional pods.
    pub(crate) surge: i32,
    /// Maximum number of unavailable pods.
    pub(crate) unavailable: i32,
}

/// The size of a replica set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplicaSetSize {
    /// Desired pods.
    pub(crate) wanted: i32,
    /// Available pods.
    pub(crate) available: i32,
    /// The `max-replicas` annotation: the limit when it was last scaled; 0 if it is absent.
    pub(crate) most: i32,
}

impl RolloutLimits {
    /// Surge is rounded up, unavailability down; if both are zero, one pod may be unavailable.
    pub(crate) fn of(spec: &DeploymentSpec, replicas: i32) -> Self {
        if spec.strategy.r#type == "Recreate" {
            return Self { surge: 0, unavailable: 0 };
        }
        let update = spec.strategy.rolling_update.clone().unwrap_or_default();
        let surge = share(update.max_surge.as_ref(), replicas, true);
        let unavailable = share(update.max_unavailable.as_ref(), replicas, false).min(replicas);
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Self { surge, unavailable }
    }

    /// The maximum number of pods.
    pub(crate) fn most(self, replicas: i32) -> i32 {
        if replicas > 0 { replicas.saturating_add(self.surge) } else { 0 }
    }
}

fn share(amount: Option<&IntOrPercent>, replicas: i32, up: bool) -> i32 {
    match amount {
        Some(IntOrPercent::Number(number)) => *number,
        Some(IntOrPercent::Percentage(text)) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or_default();
            let whole = percent.saturating_mul(i64::from(replicas));
            let rounded = if up { whole.saturating_add(99) / 100 } else { whole / 100 };
            i32::try_from(rounded).unwrap_or(i32::MAX)
        }
        // The API server's default.
        None => share(Some(&IntOrPercent::Percentage("25%".to_owned())), replicas, up),
    }
}

/// The next size of the new replica set, within the surge.
pub(crate) fn grow_new(replicas: i32, limits: RolloutLimits, new: i32, old: &[ReplicaSetSize]) -> i32 {
    if new >= replicas {
        return replicas;
    }
    let all = new + total(old);
    let room = replicas.saturating_add(limits.surge) - all;
    new + room.min(replicas - new).max(0)
}

/// The next sizes of the old replica sets, oldest first: unavailable pods are removed first, then as many as
/// availability allows.
pub(crate) fn shrink_old(
    replicas: i32,
    limits: RolloutLimits,
    new: ReplicaSetSize,
    old: &[ReplicaSetSize],
) -> Vec<i32> {
    let mut next: Vec<i32> = old.iter().map(|size| size.wanted).collect();
    let least = replicas - limits.unavailable;
    let unavailable_new = new.wanted - new.available;
    let mut room = new.wanted + total(old) - least - unavailable_new;
    for (wanted, size) in next.iter_mut().zip(old) {
        let dead = (*wanted - size.available).clamp(0, room.max(0));
        *wanted -= dead;
        room -= dead;
    }
    // Counts may lag behind sizes: availability is limited to the desired pods.
    let available = new.available + old.iter().map(|size| size.available.min(size.wanted)).sum::<i32>();
    let mut room = room.min(available - least);
    for wanted in &mut next {
        let part = (*wanted).clamp(0, room.max(0));
        *wanted -= part;
        room -= part;
    }
    next
}

/// The sizes of replica sets, the favoured one first, after scaling during a rollout: each keeps its share.
pub(crate) fn proportional(most: i32, sizes: &[ReplicaSetSize]) -> Vec<i32> {
    let now = total(sizes);
    let mut left = most - now;
    let mut next = Vec::with_capacity(sizes.len());
    for size in sizes {
        let before = if size.most > 0 { size.most } else { now.max(1) };
        let share =
            (f64::from(size.wanted) * f64::from(most) / f64::from(before)).round() as i32 - size.wanted;
        let share = if left > 0 { share.clamp(0, left) } else { share.clamp(left, 0) };
        left -= share;
        next.push(size.wanted + share);
    }
    // The rounding remainder.
    if let Some(first) = next.first_mut() {
        *first = (*first + left).max(0);
    }
    next
}

fn total(sizes: &[ReplicaSetSize]) -> i32 {
    sizes.iter().map(|size| size.wanted).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(surge: &str, unavailable: &str, replicas: i32) -> (i32, i32) {
        let amount =
            |text: &str| text.parse().map_or(IntOrPercent::Percentage(text.to_owned()), IntOrPercent::Number);
        let mut spec = DeploymentSpec::default();
        spec.strategy.rolling_update = Some(crate::workloads::objects::RollingUpdate {
            max_surge: Some(amount(surge)),
            max_unavailable: Some(amount(unavailable)),
        });
        let limits = RolloutLimits::of(&spec, replicas);
        (limits.surge, limits.unavailable)
    }

    #[test]
    fn surge_rounds_up_and_unavailability_down() {
        assert_eq!(limits("25%", "25%", 3), (1, 0));
        assert_eq!(limits("25%", "25%", 10), (3, 2));
        assert_eq!(limits("0%", "10%", 5), (0, 1), "there must be room to move");
        assert_eq!(limits("2", "0", 5), (2, 0));
        assert_eq!(limits("0", "7", 5), (0, 5));
        assert_eq!(limits("100%", "x%", 5), (5, 0));
        assert_eq!(
            RolloutLimits::of(&DeploymentSpec::default(), 4),
            RolloutLimits { surge: 1, unavailable: 1 }
        );
    }

    const fn size(wanted: i32, available: i32, most: i32) -> ReplicaSetSize {
        ReplicaSetSize { wanted, available, most }
    }

    #[test]
    fn new_replica_set_grows_as_old_ones_shrink() {
        let limits = RolloutLimits { surge: 1, unavailable: 1 };
        assert_eq!(grow_new(4, limits, 0, &[size(4, 4, 5)]), 1);
        assert_eq!(shrink_old(4, limits, size(1, 0, 5), &[size(4, 4, 5)]), [3]);
        assert_eq!(grow_new(4, limits, 1, &[size(3, 3, 5)]), 2);
        assert_eq!(shrink_old(4, limits, size(2, 0, 5), &[size(3, 3, 5)]), [3]);
        assert_eq!(shrink_old(4, limits, size(2, 2, 5), &[size(3, 3, 5)]), [1]);
        assert_eq!(grow_new(4, limits, 6, &[]), 4, "a new set that is too large shrinks");
        assert_eq!(
            shrink_old(4, limits, size(0, 0, 5), &[size(2, 0, 5), size(3, 3, 5)]),
            [0, 3],
            "the dead first"
        );
        assert_eq!(
            shrink_old(4, limits, size(4, 0, 5), &[size(2, 1, 5)]),
            [2],
            "not before there are others"
        );
        assert_eq!(
            shrink_old(4, limits, size(1, 0, 5), &[size(3, 4, 5)]),
            [3],
            "counts that lag are not believed"
        );
    }

    #[test]
    fn scaling_during_a_rollout_is_proportional() {
        // The results of kube-controller-manager.
        assert_eq!(proportional(13, &[size(3, 3, 5), size(2, 0, 5)]), [8, 5]);
        assert_eq!(proportional(7, &[size(8, 3, 13), size(5, 0, 13)]), [4, 3]);
        assert_eq!(proportional(0, &[size(8, 3, 13), size(5, 0, 13)]), [0, 0]);
        assert_eq!(proportional(12, &[size(1, 0, 3), size(1, 0, 3), size(1, 0, 3)]), [4, 4, 4]);
        assert_eq!(proportional(4, &[size(1, 0, 3), size(1, 0, 3), size(1, 0, 3)]), [2, 1, 1]);
        assert_eq!(proportional(6, &[size(2, 0, 0), size(1, 0, 0)]), [4, 2], "sets that do not say");
    }
}
