//! Watches the key, so that each change wakes.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use sources::http::{Endpoint, HttpError, HttpErrorCause};
use tokio::time::sleep;

use super::{EtcdClient, query};
use crate::parameters::Secret;
use crate::wake::{WakeSignal, WakeSource};
use crate::{ScalerError, ScalerFuture};

/// Maximum size of one watch, in bytes; then it is opened again.
const MAX_WATCH_BYTES: usize = 8 << 20;
/// Maximum duration of one watch, whatever the trigger says.
const MAX_WATCH_TIME: Duration = Duration::from_hours(1);
/// Pause after each piece of a watch, so that a server cannot keep us busy.
const PIECE_PAUSE: Duration = Duration::from_millis(20);

/// The key of a trigger.
#[derive(Clone)]
pub(super) struct WatchedKey(pub(super) Arc<EtcdClient>);

impl WatchedKey {
    /// What tells it from other keys: place, name and credentials.
    fn identity(&self) -> (Vec<String>, [String; 3], Secret, Endpoint) {
        let parameters = &self.0.parameters;
        let texts = [&parameters.watch_key, &parameters.username, &parameters.tls].map(String::clone);
        (parameters.endpoints.clone(), texts, parameters.password.clone(), parameters.trust())
    }

    /// Signals changes until the watch ends.
    async fn watch(&self, endpoint: &str, signal: &WakeSignal) -> Result<(), ScalerError> {
        let client = &self.0;
        let token = client.token(endpoint).await?;
        let body = query::watch(&client.parameters.watch_key);
        let mut call = client.call(endpoint, "/v3/watch", body, &token)?;
        let seconds = u64::try_from(client.parameters.watch_progress_notify_interval).unwrap_or_default();
        call.within = Duration::from_secs(seconds).min(MAX_WATCH_TIME);
        call.at_most = MAX_WATCH_BYTES;
        let mut response = client.web.stream(call).await?;
        if response.status.as_u16() != 200 {
            bail!("etcd returned {} to a watch", response.status.as_u16());
        }
        // The first piece says that the watch exists, each other one that the key has changed.
        let mut is_open = false;
        loop {
            match response.chunk().await {
                Ok(Some(_)) => signal.query_now(),
                Ok(None) => return Ok(()),
                // The watch was good for as long as it may be.
                Err(HttpError {
                    cause: HttpErrorCause::TimedOut(_) | HttpErrorCause::TooLarge(_), ..
                }) if is_open => {
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
            is_open = true;
            sleep(PIECE_PAUSE).await;
        }
    }

    async fn signal_all(&self, signal: &WakeSignal) -> Result<(), ScalerError> {
        let mut failed = scaler_error!("no endpoints are given");
        for endpoint in &self.0.parameters.endpoints {
            match self.watch(endpoint, signal).await {
                Ok(()) => return Ok(()),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

impl PartialEq for WatchedKey {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for WatchedKey {}

impl Hash for WatchedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl WakeSource for WatchedKey {
    const TYPE: &'static str = "etcd";

    fn name(&self) -> String {
        format!("etcd, key {}", self.0.parameters.watch_key)
    }

    fn follow<'a>(&'a self, signal: &'a WakeSignal) -> ScalerFuture<'a, ()> {
        Box::pin(self.signal_all(signal))
    }
}
