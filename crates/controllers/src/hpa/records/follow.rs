//! Decisions as they are made, for those who wait for them.

use std::collections::HashMap;
use std::sync::Arc;

use api::decisions::DecisionRecord;
use cluster::AutoscalerKey;
use futures::Stream;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};

use super::run::Run;

/// How far a reader may fall behind.
const BEHIND: usize = 16;

/// A reader fell so far behind that decisions were lost to it. Its stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("read too slowly: {missed} decisions were missed")]
pub struct TooSlow {
    /// How many were lost.
    pub missed: u64,
}

/// Who follows which autoscaler.
#[derive(Debug, Default)]
pub(super) struct Followers(HashMap<AutoscalerKey, Sender<Arc<DecisionRecord>>>);

impl Followers {
    pub(super) fn add(&mut self, key: AutoscalerKey) -> Receiver<Arc<DecisionRecord>> {
        // Those who left an autoscaler that makes no decisions are noticed here.
        self.0.retain(|_, sender| sender.receiver_count() > 0);
        self.0.entry(key).or_insert_with(|| channel(BEHIND).0).subscribe()
    }

    pub(super) fn tell(&mut self, key: &AutoscalerKey, run: &Run) {
        // Nearly always nobody follows anything.
        if self.0.is_empty() {
            return;
        }
        let Some(sender) = self.0.get(key) else { return };
        if sender.receiver_count() == 0 || sender.send(Arc::new(run.record(key))).is_err() {
            self.0.remove(key);
        }
    }

    pub(super) fn end(&mut self, key: &AutoscalerKey) {
        self.0.remove(key);
    }
}

/// What is received, until there is no more or too much.
pub(super) fn stream(
    receiver: Option<Receiver<Arc<DecisionRecord>>>,
) -> impl Stream<Item = Result<Arc<DecisionRecord>, TooSlow>> + Send + use<> {
    futures::stream::unfold(receiver, async |receiver| {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Ok(record) => Some((Ok(record), Some(receiver))),
            Err(RecvError::Lagged(missed)) => Some((Err(TooSlow { missed }), None)),
            Err(RecvError::Closed) => None,
        }
    })
}

#[cfg(test)]
impl Followers {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
