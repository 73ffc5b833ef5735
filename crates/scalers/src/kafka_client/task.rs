//! The requests to one broker in a round.

use std::collections::BTreeMap;

use super::broker::BrokerConnection;
use super::messages::{
    self, ClusterMetadata, Coordinator, FIND_COORDINATORS_VERSION, GroupOffsets, KafkaRequest,
    OFFSET_FETCHES_VERSION, PartitionOffset, TopicPartitions, key,
};
use crate::ScalerError;

/// Groups per request, so that responses stay far below their maximum size.
const GROUPS_PER_REQUEST: usize = 200;
/// Topics per request, for the same reason.
const TOPICS_PER_REQUEST: usize = 10_000;

/// Topics by group; all topics of the group if there are none.
pub(super) type TopicsByGroup = BTreeMap<String, Option<TopicPartitions>>;

/// A task for one broker.
#[derive(Clone, Debug)]
pub(super) enum BrokerTask {
    /// Brokers, and leaders of the partitions of these topics.
    Metadata(Vec<String>),
    /// Coordinators of groups.
    Coordinators(Vec<String>),
    /// Committed offsets of groups, from their coordinator.
    Committed(TopicsByGroup),
    /// First or next offsets of partitions, from their leader.
    Offsets(i64, TopicPartitions),
}

/// The answer to a task.
#[derive(Clone, Debug)]
pub(super) enum BrokerAnswer {
    Metadata(ClusterMetadata),
    Coordinators(Vec<Coordinator>),
    Committed(Vec<GroupOffsets>),
    Offsets(Vec<PartitionOffset>),
}

impl BrokerConnection {
    /// Performs a task. Requests to old brokers are for one group each.
    pub(super) async fn perform(&mut self, task: &BrokerTask) -> Result<BrokerAnswer, ScalerError> {
        Ok(match task {
            BrokerTask::Metadata(topics) => BrokerAnswer::Metadata(self.metadata(topics).await?),
            BrokerTask::Coordinators(groups) => BrokerAnswer::Coordinators(self.coordinators(groups).await?),
            BrokerTask::Committed(groups) => BrokerAnswer::Committed(self.committed(groups).await?),
            BrokerTask::Offsets(time, topics) => {
                let request = KafkaRequest::ListOffsets { time: *time, topics: topics.clone() };
                BrokerAnswer::Offsets(self.call(&request, messages::list_offsets).await?)
            }
        })
    }

    /// Brokers are requested without any topic, too.
    async fn metadata(&mut self, topics: &[String]) -> Result<ClusterMetadata, ScalerError> {
        let (first, rest) = topics.split_at(topics.len().min(TOPICS_PER_REQUEST));
        let request = KafkaRequest::Metadata { topics: first.to_vec() };
        let mut all = self.call(&request, messages::metadata).await?;
        for topics in rest.chunks(TOPICS_PER_REQUEST) {
            let request = KafkaRequest::Metadata { topics: topics.to_vec() };
            all.topics.extend(self.call(&request, messages::metadata).await?.topics);
        }
        Ok(all)
    }

    async fn coordinators(&mut self, groups: &[String]) -> Result<Vec<Coordinator>, ScalerError> {
        let mut all = Vec::new();
        if self.accepts(key::FIND_COORDINATOR, FIND_COORDINATORS_VERSION) {
            for groups in groups.chunks(GROUPS_PER_REQUEST) {
                let request = KafkaRequest::FindCoordinators { groups: groups.to_vec() };
                all.extend(self.call(&request, messages::coordinators).await?);
            }
            return Ok(all);
        }
        for group in groups {
            let request = KafkaRequest::FindCoordinator { group: group.clone() };
            all.push(self.call(&request, |body| messages::coordinator(body, group)).await?);
        }
        Ok(all)
    }

    async fn committed(&mut self, groups: &TopicsByGroup) -> Result<Vec<GroupOffsets>, ScalerError> {
        let mut all = Vec::new();
        let groups: Vec<_> = groups.iter().map(|(group, topics)| (group.clone(), topics.clone())).collect();
        if self.accepts(key::OFFSET_FETCH, OFFSET_FETCHES_VERSION) {
            for groups in groups.chunks(GROUPS_PER_REQUEST) {
                let request = KafkaRequest::OffsetFetches { groups: groups.to_vec() };
                all.extend(self.call(&request, messages::groups_offsets).await?);
            }
            return Ok(all);
        }
        for (group, topics) in groups {
            let request = KafkaRequest::OffsetFetch { group: group.clone(), topics };
            all.push(self.call(&request, |body| messages::group_offsets(body, &group)).await?);
        }
        Ok(all)
    }
}
