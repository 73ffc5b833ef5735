//! Readiness of the metrics server after its start.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Delays readiness after the start until every node that can be scraped has a rate, for a bounded time: scrapes are spread, so
/// that the first node has a rate long before the others, and a list without their pods would be taken for a whole one.
#[derive(Debug)]
pub(super) struct StartGate {
    started: Instant,
    max_delay: Duration,
    is_open: AtomicBool,
}

/// Numbers of nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeCounts {
    /// Nodes that shall be scraped.
    pub(super) selected: usize,
    /// Nodes with a rate.
    pub(super) served: usize,
    /// Nodes whose last scrape failed.
    pub(super) failing: usize,
}

impl StartGate {
    /// Closed for at most `max_delay` from now on.
    pub(super) fn new(max_delay: Duration) -> Self {
        Self { started: Instant::now(), max_delay, is_open: AtomicBool::new(false) }
    }

    /// Whether readiness is not delayed any more. Nodes that come later do not close it again.
    pub(super) fn is_open(&self, nodes: impl FnOnce() -> NodeCounts) -> bool {
        if self.is_open.load(Ordering::Relaxed) || self.started.elapsed() >= self.max_delay {
            return true;
        }
        let NodeCounts { selected, served, failing } = nodes();
        let is_complete = served.saturating_add(failing) >= selected;
        if is_complete {
            self.is_open.store(true, Ordering::Relaxed);
        }
        is_complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const ALMOST: Duration = Duration::from_secs(29);
    const MAX_DELAY: Duration = Duration::from_secs(30);

    fn nodes(selected: usize, served: usize, failing: usize) -> impl Fn() -> NodeCounts {
        move || NodeCounts { selected, served, failing }
    }

    #[tokio::test(start_paused = true)]
    async fn readiness_waits_for_all_nodes_that_can_be_scraped() {
        let gate = StartGate::new(MAX_DELAY);
        assert!(!gate.is_open(nodes(10, 1, 0)));
        assert!(!gate.is_open(nodes(10, 7, 2)));
        assert!(gate.is_open(nodes(10, 8, 2)));
        assert!(gate.is_open(nodes(12, 8, 2)), "nodes that come later do not count");
    }

    #[tokio::test(start_paused = true)]
    async fn readiness_does_not_wait_for_ever() {
        let gate = StartGate::new(MAX_DELAY);
        tokio::time::advance(ALMOST).await;
        assert!(!gate.is_open(nodes(2, 1, 0)));
        tokio::time::advance(SECOND).await;
        assert!(gate.is_open(nodes(2, 1, 0)));
    }
}
