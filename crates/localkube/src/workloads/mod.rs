//! Workloads that live: deployments, replica sets, stateful sets and jobs do what they do under kube-controller-manager,
//! as far as people can see.
//!
//! ```text
//! drive    the loop: what was heard wakes whom it concerns, plans are carried out
//! index    what is known: objects by name and by owner
//! queue    whom to look at next
//! plan     what is to be done, as data; deployment, replica_set, stateful_set and job make plans
//! execute  carries out plans
//! events   tells people
//! ```
//!
//! Plans are pure: an owner, its children and the time go in, writes and a status come out. Written against the API, so
//! they work on any server; garbage collection and what namespaces need are the server's own.

mod claim;
mod conditions;
mod deployment;
mod drive;
mod events;
mod execute;
mod hash;
mod index;
mod job;
mod objects;
mod plan;
mod pods;
mod queue;
mod replica_set;
mod stateful_set;
#[cfg(test)]
mod tests;

use tokio::task::JoinSet;

use crate::clock::Clock;

/// Running controllers; they end when this is dropped.
#[derive(Debug)]
pub struct Workloads {
    tasks: JoinSet<()>,
}

/// Starts the controllers.
pub fn start(client: kube::Client, clock: Clock) -> Workloads {
    let mut tasks = JoinSet::new();
    let (events, occurrences) = tokio::sync::mpsc::unbounded_channel();
    tasks.spawn(events::run(client.clone(), clock, occurrences));
    tasks.spawn(drive::run(execute::Executor { client, events }, clock));
    Workloads { tasks }
}

impl Workloads {
    /// Ends the controllers and waits until they have ended.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}
