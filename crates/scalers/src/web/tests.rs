//! Sharing of requests and responses.
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use locks::MutexExt as _;
use sources::tenant::in_namespace;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::*;

/// A server that echoes requests after a delay and counts them.
pub(crate) async fn server(gate: Option<Arc<Semaphore>>, status: u16) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shared_requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&shared_requests);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (gate, count) = (gate.clone(), Arc::clone(&count));
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                let mut piece = [0; 4096];
                loop {
                    let Ok(read @ 1..) = stream.read(&mut piece).await else { return };
                    bytes.extend_from_slice(piece.get(..read).unwrap());
                    if !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
                        continue;
                    }
                    count.fetch_add(1, Ordering::SeqCst);
                    if let Some(gate) = &gate {
                        gate.acquire().await.unwrap().forget();
                    }
                    let head = String::from_utf8_lossy(&bytes).into_owned();
                    bytes.clear();
                    let answer =
                        format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{head}", head.len());
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    (format!("http://{address}"), shared_requests)
}

const SECOND: Duration = Duration::from_secs(1);

fn web(fresh: Duration) -> Arc<SharedHttpClient> {
    Arc::new(SharedHttpClient::new(HttpSettings { fresh, ..HttpSettings::allowing_loopback() }))
}

#[tokio::test]
async fn concurrent_equal_requests_are_sent_once() {
    let gate = Arc::new(Semaphore::new(0));
    let (url, shared_requests) = server(Some(Arc::clone(&gate)), 200).await;
    let web = web(SECOND * 60);
    let all: Vec<_> = (0..1000)
        .map(|_| {
            let (web, url) = (Arc::clone(&web), url.clone());
            tokio::spawn(async move { web.send(HttpCall::get(format!("{url}/x?q=1"), SECOND * 10)).await })
        })
        .collect();
    tokio::task::yield_now().await;
    gate.add_permits(2);
    for one in all {
        assert!(one.await.unwrap().unwrap().body.starts_with(b"GET /x?q=1 "));
    }
    assert_eq!(shared_requests.load(Ordering::SeqCst), 1);
    // Also shortly after.
    web.send(HttpCall::get(format!("{url}/x?q=1"), SECOND * 10)).await.unwrap();
    assert_eq!(shared_requests.load(Ordering::SeqCst), 1);
    // Other requests are not shared.
    web.send(HttpCall::get(format!("{url}/x?q=2"), SECOND * 10)).await.unwrap();
    assert_eq!(shared_requests.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn requests_with_other_credentials_are_not_shared() {
    let (url, shared_requests) = server(None, 200).await;
    let web = web(SECOND * 60);
    let call = || HttpCall::get(&url, SECOND * 10);
    for password in ["a", "b", "a"] {
        let call = call().basic("me", &sources::http::Secret::new(password));
        web.send(call).await.unwrap();
    }
    assert_eq!(shared_requests.load(Ordering::SeqCst), 2);
    for tenant in ["a", "b", "b"] {
        web.send(call().header("X-Scope-OrgID", tenant).unwrap()).await.unwrap();
    }
    assert_eq!(shared_requests.load(Ordering::SeqCst), 4);
    // Requests with a body may have side effects.
    for _ in 0..2 {
        web.send(HttpCall::post(&url, "x", SECOND * 10)).await.unwrap();
    }
    assert_eq!(shared_requests.load(Ordering::SeqCst), 6);
    // Queries have none: they are shared if credentials and body are equal.
    for (password, body) in [("a", "x"), ("a", "x"), ("b", "x"), ("a", "y")] {
        let call = HttpCall::post_query(&url, body, SECOND * 10);
        web.send(call.basic("me", &sources::http::Secret::new(password))).await.unwrap();
    }
    assert_eq!(shared_requests.load(Ordering::SeqCst), 9);
}

#[tokio::test]
async fn requests_that_differ_only_in_time_are_shared() {
    let (url, shared_requests) = server(None, 200).await;
    let web = web(SECOND * 60);
    for time in 0..3 {
        web.send(HttpCall::get(format!("{url}/?time={time}"), SECOND * 10).same_as("/")).await.unwrap();
    }
    assert_eq!(shared_requests.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn max_age_limits_shared_responses_and_reports_their_age() {
    let (url, shared_requests) = server(None, 200).await;
    let web = web(Duration::ZERO);
    let send = async |age| {
        let (answer, since) = with_max_age_after(age, None, web.send(HttpCall::get(&url, SECOND * 10))).await;
        answer.unwrap();
        since.unwrap()
    };
    let first = send(SECOND * 60).await;
    assert_eq!(send(SECOND * 60).await, first);
    assert_eq!(shared_requests.load(Ordering::SeqCst), 1);
    assert!(send(Duration::ZERO).await > first);
    assert_eq!(shared_requests.load(Ordering::SeqCst), 2);
    assert_eq!(with_max_age_after(SECOND, None, async {}).await.1, None);
}

#[tokio::test]
async fn failures_are_not_shared_later() {
    let (url, shared_requests) = server(None, 500).await;
    let web = web(SECOND * 60);
    for _ in 0..2 {
        assert_eq!(web.send(HttpCall::get(&url, SECOND * 10)).await.unwrap().status, 500);
    }
    assert_eq!(shared_requests.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn dropped_caller_does_not_cancel_others() {
    let gate = Arc::new(Semaphore::new(0));
    let (url, shared_requests) = server(Some(Arc::clone(&gate)), 200).await;
    let web = web(SECOND * 60);
    let mut first = Box::pin(web.send(HttpCall::get(&url, SECOND * 10)));
    let mut second = Box::pin(web.send(HttpCall::get(&url, SECOND * 10)));
    while shared_requests.load(Ordering::SeqCst) == 0 {
        assert!(futures::poll!(&mut first).is_pending());
        assert!(futures::poll!(&mut second).is_pending());
        tokio::task::yield_now().await;
    }
    drop(first);
    gate.add_permits(1);
    assert_eq!(second.await.unwrap().status, 200);
    assert_eq!(shared_requests.load(Ordering::SeqCst), 1);
    // If all callers give up, the next caller sends a new request.
    let web = self::web(Duration::ZERO);
    let mut only = Box::pin(web.send(HttpCall::get(&url, SECOND * 10)));
    while shared_requests.load(Ordering::SeqCst) == 1 {
        assert!(futures::poll!(&mut only).is_pending());
        tokio::task::yield_now().await;
    }
    drop(only);
    gate.add_permits(2);
    assert_eq!(web.send(HttpCall::get(&url, SECOND * 10)).await.unwrap().status, 200);
}

#[tokio::test]
async fn old_responses_and_clients_are_removed() {
    let (url, _) = server(None, 200).await;
    let web = web(Duration::ZERO);
    for number in 0..500 {
        web.send(HttpCall::get(format!("{url}/{number}"), SECOND * 10)).await.unwrap();
    }
    assert!(web.shared_requests.locked().by_key.len() <= 65);
    assert_eq!(web.clients.locked().len(), 1);
}

#[test]
fn urls_are_split_into_endpoint_and_path() {
    let source = |url: &str| {
        let (endpoint, path) = HttpCall::get(url, SECOND).source(&HttpSettings::allowing_loopback());
        (endpoint.url, path)
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(source("http://u:p@h:1/a b?c=\"d\"#e"), pair("http://u:p@h:1", "/a%20b?c=%22d%22"));
    assert_eq!(source("https://h"), pair("https://h", "/"));
    assert_eq!(source("http://h?x=1"), pair("http://h", "/?x=1"));
    assert_eq!(source(""), pair("", "/"));
    assert_eq!(source("日本"), pair("日本", "/"));
}

#[test]
fn texts_are_escaped_for_queries_and_paths() {
    assert_eq!(escaped("a b&c=é/~"), "a+b%26c%3D%C3%A9%2F~");
    assert_eq!(path_escaped("a b/c:@"), "a%20b%2Fc:@");
}

#[test]
fn settings_are_read_from_variables_of_keda() {
    let settings = |pairs: &[(&str, &str)]| {
        let all: HashMap<_, _> = pairs.iter().copied().collect();
        HttpSettings::from_environment(|name| all.get(name).map(|text| (*text).to_owned()))
    };
    assert_eq!(settings(&[]).timeout, SECOND * 3);
    assert_eq!(settings(&[("KEDA_HTTP_DEFAULT_TIMEOUT", "500")]).timeout, SECOND / 2);
    assert_eq!(settings(&[("KEDA_HTTP_DEFAULT_TIMEOUT", "-1")]).timeout, Duration::from_millis(300));
    assert_eq!(settings(&[("KEDA_HTTP_DEFAULT_TIMEOUT", "soon")]).timeout, SECOND * 3);
    assert!(!settings(&[("KEDA_HTTP_DISABLE_KEEP_ALIVE", "true")]).keep_alive);
    assert!(settings(&[("KEDA_HTTP_MIN_TLS_VERSION", "TLS13")]).only_tls13);
}

#[test]
fn debug_output_has_no_secrets() {
    let password = sources::http::Secret::new("hunter2");
    let call = HttpCall::post("http://me:hunter2@h/p?key=hunter2", "secret=hunter2", SECOND)
        .basic("me", &password)
        .header("x-key", "hunter2")
        .unwrap();
    let text = format!("{call:?}");
    assert!(text.contains("http://h/p") && !text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn failed_read_keeps_the_status_of_the_last_response() {
    let metadata = [("url", "http://127.0.0.1:9/queue"), ("valueLocation", "n"), ("targetValue", "1")];
    let trigger = crate::test_support::trigger("metrics-api", &metadata);
    for status in [401, 403, 404, 500] {
        let read = crate::test_support::read_answered(&trigger, move |_| (status, String::new()));
        let read = async { read.await.map_err(crate::ScalerError::with_last_status) };
        let (read, log) = with_request_log(read).await;
        assert_eq!(log.last_status, Some(status));
        assert_eq!(read.unwrap_err().cause(), Some(&crate::HttpStatusError(status)));
    }
    let error = crate::ScalerError::new("no request").with_last_status();
    assert!(error.cause::<crate::HttpStatusError>().is_none());
}

/// A client whose wall clock stands still and that shares no responses.
fn uncached_client() -> SharedHttpClient {
    let clock = runtime::Clock::new(|| Timestamp::from_second(1_800_000_000).unwrap());
    SharedHttpClient::new(HttpSettings { fresh: Duration::ZERO, clock, ..HttpSettings::allowing_loopback() })
}

/// Lets time pass that nothing waits for.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn no_request_is_sent_during_the_pause_that_a_source_requires() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let url = crate::test_support::server(move |head| {
        counted.fetch_add(1, Ordering::SeqCst);
        if head.contains("Bearer busy") {
            let head = "HTTP/1.1 429 X\r\nretry-after: 30\r\ncontent-length: 0\r\n\r\n";
            return crate::test_support::ServerAction::Raw(head.as_bytes().to_vec());
        }
        crate::test_support::ServerAction::Answer(200, "1".to_owned())
    })
    .await;
    let web = uncached_client();
    let send = async |token: &str, path: &str| {
        let call = HttpCall::get(format!("{url}{path}"), SECOND * 10);
        web.send(call.header("authorization", &format!("Bearer {token}")).unwrap()).await
    };
    let text = "asked again at 2027-01-15T08:00:30Z because the source limits requests (Retry-After)";
    // The request that meets the limit, one to another path, and one that is not shared.
    for path in ["/a", "/b", "/a"] {
        let error = send("busy", path).await.unwrap_err();
        assert_eq!(error.to_string(), format!("{url}: {text}"));
    }
    let call = HttpCall::post(&url, "x", SECOND * 10).header("authorization", "Bearer busy").unwrap();
    assert!(web.send(call).await.is_err());
    assert_eq!(count.load(Ordering::SeqCst), 1);
    // The limit is of the credentials.
    assert_eq!(send("other", "/a").await.unwrap().status, 200);
    assert_eq!(count.load(Ordering::SeqCst), 2);
    pass(SECOND * 31).await;
    assert!(send("busy", "/a").await.is_err());
    assert_eq!(count.load(Ordering::SeqCst), 3, "another request was sent");
}

#[tokio::test]
async fn slow_requests_do_not_stop_others_to_the_same_server() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let url = crate::test_support::server(move |head| {
        if head.starts_with("GET /slow") {
            counted.fetch_add(1, Ordering::SeqCst);
            return crate::test_support::ServerAction::Hang;
        }
        crate::test_support::ServerAction::Answer(200, "1".to_owned())
    })
    .await;
    let web = Arc::new(uncached_client());
    let send = |path: String| {
        let (web, call) = (Arc::clone(&web), HttpCall::get(format!("{url}{path}"), SECOND * 120));
        tokio::spawn(async move { web.send(call).await })
    };
    let slow: Vec<_> = (0..MAX_REQUESTS_PER_SERVER).map(|number| send(format!("/slow/{number}"))).collect();
    while count.load(Ordering::SeqCst) < MAX_REQUESTS_PER_SERVER {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let other = send("/other".to_owned());
    pass(MAX_PERMIT_TIME * 2).await;
    let answer = tokio::time::timeout(SECOND * 60, other).await.unwrap();
    assert_eq!(answer.unwrap().unwrap().status, 200);
    for task in slow {
        task.abort();
    }
}

#[tokio::test]
async fn without_credentials_a_limit_is_of_the_url() {
    let url = crate::test_support::server(|head| {
        let status = if head.starts_with("GET /?key=busy") { 429 } else { 200 };
        let head = format!("HTTP/1.1 {status} X\r\nretry-after: 30\r\ncontent-length: 0\r\n\r\n");
        crate::test_support::ServerAction::Raw(head.into_bytes())
    })
    .await;
    let web = uncached_client();
    let send = async |key: &str| web.send(HttpCall::get(format!("{url}/?key={key}"), SECOND * 10)).await;
    assert!(send("busy").await.is_err());
    assert_eq!(send("other").await.unwrap().status, 200);
}

#[tokio::test]
async fn limit_of_one_client_does_not_stop_requests_for_tokens_of_others() {
    let url = crate::test_support::server(|request| {
        let status = if request.ends_with("client_id=busy") { 429 } else { 200 };
        let head = format!("HTTP/1.1 {status} X\r\nretry-after: 30\r\ncontent-length: 0\r\n\r\n");
        crate::test_support::ServerAction::Raw(head.into_bytes())
    })
    .await;
    let web = uncached_client();
    let send = async |client: &str| {
        let call = HttpCall::post(&url, format!("client_id={client}"), SECOND * 10);
        let call = call.header("content-type", "application/x-www-form-urlencoded").unwrap();
        web.send(call.alone().own_address()).await
    };
    assert!(send("busy").await.is_err());
    assert_eq!(send("other").await.unwrap().status, 200);
}

#[tokio::test]
async fn limit_of_signed_requests_is_that_of_their_credentials() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let url = crate::test_support::server(move |request| {
        counted.fetch_add(1, Ordering::SeqCst);
        let status = if request.contains("busy") { 503 } else { 200 };
        let head = format!("HTTP/1.1 {status} X\r\nretry-after: 30\r\ncontent-length: 0\r\n\r\n");
        crate::test_support::ServerAction::Raw(head.into_bytes())
    })
    .await;
    let web = uncached_client();
    let send = async |key: &str, signature: &str| {
        let call = HttpCall::post(&url, "x", SECOND * 10).signed_by(&["access", key]);
        web.send(call.header("authorization", &format!("{key} {signature}")).unwrap()).await
    };
    for second in ["1", "2", "3"] {
        assert!(send("busy", second).await.is_err());
    }
    assert_eq!(count.load(Ordering::SeqCst), 1, "one request was sent, although the signatures differ");
    assert_eq!(send("other", "1").await.unwrap().status, 200, "other credentials are not stopped");
}

#[tokio::test]
async fn known_responses_are_confirmed_by_their_tag() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let url = crate::test_support::server(move |head| {
        let head = head.to_lowercase();
        let answer = if head.contains("if-none-match: \"v1\"") {
            counted.fetch_add(1, Ordering::SeqCst);
            "HTTP/1.1 304 X\r\netag: \"v1\"\r\n\r\n"
        } else {
            "HTTP/1.1 200 X\r\netag: \"v1\"\r\ncontent-length: 4\r\n\r\nfive"
        };
        crate::test_support::ServerAction::Raw(answer.as_bytes().to_vec())
    })
    .await;
    let web = uncached_client();
    let send = async |token: &str| {
        let call = HttpCall::get(&url, SECOND * 10);
        let answer = web.send(call.header("authorization", token).unwrap()).await.unwrap();
        (answer.status.as_u16(), answer.body)
    };
    for confirmed in 0..3 {
        assert_eq!(send("a").await, (200, Bytes::from_static(b"five")));
        assert_eq!(count.load(Ordering::SeqCst), confirmed);
    }
    // Others get their own response.
    assert_eq!(send("b").await.0, 200);
    assert_eq!(count.load(Ordering::SeqCst), 2);
    // A response to another time is not confirmed.
    for _ in 0..2 {
        let call = HttpCall::get(&url, SECOND * 10).same_as("the same");
        assert_eq!(web.send(call).await.unwrap().status, 200);
    }
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn one_namespace_leaves_memory_of_responses_to_others() {
    let share = async |namespace: &str, bytes: usize| {
        in_namespace(namespace, async { response_budget().share(bytes).await }).await
    };
    // As much as the namespace may have.
    let held = share("slow", usize::MAX).await;
    assert!(held.is_some());
    let mut waiting = Box::pin(share("slow", 1));
    assert!(futures::poll!(&mut waiting).is_pending());
    assert!(share("other", MAX_NAMESPACE_RESPONSE_BYTES).await.is_some());
    assert!(futures::poll!(&mut waiting).is_pending());
    drop(held);
    assert!(waiting.await.is_some());
}

#[tokio::test]
async fn requests_without_tls_are_forwarded_by_the_proxy() {
    let url = crate::test_support::server(|head| {
        crate::test_support::ServerAction::Answer(200, head.to_lowercase())
    })
    .await;
    let proxy = url.replace("http://", "http://me:pw@");
    let settings = HttpSettings::from_environment(|name| (name == "HTTP_PROXY").then(|| proxy.clone()));
    let web = SharedHttpClient::new(HttpSettings { fresh: Duration::ZERO, ..settings });
    // Nothing is sent to this address but to the proxy.
    let answer = web.send(HttpCall::get("http://10.9.8.7/x?q=1", SECOND * 10)).await.unwrap();
    let head = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(head.starts_with("get http://10.9.8.7/x?q=1 http/1.1"), "{head}");
    assert!(head.contains("proxy-authorization: basic bwu6chc="), "{head}");
    // Loopback is never proxied, and refused.
    let error = web.send(HttpCall::get(&url, SECOND * 10)).await.unwrap_err().to_string();
    assert!(error.contains("not allowed"), "{error}");
}
