//! Connection pools: one per server, shared by all triggers with the same server and credentials. Where tenants write the queries, each
//! namespace has pools of its own.
//!
//! Connections are made on first use and replaced after a failure, with backoff. A pool is dropped with the last trigger that
//! uses it. Equal requests share an answer as long as their callers accept its age ([`crate::web::with_max_age_after`]).

mod answers;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use locks::MutexExt as _;
use sources::http::HttpErrorCause;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::ScalerError;
use crate::off_thread::send_from_task;
use crate::web::{allowed_age, response_used};
use answers::{RecentAnswer, RecentAnswers};

/// Backoff after the first failed connection attempt; it doubles with each further failure.
const MIN_BACKOFF: Duration = Duration::from_millis(250);
/// Maximum backoff: less than the usual polling interval, so that each poll reaches a server that is back.
const MAX_BACKOFF: Duration = Duration::from_secs(8);
/// Connections unused for this long are closed.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);

/// A boxed future.
pub(crate) type PoolFuture<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum PoolError {
    /// The server returned an error; the connection is usable.
    Refused(ScalerError),
    /// The connection is lost.
    Lost(ScalerError),
}

/// A server with its credentials and TLS settings. Equal values share a pool.
pub(crate) trait PooledServer: Clone + Eq + Hash + Send + Sync + 'static {
    /// A connection to the server.
    type Connection: Send + 'static;
    /// A request.
    type Request: Send + Sync;
    /// A response.
    type Response: Clone + Send;

    /// Maximum number of connections.
    const MAX_CONNECTIONS: usize;
    /// Timeout of a request, including the connection and the wait for a free one.
    const TIMEOUT: Duration;

    /// Name of the server in errors, without secrets.
    fn name(&self) -> String;

    /// Identifies equal requests, whose callers share a response.
    fn sharing_key(request: &Self::Request) -> String;

    /// Connects to the server.
    fn connect(&self) -> PoolFuture<'_, Self::Connection, ScalerError>;

    /// Sends a request.
    fn query<'a>(
        &'a self,
        connection: &'a mut Self::Connection,
        request: &'a Self::Request,
    ) -> PoolFuture<'a, Self::Response, PoolError>;
}

/// All pools of one type of server.
pub(crate) struct Pools<S: PooledServer>(Mutex<HashMap<PoolKey<S>, Weak<Pool<S>>>>);

/// The namespace and the server of a pool. The namespace is empty for pools that all namespaces share.
type PoolKey<S> = (Arc<str>, S);

/// The connections to one server.
pub(crate) struct Pool<S: PooledServer> {
    server: S,
    slots: Semaphore,
    state: Mutex<PoolState<S::Connection>>,
    answers: RecentAnswers<S::Response>,
}

struct PoolState<C> {
    idle: Vec<(C, Instant)>,
    failure: Option<Failure>,
}

/// The last failed connection attempt.
#[derive(Clone)]
struct Failure {
    error: ScalerError,
    wait: Duration,
    until: Instant,
}

impl<S: PooledServer> Default for Pools<S> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<S: PooledServer> Pools<S> {
    /// The pool of a server, created on first use. All namespaces share it: for protocols whose requests tenants do not write.
    pub(crate) fn of(&self, server: &S) -> Arc<Pool<S>> {
        self.of_namespace("", server)
    }

    /// The pool of a server for the triggers of a namespace, created on first use: for protocols whose requests tenants write. A query
    /// can change the state of its session (`SET`, `BEGIN`, `USE`), and a slow one holds one of few connections.
    pub(crate) fn of_namespace(&self, namespace: &str, server: &S) -> Arc<Pool<S>> {
        let key: (Arc<str>, S) = (Arc::from(namespace), server.clone());
        let mut pools = self.0.locked();
        if let Some(pool) = pools.get(&key).and_then(Weak::upgrade) {
            return pool;
        }
        pools.retain(|_, pool| pool.strong_count() > 0);
        let pool = Arc::new(Pool::new(server.clone()));
        pools.insert(key, Arc::downgrade(&pool));
        pool
    }
}

impl<S: PooledServer> Pool<S> {
    fn new(server: S) -> Self {
        let state = Mutex::new(PoolState { idle: Vec::new(), failure: None });
        let answers = RecentAnswers::default();
        Self { server, slots: Semaphore::new(S::MAX_CONNECTIONS), state, answers }
    }

    /// The server of the pool.
    pub(crate) fn server(&self) -> &S {
        &self.server
    }

    /// Returns a recent response to an equal request, or sends the request over an idle or a new connection.
    pub(crate) async fn query(&self, request: &S::Request) -> Result<S::Response, ScalerError> {
        let within = S::TIMEOUT;
        let deadline = Instant::now() + within;
        match timeout_at(deadline, self.answer(request)).await {
            Ok(answer) => answer,
            Err(_) => {
                let text = format!("{}: no answer within {within:?}", self.server.name());
                Err(ScalerError::caused_by(text, HttpErrorCause::TimedOut(within)))
            }
        }
    }

    /// A failure is shared by callers that wait for it, as in [`crate::web`]: otherwise they would fail one after the other, and the
    /// last of them by their own timeouts. Later callers send another request.
    async fn answer(&self, request: &S::Request) -> Result<S::Response, ScalerError> {
        let Some(max_age) = allowed_age() else { return self.attempts(request).await };
        let requested = Instant::now();
        let slot = self.answers.slot(S::sharing_key(request));
        let mut slot = slot.lock().await;
        if let Some(recent) = slot.as_ref().filter(|recent| recent.is_accepted(requested, max_age)) {
            if recent.answer.is_ok() {
                response_used(recent.at);
            }
            return recent.answer.clone();
        }
        let begun = Instant::now();
        let answer = self.attempts(request).await;
        let at = Instant::now();
        if answer.is_ok() {
            response_used(at);
        }
        *slot = Some(RecentAnswer { begun, at, answer: answer.clone() });
        answer
    }

    async fn attempts(&self, request: &S::Request) -> Result<S::Response, ScalerError> {
        // The semaphore is never closed.
        let Ok(_slot) = self.slots.acquire().await else { bail!("shutting down") };
        loop {
            let (mut connection, used) = match self.idle() {
                Some(connection) => (connection, true),
                None => (self.connect().await?, false),
            };
            let answer = self.server.query(&mut connection, request).await;
            // A large answer was decoded on a worker thread, where the task-local age of responses is not set.
            send_from_task().await;
            match answer {
                Ok(response) => {
                    self.keep(connection);
                    return Ok(response);
                }
                Err(PoolError::Refused(error)) => {
                    self.keep(connection);
                    return Err(error);
                }
                // The server went away since the last request, so its other idle connections are dead, too.
                Err(PoolError::Lost(_)) if used => self.state.locked().idle.clear(),
                Err(PoolError::Lost(error)) => return Err(error),
            }
        }
    }

    async fn connect(&self) -> Result<S::Connection, ScalerError> {
        if let Some(failure) = self.state.locked().failure.clone()
            && Instant::now() < failure.until
        {
            return Err(failure.error);
        }
        // The caller may drop this future: a dropped attempt counts as failed.
        let mut attempt = Attempt { pool: self, error: None, made: false };
        match self.server.connect().await {
            Ok(connection) => {
                attempt.made = true;
                Ok(connection)
            }
            Err(error) => {
                attempt.error = Some(error.clone());
                Err(error)
            }
        }
    }

    fn idle(&self) -> Option<S::Connection> {
        let mut state = self.state.locked();
        let now = Instant::now();
        state.idle.retain(|(_, since)| now.duration_since(*since) < IDLE_TIMEOUT);
        state.idle.pop().map(|(connection, _)| connection)
    }

    fn keep(&self, connection: S::Connection) {
        self.state.locked().idle.push((connection, Instant::now()));
    }
}

/// Records how a connection attempt ended, also if it is dropped.
struct Attempt<'a, S: PooledServer> {
    pool: &'a Pool<S>,
    error: Option<ScalerError>,
    made: bool,
}

impl<S: PooledServer> Drop for Attempt<'_, S> {
    fn drop(&mut self) {
        let mut state = self.pool.state.locked();
        if self.made {
            state.failure = None;
            return;
        }
        let wait = state.failure.as_ref().map_or(MIN_BACKOFF, |failure| (failure.wait * 2).min(MAX_BACKOFF));
        let error = self.error.take().unwrap_or_else(|| {
            let text = format!("{}: did not accept a connection in time", self.pool.server.name());
            ScalerError::caused_by(text, HttpErrorCause::TimedOut(S::TIMEOUT))
        });
        state.failure = Some(Failure { error, wait, until: Instant::now() + wait });
    }
}
