//! A request that is to be sent: bounded in number, not sent during a pause of its source, and conditional if its response is known.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use http::StatusCode;
use http::header::IF_NONE_MATCH;
use locks::MutexExt as _;
use runtime::Clock;
use sources::http::{HttpClient, HttpError, HttpErrorCause, HttpRequest, HttpResponse};
use sources::tenant::{NamespaceParts, namespace};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use super::call::MAX_RESPONSE_BYTES;
use super::etags::Etags;
use super::quota::{self, Quotas};
use super::{
    HttpResult, MAX_NAMESPACE_REQUESTS_PER_SERVER, MAX_PERMIT_TIME, MAX_REQUESTS_PER_SERVER,
    NAMESPACE_RESPONSES, RequestKey, request_log, response_budget_of,
};

/// A request that is to be sent. Its timeout begins when it is sent: requests of one trigger do not share a deadline.
pub(super) struct OutgoingRequest {
    pub(super) client: HttpClient,
    pub(super) request: HttpRequest,
    /// Bounds the requests to one server under way.
    pub(super) permits: Arc<ServerPermits>,
    /// Whether it waits for them.
    pub(super) wait: Arc<PermitWait>,
    pub(super) quotas: Arc<Mutex<Quotas>>,
    /// Identifies the caller and the server, for pauses.
    pub(super) caller: RequestKey,
    pub(super) etags: Arc<Mutex<Etags>>,
    /// Identifies the response; none if it cannot be used again.
    pub(super) response: Option<RequestKey>,
    pub(super) clock: Clock,
}

/// Permits of requests to one server, of which a namespace has a part if there are several.
pub(super) struct ServerPermits {
    all: Semaphore,
    parts: NamespaceParts<Semaphore>,
}

/// The wait of a request for the permits of its namespace.
pub(super) struct PermitWait {
    /// The namespace for which the request is sent.
    namespace: Option<Arc<str>>,
    is_over: AtomicBool,
}

/// A permit of one request.
struct RequestPermit<'a> {
    _of_part: Option<SemaphorePermit<'a>>,
    _of_all: Option<SemaphorePermit<'a>>,
}

impl Default for ServerPermits {
    fn default() -> Self {
        let parts = NamespaceParts::new(|| Semaphore::new(MAX_NAMESPACE_REQUESTS_PER_SERVER));
        Self { all: Semaphore::new(MAX_REQUESTS_PER_SERVER), parts }
    }
}

impl PermitWait {
    /// The wait of a request that is sent for the current namespace.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { namespace: namespace(), is_over: AtomicBool::new(false) })
    }

    /// Whether the current caller, who would send an equal request, may wait for the response. Those of other namespaces do not wait
    /// for the permits of this one, and not for its memory while that is used up.
    pub(super) fn may_join(&self) -> bool {
        let has_memory = |namespace| NAMESPACE_RESPONSES.of(namespace).has_room(MAX_RESPONSE_BYTES);
        self.namespace == namespace()
            || self.is_over.load(Ordering::Relaxed) && self.namespace.as_ref().is_none_or(has_memory)
    }
}

impl ServerPermits {
    /// Waits for a permit. That of the namespace is first: a request that waits for others of its namespace holds nothing that others
    /// wait for.
    async fn acquire<'a>(&'a self, part: Option<&'a Semaphore>) -> RequestPermit<'a> {
        // The semaphores are never closed.
        let of_part = match part {
            Some(part) => part.acquire().await.ok(),
            None => None,
        };
        RequestPermit { _of_part: of_part, _of_all: self.all.acquire().await.ok() }
    }
}

impl OutgoingRequest {
    /// Sends the request, unless its source requires a pause.
    pub(super) async fn send(self) -> HttpResult {
        let Self { client, request, permits, wait, quotas, caller, etags, response, clock } = self;
        let limited = |cause: HttpErrorCause| HttpError { server: client.server().to_owned(), cause };
        let refusal =
            || quotas.locked().refusal(caller, Instant::now()).map_or(Ok(()), |cause| Err(limited(cause)));
        refusal()?;
        let namespace = wait.namespace.as_ref();
        let part = namespace.and_then(|namespace| permits.parts.of_several(namespace));
        let permit = permits.acquire(part.as_deref()).await;
        wait.is_over.store(true, Ordering::Relaxed);
        // Another request may have met the limit meanwhile.
        refusal()?;
        let known = response.and_then(|key| etags.locked().get(key, Instant::now()));
        let request = match &known {
            Some(known) => request.header(IF_NONE_MATCH, known.etag.clone()),
            None => request,
        };
        let request = request.budget(response_budget_of(namespace));
        let mut sending = std::pin::pin!(request_log::recorded(client.send(request)));
        let answer = match timeout(MAX_PERMIT_TIME, &mut sending).await {
            Ok(answer) => answer?,
            Err(_) => {
                drop(permit);
                sending.await?
            }
        };
        let (now, wall) = (Instant::now(), clock.now());
        if let Some(pause) = quota::pause(answer.status, &answer.headers, wall) {
            let cause = quotas.locked().note(caller, &pause, now, wall);
            if quota::is_refusal(answer.status) {
                return Err(limited(cause));
            }
        }
        match (known, response) {
            (Some(known), _) if answer.status == StatusCode::NOT_MODIFIED => {
                Ok(HttpResponse { status: known.status, headers: answer.headers, body: known.body })
            }
            (_, Some(key)) => {
                etags.locked().keep(key, &answer, now);
                Ok(answer)
            }
            _ => Ok(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;
    use sources::tenant::in_namespace;

    use super::*;
    use crate::test_support::{ServerAction, server};
    use crate::web::{HttpCall, HttpSettings, SharedHttpClient};

    #[test]
    fn requests_of_one_namespace_leave_permits_to_others() {
        let permits = ServerPermits::default();
        let held = |namespace: &str| {
            let part = permits.parts.of_several(&namespace.into());
            // The permits are counted before they are returned.
            let mut held = Vec::new();
            while let Some(permit) = permits.acquire(part.as_deref()).now_or_never() {
                held.push(permit);
            }
            held.len()
        };
        assert_eq!(held("slow"), MAX_REQUESTS_PER_SERVER, "an only namespace has all");
        assert_eq!(held("other"), MAX_NAMESPACE_REQUESTS_PER_SERVER);
        let (slow, other) = (permits.parts.of(&"slow".into()), permits.parts.of(&"other".into()));
        let mut held = Vec::new();
        while let Some(permit) = permits.acquire(Some(&slow)).now_or_never() {
            held.push(permit);
        }
        assert_eq!(held.len(), MAX_NAMESPACE_REQUESTS_PER_SERVER);
        assert!(permits.acquire(Some(&other)).now_or_never().is_some());
        held.pop();
        assert!(permits.acquire(Some(&slow)).now_or_never().is_some());
    }

    #[tokio::test]
    async fn callers_do_not_wait_for_memory_of_another_namespace() {
        let wait = in_namespace("full", async { PermitWait::new() }).await;
        let may_join = async |namespace: &str| in_namespace(namespace, async { wait.may_join() }).await;
        wait.is_over.store(true, Ordering::Relaxed);
        assert!(may_join("other").await);
        let part = NAMESPACE_RESPONSES.of(&"full".into());
        let held = part.share(usize::MAX).await;
        assert!(may_join("full").await && !may_join("other").await);
        drop(held);
        assert!(may_join("other").await);
    }

    #[tokio::test]
    async fn callers_do_not_wait_for_permits_of_another_namespace() {
        let url = server(|head| {
            if head.starts_with("GET /slow") {
                return ServerAction::Hang;
            }
            ServerAction::Answer(200, "1".to_owned())
        })
        .await;
        let web = Arc::new(SharedHttpClient::new(HttpSettings::allowing_loopback()));
        let send = |namespace: &'static str, path: String| {
            let (web, call) =
                (Arc::clone(&web), HttpCall::get(format!("{url}{path}"), Duration::from_mins(1)));
            Box::pin(in_namespace(namespace, async move { web.send(call).await }))
        };
        assert!(send("other", "/first".to_owned()).await.is_ok());
        let mut waiting: Vec<_> = (0..MAX_NAMESPACE_REQUESTS_PER_SERVER)
            .map(|number| send("slow", format!("/slow/{number}")))
            .collect();
        waiting.push(send("slow", "/same".to_owned()));
        for request in &mut waiting {
            assert!(futures::poll!(request).is_pending());
            // A task may take a limited number of permits before it yields.
            tokio::task::yield_now().await;
        }
        let same = timeout(Duration::from_mins(1), send("other", "/same".to_owned())).await;
        assert!(same.unwrap().is_ok());
    }
}
