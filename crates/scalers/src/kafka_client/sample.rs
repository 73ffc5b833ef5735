//! The offsets of one consumer group, as the brokers gave them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::messages::{GroupOffsets, NO_OFFSET, TopicMetadata, refused};
use crate::ScalerError;
use crate::off_thread::decode_elsewhere;

/// Maximum number of topics of a group whose trigger names none.
const MAX_TOPICS: usize = 10_000;
/// About the size of a partition in lists and maps, in bytes.
const PARTITION_BYTES: usize = 64;

/// Offsets by topic and partition, or why there is none.
pub(super) type OffsetMap = BTreeMap<(Arc<str>, i32), Result<i64, ScalerError>>;

/// The offsets of a consumer group in the topics that a trigger reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupSample {
    pub(super) topics: Vec<TopicSample>,
}

/// The offsets of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopicSample {
    pub(super) name: Arc<str>,
    pub(super) partitions: Vec<PartitionSample>,
}

/// The offsets of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartitionSample {
    pub(super) index: i32,
    /// The committed offset; [`NO_OFFSET`] if there is none.
    pub(super) committed: Result<i64, ScalerError>,
    /// The offset of the next record.
    pub(super) latest: Result<i64, ScalerError>,
    /// The offset of the oldest retained record, if it was requested.
    pub(super) earliest: Option<i64>,
}

/// All that a round has read.
#[derive(Default)]
pub(super) struct RoundOffsets {
    /// Topics by name.
    pub(super) metadata: BTreeMap<Arc<str>, TopicMetadata>,
    /// Committed offsets by group.
    pub(super) groups: BTreeMap<String, Result<GroupOffsets, ScalerError>>,
    pub(super) latest: OffsetMap,
    pub(super) earliest: OffsetMap,
}

impl RoundOffsets {
    /// The number of partitions of all topics.
    pub(super) fn count_partitions(&self) -> usize {
        self.metadata.values().map(|topic| topic.partitions.len()).sum()
    }

    /// Continues on a worker thread if lists of all partitions for so many triggers are long.
    pub(super) async fn work_elsewhere(&self, triggers: usize) {
        let partitions = self.count_partitions().saturating_mul(triggers);
        decode_elsewhere(partitions.saturating_mul(PARTITION_BYTES)).await;
    }

    /// The topics of a group: the requested ones, or else those with a committed offset.
    pub(super) fn topics(&self, group: &str, requested: &[String]) -> Result<Vec<Arc<str>>, ScalerError> {
        if !requested.is_empty() {
            return Ok(requested.iter().map(|topic| Arc::from(&**topic)).collect());
        }
        let mut topics: Vec<Arc<str>> =
            self.committed(group)?.partitions.iter().map(|one| Arc::clone(&one.topic)).collect();
        topics.sort_unstable();
        topics.dedup();
        if topics.is_empty() {
            // KEDA counts the partitions of all topics of the cluster then.
            bail!("group {group} has no committed offset, and the trigger names no topic: name a topic");
        }
        if topics.len() > MAX_TOPICS {
            bail!("the group has committed offsets in more than {MAX_TOPICS} topics: name a topic");
        }
        Ok(topics)
    }

    /// The committed offsets of a group.
    pub(super) fn committed(&self, group: &str) -> Result<&GroupOffsets, ScalerError> {
        let failed = |why: ScalerError| why.inside("error listing consumer group offsets");
        match self.groups.get(group) {
            None => Err(failed(scaler_error!("the coordinator did not name group {group}"))),
            Some(Err(error)) => Err(failed(error.clone())),
            Some(Ok(offsets)) if offsets.error != 0 => Err(failed(refused(offsets.error))),
            Some(Ok(offsets)) => Ok(offsets),
        }
    }

    /// What is known of a topic.
    fn described(&self, name: &str) -> Result<&TopicMetadata, ScalerError> {
        match self.metadata.get(name) {
            None => Err(scaler_error!("error describing topics: no answer for topic {name}")),
            Some(known) if known.error != 0 => {
                Err(refused(known.error).inside(format!("error describing topics: {name}")))
            }
            Some(known) => Ok(known),
        }
    }

    /// The offsets that a trigger reads.
    pub(super) fn sample(&self, group: &str, requested: &[String]) -> Result<GroupSample, ScalerError> {
        let topics = self.topics(group, requested)?;
        // A missing topic is named first: the group may have no coordinator before a consumer runs.
        for name in &topics {
            self.described(name)?;
        }
        let committed: BTreeMap<(&str, i32), (i64, i16)> = self
            .committed(group)?
            .partitions
            .iter()
            .map(|one| ((&*one.topic, one.partition), (one.offset, one.error)))
            .collect();
        let topics = topics.into_iter().map(|name| {
            let partitions = self.described(&name)?.partitions.iter().map(|partition| {
                let index = partition.index;
                let key = (Arc::clone(&name), index);
                let committed = match committed.get(&(&*name, index)) {
                    // A group without a commit in a partition of its topics.
                    None => Ok(NO_OFFSET),
                    Some((offset, 0)) => Ok(*offset),
                    Some((_, error)) => Err(refused(*error).inside(format!(
                        "error finding offset block for topic {name} and partition {index}"
                    ))),
                };
                let latest = self.latest.get(&key).cloned();
                let latest = latest.unwrap_or_else(|| Err(scaler_error!("it was not asked for")));
                let latest = latest.map_err(|error| {
                    error.inside(format!(
                        "error finding partition offset for topic {name} and partition {index}"
                    ))
                });
                let earliest = self.earliest.get(&key).and_then(|offset| offset.as_ref().ok()).copied();
                PartitionSample { index, committed, latest, earliest }
            });
            Ok::<_, ScalerError>(TopicSample { partitions: partitions.collect(), name: Arc::clone(&name) })
        });
        Ok(GroupSample { topics: topics.collect::<Result<_, ScalerError>>()? })
    }
}
