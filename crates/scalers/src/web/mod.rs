//! HTTP that scalers share: connections per server, and one request for all who ask the same.
//!
//! ```text
//! call      what is asked, and of whom
//! text      escapes of URLs
//! settings  what the process was told: time, TLS, trust
//! ```

mod call;
mod settings;
#[cfg(test)]
mod tests;
mod text;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use sources::http::{Ask, Client, Endpoint, Error, Response};
use tokio::time::Instant;

pub use call::Call;
pub use settings::Settings;
pub use text::{escaped, path_escaped, unescaped};

/// Answers larger than this are not kept for those who ask a moment later.
const KEPT_AT_MOST: usize = 64 << 10;
/// Connections to a server that nobody asked for so long are given up.
const UNUSED: Duration = Duration::from_mins(10);

type Answer = Result<Response, Error>;
type Flight = Shared<BoxFuture<'static, Answer>>;

/// Asks servers on behalf of all scalers of a process.
pub struct Web {
    settings: Settings,
    clients: Mutex<Clients>,
    asked: Arc<Mutex<Asked>>,
}

#[derive(Default)]
struct Clients {
    by_endpoint: HashMap<Arc<Endpoint>, (Client, Instant)>,
}

/// Questions, and what became of them.
#[derive(Default)]
struct Asked {
    by_question: HashMap<Question, State>,
    /// When old ones were last looked for.
    swept: Option<Instant>,
}

/// What makes two questions the same.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Question {
    endpoint: Arc<Endpoint>,
    path: String,
    headers: Vec<(String, Vec<u8>)>,
    within: Duration,
}

enum State {
    /// On its way; gone if nobody waits any more.
    Flying(WeakShared<BoxFuture<'static, Answer>>),
    /// Answered not long ago.
    Landed(Instant, Response),
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

    /// Asks. Who asks the same (`GET`, server, credentials, path, headers) at the same time or within
    /// [`Settings::fresh`] gets the same answer (the later ones without its headers); errors are shared only by those who
    /// wait for them.
    pub async fn ask(&self, call: Call) -> Answer {
        let (endpoint, path) = call.place(&self.settings);
        let shared = call.is_shared();
        let Call { method, headers, body, within, at_most, same_as, .. } = call;
        let (endpoint, client) = self.client(endpoint)?;
        let ask =
            Ask::new(method, &*path).headers(headers.clone()).body(body).within(within).at_most(at_most);
        if !shared {
            return client.send(ask).await;
        }
        let headers =
            headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
        let question = Question { endpoint, path: same_as.unwrap_or(path), headers, within };
        match self.join(question, client, ask) {
            Ok(answer) => Ok(answer),
            Err(flight) => flight.await,
        }
    }

    /// The kept answer, or the flight that brings it.
    fn join(&self, question: Question, client: Client, ask: Ask) -> Result<Response, Flight> {
        let mut asked = locked(&self.asked);
        let now = Instant::now();
        match asked.by_question.get(&question) {
            Some(State::Landed(at, answer)) if now.duration_since(*at) < self.settings.fresh => {
                return Ok(answer.clone());
            }
            Some(State::Flying(flight)) => {
                if let Some(flight) = flight.upgrade() {
                    return Err(flight);
                }
            }
            _ => {}
        }
        asked.sweep(now, self.settings.fresh);
        let (all, key) = (Arc::clone(&self.asked), question.clone());
        let flight: Pin<Box<dyn Future<Output = Answer> + Send>> = Box::pin(async move {
            let answer = client.send(ask).await;
            let mut all = locked(&all);
            match &answer {
                Ok(answer) if answer.body.len() <= KEPT_AT_MOST && answer.status.is_success() => {
                    // Headers are mostly longer than what scalers ask for.
                    let kept = Response { headers: http::HeaderMap::new(), ..answer.clone() };
                    all.by_question.insert(key, State::Landed(Instant::now(), kept));
                }
                _ => {
                    all.by_question.remove(&key);
                }
            }
            answer
        });
        let flight = flight.shared();
        if let Some(weak) = flight.downgrade() {
            asked.by_question.insert(question, State::Flying(weak));
        }
        Err(flight)
    }

    fn client(&self, endpoint: Endpoint) -> Result<(Arc<Endpoint>, Client), Error> {
        let now = Instant::now();
        let mut clients = locked(&self.clients);
        let known = clients.by_endpoint.get_key_value(&endpoint).map(|(known, _)| Arc::clone(known));
        if let Some(known) = known
            && let Some((client, used)) = clients.by_endpoint.get_mut(&known)
        {
            *used = now;
            return Ok((known, client.clone()));
        }
        clients.by_endpoint.retain(|_, (_, used)| now.duration_since(*used) < UNUSED);
        let client = Client::new(endpoint.clone())?;
        let endpoint = Arc::new(endpoint);
        clients.by_endpoint.insert(Arc::clone(&endpoint), (client.clone(), now));
        Ok((endpoint, client))
    }
}

impl Asked {
    /// Forgets old answers, so that there are never more than were asked for within twice the time they are good for.
    fn sweep(&mut self, now: Instant, fresh: Duration) {
        if self.by_question.len() < 64 || self.swept.is_some_and(|swept| now.duration_since(swept) < fresh) {
            return;
        }
        self.swept = Some(now);
        self.by_question.retain(|_, state| match state {
            State::Flying(flight) => flight.upgrade().is_some(),
            State::Landed(at, _) => now.duration_since(*at) < fresh,
        });
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
