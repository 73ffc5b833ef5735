//! Leader election as in client-go.
//!
//! ```text
//! settings    durations and names
//! record      a Lease object
//! elector     the election as a state machine without clock or network
//! drive       runs the election
//! leadership  whether this process is the leader, checked before every write
//! ```

mod drive;
mod elector;
mod record;
mod settings;
#[cfg(test)]
mod tests;

use kube::Client;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

pub use runtime::Heartbeat;
pub use runtime::leader::Leadership;
use runtime::leader::LeadershipView;

use crate::Clock;
pub use elector::{ElectionAction, ElectionEvent, Elector, LeaseRequestFailure, Renewal, StepTime};
pub use record::Lease;
pub use settings::{InvalidLeaseSettings, LeaseSettings};

/// An election in progress. Dropped without [`Election::release`], it ends as if the process had died: the term ends at once,
/// but others wait until the lease expires.
#[derive(Debug)]
pub struct Election {
    view: watch::Sender<LeadershipView>,
    stop: Option<oneshot::Sender<()>>,
    /// None after it has ended.
    task: Option<JoinHandle<()>>,
}

impl Election {
    /// Takes part in the election in the background. The settings should have been validated.
    pub fn start(client: Client, settings: LeaseSettings, clock: Clock) -> (Self, Leadership) {
        Self::start_on(&Handle::current(), client, settings, clock, None)
    }

    /// As [`Election::start`], on the runtime of another thread, to which `client` belongs. The lease is neither acquired nor
    /// renewed while the main thread does not beat.
    pub fn start_on(
        handle: &Handle,
        client: Client,
        settings: LeaseSettings,
        clock: Clock,
        heartbeat: Option<Heartbeat>,
    ) -> (Self, Leadership) {
        let (view, seen) = watch::channel(LeadershipView::default());
        let (stop, stopped) = oneshot::channel();
        let lease_client = drive::LeaseClient::new(client, settings, heartbeat);
        let task = handle.spawn(drive::run(lease_client, clock.clone(), view.clone(), stopped));
        (Self { view, stop: Some(stop), task: Some(task) }, Leadership::elected(seen, clock))
    }

    /// Waits until the election ends by itself, which is a defect: nobody acquires or renews the lease for this process then.
    pub async fn ended(&mut self) {
        if let Some(task) = &mut self.task {
            let _ = task.await;
        }
        self.task = None;
    }

    /// Stops, and releases the lease if this process holds it. The term ends with the call, so call it after the response of
    /// the last write: another process may become the leader as soon as the lease is released.
    pub async fn release(mut self) {
        self.view.send_modify(|view| {
            view.stopping = true;
            view.term = None;
        });
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        // The task ends in time: it makes few requests, and each has a deadline.
        self.ended().await;
    }
}

impl Drop for Election {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
