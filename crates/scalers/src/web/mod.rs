//! HTTP that scalers share: connections per server, and one request for all who ask the same.
//!
//! ```text
//! call      what is asked, and of whom
//! account   what was sent, for figures
//! age       how old an answer may be for whoever asks now
//! text      escapes of URLs
//! settings  what the process was told: time, TLS, trust
//! ```

mod account;
mod age;
mod call;
mod settings;
#[cfg(test)]
mod tests;
mod text;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use http::{HeaderMap, StatusCode};
use sources::http::{Endpoint, HttpClient, HttpError, HttpRequest, HttpResponse};
use tokio::time::Instant;

pub use account::{Account, Sent, accounted, empty};
pub use age::no_older_than;
pub use call::Call;
pub use settings::Settings;
pub use text::{escaped, path_escaped, unescaped};

/// Answers larger than this are not kept for those who ask a moment later.
const KEPT_AT_MOST: usize = 64 << 10;
/// Connections to a server that nobody asked for so long are given up.
const UNUSED: Duration = Duration::from_mins(10);

type Answer = Result<HttpResponse, HttpError>;
/// An answer, and when it came.
type Flight = Shared<BoxFuture<'static, (Answer, Instant)>>;

/// Asks servers on behalf of all scalers of a process.
pub struct Web {
    settings: Settings,
    clients: Mutex<Clients>,
    asked: Arc<Mutex<Asked>>,
}

#[derive(Default)]
struct Clients {
    by_endpoint: HashMap<Endpoint, Known>,
    /// How many there have been.
    made: u64,
}

/// Connections to a server.
struct Known {
    client: HttpClient,
    /// No other server, trust or credentials have had it.
    number: u64,
    used: Instant,
}

/// Questions, and what became of them.
#[derive(Default)]
struct Asked {
    by_question: HashMap<Question, State>,
    /// When old ones were last looked for.
    swept: Option<Instant>,
    /// The oldest that anybody was content with.
    longest: Duration,
    hashers: [RandomState; 2],
}

/// What makes two questions the same: two hashes of everything, since questions are many and mostly longer than their answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Question([u64; 2]);

enum State {
    /// On its way; gone if nobody waits any more.
    Flying(WeakShared<BoxFuture<'static, (Answer, Instant)>>),
    /// Answered not long ago.
    Landed(Landed),
}

/// An answer without its headers, which are mostly longer than what scalers ask for.
#[derive(Clone)]
struct Landed {
    at: Instant,
    status: StatusCode,
    body: Bytes,
}

impl Web {
    /// Nobody was asked yet.
    pub fn new(settings: Settings) -> Self {
        Self { settings, clients: Mutex::default(), asked: Arc::default() }
    }

    /// What the process was told.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Asks. Who asks the same (`GET`, server, credentials, path, headers) at the same time, or no later than
    /// [`no_older_than`] or else [`Settings::fresh`] says, gets the same answer (the later ones without its headers);
    /// errors are shared only by those who wait for them.
    pub async fn ask(&self, call: Call) -> Answer {
        let (endpoint, path) = call.place(&self.settings);
        let shared = call.is_shared();
        let Call { method, headers, body, within, at_most, same_as, .. } = call;
        let (number, client) = self.client(endpoint)?;
        if !shared {
            let ask =
                HttpRequest::new(method, path).headers(headers).body(body).timeout(within).max_bytes(at_most);
            let answer = account::counted(client.send(ask)).await;
            age::used(Instant::now());
            return answer;
        }
        let question = {
            let same = same_as.as_deref().unwrap_or(&path);
            let values = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
            locked(&self.asked).question(&(number, same, values.collect::<Vec<_>>(), within))
        };
        let ask =
            HttpRequest::new(method, path).headers(headers).body(body).timeout(within).max_bytes(at_most);
        let (answer, at) = match self.join(question, client, ask) {
            Ok(Landed { at, status, body }) => {
                (Ok(HttpResponse { status, headers: HeaderMap::new(), body }), at)
            }
            Err(flight) => flight.await,
        };
        age::used(at);
        answer
    }

    /// The kept answer, or the flight that brings it.
    fn join(&self, question: Question, client: HttpClient, ask: HttpRequest) -> Result<Landed, Flight> {
        let fresh = age::allowed().unwrap_or(self.settings.fresh);
        let mut asked = locked(&self.asked);
        let now = Instant::now();
        match asked.by_question.get(&question) {
            Some(State::Landed(landed)) if now.duration_since(landed.at) < fresh => {
                return Ok(landed.clone());
            }
            Some(State::Flying(flight)) => {
                if let Some(flight) = flight.upgrade() {
                    return Err(flight);
                }
            }
            _ => {}
        }
        asked.sweep(now, fresh);
        let all = Arc::clone(&self.asked);
        let flight: Pin<Box<dyn Future<Output = (Answer, Instant)> + Send>> = Box::pin(async move {
            let answer = account::counted(client.send(ask)).await;
            let at = Instant::now();
            let mut all = locked(&all);
            match &answer {
                Ok(answer) if answer.body.len() <= KEPT_AT_MOST && answer.status.is_success() => {
                    // A copy: the body is a piece of all that was received.
                    let body = Bytes::copy_from_slice(&answer.body);
                    let landed = Landed { at, status: answer.status, body };
                    all.by_question.insert(question, State::Landed(landed));
                }
                _ => {
                    all.by_question.remove(&question);
                }
            }
            (answer, at)
        });
        let flight = flight.shared();
        if let Some(weak) = flight.downgrade() {
            asked.by_question.insert(question, State::Flying(weak));
        }
        Err(flight)
    }

    fn client(&self, endpoint: Endpoint) -> Result<(u64, HttpClient), HttpError> {
        let now = Instant::now();
        let mut clients = locked(&self.clients);
        if let Some(known) = clients.by_endpoint.get_mut(&endpoint) {
            known.used = now;
            return Ok((known.number, known.client.clone()));
        }
        clients.by_endpoint.retain(|_, known| now.duration_since(known.used) < UNUSED);
        let client = HttpClient::new(endpoint.clone())?;
        clients.made += 1;
        let number = clients.made;
        clients.by_endpoint.insert(endpoint, Known { client: client.clone(), number, used: now });
        Ok((number, client))
    }
}

impl Asked {
    fn question(&self, parts: &impl std::hash::Hash) -> Question {
        let [one, other] = &self.hashers;
        Question([one.hash_one(parts), other.hash_one(parts)])
    }

    /// Forgets old answers, so that there are never more than were asked for within twice the time they are good for.
    fn sweep(&mut self, now: Instant, fresh: Duration) {
        self.longest = self.longest.max(fresh);
        let longest = self.longest;
        if self.by_question.len() < 64 || self.swept.is_some_and(|swept| now.duration_since(swept) < longest)
        {
            return;
        }
        self.swept = Some(now);
        self.by_question.retain(|_, state| match state {
            State::Flying(flight) => flight.upgrade().is_some(),
            State::Landed(landed) => now.duration_since(landed.at) < longest,
        });
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
