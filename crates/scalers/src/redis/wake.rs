//! Waits for new entries of a stream (`XREAD BLOCK`).

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::client::{RedisServer, RedisServerConnection};
use super::connect::REQUEST_TIMEOUT;
use super::resp::RedisReply;
use crate::pool::PooledServer as _;
use crate::wake::{WakeSignal, WakeSource};
use crate::{ScalerError, ScalerFuture};

/// How long the server waits before it answers that there is nothing new, so that a dead one is noticed.
const MAX_BLOCK_TIME: Duration = Duration::from_secs(20);

/// Pause after a new entry, and after a server that did not wait: the server gets at most one request per second.
const MIN_WAKE_INTERVAL: Duration = Duration::from_secs(1);

/// The new entries of a stream.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct NewEntries {
    pub(super) server: RedisServer,
    pub(super) stream: String,
}

/// Why the server answered a command that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamWait {
    /// An entry was added.
    Entry,
    /// No entry was added within [`MAX_BLOCK_TIME`].
    TimedOut,
}

impl NewEntries {
    async fn signal_all(&self, signal: &WakeSignal) -> Result<(), ScalerError> {
        let mut connection = self.server.connect().await?;
        loop {
            // What was added while no command waited is found, too.
            signal.query_now();
            loop {
                let began = Instant::now();
                if self.wait(&mut connection).await? == StreamWait::Entry {
                    break;
                }
                if began.elapsed() < MIN_WAKE_INTERVAL {
                    sleep(MIN_WAKE_INTERVAL).await;
                }
            }
            signal.query_now();
            sleep(MIN_WAKE_INTERVAL).await;
        }
    }

    /// Waits for an entry.
    async fn wait(&self, connection: &mut RedisServerConnection) -> Result<StreamWait, ScalerError> {
        let wait = MAX_BLOCK_TIME.as_millis().to_string();
        // One entry, because its content does not matter.
        let words = ["XREAD", "COUNT", "1", "BLOCK", wait.as_str(), "STREAMS", self.stream.as_str(), "$"];
        let reply = self.server.call(connection, Some(&self.stream), &words);
        match timeout(MAX_BLOCK_TIME + REQUEST_TIMEOUT, reply).await {
            Ok(Ok(RedisReply::Nil)) => Ok(StreamWait::TimedOut),
            Ok(Ok(_)) => Ok(StreamWait::Entry),
            Ok(Err(failure)) => Err(failure.into()),
            Err(_) => Err(scaler_error!("no answer to XREAD")),
        }
    }
}

impl WakeSource for NewEntries {
    const TYPE: &'static str = "redis";

    fn name(&self) -> String {
        self.server.name()
    }

    fn follow<'a>(&'a self, signal: &'a WakeSignal) -> ScalerFuture<'a, ()> {
        Box::pin(self.signal_all(signal))
    }
}
