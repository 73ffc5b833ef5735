//! The event loop of the controllers: watches, plans and executes.

use std::sync::Arc;

use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::claim::claims;
use super::execute::{Executor, PlanOutcome};
use super::index::{ObjectIndex, WatchedEvent};
use super::objects::{ObjectRef, ReplicaSet, WorkloadKind};
use super::plan::{EventSubject, ReconcilePlan};
use super::queue::WorkQueue;
use super::{deployment, job, replica_set, stateful_set};
use crate::clock::Clock;
use crate::list_watch::{ListWatchEvent, list_watch};

/// How many plans are executed concurrently.
const MAX_CONCURRENT_PLANS: usize = 32;
/// The maximum number of watch events that are applied before planning.
const MAX_EVENTS_PER_CHUNK: usize = 256;

/// Runs until the future is dropped.
pub(crate) async fn run(executor: Executor, clock: Clock) {
    let mut updates = watches(&executor.client).ready_chunks(MAX_EVENTS_PER_CHUNK);
    let mut index = ObjectIndex::default();
    let mut queue = WorkQueue::default();
    let mut running: JoinSet<(ObjectRef, PlanOutcome)> = JoinSet::new();
    loop {
        while index.is_complete() && running.len() < MAX_CONCURRENT_PLANS {
            let Some(key) = queue.next() else { break };
            match plan(&index, &key, queue.failure(&key), clock.now()) {
                Some((subject, plan)) => {
                    if let Some(wait) = plan.again {
                        queue.wake_at(&key, Instant::now() + wait);
                    }
                    let executor = executor.clone();
                    running.spawn(async move { (key, executor.execute(&subject, plan).await) });
                }
                None => queue.done(&key, None, Instant::now()),
            }
        }
        let alarm = queue
            .next_time()
            .map_or_else(|| futures::future::pending().boxed(), |at| sleep_until(at).boxed());
        tokio::select! {
            batch = updates.next() => match batch {
                Some(batch) => batch.into_iter().flat_map(|one| index.apply(one)).for_each(|key| queue.wake(key)),
                None => return,
            },
            Some(done) = running.join_next() => {
                if let Ok((key, outcome)) = done {
                    outcome.written.into_iter().flat_map(|one| index.apply_write(one)).for_each(|key| queue.wake(key));
                    queue.done(&key, outcome.failure, Instant::now());
                }
            }
            () = alarm => queue.tick(Instant::now()),
        }
    }
}

/// The plan of an object, if it exists.
pub(crate) fn plan(
    index: &ObjectIndex,
    key: &ObjectRef,
    failure: Option<&str>,
    now: Timestamp,
) -> Option<(EventSubject, ReconcilePlan)> {
    let (namespace, name) = (key.namespace.as_str(), key.name.as_str());
    match key.kind {
        WorkloadKind::Deployment => {
            let deployment = index.deployments.get(namespace, name)?;
            let sets = index.replica_sets.children(deployment.uid());
            let orphans = index.replica_sets.orphans(namespace);
            let claims = claims(deployment, &deployment.spec.selector, &sets, &orphans);
            let waits = deployment.spec.strategy.r#type == "Recreate";
            let has_pods = |uid: &str| index.pods.children(uid).iter().any(|pod| !pod.is_finished());
            let child = |set: Arc<ReplicaSet>| deployment::ChildReplicaSet {
                has_pods: waits && has_pods(set.uid()),
                set,
            };
            let sets: Vec<_> = sets.into_iter().map(child).collect();
            let plan = ReconcilePlan::claim_or(claims, || deployment::plan(deployment, &sets, now));
            Some((EventSubject::of(deployment), plan))
        }
        WorkloadKind::ReplicaSet => {
            let set = index.replica_sets.get(namespace, name)?;
            let pods = index.pods.children(set.uid());
            let claims = claims(set, &set.spec.selector, &pods, &index.pods.orphans(namespace));
            let plan = ReconcilePlan::claim_or(claims, || replica_set::plan(set, &pods, failure, now));
            Some((EventSubject::of(set), plan))
        }
        WorkloadKind::StatefulSet => {
            let set = index.stateful_sets.get(namespace, name)?;
            let pods = index.pods.children(set.uid());
            let mut orphans = index.pods.orphans(namespace);
            orphans.retain(|pod| stateful_set::number(set, pod).is_some());
            let claims = claims(set, &set.spec.selector, &pods, &orphans);
            let before = index.template_before(set);
            let plan = ReconcilePlan::claim_or(claims, || stateful_set::plan(set, &pods, before, now));
            Some((EventSubject::of(set), plan))
        }
        WorkloadKind::Job => {
            let job = index.jobs.get(namespace, name)?;
            let pods = index.pods.children(job.uid());
            let claims = claims(job, &job.spec.selector, &pods, &index.pods.orphans(namespace));
            let plan = ReconcilePlan::claim_or(claims, || job::plan(job, &pods, now));
            Some((EventSubject::of(job), plan))
        }
        WorkloadKind::Pod => None,
    }
}

fn watches(client: &Client) -> BoxStream<'static, WatchedEvent> {
    let all = [
        watch(client, WatchedEvent::Pod),
        watch(client, WatchedEvent::Deployment),
        watch(client, WatchedEvent::ReplicaSet),
        watch(client, WatchedEvent::StatefulSet),
        watch(client, WatchedEvent::Job),
    ];
    stream::select_all(all).boxed()
}

fn watch<K>(
    client: &Client,
    updates: fn(ListWatchEvent<K>) -> WatchedEvent,
) -> BoxStream<'static, WatchedEvent>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    list_watch(Api::all(client.clone())).map(updates).boxed()
}
