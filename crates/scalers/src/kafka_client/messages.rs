//! The requests that read the lag of consumer groups, and their responses, without IO.
//!
//! Each request has one version that all brokers since Kafka 0.11 accept. Group requests also have one for many groups at once,
//! which brokers since 3.0 accept.

use std::sync::Arc;

use super::wire::{InvalidResponse, RequestWriter, ResponseReader};
use crate::{ScalerError, SourceRefusal};

/// Name of this client in the logs and quotas of brokers.
const CLIENT_ID: &str = "plimsoll";
/// Requests for the offset of the next record.
pub(super) const LATEST: i64 = -1;
/// Requests for the offset of the oldest retained record.
pub(super) const EARLIEST: i64 = -2;
/// Timestamp that stands for no committed offset.
pub(super) const NO_OFFSET: i64 = -1;

/// Partitions by topic.
pub(super) type TopicPartitions = Vec<(String, Vec<i32>)>;
/// Partitions with an offset, by topic.
pub(super) type TopicOffsets = Vec<(String, Vec<(i32, i64)>)>;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KafkaRequest {
    /// Which versions of requests the broker accepts.
    ApiVersions,
    /// Leaders of the partitions of these topics, and all brokers.
    Metadata { topics: Vec<String> },
    /// The coordinator of a group.
    FindCoordinator { group: String },
    /// The coordinators of groups.
    FindCoordinators { groups: Vec<String> },
    /// Committed offsets of a group; of all topics without a list.
    OffsetFetch { group: String, topics: Option<TopicPartitions> },
    /// Committed offsets of groups.
    OffsetFetches { groups: Vec<(String, Option<TopicPartitions>)> },
    /// First or next offset of partitions.
    ListOffsets { time: i64, topics: TopicPartitions },
    /// Waits for records after these offsets, for this many milliseconds at most.
    Fetch { max_wait: i32, topics: TopicOffsets },
    /// Chooses a SASL mechanism.
    SaslHandshake { mechanism: &'static str },
    /// A SASL message.
    SaslAuthenticate { message: Vec<u8> },
}

/// Keys of requests.
pub(super) mod key {
    pub(in super::super) const FETCH: i16 = 1;
    pub(in super::super) const LIST_OFFSETS: i16 = 2;
    pub(in super::super) const METADATA: i16 = 3;
    pub(in super::super) const OFFSET_FETCH: i16 = 9;
    pub(in super::super) const FIND_COORDINATOR: i16 = 10;
    pub(in super::super) const SASL_HANDSHAKE: i16 = 17;
    pub(in super::super) const API_VERSIONS: i16 = 18;
    pub(in super::super) const SASL_AUTHENTICATE: i16 = 36;
}

/// Version of requests for the coordinators of many groups.
pub(super) const FIND_COORDINATORS_VERSION: i16 = 4;
/// Version of requests for the offsets of many groups.
pub(super) const OFFSET_FETCHES_VERSION: i16 = 8;

impl KafkaRequest {
    /// Key, version, and whether the version has compact encoding.
    pub(super) fn version(&self) -> (i16, i16, bool) {
        match self {
            Self::ApiVersions => (key::API_VERSIONS, 0, false),
            Self::Metadata { .. } => (key::METADATA, 4, false),
            Self::FindCoordinator { .. } => (key::FIND_COORDINATOR, 1, false),
            Self::FindCoordinators { .. } => (key::FIND_COORDINATOR, FIND_COORDINATORS_VERSION, true),
            Self::OffsetFetch { .. } => (key::OFFSET_FETCH, 3, false),
            Self::OffsetFetches { .. } => (key::OFFSET_FETCH, OFFSET_FETCHES_VERSION, true),
            Self::ListOffsets { .. } => (key::LIST_OFFSETS, 2, false),
            Self::Fetch { .. } => (key::FETCH, 4, false),
            Self::SaslHandshake { .. } => (key::SASL_HANDSHAKE, 1, false),
            Self::SaslAuthenticate { .. } => (key::SASL_AUTHENTICATE, 0, false),
        }
    }

    /// The frame with this correlation id.
    pub(super) fn frame(&self, correlation: i32) -> Vec<u8> {
        let (key, version, flexible) = self.version();
        let mut out = RequestWriter::new(flexible);
        out.int16(key);
        out.int16(version);
        out.int32(correlation);
        out.header_string(CLIENT_ID);
        out.no_tags();
        match self {
            Self::ApiVersions => {}
            Self::Metadata { topics } => {
                out.array(topics.len());
                for topic in topics {
                    out.string(topic);
                }
                // A request for the lag must not create the topic.
                out.int8(0);
            }
            Self::FindCoordinator { group } => {
                out.string(group);
                out.int8(0);
            }
            Self::FindCoordinators { groups } => {
                out.int8(0);
                out.array(groups.len());
                for group in groups {
                    out.string(group);
                }
            }
            Self::OffsetFetch { group, topics } => {
                out.string(group);
                committed(&mut out, topics.as_ref());
            }
            Self::OffsetFetches { groups } => {
                out.array(groups.len());
                for (group, topics) in groups {
                    out.string(group);
                    committed(&mut out, topics.as_ref());
                    out.no_tags();
                }
                // Offsets of open transactions are served as they were before.
                out.int8(0);
            }
            Self::ListOffsets { time, topics } => {
                // Sent by a client, including records of open transactions.
                out.int32(-1);
                out.int8(0);
                out.array(topics.len());
                for (topic, partitions) in topics {
                    out.string(topic);
                    out.array(partitions.len());
                    for partition in partitions {
                        out.int32(*partition);
                        out.int64(*time);
                    }
                }
            }
            Self::Fetch { max_wait, topics } => {
                // Sent by a client. One byte is enough, because the content of records does not matter.
                out.int32(-1);
                out.int32(*max_wait);
                out.int32(1);
                out.int32(1);
                out.int8(0);
                out.array(topics.len());
                for (topic, partitions) in topics {
                    out.string(topic);
                    out.array(partitions.len());
                    for (partition, offset) in partitions {
                        out.int32(*partition);
                        out.int64(*offset);
                        out.int32(1);
                    }
                }
            }
            Self::SaslHandshake { mechanism } => out.string(mechanism),
            Self::SaslAuthenticate { message } => out.bytes(message),
        }
        out.no_tags();
        out.frame()
    }

    /// The fields of a response to this request, after its header.
    pub(super) fn reader<'a>(&self, body: &'a [u8]) -> Result<ResponseReader<'a>, InvalidResponse> {
        let mut reader = ResponseReader::new(body, self.version().2);
        reader.tags()?;
        Ok(reader)
    }
}

fn committed(out: &mut RequestWriter, topics: Option<&TopicPartitions>) {
    let Some(topics) = topics else { return out.null_array() };
    out.array(topics.len());
    for (topic, partitions) in topics {
        out.string(topic);
        out.array(partitions.len());
        for partition in partitions {
            out.int32(*partition);
        }
        out.no_tags();
    }
}

/// Brokers and topics of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClusterMetadata {
    pub(super) brokers: Vec<BrokerAddress>,
    pub(super) topics: Vec<TopicMetadata>,
}

/// A broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BrokerAddress {
    pub(super) id: i32,
    pub(super) host: String,
    pub(super) port: i32,
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopicMetadata {
    pub(super) name: Arc<str>,
    pub(super) error: i16,
    pub(super) partitions: Vec<PartitionMetadata>,
}

/// A partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartitionMetadata {
    pub(super) index: i32,
    pub(super) leader: i32,
    pub(super) error: i16,
}

/// The committed offsets of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupOffsets {
    pub(super) group: String,
    pub(super) error: i16,
    pub(super) partitions: Vec<PartitionOffset>,
}

/// An offset of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartitionOffset {
    pub(super) topic: Arc<str>,
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) error: i16,
}

/// The coordinator of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Coordinator {
    pub(super) group: String,
    pub(super) error: i16,
    pub(super) message: String,
    pub(super) broker: BrokerAddress,
}

/// Greatest version of each request that the broker accepts, by key.
pub(super) fn api_versions(mut body: ResponseReader<'_>) -> Result<(i16, Vec<(i16, i16)>), InvalidResponse> {
    let error = body.int16()?;
    let versions = body.array(|one| {
        let (key, _least, greatest) = (one.int16()?, one.int16()?, one.int16()?);
        Ok((key, greatest))
    })?;
    Ok((error, versions))
}

/// Decodes a response to [`KafkaRequest::Metadata`].
pub(super) fn metadata(mut body: ResponseReader<'_>) -> Result<ClusterMetadata, InvalidResponse> {
    let _throttle = body.int32()?;
    let brokers = body.array(|one| {
        let broker = BrokerAddress { id: one.int32()?, host: one.string()?, port: one.int32()? };
        let _rack = one.string()?;
        Ok(broker)
    })?;
    let _cluster = body.string()?;
    let _controller = body.int32()?;
    let topics = body.array(|one| {
        let (error, name, _internal) = (one.int16()?, one.topic()?, one.int8()?);
        let partitions = one.array(|one| {
            let (error, index, leader) = (one.int16()?, one.int32()?, one.int32()?);
            let (_replicas, _in_sync) =
                (one.array(ResponseReader::int32)?, one.array(ResponseReader::int32)?);
            Ok(PartitionMetadata { index, leader, error })
        })?;
        Ok(TopicMetadata { name, error, partitions })
    })?;
    Ok(ClusterMetadata { brokers, topics })
}

/// Decodes a response to [`KafkaRequest::FindCoordinator`] for a group.
pub(super) fn coordinator(mut body: ResponseReader<'_>, group: &str) -> Result<Coordinator, InvalidResponse> {
    let _throttle = body.int32()?;
    let (error, message) = (body.int16()?, body.string()?);
    let broker = BrokerAddress { id: body.int32()?, host: body.string()?, port: body.int32()? };
    Ok(Coordinator { group: group.to_owned(), error, message, broker })
}

/// Decodes a response to [`KafkaRequest::FindCoordinators`].
pub(super) fn coordinators(mut body: ResponseReader<'_>) -> Result<Vec<Coordinator>, InvalidResponse> {
    let _throttle = body.int32()?;
    body.array(|one| {
        let group = one.string()?;
        let broker = BrokerAddress { id: one.int32()?, host: one.string()?, port: one.int32()? };
        let (error, message) = (one.int16()?, one.string()?);
        one.tags()?;
        Ok(Coordinator { group, error, message, broker })
    })
}

/// Decodes a response to [`KafkaRequest::OffsetFetch`] for a group.
pub(super) fn group_offsets(
    mut body: ResponseReader<'_>,
    group: &str,
) -> Result<GroupOffsets, InvalidResponse> {
    let _throttle = body.int32()?;
    let topics = body.array(|one| {
        let topic = one.topic()?;
        one.array(|one| {
            let (partition, offset, _metadata) = (one.int32()?, one.int64()?, one.string()?);
            Ok(PartitionOffset { topic: topic.clone(), partition, offset, error: one.int16()? })
        })
    })?;
    let error = body.int16()?;
    Ok(GroupOffsets { group: group.to_owned(), error, partitions: topics.into_iter().flatten().collect() })
}

/// Decodes a response to [`KafkaRequest::OffsetFetches`].
pub(super) fn groups_offsets(mut body: ResponseReader<'_>) -> Result<Vec<GroupOffsets>, InvalidResponse> {
    let _throttle = body.int32()?;
    body.array(|one| {
        let group = one.string()?;
        let topics = one.array(|one| {
            let topic = one.topic()?;
            let partitions = one.array(|one| {
                let (partition, offset, _epoch) = (one.int32()?, one.int64()?, one.int32()?);
                let (_metadata, error) = (one.string()?, one.int16()?);
                one.tags()?;
                Ok(PartitionOffset { topic: topic.clone(), partition, offset, error })
            })?;
            one.tags()?;
            Ok(partitions)
        })?;
        let error = one.int16()?;
        one.tags()?;
        Ok(GroupOffsets { group, error, partitions: topics.into_iter().flatten().collect() })
    })
}

/// Decodes a response to [`KafkaRequest::ListOffsets`].
pub(super) fn list_offsets(mut body: ResponseReader<'_>) -> Result<Vec<PartitionOffset>, InvalidResponse> {
    let _throttle = body.int32()?;
    let topics = body.array(|one| {
        let topic = one.topic()?;
        one.array(|one| {
            let (partition, error) = (one.int32()?, one.int16()?);
            let (_timestamp, offset) = (one.int64()?, one.int64()?);
            Ok(PartitionOffset { topic: topic.clone(), partition, offset, error })
        })
    })?;
    Ok(topics.into_iter().flatten().collect())
}

/// Whether a response to [`KafkaRequest::Fetch`] has records, or the first error in it.
pub(super) fn has_records(mut body: ResponseReader<'_>) -> Result<Result<bool, i16>, InvalidResponse> {
    let _throttle = body.int32()?;
    let topics = body.array(|one| {
        let _topic = one.topic()?;
        one.array(|one| {
            let (_partition, error) = (one.int32()?, one.int16()?);
            let (_next, _next_stable) = (one.int64()?, one.int64()?);
            let _aborted = one.array(|one| Ok((one.int64()?, one.int64()?)))?;
            Ok((error, !one.bytes()?.is_empty()))
        })
    })?;
    let partitions = || topics.iter().flatten();
    match partitions().find(|(error, _)| *error != 0) {
        Some((error, _)) => Ok(Err(*error)),
        None => Ok(Ok(partitions().any(|(_, has_records)| *has_records))),
    }
}

/// Error and offered mechanisms of a response to [`KafkaRequest::SaslHandshake`].
pub(super) fn handshake(mut body: ResponseReader<'_>) -> Result<(i16, Vec<String>), InvalidResponse> {
    Ok((body.int16()?, body.array(ResponseReader::string)?))
}

/// Error, its text and the message of a response to [`KafkaRequest::SaslAuthenticate`].
pub(super) fn authenticated(mut body: ResponseReader<'_>) -> Result<(i16, String, Vec<u8>), InvalidResponse> {
    Ok((body.int16()?, body.string()?, body.bytes()?.to_vec()))
}

/// The error of an error code.
pub(super) fn refused(code: i16) -> ScalerError {
    ScalerError::new(describe(code)).with_refusal(refusal(code))
}

/// Whether an error code concerns the credentials or a name.
pub(super) fn refusal(code: i16) -> Option<SourceRefusal> {
    match code {
        29..=31 | 58 => Some(SourceRefusal::Credentials),
        3 | 69 => Some(SourceRefusal::UnknownName),
        _ => None,
    }
}

/// The name of an error code and what it means.
pub(super) fn describe(code: i16) -> String {
    let known = match code {
        1 => "OFFSET_OUT_OF_RANGE",
        3 => "UNKNOWN_TOPIC_OR_PARTITION: this server does not host this topic-partition",
        5 => "LEADER_NOT_AVAILABLE: there is no leader for this topic-partition",
        6 => "NOT_LEADER_OR_FOLLOWER: the broker does not lead this partition",
        7 => "REQUEST_TIMED_OUT",
        9 => "REPLICA_NOT_AVAILABLE",
        14 => "COORDINATOR_LOAD_IN_PROGRESS: the coordinator is loading",
        15 => "COORDINATOR_NOT_AVAILABLE: there is no coordinator of the group",
        16 => "NOT_COORDINATOR: the broker does not coordinate the group",
        17 => "INVALID_TOPIC_EXCEPTION: the name of the topic is not valid",
        24 => "INVALID_GROUP_ID: the name of the group is not valid",
        29 => "TOPIC_AUTHORIZATION_FAILED: not allowed to describe the topic",
        30 => "GROUP_AUTHORIZATION_FAILED: not allowed to describe the group",
        31 => "CLUSTER_AUTHORIZATION_FAILED",
        33 => "UNSUPPORTED_SASL_MECHANISM",
        34 => "ILLEGAL_SASL_STATE",
        35 => "UNSUPPORTED_VERSION",
        56 => "KAFKA_STORAGE_ERROR",
        58 => "SASL_AUTHENTICATION_FAILED",
        69 => "GROUP_ID_NOT_FOUND",
        78 => "OFFSET_NOT_AVAILABLE",
        _ => return format!("error code {code}"),
    };
    known.to_owned()
}
