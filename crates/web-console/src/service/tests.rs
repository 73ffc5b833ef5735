//! Requests as browsers and attackers send them.

use http::header::{CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http_body_util::Full;
use serde_json::json;

use super::*;
use crate::feed::FeedRow;
use crate::row_names::RowNames;

const PORT: u16 = 7437;
const HOST: &str = "127.0.0.1:7437";

/// Responds with the request that it received.
struct Echo;

impl ConsoleBackend for Echo {
    fn answer(&self, request: ApiRequest) -> BoxFuture<'_, Result<Value, ApiError>> {
        let answer = match request.path.first().map(String::as_str) {
            Some("gone") => Err(ApiError::new(404, "no such object")),
            Some("long") => Ok(json!("x".repeat(100_000))),
            _ => Ok(json!({"path": request.path, "query": request.query, "body": request.body})),
        };
        Box::pin(futures::future::ready(answer))
    }
}

struct Fixture {
    console: Console,
    feed: Arc<Feed>,
    cookie: String,
}

fn fixture() -> Fixture {
    let access = Access::new().unwrap();
    access.bound(PORT);
    let cookie = access.exchange(access.token()).unwrap().split(';').next().unwrap().to_owned();
    let feed = Arc::new(Feed::new("p"));
    Fixture { console: Console::new(access, Arc::clone(&feed), Box::new(Echo)), feed, cookie }
}

async fn send(
    console: &Console,
    method: &str,
    uri: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response<ResponseBody> {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    console.answer(request.body(Full::new(Bytes::from(body.to_owned()))).unwrap()).await
}

async fn json_of(response: Response<ResponseBody>) -> (u16, Value) {
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn token_is_exchanged_for_a_cookie_and_leaves_the_address() {
    let Fixture { console, .. } = fixture();
    let uri = format!("/problems?token={}", console.access().token());
    let response = send(&console, "GET", &uri, &[("host", HOST)], "").await;
    assert_eq!(response.status(), 303);
    assert_eq!(response.headers()[LOCATION], "/problems");
    let cookie = response.headers()[SET_COOKIE].to_str().unwrap().to_owned();
    assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    let response = send(&console, "GET", "/api/v1/session", &[("host", HOST), ("cookie", pair)], "").await;
    assert_eq!(response.status(), 200);
    let response = send(&console, "GET", "/?token=wrong", &[("host", HOST)], "").await;
    assert_eq!((response.status().as_u16(), response.headers().get(SET_COOKIE)), (200, None));
    let uri = format!("//evil.example/?token={}", console.access().token());
    let response = send(&console, "GET", &uri, &[("host", HOST)], "").await;
    assert_ne!(response.headers().get(LOCATION).map(HeaderValue::as_bytes), Some(&b"//evil.example/"[..]));
}

#[tokio::test]
async fn cluster_is_not_shown_without_a_session_or_to_other_sites() {
    let Fixture { console, cookie, .. } = fixture();
    let session = ("cookie", cookie.as_str());
    for (uri, headers, expected) in [
        ("/api/v1/x", vec![("host", HOST)], 401),
        ("/api/v1/events", vec![("host", HOST)], 401),
        ("/api/v1/x", vec![("host", HOST), ("cookie", "plimsoll-console-7437=0")], 401),
        ("/api/v1/x", vec![("host", HOST), session], 200),
        ("/api/v1/x", vec![("host", "evil.example:7437"), session], 421),
        ("/api/v1/x", vec![session], 421),
        ("/", vec![("host", "evil.example:7437")], 421),
        ("/assets/app.js", vec![("host", "evil.example:7437")], 421),
        ("/api/v1/x", vec![("host", HOST), session, ("sec-fetch-site", "cross-site")], 403),
        ("/api/v1/x", vec![("host", HOST), session, ("origin", "http://evil.example")], 403),
        ("/api/v2/x", vec![("host", HOST), session], 404),
        ("/", vec![("host", HOST)], 200),
    ] {
        let response = send(&console, "GET", uri, &headers, "").await;
        assert_eq!(response.status(), expected, "{uri} {headers:?}");
        assert_eq!(response.headers()[CONTENT_SECURITY_POLICY], response::POLICY, "{uri}");
        assert!(response.headers().get("access-control-allow-origin").is_none());
    }
}

#[tokio::test]
async fn changes_need_json_of_our_own_page() {
    let Fixture { console, cookie, .. } = fixture();
    let own = [("host", HOST), ("cookie", cookie.as_str()), ("origin", "http://127.0.0.1:7437")];
    let json_type = ("content-type", "application/json");
    let with = |more: &[(&'static str, &'static str)]| [own.as_slice(), more].concat();
    let post = async |headers: &[(&str, &str)], body: &str| {
        send(&console, "POST", "/api/v1/lab", headers, body).await.status().as_u16()
    };
    assert_eq!(post(&with(&[json_type]), "{}").await, 200);
    assert_eq!(post(&with(&[]), "{}").await, 415);
    assert_eq!(post(&with(&[("content-type", "text/plain")]), "{}").await, 415);
    assert_eq!(post(&with(&[json_type]), "{").await, 400);
    assert_eq!(post(&with(&[json_type]), &" ".repeat(MAX_BODY_BYTES + 1)).await, 413);
    assert_eq!(post(&[own[0], own[1], json_type], "{}").await, 403, "without an origin");
    let response = send(&console, "DELETE", "/api/v1/lab", &own, "").await;
    assert_eq!(response.status(), 405);
}

#[tokio::test]
async fn paths_and_parameters_are_decoded() {
    let Fixture { console, cookie, .. } = fixture();
    let headers = [("host", HOST), ("cookie", cookie.as_str())];
    let uri = "/api/v1/autoscalers/shop/hpa/a%2Fb%zz?at=1%2B2&x=a+b";
    let (code, value) = json_of(send(&console, "GET", uri, &headers, "").await).await;
    assert_eq!(code, 200);
    assert_eq!(value["path"], json!(["autoscalers", "shop", "hpa", "a/b%zz"]));
    assert_eq!(value["query"], json!([["at", "1+2"], ["x", "a b"]]));
    let (code, value) = json_of(send(&console, "GET", "/api/v1/gone", &headers, "").await).await;
    assert_eq!((code, value), (404, json!({"message": "no such object"})));
}

#[tokio::test]
async fn files_and_long_answers_are_compressed() {
    let Fixture { console, cookie, .. } = fixture();
    let headers = [("host", HOST), ("cookie", cookie.as_str()), ("accept-encoding", "br, gzip")];
    for uri in ["/assets/app.js", "/api/v1/long"] {
        let response = send(&console, "GET", uri, &headers, "").await;
        assert_eq!(response.headers()[CONTENT_ENCODING], "gzip", "{uri}");
        let response = send(&console, "GET", uri, &headers[..2], "").await;
        assert!(response.headers().get(CONTENT_ENCODING).is_none(), "{uri}");
    }
    let response = send(&console, "GET", "/assets/none.js", &headers, "").await;
    assert_eq!(response.status(), 404);
    let response = send(&console, "GET", "/autoscalers/shop/hpa/web", &headers[..1], "").await;
    assert_eq!(response.headers()[CONTENT_TYPE], "text/html; charset=utf-8", "a page of the frontend");
}

#[tokio::test]
async fn events_resume_with_the_id_that_a_browser_sends() {
    let Fixture { console, feed, cookie } = fixture();
    let row = |replicas: i32| FeedRow {
        names: Arc::new(RowNames::new("a", &json!({}))),
        values: json!({"replicas": replicas}).to_string(),
        replicas: Some(replicas),
    };
    feed.publish(1.0, vec![row(1)], Vec::new());
    feed.publish(2.0, vec![row(2)], Vec::new());
    let headers = [("host", HOST), ("cookie", cookie.as_str()), ("last-event-id", "p.1")];
    let response = send(&console, "GET", "/api/v1/events", &headers, "").await;
    assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
    let first = response.into_body().frame().await.unwrap().unwrap().into_data().unwrap();
    let text = std::str::from_utf8(&first).unwrap();
    assert!(text.contains("event: change") && text.contains(r#""replicas":2"#), "{text}");
}
