//! Triggers that tell of activity themselves.

use std::sync::Arc;

use scalers::Scaler;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::operator::id::Id;

/// How many tells of one trigger may wait; what is more is the same again.
const WAITING: usize = 4;

/// A trigger has told that there is something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pushed {
    /// Whose.
    pub(crate) id: Id,
    /// Which.
    pub(crate) trigger: usize,
}

/// Where tells go.
#[derive(Clone, Debug)]
pub(crate) struct Sender(pub(crate) mpsc::UnboundedSender<Pushed>);

impl Sender {
    /// For one trigger.
    pub(crate) fn of(&self, id: &Id, trigger: usize) -> Line {
        Line { sender: self.clone(), pushed: Pushed { id: id.clone(), trigger } }
    }
}

/// Where the tells of one trigger go.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    sender: Sender,
    pushed: Pushed,
}

/// A stream that ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Stream(AbortHandle);

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Line {
    /// Listens to a scaler, if it tells anything by itself.
    pub(crate) fn listen(&self, scaler: &Arc<dyn Scaler>) -> Option<Stream> {
        let (tell, mut told) = mpsc::channel(WAITING);
        let stream = Arc::clone(scaler).push(tell)?;
        let line = self.clone();
        let task = tokio::spawn(async move {
            let forward = async {
                while let Some(active) = told.recv().await {
                    // That there is nothing to do is for polls to find out (spec 3.8).
                    if active && line.sender.0.send(line.pushed.clone()).is_err() {
                        return;
                    }
                }
            };
            tokio::select! {
                () = stream => {}
                () = forward => {}
            }
        });
        Some(Stream(task.abort_handle()))
    }
}
