//! Who leads, decided as client-go decides it.
//!
//! ```text
//! settings    how to stand for election
//! record      a Lease, read with suspicion and written with care
//! elector     the election as a machine without clock or network
//! drive       the election, carried out
//! leadership  whether we lead, asked before every write
//! ```

mod drive;
mod elector;
pub(crate) mod random;
mod record;
mod settings;
#[cfg(test)]
mod tests;

use kube::Client;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

pub use runtime::leader::Leadership;
use runtime::leader::LeadershipView;

use crate::Clock;
pub use elector::{ElectionAction, ElectionEvent, Elector, LeaseRequestFailure, Renewal, StepTime};
pub use record::Lease;
pub use settings::{InvalidLeaseSettings, LeaseSettings};

/// An election in progress. Dropped without [`Election::release`], it ends as if the process had died: we stop leading
/// at once, but the lease stays ours until it runs out.
#[derive(Debug)]
pub struct Election {
    view: watch::Sender<LeadershipView>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Election {
    /// Stands for election in the background. The settings should have been validated.
    pub fn start(client: Client, settings: LeaseSettings, clock: Clock) -> (Self, Leadership) {
        let (view, seen) = watch::channel(LeadershipView::default());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(drive::run(client, settings, clock.clone(), view.clone(), stopped));
        (Self { view, stop: Some(stop), task }, Leadership::elected(seen, clock))
    }

    /// Stops, and gives the lease back if we hold it. We no longer lead from the moment this is called, so call it when
    /// the last write has been answered: another may lead as soon as it is done.
    pub async fn release(mut self) {
        self.view.send_modify(|view| {
            view.stopping = true;
            view.term = None;
        });
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        // It cannot hang: every request on the way has a limit, and there are few.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Election {
    fn drop(&mut self) {
        self.task.abort();
    }
}
