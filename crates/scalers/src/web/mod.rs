//! The HTTP client of all scalers: connections per server, and one request for all callers that send the same.
//!
//! ```text
//! call      an HTTP request
//! account   requests sent during a read, for exported metrics
//! age       maximum age of shared responses
//! text      escapes of URLs
//! settings  HTTP settings of the process
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

pub use account::{RequestLog, SentRequest, count_empty_response, with_request_log};
pub use age::with_max_age;
pub use call::HttpCall;
pub use settings::HttpSettings;
pub use text::{escaped, path_escaped, unescaped};

/// Responses larger than this are not shared with later callers, in bytes.
const MAX_SHARED_RESPONSE_BYTES: usize = 64 << 10;
/// Connections to a server are dropped after this time without requests.
const CLIENT_IDLE_TIMEOUT: Duration = Duration::from_mins(10);

type Answer = Result<HttpResponse, HttpError>;
/// A shared future of a response and the time it arrived.
type Flight = Shared<BoxFuture<'static, (Answer, Instant)>>;

/// The HTTP client of all scalers.
pub struct SharedHttpClient {
    settings: HttpSettings,
    clients: Mutex<Clients>,
    asked: Arc<Mutex<Asked>>,
}

#[derive(Default)]
struct Clients {
    by_endpoint: HashMap<Endpoint, Known>,
    /// Number of clients created so far.
    made: u64,
}

/// The client of one server.
struct Known {
    client: HttpClient,
    /// Unique number of this server, TLS settings and credentials.
    number: u64,
    used: Instant,
}

/// Requests in flight and recent responses.
#[derive(Default)]
struct Asked {
    by_question: HashMap<Question, State>,
    /// When old responses were last removed.
    swept: Option<Instant>,
    /// The largest maximum age used so far.
    longest: Duration,
    hashers: [RandomState; 2],
}

/// Identity of a request: two hashes of it, because requests are many and mostly longer than their responses.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Question([u64; 2]);

enum State {
    /// In flight; dropped if no caller waits for it.
    Flying(WeakShared<BoxFuture<'static, (Answer, Instant)>>),
    /// A recent response.
    Landed(Landed),
}

/// A response without its headers, which are mostly longer than the body.
#[derive(Clone)]
struct Landed {
    at: Instant,
    status: StatusCode,
    body: Bytes,
}

impl SharedHttpClient {
    /// Creates a client without connections.
    pub fn new(settings: HttpSettings) -> Self {
        Self { settings, clients: Mutex::default(), asked: Arc::default() }
    }

    /// The settings of the process.
    pub fn settings(&self) -> &HttpSettings {
        &self.settings
    }

    /// Sends a request. Callers that send the same (`GET`, server, credentials, path, headers) concurrently, or within the time of
    /// [`with_max_age`] or else [`HttpSettings::fresh`], share one response (later callers get it without headers);
    /// errors are shared only by concurrent callers.
    pub async fn ask(&self, call: HttpCall) -> Answer {
        let (endpoint, path) = call.place(&self.settings);
        let shared = call.is_shared();
        let HttpCall { method, headers, body, within, at_most, same_as, .. } = call;
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

    /// The recent response, or the future of the one in flight.
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
                Ok(answer)
                    if answer.body.len() <= MAX_SHARED_RESPONSE_BYTES && answer.status.is_success() =>
                {
                    // A copy, because the body is a slice of a larger buffer.
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
        clients.by_endpoint.retain(|_, known| now.duration_since(known.used) < CLIENT_IDLE_TIMEOUT);
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

    /// Removes old responses, so that at most those of twice the maximum age are kept.
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
