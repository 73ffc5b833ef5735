//! Identical queries of concurrent requests are sent once, and their answers used again for a short while.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::channel::oneshot;
use futures::future::Shared;
use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::reply::Reply;
use super::{Backend, Error, Manner};

/// Errors are not used longer than this.
const ERROR_MEMORY: Duration = Duration::from_secs(1);
/// Answers together are not remembered beyond this many bytes.
const MOST_BYTES: usize = 128 << 20;

type Verdict = Result<Arc<Reply>, Error>;
type Flight = Shared<oneshot::Receiver<Verdict>>;

/// Queries on their way, and answers that are remembered.
pub(super) struct Queries {
    known: Mutex<Known>,
    permits: Semaphore,
}

#[derive(Default)]
struct Known {
    by_query: HashMap<Arc<str>, Entry>,
    /// When answers came, in that order.
    came: VecDeque<(Instant, Arc<str>)>,
    bytes: usize,
}

#[derive(Default)]
struct Entry {
    answer: Option<(Instant, Verdict)>,
    flight: Option<Flight>,
}

impl Queries {
    pub(super) fn new(manner: &Manner) -> Self {
        Self { known: Mutex::default(), permits: Semaphore::new(manner.parallel.max(1)) }
    }

    pub(super) fn len(&self) -> usize {
        self.locked().came.len()
    }

    fn locked(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What to do about a question.
enum Step {
    /// The answer is known.
    Known(Verdict),
    /// Somebody asks already.
    Wait(Flight),
}

/// Answers a question by memory, by somebody else's query, or by a new one.
pub(super) async fn ask(backend: &Arc<Backend>, query: &str, now: Timestamp, within: Duration) -> Verdict {
    match step(backend, query, now) {
        Step::Known(verdict) => verdict,
        Step::Wait(flight) => match timeout(within, flight).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(oneshot::Canceled)) | Err(_) => Err(Error::Late(within)),
        },
    }
}

fn step(backend: &Arc<Backend>, query: &str, now: Timestamp) -> Step {
    let memory = backend.manner.memory;
    let mut known = backend.queries.locked();
    let entry = known.by_query.get(query);
    if let Some((came, verdict)) = entry.and_then(|entry| entry.answer.as_ref()) {
        let age = came.elapsed();
        if age < lifetime(verdict, memory) {
            let verdict = verdict.clone();
            // An answer that will be too old soon is renewed before somebody must wait for it.
            let ageing = verdict.is_ok() && age > memory.mul_f64(0.9);
            if ageing && entry.is_some_and(|entry| entry.flight.is_none()) {
                drop(depart(backend, &mut known, query, now));
            }
            backend.counts.shared();
            return Step::Known(verdict);
        }
    }
    if let Some(flight) = entry.and_then(|entry| entry.flight.clone()) {
        backend.counts.shared();
        return Step::Wait(flight);
    }
    Step::Wait(depart(backend, &mut known, query, now))
}

fn lifetime(verdict: &Verdict, memory: Duration) -> Duration {
    if verdict.is_ok() { memory } else { memory.min(ERROR_MEMORY) }
}

/// Sends a query on its way. It arrives even if nobody waits for it any more: others may come meanwhile.
fn depart(backend: &Arc<Backend>, known: &mut Known, query: &str, now: Timestamp) -> Flight {
    let query: Arc<str> = Arc::from(query);
    let (arrive, flight) = oneshot::channel();
    let flight = flight.shared();
    known.by_query.entry(Arc::clone(&query)).or_default().flight = Some(flight.clone());
    let backend = Arc::clone(backend);
    tokio::spawn(async move {
        let verdict = fly(&backend, &query, now).await;
        if let Err(error) = &verdict
            && error.is_about_the_question()
        {
            tracing::warn!(server = backend.base, query = &*query, %error, remedy = error.remedy(), "a query fails");
        }
        backend.counts.judged(verdict.as_ref().err(), &backend.base, now);
        backend.queries.locked().arrived(&query, &verdict, &backend.manner);
        // Nobody may be waiting.
        let _ = arrive.send(verdict);
    });
    flight
}

async fn fly(backend: &Backend, query: &str, now: Timestamp) -> Verdict {
    let patience = backend.manner.timeout;
    let started = Instant::now();
    let Ok(permit) = timeout(patience, backend.queries.permits.acquire()).await else {
        return Err(Error::Late(patience));
    };
    let _in_flight = backend.counts.sent();
    let left = patience.saturating_sub(started.elapsed());
    let verdict = backend.fetch(query, now, left).await.map(Arc::new);
    drop(permit);
    verdict
}

impl Known {
    fn arrived(&mut self, query: &Arc<str>, verdict: &Verdict, manner: &Manner) {
        let now = Instant::now();
        let entry = self.by_query.entry(Arc::clone(query)).or_default();
        entry.flight = None;
        if manner.memory.is_zero() {
            self.by_query.remove(query);
            return;
        }
        let before = entry.answer.replace((now, verdict.clone()));
        self.bytes += size(query, verdict);
        if let Some((_, before)) = before {
            self.bytes = self.bytes.saturating_sub(size(query, &before));
        }
        self.came.push_back((now, Arc::clone(query)));
        self.forget(now, manner);
    }

    /// Forgets what is too old, and the oldest of what is too much.
    fn forget(&mut self, now: Instant, manner: &Manner) {
        while let Some((came, query)) = self.came.front() {
            let too_much = self.came.len() > manner.most_remembered || self.bytes > MOST_BYTES;
            if !too_much && now.duration_since(*came) <= manner.memory {
                break;
            }
            // Answers that were renewed stand in the queue again, further behind.
            let entry = self.by_query.get_mut(query);
            if let Some(entry) = entry
                && entry.answer.as_ref().is_some_and(|(at, _)| at == came)
            {
                if let Some((_, verdict)) = entry.answer.take() {
                    self.bytes = self.bytes.saturating_sub(size(query, &verdict));
                }
                if entry.flight.is_none() {
                    self.by_query.remove(query);
                }
            }
            self.came.pop_front();
        }
    }
}

/// About how many bytes an answer takes.
fn size(query: &str, verdict: &Verdict) -> usize {
    query.len() + 256 + verdict.as_ref().map_or(0, |reply| reply.size)
}
