//! Connections that are kept: one pool per server, shared by every trigger that asks the same server in the same way.
//!
//! A connection is made when somebody asks, never earlier; after a failure it is made anew, and not more often than a
//! server that is down can bear. A pool goes away with the last trigger that uses it.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::Error;

/// How long nobody tries after a first failure; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// How long nobody tries at most: less than the usual interval, so that each round asks a server that is back.
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// Connections that nobody used for so long are closed.
const IDLE: Duration = Duration::from_mins(5);

/// Something that takes a while.
pub(crate) type Step<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// Why a question has no answer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The server answered, but not as hoped; the connection is good.
    Answer(Error),
    /// The connection cannot be used any more.
    Lost(Error),
}

/// A server and everything one needs to ask it. Those that are equal share their connections.
pub(crate) trait Server: Clone + Eq + Hash + Send + Sync + 'static {
    /// A connection to it.
    type Connection: Send + 'static;
    /// What is asked.
    type Question: Send + Sync;
    /// What it says.
    type Said: Send;

    /// How many connections there are at most.
    const AT_ONCE: usize;

    /// How it is named in errors, without secrets.
    fn name(&self) -> String;

    /// How long an answer may take, the connection and waiting for others included.
    fn within(&self) -> Duration;

    /// Makes a connection.
    fn connect(&self) -> Step<'_, Self::Connection, Error>;

    /// Asks.
    fn ask<'a>(
        &'a self,
        connection: &'a mut Self::Connection,
        question: &'a Self::Question,
    ) -> Step<'a, Self::Said, Fault>;
}

/// All pools of one kind of server.
pub(crate) struct Pools<S: Server>(Mutex<HashMap<S, Weak<Pool<S>>>>);

/// The connections to one server.
pub(crate) struct Pool<S: Server> {
    server: S,
    slots: Semaphore,
    kept: Mutex<Kept<S::Connection>>,
}

struct Kept<C> {
    idle: Vec<(C, Instant)>,
    failure: Option<Failure>,
}

/// The last attempt to connect, if it failed.
#[derive(Clone)]
struct Failure {
    error: Error,
    wait: Duration,
    until: Instant,
}

impl<S: Server> Default for Pools<S> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<S: Server> Pools<S> {
    /// The pool of a server.
    pub(crate) fn of(&self, server: &S) -> Arc<Pool<S>> {
        let mut pools = locked(&self.0);
        if let Some(pool) = pools.get(server).and_then(Weak::upgrade) {
            return pool;
        }
        pools.retain(|_, pool| pool.strong_count() > 0);
        let pool = Arc::new(Pool::new(server.clone()));
        pools.insert(server.clone(), Arc::downgrade(&pool));
        pool
    }
}

impl<S: Server> Pool<S> {
    fn new(server: S) -> Self {
        let kept = Mutex::new(Kept { idle: Vec::new(), failure: None });
        Self { server, slots: Semaphore::new(S::AT_ONCE), kept }
    }

    /// Asks the server, over a connection that is kept or a new one.
    pub(crate) async fn ask(&self, question: &S::Question) -> Result<S::Said, Error> {
        let within = self.server.within();
        let deadline = Instant::now() + within;
        match timeout_at(deadline, self.attempts(question)).await {
            Ok(answer) => answer,
            Err(_) => {
                let error = Error::new(format!("{}: no answer within {within:?}", self.server.name()));
                Err(error)
            }
        }
    }

    async fn attempts(&self, question: &S::Question) -> Result<S::Said, Error> {
        // Closed only when a process ends.
        let Ok(_slot) = self.slots.acquire().await else { return Err(Error::new("shutting down")) };
        loop {
            let (mut connection, used) = match self.idle() {
                Some(connection) => (connection, true),
                None => (self.connect().await?, false),
            };
            match self.server.ask(&mut connection, question).await {
                Ok(said) => {
                    self.keep(connection);
                    return Ok(said);
                }
                Err(Fault::Answer(error)) => {
                    self.keep(connection);
                    return Err(error);
                }
                // The server went away since it was last asked; the others are just as dead.
                Err(Fault::Lost(_)) if used => locked(&self.kept).idle.clear(),
                Err(Fault::Lost(error)) => return Err(error),
            }
        }
    }

    async fn connect(&self) -> Result<S::Connection, Error> {
        if let Some(failure) = locked(&self.kept).failure.clone()
            && Instant::now() < failure.until
        {
            return Err(failure.error);
        }
        // Whoever asks may give up while we wait: an attempt that was dropped has failed, too.
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
        let mut kept = locked(&self.kept);
        let now = Instant::now();
        kept.idle.retain(|(_, since)| now.duration_since(*since) < IDLE);
        kept.idle.pop().map(|(connection, _)| connection)
    }

    fn keep(&self, connection: S::Connection) {
        locked(&self.kept).idle.push((connection, Instant::now()));
    }
}

/// Notes how an attempt to connect ended, however it ended.
struct Attempt<'a, S: Server> {
    pool: &'a Pool<S>,
    error: Option<Error>,
    made: bool,
}

impl<S: Server> Drop for Attempt<'_, S> {
    fn drop(&mut self) {
        let mut kept = locked(&self.pool.kept);
        if self.made {
            kept.failure = None;
            return;
        }
        let wait = kept.failure.as_ref().map_or(FIRST_WAIT, |failure| (failure.wait * 2).min(LONGEST_WAIT));
        let error = self.error.take().unwrap_or_else(|| {
            Error::new(format!("{}: did not accept a connection in time", self.pool.server.name()))
        });
        kept.failure = Some(Failure { error, wait, until: Instant::now() + wait });
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
