//! Copies the passes of the leader, so that every replica can answer and the past survives a takeover.
//!
//! The address of the leader is read from its Lease, which only the replicas may write. [`LeaderHistory`] sends the token of the
//! service account only after the server there has shown a certificate of the CA that the replicas share.

mod fetch;
#[cfg(test)]
mod stored;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use api::decisions::DecisionRecord;
use api::decisions::passes::PassList;
use api::history::NewPass;
use cluster::lease::Leadership;
use cluster::{AutoscalerKey, Clock};
use jiff::{SignedDuration, Timestamp};

pub use fetch::{FetchPasses, HistoryCopyError, LeaderHistory};

use super::spans::PassPlace;
use super::{Records, key_of};

/// The time between two requests.
const COPY_INTERVAL: Duration = Duration::from_secs(1);
/// The time between two requests while the leader has more: pages are decoded on the threads that also reconcile.
const PAGE_INTERVAL: Duration = Duration::from_millis(200);
/// Turns of the loop between two removals of deleted autoscalers.
const TURNS_PER_SWEEP: u32 = 30;
/// How long the passes of an autoscaler that is not in the store are kept: the leader may have seen it earlier.
const UNKNOWN_AGE: SignedDuration = SignedDuration::from_mins(1);

/// Whether an autoscaler exists; none if that is not known yet.
pub type AutoscalerExists = Arc<dyn Fn(&AutoscalerKey) -> Option<bool> + Send + Sync>;

/// Keeps the history of a replica equal to that of the leader.
pub struct HistoryFollower {
    /// Where passes are kept.
    pub records: Records,
    /// The leader and its address.
    pub leadership: Leadership,
    /// The wall clock.
    pub clock: Clock,
    /// Fetches passes; none if the replicas share no CA.
    pub fetch: Option<FetchPasses>,
    /// Whether an autoscaler exists, so that those of deleted ones are forgotten.
    pub exists: AutoscalerExists,
}

/// How far the history of one leader has been copied.
#[derive(Debug, Default)]
struct CopyProgress {
    address: Option<SocketAddr>,
    cursor: Option<String>,
    /// Whether all passes that the leader had at the beginning were read.
    caught_up: bool,
    turns: u32,
    /// The last logged problem: only changes are logged.
    last_problem: Option<String>,
}

impl HistoryFollower {
    /// Copies for the lifetime of the process.
    pub async fn run(self) {
        let mut progress = CopyProgress::default();
        loop {
            let pause = self.copy_page(&mut progress).await;
            tokio::time::sleep(pause).await;
        }
    }

    /// Sends at most one request; returns the time until the next.
    async fn copy_page(&self, progress: &mut CopyProgress) -> Duration {
        progress.turns += 1;
        if progress.turns >= TURNS_PER_SWEEP {
            progress.turns = 0;
            self.records.forget_deleted(self.clock.now(), &*self.exists);
        }
        if self.leadership.is_leader() || self.leadership.holder().is_none() {
            *progress = CopyProgress { turns: progress.turns, ..CopyProgress::default() };
            return COPY_INTERVAL;
        }
        let Some(fetch) = &self.fetch else {
            if progress.is_new("no CA") {
                tracing::warn!(
                    remedy = "--enable-cert-rotation",
                    "the history of the leader is not copied, because the replicas share no CA"
                );
            }
            return COPY_INTERVAL;
        };
        let Some(address) = self.leadership.address() else {
            if progress.is_new("no address") {
                tracing::warn!(
                    remedy = "set the variable POD_IP of all replicas to status.podIP, as the manifests do",
                    "the history of the leader is not copied, because its lease has no address"
                );
            }
            return COPY_INTERVAL;
        };
        if progress.address != Some(address) {
            let (turns, last_problem) = (progress.turns, progress.last_problem.take());
            *progress =
                CopyProgress { address: Some(address), turns, last_problem, ..CopyProgress::default() };
        }
        match fetch(address, progress.cursor.clone()).await {
            Ok(list) => self.copy(progress, address, list),
            Err(HistoryCopyError::UnknownCursor) if progress.cursor.is_some() => {
                (progress.cursor, progress.caught_up) = (None, false);
                PAGE_INTERVAL
            }
            Err(error) => {
                if progress.is_new(&error.to_string()) {
                    let remedy = error.remedy();
                    tracing::warn!(%address, %error, remedy, "the history of the leader is not copied");
                }
                COPY_INTERVAL
            }
        }
    }

    fn copy(&self, progress: &mut CopyProgress, address: SocketAddr, list: PassList) -> Duration {
        let remaining = list.metadata.remaining;
        // A response may arrive after this replica has begun to decide: then only what is newer may follow.
        let all = progress.caught_up && !self.leadership.is_leader();
        let cursor = Some(list.metadata.cursor.clone()).filter(|cursor| !cursor.is_empty());
        let after = std::mem::replace(&mut progress.cursor, cursor);
        self.records.copy(after.as_deref(), list, all);
        if !remaining && !progress.caught_up {
            progress.caught_up = true;
            tracing::info!(%address, "the history of the leader is copied");
        }
        progress.last_problem = None;
        if remaining { PAGE_INTERVAL } else { COPY_INTERVAL }
    }
}

impl CopyProgress {
    /// Whether this problem differs from the last logged one, which it replaces.
    fn is_new(&mut self, problem: &str) -> bool {
        let is_new = self.last_problem.as_deref() != Some(problem);
        self.last_problem = Some(problem.to_owned());
        is_new
    }
}

impl Records {
    /// Adds passes that another replica made after the place of a cursor, in their order. Without `all`, those that are not newer than
    /// the newest pass of their autoscaler here are skipped: both replicas have them. Returns how many were added.
    pub fn copy(&self, after: Option<&str>, list: PassList, all: bool) -> usize {
        let end = PassPlace::parse(&list.metadata.cursor);
        let start = match after {
            Some(cursor) => PassPlace::parse(cursor),
            // All that there is, from the first pass on.
            None => end.map(|end| PassPlace { number: 0, ..end }),
        };
        let own = self.lock().number;
        let mut count = 0;
        for record in list.items.into_iter().filter_map(|item| item.record) {
            let Some(key) = key_of(&record.metadata.namespace, &record.metadata.name) else { continue };
            let known = self.newest_at(&key);
            if !all && known.is_some_and(|known| record.decision.at <= known) {
                continue;
            }
            self.copy_pass(&key, *record);
            count += 1;
        }
        // Only a page without gaps says which number is which.
        if let (Some(start), Some(end)) = (start, end)
            && start.epoch == end.epoch
            && start.epoch != self.epoch
            && end.number.checked_sub(start.number) == Some(count as u64)
        {
            let mut table = self.lock();
            if table.number == own + count as u64 {
                table.spans.add(start, own, count as u64);
            }
        }
        count
    }

    fn copy_pass(&self, key: &AutoscalerKey, record: DecisionRecord) {
        let spec = Arc::new(record.spec.clone());
        let DecisionRecord { mode, period, decision, round, .. } = &record;
        let pass = NewPass { mode: *mode, period: *period, decision, round: round.as_ref() };
        let (mut table, run) = self.keep(key, &spec, pass, None);
        if table.followers.has(key) {
            let record = Arc::new(DecisionRecord { first: run.first, times: run.times, ..record });
            table.followers.publish(key, &record);
        }
    }

    /// Forgets autoscalers that do not exist and have made no pass for a while: a replica that does not reconcile learns of a
    /// deletion only in this way.
    fn forget_deleted(
        &self,
        now: Timestamp,
        exists: &(dyn Fn(&AutoscalerKey) -> Option<bool> + Send + Sync),
    ) {
        let Ok(limit) = now.checked_sub(UNKNOWN_AGE) else { return };
        let idle: Vec<AutoscalerKey> = {
            let table = self.lock();
            let idle = table
                .kept
                .iter()
                .filter(|(_, history)| history.open.newest_at().is_none_or(|newest| newest < limit));
            idle.map(|(key, _)| key.clone()).collect()
        };
        // The stores are read without the lock of the records.
        for key in &idle {
            if exists(key) == Some(false) {
                self.forget(key);
            }
        }
    }

    /// The time of the newest pass of an autoscaler.
    fn newest_at(&self, key: &AutoscalerKey) -> Option<Timestamp> {
        self.lock().kept.get(key)?.open.newest_at()
    }
}
