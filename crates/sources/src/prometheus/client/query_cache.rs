//! Single-flight queries with a short-lived cache. Unlike in `runtime::single_flight`, a query keeps running without
//! waiters, responses are reused for a short time, and entries near their expiry are refreshed in the background.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt as _;
use futures::channel::oneshot;
use futures::future::Shared;
use jiff::Timestamp;
use locks::MutexExt as _;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::reply::QueryResponse;
use super::{PrometheusError, PrometheusInner, PrometheusSettings};

/// Maximum cache time of errors.
const MAX_ERROR_AGE: Duration = Duration::from_secs(1);
/// Size limit of all cached responses in bytes.
const MAX_CACHE_BYTES: usize = 128 << 20;

type QueryResult = Result<Arc<QueryResponse>, PrometheusError>;
type PendingQuery = Shared<oneshot::Receiver<QueryResult>>;

/// Queries in flight, and cached responses.
pub(super) struct QueryCache {
    known: Mutex<CacheState>,
    permits: Semaphore,
}

#[derive(Default)]
struct CacheState {
    by_query: HashMap<Arc<str>, CacheEntry>,
    /// Cached queries by time of response.
    completed: VecDeque<(Instant, Arc<str>)>,
    bytes: usize,
}

#[derive(Default)]
struct CacheEntry {
    answer: Option<(Instant, QueryResult)>,
    pending: Option<PendingQuery>,
}

impl QueryCache {
    pub(super) fn new(settings: &PrometheusSettings) -> Self {
        Self { known: Mutex::default(), permits: Semaphore::new(settings.max_concurrent_queries.max(1)) }
    }

    pub(super) fn len(&self) -> usize {
        self.locked().completed.len()
    }

    fn locked(&self) -> MutexGuard<'_, CacheState> {
        self.known.locked()
    }
}

/// Result of a cache lookup.
enum Lookup {
    /// Cached.
    Known(QueryResult),
    /// In flight.
    Wait(PendingQuery),
}

/// Answers a query from the cache, by the same query in flight, or by a new one.
pub(super) async fn get(
    backend: &Arc<PrometheusInner>,
    query: &str,
    now: Timestamp,
    within: Duration,
) -> QueryResult {
    match lookup(backend, query, now) {
        Lookup::Known(result) => result,
        Lookup::Wait(pending) => match timeout(within, pending).await {
            Ok(Ok(result)) => result,
            Ok(Err(oneshot::Canceled)) | Err(_) => Err(PrometheusError::TimedOut(within)),
        },
    }
}

fn lookup(backend: &Arc<PrometheusInner>, query: &str, now: Timestamp) -> Lookup {
    let cache_age = backend.settings.cache_age;
    let mut known = backend.query_cache.locked();
    let entry = known.by_query.get(query);
    if let Some((completed, result)) = entry.and_then(|entry| entry.answer.as_ref()) {
        let age = completed.elapsed();
        if age < lifetime(result, cache_age) {
            let result = result.clone();
            // An entry near its expiry is refreshed before a caller must wait.
            let near_expiry = result.is_ok() && age > cache_age.mul_f64(0.9);
            if near_expiry && entry.is_some_and(|entry| entry.pending.is_none()) {
                drop(start(backend, &mut known, query, now));
            }
            backend.stats.shared();
            return Lookup::Known(result);
        }
    }
    // A query that panicked never completes its entry, and its result is known to be lost.
    let pending = entry.and_then(|entry| entry.pending.clone());
    if let Some(pending) = pending.filter(|pending| pending.peek().is_none()) {
        backend.stats.shared();
        return Lookup::Wait(pending);
    }
    Lookup::Wait(start(backend, &mut known, query, now))
}

fn lifetime(result: &QueryResult, cache_age: Duration) -> Duration {
    if result.is_ok() { cache_age } else { cache_age.min(MAX_ERROR_AGE) }
}

/// Starts a query in a task. It completes without waiters too, because others may join.
fn start(
    backend: &Arc<PrometheusInner>,
    known: &mut CacheState,
    query: &str,
    now: Timestamp,
) -> PendingQuery {
    let query: Arc<str> = Arc::from(query);
    let (sender, pending) = oneshot::channel();
    let pending = pending.shared();
    known.by_query.entry(Arc::clone(&query)).or_default().pending = Some(pending.clone());
    let backend = Arc::clone(backend);
    tokio::spawn(async move {
        let result = run_query(&backend, &query, now).await;
        if let Err(error) = &result
            && error.concerns_query()
        {
            tracing::warn!(server = backend.base, query = &*query, %error, remedy = error.remedy(), "a query failed");
        }
        backend.stats.record_outcome(result.as_ref().err(), &backend.base, now);
        backend.query_cache.locked().complete(&query, &result, &backend.settings);
        // There may be no waiter.
        let _ = sender.send(result);
    });
    pending
}

async fn run_query(backend: &PrometheusInner, query: &str, now: Timestamp) -> QueryResult {
    let query_timeout = backend.settings.timeout;
    let started = Instant::now();
    let Ok(permit) = timeout(query_timeout, backend.query_cache.permits.acquire()).await else {
        return Err(PrometheusError::TimedOut(query_timeout));
    };
    let _in_flight = backend.stats.sent();
    let left = query_timeout.saturating_sub(started.elapsed());
    let result = backend.fetch(query, now, left).await.map(Arc::new);
    drop(permit);
    result
}

impl CacheState {
    fn complete(&mut self, query: &Arc<str>, result: &QueryResult, settings: &PrometheusSettings) {
        let now = Instant::now();
        let entry = self.by_query.entry(Arc::clone(query)).or_default();
        entry.pending = None;
        if settings.cache_age.is_zero() {
            self.by_query.remove(query);
            return;
        }
        let before = entry.answer.replace((now, result.clone()));
        self.bytes += size(query, result);
        if let Some((_, before)) = before {
            self.bytes = self.bytes.saturating_sub(size(query, &before));
        }
        self.completed.push_back((now, Arc::clone(query)));
        self.forget(now, settings);
    }

    /// Evicts expired entries, and the oldest ones above the limits.
    fn forget(&mut self, now: Instant, settings: &PrometheusSettings) {
        while let Some((completed, query)) = self.completed.front() {
            let too_much =
                self.completed.len() > settings.max_cached_responses || self.bytes > MAX_CACHE_BYTES;
            if !too_much && now.duration_since(*completed) <= settings.cache_age {
                break;
            }
            // A refreshed response has another entry further back in the queue.
            let entry = self.by_query.get_mut(query);
            if let Some(entry) = entry
                && entry.answer.as_ref().is_some_and(|(at, _)| at == completed)
            {
                if let Some((_, result)) = entry.answer.take() {
                    self.bytes = self.bytes.saturating_sub(size(query, &result));
                }
                if entry.pending.is_none() {
                    self.by_query.remove(query);
                }
            }
            self.completed.pop_front();
        }
    }
}

/// Approximate size of a cached response in bytes.
fn size(query: &str, result: &QueryResult) -> usize {
    query.len() + 256 + result.as_ref().map_or(0, |reply| reply.size)
}
