//! The HTTP client of all scalers: connections per server, and one request for all callers that send the same.
//!
//! ```text
//! call       an HTTP request
//! clients    the clients of all servers
//! outgoing   a request on its way
//! quota      pauses that sources require (`Retry-After`, rate limits)
//! etags      responses that a server can confirm
//! request_log requests sent during a read, for exported metrics
//! progress   deadline of a read that sends many requests
//! max_age    maximum age of shared responses
//! escape     escapes of URLs
//! settings   HTTP settings of the process
//! ```

mod call;
mod clients;
mod escape;
mod etags;
mod max_age;
mod outgoing;
mod progress;
mod quota;
mod request_log;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use locks::MutexExt as _;
use sources::dial::Dialer;
use sources::http::{
    ByteBudget, Endpoint, HttpClient, HttpError, HttpRequest, HttpResponse, StreamedResponse,
};
use sources::tenant::{NamespaceParts, namespace};
use tokio::time::Instant;

use crate::off_thread;
pub use api::url_escape::{path_unescaped, query_unescaped};
pub use call::HttpCall;
use clients::{ClientId, Clients};
pub use escape::{escaped, path_escaped};
use etags::Etags;
pub use max_age::with_max_age_after;
pub(crate) use max_age::{allowed as allowed_age, used as response_used};
use outgoing::{OutgoingRequest, PermitWait, ServerPermits};
pub use progress::with_request_deadline;
use quota::Quotas;
pub use request_log::{RequestLog, SentRequest, count_empty_response, with_request_log};
pub use settings::HttpSettings;

/// Responses larger than this are not shared with later callers, in bytes.
const MAX_SHARED_RESPONSE_BYTES: usize = 64 << 10;
/// Maximum size of all responses under way together, in bytes; the first 64 KiB of each response do not count.
const MAX_RESPONSE_BYTES_UNDER_WAY: usize = 64 << 20;
/// The same of the triggers of one namespace: sources of a tenant may answer as slowly as the timeouts of the triggers allow.
const MAX_NAMESPACE_RESPONSE_BYTES: usize = MAX_RESPONSE_BYTES_UNDER_WAY / 2;
/// Maximum number of requests under way to one server with the same credentials.
const MAX_REQUESTS_PER_SERVER: usize = 64;
/// The same for the triggers of one namespace, whose queries may be slow.
const MAX_NAMESPACE_REQUESTS_PER_SERVER: usize = 48;
/// Requests that take longer do not count any more, so that slow queries of one tenant do not stop those of others at the same server.
const MAX_PERMIT_TIME: Duration = Duration::from_secs(3);

/// The budget of all responses under way in this process, also of those over other protocols than HTTP.
static RESPONSES_UNDER_WAY: LazyLock<ByteBudget> =
    LazyLock::new(|| ByteBudget::new(MAX_RESPONSE_BYTES_UNDER_WAY));
/// The parts of that budget that single namespaces may have.
static NAMESPACE_RESPONSES: NamespaceParts<ByteBudget> =
    NamespaceParts::new(|| ByteBudget::new(MAX_NAMESPACE_RESPONSE_BYTES));

/// The budget of a response for the current namespace.
pub(crate) fn response_budget() -> ByteBudget {
    response_budget_of(namespace().as_ref())
}

/// The budget of a response for a namespace.
fn response_budget_of(namespace: Option<&Arc<str>>) -> ByteBudget {
    match namespace {
        Some(namespace) => RESPONSES_UNDER_WAY.within(NAMESPACE_RESPONSES.of(namespace)),
        None => RESPONSES_UNDER_WAY.clone(),
    }
}

type CannedAnswer = dyn Fn(&HttpCall) -> HttpResponse + Send + Sync;
type HttpResult = Result<HttpResponse, HttpError>;
/// A shared future of a response and the time it arrived.
type SharedResponse = Shared<BoxFuture<'static, (HttpResult, Instant)>>;

/// The HTTP client of all scalers.
pub struct SharedHttpClient {
    settings: HttpSettings,
    clients: Mutex<Clients>,
    shared_requests: Arc<Mutex<SharedRequests>>,
    quotas: Arc<Mutex<Quotas>>,
    etags: Arc<Mutex<Etags>>,
    /// Answers instead of servers, for fuzzing.
    canned: Option<Box<CannedAnswer>>,
}

/// Requests in flight and recent responses.
#[derive(Default)]
struct SharedRequests {
    by_key: HashMap<RequestKey, SharedEntry>,
    /// When old responses were last removed.
    swept: Option<Instant>,
    /// The largest maximum age used so far.
    longest: Duration,
    hashers: [RandomState; 2],
}

/// Identity of a request: two hashes of it, because requests are many and mostly longer than their responses.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct RequestKey([u64; 2]);

enum SharedEntry {
    /// In flight; dropped if no caller waits for it.
    InFlight {
        begun: Instant,
        wait: Arc<PermitWait>,
        response: WeakShared<BoxFuture<'static, (HttpResult, Instant)>>,
    },
    /// A recent response.
    RecentResponse(RecentResponse),
}

/// A response without its headers, which are mostly longer than the body.
#[derive(Clone)]
struct RecentResponse {
    /// When its request began.
    begun: Instant,
    /// When it arrived.
    at: Instant,
    status: StatusCode,
    body: Bytes,
}

impl SharedHttpClient {
    /// Creates a client without connections.
    pub fn new(settings: HttpSettings) -> Self {
        Self {
            settings,
            clients: Mutex::default(),
            shared_requests: Arc::default(),
            quotas: Arc::default(),
            etags: Arc::default(),
            canned: None,
        }
    }

    /// A client whose requests are answered by a function and never sent.
    #[doc(hidden)]
    pub fn answered_by(answer: impl Fn(&HttpCall) -> HttpResponse + Send + Sync + 'static) -> Self {
        Self { canned: Some(Box::new(answer)), ..Self::new(HttpSettings::default()) }
    }

    /// The current time.
    pub(crate) fn now(&self) -> Timestamp {
        self.settings.clock.now()
    }

    /// The settings of the process.
    pub fn settings(&self) -> &HttpSettings {
        &self.settings
    }

    /// Sends a request. Callers that send the same (`GET` or [`HttpCall::post_query`]: server, credentials, path, headers, body)
    /// concurrently, or within the time of [`with_max_age_after`] or else [`HttpSettings::fresh`], share one response (later callers get
    /// it without headers); errors are shared only by concurrent callers. During a pause that a source required, nothing is
    /// sent: the request fails with [`HttpErrorCause::RateLimited`](sources::http::HttpErrorCause::RateLimited).
    pub async fn send(&self, call: HttpCall) -> HttpResult {
        off_thread::send_from_task().await;
        let answer = self.answer(call).await;
        request_log::answered(&answer);
        if answer.is_ok() {
            progress::responded();
        }
        off_thread::decode_elsewhere(answer.as_ref().map_or(0, |answer| answer.body.len())).await;
        answer
    }

    /// Sends a request and returns its response as it arrives: for responses without an end, which count in no limit of requests.
    pub(crate) async fn stream(&self, call: HttpCall) -> Result<StreamedResponse, HttpError> {
        let (endpoint, path) = call.source(&self.settings);
        let (_, _, client) = self.client((endpoint, call.own_address))?;
        let request = HttpRequest::new(call.method, path).headers(call.headers).body(call.body);
        client.stream(request.timeout(call.within).max_bytes(call.at_most)).await
    }

    async fn answer(&self, call: HttpCall) -> HttpResult {
        if let Some(canned) = &self.canned {
            return Ok(canned(&call));
        }
        let (endpoint, path) = call.source(&self.settings);
        let shared = call.is_shared();
        let HttpCall { method, headers, body, within, at_most, same_as, own_address, signers, .. } = call;
        let names_caller = quota::names_caller(&endpoint, &headers);
        let (id, permits, client) = self.client((endpoint, own_address))?;
        let (key, caller) = {
            let values = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
            let values: Vec<_> = values.collect();
            let requests = self.shared_requests.locked();
            let same = same_as.as_deref().unwrap_or(&path);
            let key = shared.then(|| requests.key(&(id, same, &body, &values, within)));
            let caller = if signers.is_empty() {
                requests.key(&(id, (!names_caller).then_some((same, &body)), &values))
            } else {
                requests.key(&(id, &signers))
            };
            (key, caller)
        };
        let request = HttpRequest::new(method, path).headers(headers).body(body).timeout(within);
        let outgoing = OutgoingRequest {
            client,
            request: request.max_bytes(at_most),
            permits,
            wait: PermitWait::new(),
            quotas: Arc::clone(&self.quotas),
            caller,
            etags: Arc::clone(&self.etags),
            // A response to another URL is no response to this one.
            response: key.filter(|_| same_as.is_none()),
            clock: self.settings.clock.clone(),
        };
        let Some(key) = key else {
            // In a box, because it is much larger than the rest of the future.
            let answer = Box::pin(outgoing.send()).await;
            max_age::used(Instant::now());
            return answer;
        };
        let (answer, at) = match self.join(key, outgoing) {
            Ok(RecentResponse { at, status, body, .. }) => {
                (Ok(HttpResponse { status, headers: HeaderMap::new(), body }), at)
            }
            Err(shared) => shared.await,
        };
        max_age::used(at);
        answer
    }

    /// The recent response, or the future of the one in flight.
    fn join(&self, key: RequestKey, outgoing: OutgoingRequest) -> Result<RecentResponse, SharedResponse> {
        let fresh = max_age::allowed().unwrap_or(self.settings.fresh);
        let mut shared_requests = self.shared_requests.locked();
        let now = Instant::now();
        match shared_requests.by_key.get(&key) {
            Some(SharedEntry::RecentResponse(recent)) if now.duration_since(recent.at) < fresh => {
                return Ok(recent.clone());
            }
            Some(SharedEntry::InFlight { begun, wait, response })
                if max_age::may_join(*begun) && wait.may_join() =>
            {
                if let Some(shared) = response.upgrade() {
                    return Err(shared);
                }
            }
            _ => {}
        }
        shared_requests.sweep(now, fresh);
        let (all, wait) = (Arc::clone(&self.shared_requests), Arc::clone(&outgoing.wait));
        let shared: Pin<Box<dyn Future<Output = (HttpResult, Instant)> + Send>> = Box::pin(async move {
            let answer = outgoing.send().await;
            let at = Instant::now();
            let mut all = all.locked();
            if all.has_newer(key, now) {
                return (answer, at);
            }
            match &answer {
                Ok(answer)
                    if answer.body.len() <= MAX_SHARED_RESPONSE_BYTES && answer.status.is_success() =>
                {
                    // A copy, because the body is a slice of a larger buffer.
                    let body = Bytes::copy_from_slice(&answer.body);
                    let recent = RecentResponse { begun: now, at, status: answer.status, body };
                    all.by_key.insert(key, SharedEntry::RecentResponse(recent));
                }
                _ => {
                    all.by_key.remove(&key);
                }
            }
            (answer, at)
        });
        let shared = shared.shared();
        if let Some(response) = shared.downgrade() {
            shared_requests.by_key.insert(key, SharedEntry::InFlight { begun: now, wait, response });
        }
        Err(shared)
    }

    fn client(
        &self,
        server: (Endpoint, bool),
    ) -> Result<(ClientId, Arc<ServerPermits>, HttpClient), HttpError> {
        let own_address = server.1;
        self.clients.locked().client(server, |endpoint| {
            let dialer = if own_address { Dialer::unrestricted() } else { self.settings.dialer.clone() };
            HttpClient::with_proxies(endpoint, dialer, &self.settings.proxies)
        })
    }
}

impl SharedRequests {
    fn key(&self, parts: &impl std::hash::Hash) -> RequestKey {
        let [one, other] = &self.hashers;
        RequestKey([one.hash_one(parts), other.hash_one(parts)])
    }

    /// Whether there is an equal request that began later, because its caller might not join the one that began at this time.
    fn has_newer(&self, key: RequestKey, begun: Instant) -> bool {
        self.by_key.get(&key).is_some_and(|entry| match entry {
            SharedEntry::InFlight { begun: other, .. } => *other > begun,
            SharedEntry::RecentResponse(recent) => recent.begun > begun,
        })
    }

    /// Removes old responses, so that at most those of twice the maximum age are kept.
    fn sweep(&mut self, now: Instant, fresh: Duration) {
        self.longest = self.longest.max(fresh);
        let longest = self.longest;
        if self.by_key.len() < 64 || self.swept.is_some_and(|swept| now.duration_since(swept) < longest) {
            return;
        }
        self.swept = Some(now);
        self.by_key.retain(|_, state| match state {
            SharedEntry::InFlight { response, .. } => response.upgrade().is_some(),
            SharedEntry::RecentResponse(recent) => now.duration_since(recent.at) < longest,
        });
    }
}
