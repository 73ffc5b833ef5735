//! A cluster: one connection per broker, and rounds that read the offsets of all its consumer groups together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use locks::MutexExt as _;
use sources::http::HttpErrorCause;
use tokio::time::{Instant, timeout};

use super::KafkaServer;
use super::round::{GroupQuery, Round};
use super::sample::GroupSample;
use super::tail::NewRecords;
use crate::ScalerError;
use crate::off_thread::send_from_task;
use crate::web::{allowed_age, response_used};

/// Timeout of a round, including connections.
const ROUND_TIMEOUT: Duration = Duration::from_secs(10);
/// A group that no trigger has read for this time is left out of rounds.
const INTEREST_AGE: Duration = Duration::from_mins(2);

/// All clusters.
#[derive(Default)]
pub(crate) struct KafkaClusters(Mutex<HashMap<KafkaServer, Weak<KafkaCluster>>>);

/// One cluster, with the credentials of its triggers.
pub(super) struct KafkaCluster {
    server: KafkaServer,
    interests: Mutex<Vec<Weak<GroupInterest>>>,
    /// Rounds do not overlap: a caller that comes during a round waits for it and finds its own sample renewed.
    round: tokio::sync::Mutex<Round>,
}

/// The offsets that one trigger reads from a cluster.
pub(crate) struct GroupInterest {
    query: Arc<GroupQuery>,
    cluster: Arc<KafkaCluster>,
    state: Mutex<InterestState>,
}

#[derive(Default)]
struct InterestState {
    requested: Option<Instant>,
    sample: Option<Sampled>,
}

/// A sample or failure, and the time of its round.
#[derive(Clone)]
struct Sampled {
    begun: Instant,
    taken: Instant,
    sample: Result<Arc<GroupSample>, ScalerError>,
}

impl KafkaClusters {
    /// Registers the offsets that a trigger reads. A cluster is forgotten with its last trigger.
    pub(crate) fn interest(
        &self,
        server: &KafkaServer,
        group: &str,
        topics: &[String],
        earliest: bool,
    ) -> Arc<GroupInterest> {
        let mut clusters = self.0.locked();
        let cluster = clusters.get(server).and_then(Weak::upgrade).unwrap_or_else(|| {
            clusters.retain(|_, cluster| cluster.strong_count() > 0);
            let cluster = Arc::new(KafkaCluster::new(server.clone()));
            clusters.insert(server.clone(), Arc::downgrade(&cluster));
            cluster
        });
        let interest = Arc::new(GroupInterest {
            query: Arc::new(GroupQuery { group: group.to_owned(), topics: topics.to_vec(), earliest }),
            cluster: Arc::clone(&cluster),
            state: Mutex::default(),
        });
        let mut interests = cluster.interests.locked();
        interests.retain(|interest| interest.strong_count() > 0);
        interests.push(Arc::downgrade(&interest));
        drop(interests);
        interest
    }
}

impl KafkaCluster {
    fn new(server: KafkaServer) -> Self {
        Self { server, interests: Mutex::default(), round: tokio::sync::Mutex::default() }
    }

    /// This interest, and all others that were read lately and whose sample is older than this.
    fn due(&self, caller: &Arc<GroupInterest>, fresh: Duration) -> Vec<Arc<GroupInterest>> {
        let now = Instant::now();
        let all: Vec<_> = self.interests.locked().iter().filter_map(Weak::upgrade).collect();
        let due = all.into_iter().filter(|interest| {
            let state = interest.state.locked();
            let wanted =
                state.requested.is_some_and(|requested| now.duration_since(requested) < INTEREST_AGE);
            let old = state.sample.as_ref().is_none_or(|sample| now.duration_since(sample.taken) >= fresh);
            Arc::ptr_eq(interest, caller) || wanted && old
        });
        due.collect()
    }

    /// Reads the offsets of all interests that are due.
    async fn run(&self, round: &mut Round, due: &[Arc<GroupInterest>]) {
        let begun = Instant::now();
        let queries: Vec<_> = due.iter().map(|interest| Arc::clone(&interest.query)).collect();
        let offsets = match timeout(ROUND_TIMEOUT, round.run(&self.server, &queries)).await {
            Ok(offsets) => offsets,
            Err(_) => {
                *round = Round::default();
                let text = format!("the brokers did not answer within {ROUND_TIMEOUT:?}");
                Err(ScalerError::caused_by(text, HttpErrorCause::TimedOut(ROUND_TIMEOUT)))
            }
        };
        let taken = Instant::now();
        if let Ok(offsets) = &offsets {
            offsets.work_elsewhere(due.len()).await;
        }
        for interest in due {
            let sample = match &offsets {
                Ok(offsets) => offsets.sample(&interest.query.group, &interest.query.topics).map(Arc::new),
                Err(error) => Err(error.clone()),
            };
            interest.state.locked().sample = Some(Sampled { begun, taken, sample });
        }
    }
}

impl GroupInterest {
    /// The new records of its topics; none if the topics are those that the group has committed.
    pub(crate) fn new_records(&self) -> Option<NewRecords> {
        let topics = self.query.topics.clone();
        (!topics.is_empty()).then(|| NewRecords { server: self.cluster.server.clone(), topics })
    }

    /// The offsets, at most `fresh` old, and when they were read.
    pub(crate) async fn read(
        self: &Arc<Self>,
        fresh: Duration,
    ) -> Result<(Arc<GroupSample>, Instant), ScalerError> {
        let fresh = allowed_age().unwrap_or(fresh);
        let begun = Instant::now();
        self.state.locked().requested = Some(begun);
        let mut sampled = self.fresh(begun, fresh);
        if sampled.is_none() {
            let mut round = self.cluster.round.lock().await;
            sampled = self.fresh(begun, fresh);
            if sampled.is_none() {
                let due = self.cluster.due(self, fresh);
                self.cluster.run(&mut round, &due).await;
                sampled.clone_from(&self.state.locked().sample);
            }
        }
        // A round of many partitions ends on a worker thread, where the task-local age of responses is not set.
        send_from_task().await;
        let Some(Sampled { taken, sample, .. }) = sampled else { bail!("the group was not read") };
        response_used(taken);
        Ok((sample?, taken))
    }

    /// The last sample if it is fresh. A failure is shared only with those who waited for it.
    fn fresh(&self, begun: Instant, fresh: Duration) -> Option<Sampled> {
        let sampled = self.state.locked().sample.clone()?;
        let now = Instant::now();
        let usable = match &sampled.sample {
            Ok(_) => now.duration_since(sampled.taken) < fresh || sampled.begun >= begun,
            Err(_) => sampled.taken >= begun,
        };
        usable.then_some(sampled)
    }
}
