//! The requests of one round: metadata, coordinators, committed offsets, offsets of the leaders. Brokers get requests in parallel,
//! each over one connection, which is kept for the next round.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use tokio::time::timeout;

use super::broker::BrokerConnection;
use super::messages::{
    BrokerAddress, ClusterMetadata, Coordinator, EARLIEST, GroupOffsets, LATEST, NO_OFFSET,
    PartitionMetadata, PartitionOffset, TopicMetadata, TopicPartitions, describe, refusal, refused,
};
use super::sample::{OffsetMap, RoundOffsets};
use super::task::{BrokerAnswer, BrokerTask, TopicsByGroup};
use super::wire::{InvalidResponse, MAX_TOPIC_BYTES};
use super::{KafkaServer, host_and_port};
use crate::ScalerError;
use crate::responses::excerpt;

/// Timeout of a task of one broker, including the connection.
const TASK_TIMEOUT: Duration = Duration::from_secs(4);
/// Errors after which another broker coordinates the group: `COORDINATOR_NOT_AVAILABLE`, `NOT_COORDINATOR`.
const OTHER_COORDINATOR: [i16; 2] = [15, 16];
/// The error of a partition without leader: `LEADER_NOT_AVAILABLE`.
const NO_LEADER: i16 = 5;
/// The error of a name that no topic can have: `INVALID_TOPIC_EXCEPTION`.
const INVALID_TOPIC: i16 = 17;

/// Maximum number of partitions of all topics of a round: offsets of each are kept in memory.
const MAX_PARTITIONS: usize = 100_000;
/// Maximum number of brokers of a cluster.
const MAX_BROKERS: usize = 1000;
/// How many brokers get requests at a time.
const MAX_CONCURRENT_BROKERS: usize = 100;

/// The offsets that one trigger needs.
pub(super) struct GroupQuery {
    pub(super) group: String,
    /// The topics; all with a committed offset if empty.
    pub(super) topics: Vec<String>,
    /// Whether the oldest offsets are needed where none is committed.
    pub(super) earliest: bool,
}

/// Connections and what is known of the cluster; both outlive a round.
#[derive(Default)]
pub(super) struct Round {
    /// Connections by `host:port`.
    connections: HashMap<(String, u16), BrokerConnection>,
    /// Addresses of brokers by id.
    brokers: HashMap<i32, (String, u16)>,
    /// Brokers that coordinate groups, by group.
    coordinators: HashMap<String, i32>,
    /// Topics in which groups without a list of topics had committed in the last round.
    found_topics: BTreeSet<String>,
}

impl Round {
    /// Reads the offsets of these queries. An error concerns all of them; errors of single groups and partitions are in the result.
    pub(super) async fn run(
        &mut self,
        server: &KafkaServer,
        queries: &[Arc<GroupQuery>],
    ) -> Result<RoundOffsets, ScalerError> {
        let mut offsets = RoundOffsets::default();
        let groups: BTreeSet<&str> = queries.iter().map(|query| &*query.group).collect();
        self.coordinators.retain(|group, _| groups.contains(&**group));
        let named = queries.iter().flat_map(|query| query.topics.iter().cloned());
        // A broker repeats the names, and a response with a name that no topic can have is refused for all queries.
        let (mut topics, too_long): (BTreeSet<String>, BTreeSet<String>) =
            named.partition(|topic| topic.len() <= MAX_TOPIC_BYTES);
        for name in too_long.into_iter().map(Arc::<str>::from) {
            let topic =
                TopicMetadata { name: Arc::clone(&name), error: INVALID_TOPIC, partitions: Vec::new() };
            offsets.metadata.insert(name, topic);
        }
        topics.append(&mut std::mem::take(&mut self.found_topics));
        self.describe(server, topics, &mut offsets).await?;
        offsets.work_elsewhere(queries.len()).await;
        self.read_committed(server, wanted(queries, &offsets), &mut offsets).await;
        offsets.work_elsewhere(queries.len()).await;
        let found: BTreeSet<String> = queries
            .iter()
            .filter(|query| query.topics.is_empty())
            .flat_map(|query| offsets.topics(&query.group, &[]).unwrap_or_default())
            .map(|topic| topic.to_string())
            .collect();
        let more = found.iter().filter(|topic| !offsets.metadata.contains_key(topic.as_str())).cloned();
        let more: BTreeSet<String> = more.collect();
        if !more.is_empty() {
            self.describe(server, more, &mut offsets).await?;
        }
        self.found_topics = found;
        let all = partitions(offsets.metadata.keys(), &offsets, |_, _| true);
        offsets.latest = self.read_offsets(server, LATEST, all, &offsets).await;
        let without_commit = without_commit(queries, &offsets);
        if !without_commit.is_empty() {
            offsets.earliest = self.read_offsets(server, EARLIEST, without_commit, &offsets).await;
        }
        Ok(offsets)
    }

    /// Brokers, and leaders of topics, from any broker.
    async fn describe(
        &mut self,
        server: &KafkaServer,
        topics: BTreeSet<String>,
        offsets: &mut RoundOffsets,
    ) -> Result<(), ScalerError> {
        let task = BrokerTask::Metadata(topics.into_iter().collect());
        let BrokerAnswer::Metadata(ClusterMetadata { brokers, topics }) =
            self.query_any_broker(server, task).await?
        else {
            return Err(InvalidResponse.into());
        };
        if brokers.len() > MAX_BROKERS {
            bail!("the cluster has {} brokers, more than {MAX_BROKERS}", brokers.len());
        }
        self.brokers = brokers.iter().filter_map(|broker| Some((broker.id, address(broker)?))).collect();
        // Connections to brokers that left are closed; those of load balancers in front of them are kept.
        let bootstrap = server.bootstrap.iter().filter_map(|address| host_and_port(address));
        let known: BTreeSet<(String, u16)> = self.brokers.values().cloned().chain(bootstrap).collect();
        self.connections.retain(|address, _| known.contains(address));
        offsets.metadata.extend(topics.into_iter().map(|topic| (Arc::clone(&topic.name), topic)));
        let partitions = offsets.count_partitions();
        if partitions > MAX_PARTITIONS {
            bail!("the topics have {partitions} partitions, more than {MAX_PARTITIONS}");
        }
        Ok(())
    }

    /// Committed offsets from the coordinators. A group whose coordinator has changed is requested once more.
    async fn read_committed(
        &mut self,
        server: &KafkaServer,
        mut wanted: TopicsByGroup,
        offsets: &mut RoundOffsets,
    ) {
        for _ in 0..2 {
            let unknown: Vec<String> =
                wanted.keys().filter(|group| !self.coordinators.contains_key(*group)).cloned().collect();
            if !unknown.is_empty() {
                self.find_coordinators(server, unknown, &mut offsets.groups).await;
            }
            let mut tasks: BTreeMap<i32, TopicsByGroup> = BTreeMap::new();
            for (group, topics) in std::mem::take(&mut wanted) {
                if let Some(broker) = self.coordinators.get(&group) {
                    tasks.entry(*broker).or_default().insert(group, topics);
                }
            }
            let requested = tasks.clone();
            let tasks = tasks.into_iter().map(|(broker, groups)| (broker, BrokerTask::Committed(groups)));
            for (broker, answer) in self.query_brokers(server, tasks.collect()).await {
                let groups = requested.get(&broker).cloned().unwrap_or_default();
                match answer {
                    Ok(BrokerAnswer::Committed(found)) => {
                        let retry = self.committed(found, groups, offsets);
                        wanted.extend(retry);
                    }
                    Ok(_) => {}
                    Err(error) => {
                        for group in groups.into_keys() {
                            self.coordinators.remove(&group);
                            offsets.groups.insert(group, Err(error.clone()));
                        }
                    }
                }
            }
            if wanted.is_empty() {
                return;
            }
        }
    }

    /// Keeps the offsets of groups; returns the groups that have another coordinator.
    fn committed(
        &mut self,
        found: Vec<GroupOffsets>,
        mut requested: TopicsByGroup,
        offsets: &mut RoundOffsets,
    ) -> TopicsByGroup {
        let mut again = TopicsByGroup::new();
        for group in found {
            if OTHER_COORDINATOR.contains(&group.error) {
                self.coordinators.remove(&group.group);
                if let Some(topics) = requested.remove(&group.group) {
                    again.insert(group.group.clone(), topics);
                }
            }
            offsets.groups.insert(group.group.clone(), Ok(group));
        }
        again
    }

    async fn find_coordinators(
        &mut self,
        server: &KafkaServer,
        groups: Vec<String>,
        found: &mut BTreeMap<String, Result<GroupOffsets, ScalerError>>,
    ) {
        let answer = self.query_any_broker(server, BrokerTask::Coordinators(groups.clone())).await;
        let coordinators = match answer {
            Ok(BrokerAnswer::Coordinators(coordinators)) => coordinators,
            other => {
                let error = other.err().unwrap_or_else(|| InvalidResponse.into());
                found.extend(groups.into_iter().map(|group| (group, Err(error.clone()))));
                return;
            }
        };
        for Coordinator { group, error, message, broker } in coordinators {
            match (error, address(&broker)) {
                (0, Some(address)) => {
                    self.coordinators.insert(group, broker.id);
                    self.brokers.insert(broker.id, address);
                }
                (0, None) => {
                    found.insert(group, Err(InvalidResponse.into()));
                }
                (error, _) => {
                    let text = if message.is_empty() { describe(error) } else { excerpt(&message) };
                    let unknown = scaler_error!("the coordinator is not known: {text}");
                    found.insert(group, Err(unknown.with_refusal(refusal(error))));
                }
            }
        }
    }

    /// Offsets of partitions from their leaders.
    async fn read_offsets(
        &mut self,
        server: &KafkaServer,
        time: i64,
        partitions: Vec<(Arc<str>, i32)>,
        offsets: &RoundOffsets,
    ) -> OffsetMap {
        let mut found = OffsetMap::new();
        let mut by_leader: BTreeMap<i32, BTreeMap<Arc<str>, Vec<i32>>> = BTreeMap::new();
        let leaders = leaders(offsets);
        for (topic, index) in partitions {
            match leaders.get(&(&*topic, index)).copied().unwrap_or(Err(NO_LEADER)) {
                Ok(leader) => {
                    by_leader.entry(leader).or_default().entry(topic).or_default().push(index);
                }
                Err(error) => {
                    found.insert((topic, index), Err(refused(error)));
                }
            }
        }
        let named = |(topic, partitions): (Arc<str>, Vec<i32>)| (topic.to_string(), partitions);
        let tasks: Vec<(i32, TopicPartitions)> = by_leader
            .into_iter()
            .map(|(leader, topics)| (leader, topics.into_iter().map(named).collect()))
            .collect();
        let requested: HashMap<i32, TopicPartitions> = tasks.iter().cloned().collect();
        let tasks = tasks.into_iter().map(|(leader, topics)| (leader, BrokerTask::Offsets(time, topics)));
        let answers = self.query_brokers(server, tasks.collect()).await;
        // A connection returns to the task when it has decoded a response.
        offsets.work_elsewhere(1).await;
        for (broker, answer) in answers {
            match answer {
                Ok(BrokerAnswer::Offsets(partitions)) => {
                    for PartitionOffset { topic, partition, offset, error } in partitions {
                        let offset = if error == 0 { Ok(offset) } else { Err(refused(error)) };
                        found.insert((topic, partition), offset);
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    for (topic, partitions) in requested.get(&broker).into_iter().flatten() {
                        let topic: Arc<str> = Arc::from(&**topic);
                        for partition in partitions {
                            found.insert((Arc::clone(&topic), *partition), Err(error.clone()));
                        }
                    }
                }
            }
        }
        found
    }

    /// Asks the first broker that answers: those with a connection first, then the others, then the bootstrap servers.
    async fn query_any_broker(
        &mut self,
        server: &KafkaServer,
        task: BrokerTask,
    ) -> Result<BrokerAnswer, ScalerError> {
        let connected: Vec<_> = self.connections.keys().cloned().collect();
        let bootstrap = server.bootstrap.iter().filter_map(|address| host_and_port(address));
        let candidates: Vec<_> =
            connected.into_iter().chain(bootstrap).chain(self.brokers.values().cloned()).collect();
        let mut tried = BTreeSet::new();
        let mut failed = scaler_error!("there is no valid address in bootstrapServers");
        for address in candidates {
            if !tried.insert(address.clone()) {
                continue;
            }
            let connection = self.connections.remove(&address);
            match run_task(server, &address, connection, &task).await {
                Ok((connection, answer)) => {
                    self.connections.insert(address, connection);
                    return Ok(answer);
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Asks brokers in parallel.
    async fn query_brokers(
        &mut self,
        server: &KafkaServer,
        tasks: Vec<(i32, BrokerTask)>,
    ) -> Vec<(i32, Result<BrokerAnswer, ScalerError>)> {
        let mut tasks_under_way = Vec::new();
        for (broker, task) in tasks {
            let address = self.brokers.get(&broker).cloned();
            let connection = address.as_ref().and_then(|address| self.connections.remove(address));
            tasks_under_way.push(async move {
                let Some(address) = address else {
                    return (broker, None, Err(scaler_error!("broker {broker} is not known")));
                };
                match run_task(server, &address, connection, &task).await {
                    Ok((connection, answer)) => (broker, Some((address, connection)), Ok(answer)),
                    Err(error) => (broker, None, Err(error)),
                }
            });
        }
        let answered: Vec<_> =
            stream::iter(tasks_under_way).buffer_unordered(MAX_CONCURRENT_BROKERS).collect().await;
        let mut answers = Vec::new();
        for (broker, connection, answer) in answered {
            self.connections.extend(connection);
            answers.push((broker, answer));
        }
        answers
    }
}

/// Performs a task over this connection, or over a new one if it was lost since the last round.
async fn run_task(
    server: &KafkaServer,
    address: &(String, u16),
    connection: Option<BrokerConnection>,
    task: &BrokerTask,
) -> Result<(BrokerConnection, BrokerAnswer), ScalerError> {
    let (host, port) = address;
    let attempt = async {
        if let Some(mut connection) = connection
            && let Ok(answer) = connection.perform(task).await
        {
            return Ok((connection, answer));
        }
        let mut connection = BrokerConnection::open(server, host, *port).await?;
        let answer = connection.perform(task).await?;
        Ok((connection, answer))
    };
    let answer = match timeout(TASK_TIMEOUT, attempt).await {
        Ok(answer) => answer,
        Err(_) => Err(scaler_error!("no answer within {TASK_TIMEOUT:?}")),
    };
    answer.map_err(|error: ScalerError| error.inside(format!("{host}:{port}")))
}

fn address(broker: &BrokerAddress) -> Option<(String, u16)> {
    Some((broker.host.clone(), u16::try_from(broker.port).ok()?)).filter(|(host, _)| !host.is_empty())
}

/// The leaders of all partitions, or their errors. The first entry of a partition counts. Topics may have so many partitions that
/// they are not searched for each of them.
fn leaders(offsets: &RoundOffsets) -> HashMap<(&str, i32), Result<i32, i16>> {
    let mut leaders = HashMap::new();
    for topic in offsets.metadata.values() {
        for partition in &topic.partitions {
            leaders.entry((&*topic.name, partition.index)).or_insert_with(|| leader(*partition));
        }
    }
    leaders
}

fn leader(partition: PartitionMetadata) -> Result<i32, i16> {
    match partition {
        PartitionMetadata { leader: leader @ 0.., .. } => Ok(leader),
        PartitionMetadata { error: 0, .. } => Err(NO_LEADER),
        PartitionMetadata { error, .. } => Err(error),
    }
}

/// The partitions of these topics that pass a filter.
fn partitions<'a>(
    topics: impl IntoIterator<Item = &'a Arc<str>>,
    offsets: &RoundOffsets,
    passes: impl Fn(&str, i32) -> bool,
) -> Vec<(Arc<str>, i32)> {
    let topics = topics.into_iter().filter_map(|topic| offsets.metadata.get(topic));
    let all = topics.flat_map(|topic| topic.partitions.iter().map(move |one| (&topic.name, one.index)));
    let all = all.filter(|(topic, index)| passes(topic, *index));
    all.map(|(topic, index)| (Arc::clone(topic), index)).collect()
}

/// Which committed offsets are requested, by group; one request serves all triggers of a group.
fn wanted(queries: &[Arc<GroupQuery>], offsets: &RoundOffsets) -> TopicsByGroup {
    let mut wanted = TopicsByGroup::new();
    let mut listed: HashSet<(&str, &str)> = HashSet::new();
    for query in queries {
        if query.topics.is_empty() {
            wanted.insert(query.group.clone(), None);
            continue;
        }
        let entry = wanted.entry(query.group.clone()).or_insert_with(|| Some(Vec::new()));
        let Some(topics) = entry else { continue };
        for topic in &query.topics {
            let known = offsets.metadata.get(&**topic).map(|topic| &*topic.partitions).unwrap_or_default();
            if !known.is_empty() && listed.insert((&*query.group, &**topic)) {
                topics.push((topic.clone(), known.iter().map(|partition| partition.index).collect()));
            }
        }
    }
    wanted
}

/// Partitions without committed offset, for triggers that count what the log retains.
fn without_commit(queries: &[Arc<GroupQuery>], offsets: &RoundOffsets) -> Vec<(Arc<str>, i32)> {
    let mut found = BTreeSet::new();
    for query in queries.iter().filter(|query| query.earliest) {
        let Ok(committed) = offsets.committed(&query.group) else { continue };
        let committed: BTreeSet<(&str, i32)> = committed
            .partitions
            .iter()
            .filter(|one| one.offset != NO_OFFSET)
            .map(|one| (&*one.topic, one.partition))
            .collect();
        let topics = offsets.topics(&query.group, &query.topics).unwrap_or_default();
        found.extend(partitions(&topics, offsets, |topic, index| !committed.contains(&(topic, index))));
    }
    found.into_iter().collect()
}
