//! Subscriptions to decisions of an autoscaler.

use std::collections::HashMap;
use std::sync::Arc;

use api::decisions::DecisionRecord;
use cluster::AutoscalerKey;
use futures::Stream;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};

/// How many decisions a subscriber may fall behind.
const MAX_QUEUED_DECISIONS: usize = 16;

/// A subscriber fell so far behind that it lost decisions. Its stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("read too slowly: {missed} decisions were missed")]
pub struct TooSlow {
    /// How many decisions were lost.
    pub missed: u64,
}

/// Subscribers by autoscaler.
#[derive(Debug, Default)]
pub(super) struct Followers(HashMap<AutoscalerKey, Sender<Arc<DecisionRecord>>>);

impl Followers {
    pub(super) fn add(&mut self, key: AutoscalerKey) -> Receiver<Arc<DecisionRecord>> {
        // Removes subscribers that left an autoscaler which makes no decisions.
        self.0.retain(|_, sender| sender.receiver_count() > 0);
        self.0.entry(key).or_insert_with(|| channel(MAX_QUEUED_DECISIONS).0).subscribe()
    }

    /// Whether there is a subscriber, which there usually is not.
    pub(super) fn has(&self, key: &AutoscalerKey) -> bool {
        !self.0.is_empty() && self.0.contains_key(key)
    }

    pub(super) fn publish(&mut self, key: &AutoscalerKey, record: &Arc<DecisionRecord>) {
        let Some(sender) = self.0.get(key) else { return };
        if sender.receiver_count() == 0 || sender.send(record.clone()).is_err() {
            self.0.remove(key);
        }
    }

    pub(super) fn end(&mut self, key: &AutoscalerKey) {
        self.0.remove(key);
    }
}

/// The received decisions, until the sender is dropped or the subscriber is too slow.
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
