//! What is requested for a round, without a server.

use super::*;

/// Metadata of a topic with these partitions: index, leader and error.
fn offsets(name: &str, partitions: impl IntoIterator<Item = (i32, i32, i16)>) -> RoundOffsets {
    let partitions = partitions.into_iter();
    let partitions = partitions.map(|(index, leader, error)| PartitionMetadata { index, leader, error });
    let name: Arc<str> = Arc::from(name);
    let topic = TopicMetadata { name: Arc::clone(&name), error: 0, partitions: partitions.collect() };
    RoundOffsets { metadata: BTreeMap::from([(name, topic)]), ..RoundOffsets::default() }
}

fn query(group: &str, topics: &[&str]) -> Arc<GroupQuery> {
    let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
    Arc::new(GroupQuery { group: group.to_owned(), topics, earliest: false })
}

#[test]
fn leaders_of_partitions_are_indexed() {
    let some = offsets("t", [(0, 7, 0), (1, -1, 9), (2, -1, 0), (0, 8, 0), (3, 4, 9)]);
    let leaders_of_some = leaders(&some);
    let leader = |topic: &str, index: i32| leaders_of_some.get(&(topic, index)).copied();
    assert_eq!(leader("t", 0), Some(Ok(7)), "the first entry of a partition counts");
    assert_eq!(leader("t", 1), Some(Err(9)));
    assert_eq!(leader("t", 2), Some(Err(NO_LEADER)));
    assert_eq!(leader("t", 3), Some(Ok(4)));
    assert_eq!((leader("t", 4), leader("other", 0)), (None, None));
    let many = offsets("t", (0..MAX_PARTITIONS as i32).map(|index| (index, index % 3, 0)));
    assert_eq!(leaders(&many).len(), MAX_PARTITIONS);
}

#[test]
fn topics_of_a_group_are_requested_once_in_their_order() {
    let mut known = offsets("b", [(0, 0, 0), (1, 0, 0)]);
    known.metadata.extend(offsets("a", [(5, 0, 0)]).metadata);
    let queries =
        [query("g", &["b", "a", "missing", "b"]), query("h", &["a"]), query("g", &["a"]), query("all", &[])];
    let topic = |name: &str, partitions: &[i32]| (name.to_owned(), partitions.to_vec());
    let expected = TopicsByGroup::from([
        ("all".to_owned(), None),
        ("g".to_owned(), Some(vec![topic("b", &[0, 1]), topic("a", &[5])])),
        ("h".to_owned(), Some(vec![topic("a", &[5])])),
    ]);
    assert_eq!(wanted(&queries, &known), expected);
}
