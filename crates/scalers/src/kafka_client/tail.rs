//! Waits for new records of topics with long fetches, so that they wake.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use tokio::time::{Instant, sleep, timeout};

use super::broker::BrokerConnection;
use super::messages::{
    self, ClusterMetadata, KafkaRequest, LATEST, PartitionOffset, TopicMetadata, TopicOffsets,
    TopicPartitions,
};
use super::{KafkaServer, host_and_port};
use crate::wake::{WakeSignal, WakeSource};
use crate::{ScalerError, ScalerFuture};

/// Timeout of a request, in addition to the time that a broker waits for records.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a broker waits before it answers that there is nothing new, so that a dead one is noticed.
const MAX_FETCH_WAIT: Duration = Duration::from_secs(20);
/// Pause after new records, and after a broker that did not wait: the broker gets at most one request per second.
const MIN_FETCH_INTERVAL: Duration = Duration::from_secs(1);
/// After this time, partitions and leaders are requested again.
const MAX_METADATA_AGE: Duration = Duration::from_mins(5);
/// Maximum number of brokers that lead partitions of the topics of one trigger.
const MAX_LEADERS: usize = 32;

/// The new records of topics.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct NewRecords {
    pub(super) server: KafkaServer,
    pub(super) topics: Vec<String>,
}

impl NewRecords {
    /// Signals new records at all leaders, until one of them fails or the leaders have to be read again.
    async fn signal_all(&self, signal: &WakeSignal) -> Result<(), ScalerError> {
        let ClusterMetadata { brokers, topics } = self.describe().await?;
        let by_leader = by_leader(&topics);
        if by_leader.is_empty() || by_leader.len() > MAX_LEADERS {
            bail!("{} brokers lead partitions of the topics, not 1 to {MAX_LEADERS}", by_leader.len());
        }
        let mut following = Vec::new();
        for (leader, partitions) in by_leader {
            let broker = brokers.iter().find(|broker| broker.id == leader);
            let address = broker.and_then(|broker| Some((&*broker.host, u16::try_from(broker.port).ok()?)));
            let Some((host, port)) = address else { bail!("broker {leader} is not known") };
            following.push(self.follow_leader(host, port, partitions, signal));
        }
        try_join_all(following).await?;
        Ok(())
    }

    /// Leaders of the partitions of the topics, from the first broker that answers.
    async fn describe(&self) -> Result<ClusterMetadata, ScalerError> {
        let request = KafkaRequest::Metadata { topics: self.topics.clone() };
        let mut failed = scaler_error!("there is no valid address in bootstrapServers");
        for (host, port) in self.server.bootstrap.iter().filter_map(|address| host_and_port(address)) {
            let requested = async {
                let mut connection = BrokerConnection::open(&self.server, &host, port).await?;
                connection.call(&request, messages::metadata).await
            };
            match within(REQUEST_TIMEOUT, requested).await {
                Ok(metadata) => return Ok(metadata),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    async fn follow_leader(
        &self,
        host: &str,
        port: u16,
        partitions: TopicPartitions,
        signal: &WakeSignal,
    ) -> Result<(), ScalerError> {
        let began = Instant::now();
        let is_current = || began.elapsed() < MAX_METADATA_AGE;
        let mut connection =
            within(REQUEST_TIMEOUT, BrokerConnection::open(&self.server, host, port)).await?;
        let ends = KafkaRequest::ListOffsets { time: LATEST, topics: partitions };
        while is_current() {
            let offsets = within(REQUEST_TIMEOUT, connection.call(&ends, messages::list_offsets)).await?;
            // What was added while no fetch waited is found, too.
            signal.query_now();
            let max_wait = i32::try_from(MAX_FETCH_WAIT.as_millis()).unwrap_or(i32::MAX);
            let request = KafkaRequest::Fetch { max_wait, topics: by_topic(&offsets)? };
            let mut has_records = false;
            while !has_records && is_current() {
                let requested_at = Instant::now();
                let requested = connection.call(&request, messages::has_records);
                has_records =
                    within(MAX_FETCH_WAIT + REQUEST_TIMEOUT, requested).await?.map_err(messages::refused)?;
                if has_records {
                    signal.query_now();
                }
                if has_records || requested_at.elapsed() < MIN_FETCH_INTERVAL {
                    sleep(MIN_FETCH_INTERVAL).await;
                }
            }
        }
        Ok(())
    }
}

/// The partitions that each broker leads.
fn by_leader(topics: &[TopicMetadata]) -> BTreeMap<i32, TopicPartitions> {
    let mut leaders: BTreeMap<i32, TopicPartitions> = BTreeMap::new();
    for topic in topics {
        let mut own: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for partition in topic.partitions.iter().filter(|partition| partition.error == 0) {
            own.entry(partition.leader).or_default().push(partition.index);
        }
        for (leader, partitions) in own {
            leaders.entry(leader).or_default().push((topic.name.to_string(), partitions));
        }
    }
    leaders
}

/// The offsets of each topic.
fn by_topic(offsets: &[PartitionOffset]) -> Result<TopicOffsets, ScalerError> {
    let mut topics: BTreeMap<&str, Vec<(i32, i64)>> = BTreeMap::new();
    for PartitionOffset { topic, partition, offset, error } in offsets {
        if *error != 0 {
            return Err(messages::refused(*error));
        }
        topics.entry(topic).or_default().push((*partition, *offset));
    }
    Ok(topics.into_iter().map(|(topic, partitions)| (topic.to_owned(), partitions)).collect())
}

async fn within<T>(
    time: Duration,
    requested: impl Future<Output = Result<T, ScalerError>>,
) -> Result<T, ScalerError> {
    timeout(time, requested).await.unwrap_or_else(|_| Err(scaler_error!("no answer within {time:?}")))
}

impl WakeSource for NewRecords {
    const TYPE: &'static str = "kafka";

    fn name(&self) -> String {
        format!("kafka {}", self.server.bootstrap.join(","))
    }

    fn follow<'a>(&'a self, signal: &'a WakeSignal) -> ScalerFuture<'a, ()> {
        Box::pin(self.signal_all(signal))
    }
}
