//! The controllers of deployments, replica sets, stateful sets and jobs, with the visible behaviour of
//! kube-controller-manager.
//!
//! ```text
//! drive    the event loop
//! index    the cache: objects by name and by owner
//! queue    the work queue
//! plan     writes as data; deployment, replica_set, stateful_set and job make plans
//! execute  executes plans
//! events   records events
//! ```
//!
//! Plans are pure: an owner, its children and the time go in, writes and a status come out. The controllers use the
//! API, so they work on any server; garbage collection and namespaces are the server's own.

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

/// Running controllers; they stop when this is dropped.
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
    /// Stops the controllers and waits until they have stopped.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}
