//! Lag policies, without a server.

use super::*;
use crate::kafka_client::sample::{GroupSample, PartitionSample, TopicSample};

/// A topic whose partitions have these committed and latest offsets.
fn sample(offsets: &[(i64, i64)]) -> GroupSample {
    let partitions = offsets.iter().enumerate().map(|(index, (committed, latest))| PartitionSample {
        index: index as i32,
        committed: Ok(*committed),
        latest: Ok(*latest),
        earliest: None,
    });
    GroupSample { topics: vec![TopicSample { name: "t".into(), partitions: partitions.collect() }] }
}

fn lag(policy: &LagPolicy, offsets: &[(i64, i64)]) -> (i64, i64) {
    let lag = policy.lag(&sample(offsets), Instant::now(), &mut PreviousOffsets::default()).unwrap();
    (lag.value, lag.activation)
}

#[test]
fn partitions_without_commit() {
    assert_eq!(lag(&policy(), &[(-1, 100)]), (1, 1));
    assert_eq!(lag(&LagPolicy { zero_without_offset: true, ..policy() }, &[(-1, 100)]), (0, 0));
    let earliest = LagPolicy { from_earliest: true, ..policy() };
    assert_eq!(lag(&earliest, &[(-1, 9)]), (9, 9));
    assert_eq!(lag(&LagPolicy { zero_without_offset: true, ..earliest }, &[(-1, 9)]), (0, 0));
    assert_eq!(lag(&policy(), &[(3, -1)]), (0, 0));
}

#[test]
fn offsets_beyond_the_end_hide_no_lag_of_other_partitions() {
    // The second partition has lost the records that the group has read.
    let offsets = [(0, 5), (1000, 10)];
    assert_eq!(lag(&policy(), &offsets), (5, 5));
    let as_keda = LagPolicy { subtracts_lost_records: true, ..policy() };
    assert_eq!(lag(&as_keda, &offsets), (-985, -985));
}

#[test]
fn lag_is_capped_at_the_partitions() {
    // Two partitions, a target of 10: not more than 20, but activity uses the full lag.
    assert_eq!(lag(&policy(), &[(0, 100), (0, 0)]), (20, 100));
    assert_eq!(lag(&policy(), &[(0, 25), (0, 4)]), (29, 29));
    let idle = LagPolicy { allow_idle_consumers: true, ..policy() };
    assert_eq!(lag(&idle, &[(0, 100), (0, 0)]), (100, 100));
    let limited = LagPolicy { limit_to_partitions_with_lag: true, ..policy() };
    assert_eq!(lag(&limited, &[(0, 100), (0, 0)]), (10, 100));
    assert_eq!(lag(&limited, &[(7, 7), (0, 0)]), (0, 0));
}

#[test]
fn even_distribution_rounds_up_to_a_divisor() {
    let even = LagPolicy { even_distribution: true, ..policy() };
    let partitions = |total: i64| [(0, total), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)];
    assert_eq!(lag(&even, &partitions(5)).0, 10);
    assert_eq!(lag(&even, &partitions(11)).0, 20);
    assert_eq!(lag(&even, &partitions(35)).0, 60);
    assert_eq!(lag(&even, &partitions(1000)), (60, 1000));
}

#[test]
fn only_listed_partitions_count() {
    let some = LagPolicy { partitions: Some([1].into()), ..policy() };
    assert_eq!(lag(&some, &[(0, 5), (0, 3)]), (3, 3));
    // As many as a limitation may have, which are not searched for each partition.
    let many = LagPolicy { partitions: Some((1..100_000).collect()), ..policy() };
    assert_eq!(lag(&many, &[(0, 5), (0, 3), (0, 4)]), (7, 7));
    let none = LagPolicy { partitions: Some([].into()), ..policy() };
    let error = none.lag(&sample(&[(0, 5)]), Instant::now(), &mut PreviousOffsets::default()).unwrap_err();
    assert_eq!(error.message, "expected at least one active partition within the topic 't'");
}

#[test]
fn persistent_lag_counts_for_activity_only() {
    let policy = LagPolicy { exclude_persistent: true, ..policy() };
    let mut previous = PreviousOffsets::default();
    let first = Instant::now();
    let (second, third) = (first + Duration::from_secs(1), first + Duration::from_secs(2));
    let mut read = |offsets: &[(i64, i64)], at| {
        let lag = policy.lag(&sample(offsets), at, &mut previous).unwrap();
        (lag.value, lag.activation)
    };
    assert_eq!(read(&[(1, 9), (1, 4)], first), (11, 11));
    // The same sample again is no sign of persistence.
    assert_eq!(read(&[(1, 9), (1, 4)], first), (11, 11));
    assert_eq!(read(&[(1, 9), (2, 4)], second), (2, 10));
    assert_eq!(read(&[(1, 9), (2, 4)], second), (2, 10));
    assert_eq!(read(&[(3, 9), (2, 4)], third), (6, 8));
}
