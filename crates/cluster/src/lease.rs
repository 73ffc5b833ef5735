//! Who leads, decided as client-go decides it.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;

use crate::clock::Clock;

/// How to stand for election, with the defaults of client-go.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Namespace of the lease.
    pub namespace: String,
    /// Name of the lease.
    pub name: String,
    /// Who we are; unique.
    pub identity: String,
    /// How long others wait for a leader that is silent.
    pub lease_duration: Duration,
    /// How long a leader tries to renew before it steps down.
    pub renew_deadline: Duration,
    /// Time between two tries.
    pub retry_period: Duration,
}

/// Whether we lead. Cheap to clone; asked at every write.
#[derive(Clone, Debug)]
pub struct Leadership {
    inner: Arc<()>,
}

impl Leadership {
    /// Nobody else is there: we always lead.
    pub fn alone() -> Self {
        Self { inner: Arc::new(()) }
    }

    /// Whether we lead at this moment: false as soon as our own deadline has passed, whatever the election does.
    pub fn leads(&self) -> bool {
        let _ = &self.inner;
        todo!()
    }

    /// Waits until we lead.
    pub async fn won(&self) {
        todo!()
    }

    /// Waits until we no longer lead.
    pub async fn lost(&self) {
        todo!()
    }
}

/// An election in progress.
pub struct Election {}

impl Election {
    /// Stands for election in the background.
    pub fn start(client: Client, settings: Settings, clock: Clock) -> (Self, Leadership) {
        let _ = (client, settings, clock);
        todo!()
    }

    /// Stops, and gives the lease back if we hold it.
    pub async fn release(self) {
        todo!()
    }
}
