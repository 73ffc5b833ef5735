#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use proptest::prelude::*;

use super::*;
use crate::http::tests::{answer, plainly};
use crate::http::{Endpoint, HttpClient};

/// Response of a fake Prometheus to a path and a query or selector.
pub(crate) type Responder = Box<dyn Fn(&str, &str) -> (u16, String) + Send + Sync>;

/// A fake Prometheus that records its requests.
pub(crate) struct Played {
    respond_with: Responder,
    delay: Duration,
    pub(crate) requested: Mutex<Vec<(String, String)>>,
    pub(crate) busy: AtomicUsize,
    pub(crate) busiest: AtomicUsize,
}

impl Played {
    pub(crate) fn new(
        respond_with: impl Fn(&str, &str) -> (u16, String) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Self::slow(Duration::ZERO, respond_with)
    }

    pub(crate) fn slow(
        delay: Duration,
        respond_with: impl Fn(&str, &str) -> (u16, String) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (requested, busy, busiest) = Default::default();
        Arc::new(Self { respond_with: Box::new(respond_with), delay, requested, busy, busiest })
    }

    pub(crate) fn count(&self) -> usize {
        self.requested.lock().unwrap().len()
    }

    async fn respond(&self, http_request: &HttpRequest) -> (StatusCode, Bytes) {
        let busy = self.busy.fetch_add(1, Ordering::SeqCst) + 1;
        self.busiest.fetch_max(busy, Ordering::SeqCst);
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        self.busy.fetch_sub(1, Ordering::SeqCst);
        let (path, form) = match http_request.path().split_once('?') {
            Some((path, form)) => (path.to_owned(), form.to_owned()),
            None => {
                (http_request.path().to_owned(), String::from_utf8(http_request.payload().to_vec()).unwrap())
            }
        };
        let first = form.split('&').next().and_then(|field| field.split_once('=')).unwrap().1;
        let text = decoded(first);
        self.requested.lock().unwrap().push((path.clone(), text.clone()));
        let (status, body) = (self.respond_with)(&path, &text);
        (StatusCode::from_u16(status).unwrap(), Bytes::from(body))
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let code = [rest.next().unwrap(), rest.next().unwrap()];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&code).unwrap(), 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// Lets tests keep a handle of the fake.
pub(crate) struct Shared(pub(crate) Arc<Played>);

impl Transport for Shared {
    fn base(&self) -> String {
        "http://played".to_owned()
    }

    fn send(&self, http_request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, web::HttpError>> {
        Box::pin(async move {
            let (status, body) = self.0.respond(&http_request).await;
            Ok(HttpResponse { status, headers: HeaderMap::new(), body })
        })
    }

    fn stream(&self, http_request: HttpRequest) -> BoxFuture<'_, Result<StreamedResponse, web::HttpError>> {
        Box::pin(async move {
            let (status, body) = self.0.respond(&http_request).await;
            // Chunks with arbitrary boundaries.
            let pieces: Vec<Bytes> = body.chunks(7).map(Bytes::copy_from_slice).collect();
            Ok(StreamedResponse::from_chunks(status, pieces))
        })
    }
}

pub(crate) fn prometheus(played: &Arc<Played>, settings: PrometheusSettings) -> PrometheusClient {
    PrometheusClient::new(Arc::new(Shared(Arc::clone(played))), settings)
}

pub(crate) fn vector(result: &str) -> String {
    format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{result}]}}}}"#)
}

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const TEST_TIMEOUT: Duration = Duration::from_mins(1);

fn decode(body: &str) -> Result<QueryResponse, PrometheusError> {
    reply::decode(StatusCode::OK, body.as_bytes())
}

#[test]
fn reads_vectors() {
    let reply = decode(&vector(
        r#"{"metric":{"pod":"a","code":"\u0032"},"value":[1767225590.5,"1.5"]},null,{"metric":{"pod":"b"}}"#,
    ))
    .unwrap();
    let QueryValue::Vector(Some(samples)) = reply.result else { panic!("no vector") };
    assert_eq!(samples.len(), 2);
    assert_eq!((samples[0].label("code"), samples[0].label("pod"), samples[0].label("x")), ("2", "a", ""));
    assert_eq!((samples[0].time, samples[0].value), (1_767_225_590_500, Some(1.5)));
    assert_eq!((samples[1].time, samples[1].value), (0, None));
}

#[test]
fn keeps_warnings() {
    let reply = decode(
        r#"{"data":{"result":[1,"2"],"resultType":"scalar"},"warnings":["partial"],"infos":["not a counter"]} tail"#,
    )
    .unwrap();
    assert!(matches!(reply.result, QueryValue::Scalar(VectorSample { time: 1000, value: Some(2.0), .. })));
    assert_eq!((&*reply.warnings[0], &*reply.infos[0]), ("partial", "not a counter"));
}

#[test]
fn unusable_responses_have_a_reason() {
    for (body, expected) in [
        (
            "<html><body>Log in</body>",
            "bad_response: expected an object, an HTML page (<html><body>Log in</body>…)",
        ),
        ("", "bad_response: expected an object, and nothing else"),
        (r#"{"status":"success","data":{"resultType":"vec"#, "string without end"),
        (r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#, "bad_data: parse error"),
        (r#"{"status":"success"}"#, "no data"),
        (r#"{"data":{"resultType":"string","result":[1,"x"]}}"#, "unknown result type"),
        (&vector(r#"{"value":[1,"x"]}"#), "a value is not a number"),
        (&vector(r#"{"value":["1","2"]}"#), "expected a number"),
        (&vector(r#"{"metric":{"pod":1}}"#), "expected a string"),
    ] {
        let error = decode(body).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = reply::decode(StatusCode::BAD_GATEWAY, b"upstream").unwrap_err();
    assert_eq!(error.to_string(), "bad_response: unknown response code 502 (upstream)");
    assert!(reply::decode(StatusCode::SERVICE_UNAVAILABLE, vector("").as_bytes()).is_ok());
}

proptest! {
    #[test]
    fn arbitrary_responses_do_not_panic(body in r#"[ \[\]{},:"a\\0-9.eE\-statusdresultTypevcomxn]{0,120}"#) {
        let _ = decode(&body);
        let mut reader = series::SeriesReader::new(10);
        let _ = body.as_bytes().chunks(3).try_for_each(|piece| reader.feed(piece)).and_then(|()| reader.finish());
    }

    #[test]
    fn chunk_boundaries_do_not_matter(size in 1_usize..40) {
        let body = r#"{ "status" : "success", "warnings":["w"], "data" : [ {"__name__":"a","x":"1\"}"}, {"x":"2","__name__":"a"} ,null,{"__name__":"b","y":"]"}] }"#;
        let mut reader = series::SeriesReader::new(10);
        for piece in body.as_bytes().chunks(size) {
            reader.feed(piece).unwrap();
        }
        let found = reader.finish().unwrap();
        let names: Vec<&str> = found.shapes.iter().map(|shape| &*shape.name).collect();
        prop_assert_eq!(names, ["a", "", "b"]);
        prop_assert_eq!(found.series, 4);
        prop_assert_eq!(found.warnings, ["w"]);
    }
}

fn series(body: &str) -> Result<SeriesResult, PrometheusError> {
    let mut reader = series::SeriesReader::new(3);
    reader.feed(body.as_bytes())?;
    reader.finish()
}

#[test]
fn missing_series_data_is_an_error() {
    assert_eq!(series(r#"{"status":"success","data":[]}"#).unwrap(), SeriesResult::default());
    for (body, expected) in [
        (r#"{"status":"success","data":null}"#, "no data (null)"),
        (r#"{"status":"success"}"#, "no data"),
        (r#"{"status":"success","data":{}}"#, "data is not a list"),
        (r#"{"status":"success","data":["x"]}"#, "expected an object"),
        (r#"{"status":"success","data":[{"a":1}]}"#, "expected a string"),
        (r#"{"status":"success","data":[{"a":"1"}"#, "the response ended too early"),
        (r#"{"status":"error","errorType":"timeout","error":"too slow"}"#, "timeout: too slow"),
        ("<html>", "an HTML page"),
        (r#"{"data":[{"a":"1"},{"b":"1"},{"c":"1"},{"d":"1"}]}"#, "more than 3 different combinations"),
    ] {
        let error = series(body).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let large = format!(r#"{{"data":[{{"a":"{}"#, "x".repeat(2 << 20));
    assert!(series(&large).unwrap_err().to_string().contains("too large"));
}

#[test]
fn million_series_are_not_held_in_memory() {
    let mut reader = series::SeriesReader::new(1000);
    reader.feed(br#"{"status":"success","data":["#).unwrap();
    for number in 0..1_000_000 {
        let comma = if number > 0 { "," } else { "" };
        let name = number % 100;
        let piece =
            format!(r#"{comma}{{"__name__":"m{name}","instance":"i{number}","job":"j","pod":"p{number}"}}"#);
        reader.feed(piece.as_bytes()).unwrap();
    }
    reader.feed(b"]}").unwrap();
    let found = reader.finish().unwrap();
    assert_eq!((found.series, found.shapes.len()), (1_000_000, 100));
    assert_eq!(
        found.shapes[7].labels.iter().map(|label| &**label).collect::<Vec<_>>(),
        ["instance", "job", "pod"]
    );
}

#[tokio::test(start_paused = true)]
async fn thousand_identical_queries_are_sent_once() {
    let played = Played::slow(Duration::from_millis(20), |_, _| (200, vector("")));
    let prometheus = prometheus(&played, PrometheusSettings::default());
    let all = (0..1000).map(|_| prometheus.query("up", NOW, TEST_TIMEOUT));
    let answers = futures::future::join_all(all).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(played.count(), 1);
    let report = prometheus.report();
    assert_eq!((report.sent, report.shared, report.failed, report.in_flight), (1, 999, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn responses_are_cached_for_ten_seconds_and_refreshed_early() {
    let played = Played::slow(Duration::from_millis(10), |_, _| (200, vector("")));
    let prometheus = prometheus(&played, PrometheusSettings::default());
    let query_up = async || prometheus.query("up", NOW, TEST_TIMEOUT).await.unwrap();
    query_up().await;
    tokio::time::advance(Duration::from_secs(8)).await;
    query_up().await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(played.count(), 1);
    // After nine seconds the cached response is returned, and refreshed in the background.
    tokio::time::advance(Duration::from_secs(1)).await;
    query_up().await;
    assert_eq!(played.count(), 1);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(played.count(), 2);
    tokio::time::advance(Duration::from_secs(10)).await;
    query_up().await;
    assert_eq!(played.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn errors_are_cached_for_one_second_at_most() {
    let played = Played::new(|_, _| (500, String::new()));
    let prometheus = prometheus(&played, PrometheusSettings::default());
    assert!(prometheus.query("up", NOW, TEST_TIMEOUT).await.is_err());
    assert!(prometheus.query("up", NOW, TEST_TIMEOUT).await.is_err());
    assert_eq!(played.count(), 1);
    tokio::time::advance(Duration::from_millis(1001)).await;
    assert!(prometheus.query("up", NOW, TEST_TIMEOUT).await.is_err());
    assert_eq!(played.count(), 2);
    assert_eq!(prometheus.report().failed, 2);
}

#[tokio::test(start_paused = true)]
async fn cache_size_and_concurrency_are_bounded() {
    let played = Played::slow(Duration::from_millis(10), |_, _| (200, vector("")));
    let settings = PrometheusSettings {
        max_concurrent_queries: 3,
        max_cached_responses: 10,
        ..PrometheusSettings::default()
    };
    let prometheus = prometheus(&played, settings);
    let all = (0..100).map(|number| {
        let prometheus = prometheus.clone();
        async move { prometheus.query(&format!("q{number}"), NOW, TEST_TIMEOUT).await }
    });
    assert!(futures::future::join_all(all).await.iter().all(Result::is_ok));
    assert_eq!(played.count(), 100);
    assert_eq!(played.busiest.load(Ordering::SeqCst), 3);
    assert_eq!(prometheus.report().remembered, 10);
}

#[tokio::test(start_paused = true)]
async fn cancelled_caller_does_not_cancel_the_query() {
    let played = Played::slow(Duration::from_secs(2), |_, _| (200, vector("")));
    let prometheus = prometheus(&played, PrometheusSettings::default());
    let error = prometheus.query("up", NOW, Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(error, PrometheusError::TimedOut(Duration::from_secs(1)));
    assert!(prometheus.query("up", NOW, TEST_TIMEOUT).await.is_ok());
    assert_eq!(played.count(), 1);
}

#[tokio::test]
async fn long_queries_are_sent_as_forms() {
    let address = plainly(|request| {
        let request_line = format!("{} {}", request.method(), request.uri().path());
        let body = String::from_utf8_lossy(request.body()).into_owned();
        let form = request.uri().query().map_or(body, str::to_owned);
        let sample = format!(r#"{{"metric":{{"said":"{request_line}","form":"{form}"}},"value":[1,"1"]}}"#);
        answer(200, vector(&sample))
    })
    .await;
    let client = HttpClient::new(Endpoint::at(format!("http://{address}/prom/"))).unwrap();
    let prometheus = PrometheusClient::new(Arc::new(client), PrometheusSettings::default());
    let now = Timestamp::from_millisecond(1_767_225_600_250).unwrap();
    let request_line = async |query: &str| {
        let reply = prometheus.query(query, now, TEST_TIMEOUT).await.unwrap();
        let QueryValue::Vector(Some(samples)) = &reply.result else { panic!("no vector") };
        (samples[0].label("said").to_owned(), samples[0].label("form").to_owned())
    };
    let (path, form) = request_line(r#"up{a="b c"}"#).await;
    assert_eq!(path, "GET /prom/api/v1/query");
    assert!(form.starts_with("query=up%7Ba%3D%22b%20c%22%7D&time=1767225600.250&timeout="), "{form}");
    let timeout: u64 = form.rsplit_once('=').unwrap().1.strip_suffix("ms").unwrap().parse().unwrap();
    assert!((1..=30_000).contains(&timeout));
    assert_eq!(request_line(&"x".repeat(3000)).await.0, "POST /prom/api/v1/query");
}

#[tokio::test]
async fn latencies_are_exposed_as_the_adapter_does() {
    let played = Played::new(|_, _| (200, vector("")));
    let prometheus = prometheus(&played, PrometheusSettings::default());
    prometheus.query("up", NOW, TEST_TIMEOUT).await.unwrap();
    let text = prometheus.report().exposition();
    let name = "prometheus_adapter_prometheus_client_request_duration_seconds";
    assert!(
        text.contains(&format!("{name}_count{{path=\"/api/v1/query\",server=\"http://played\"}} 1\n")),
        "{text}"
    );
}

#[tokio::test]
async fn ten_megabytes_are_read_and_more_are_rejected() {
    let address = plainly(|_| {
        let sample = r#"{"metric":{"pod":"p"},"value":[1,"1"]}"#;
        answer(200, vector(&vec![sample; 250_000].join(",")))
    })
    .await;
    let client = HttpClient::new(Endpoint::at(format!("http://{address}"))).unwrap();
    let good = PrometheusClient::new(Arc::new(client.clone()), PrometheusSettings::default());
    let reply = good.query("up", NOW, TEST_TIMEOUT).await.unwrap();
    assert!(matches!(&reply.result, QueryValue::Vector(Some(samples)) if samples.len() == 250_000));
    let small = PrometheusClient::new(
        Arc::new(client),
        PrometheusSettings { max_response_bytes: 1 << 20, ..PrometheusSettings::default() },
    );
    let error = small.query("up", NOW, TEST_TIMEOUT).await.unwrap_err();
    assert!(error.to_string().contains("answer too large: more than 1048576 bytes"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn query_that_panicked_is_sent_again() {
    let sent = AtomicUsize::new(0);
    let played = Played::new(move |_, _| {
        assert!(sent.fetch_add(1, Ordering::SeqCst) > 0, "the first query panics");
        (200, vector(""))
    });
    let prometheus = prometheus(&played, PrometheusSettings::default());
    assert!(prometheus.query("up", NOW, TEST_TIMEOUT).await.is_err());
    assert!(prometheus.query("up", NOW, TEST_TIMEOUT).await.is_ok());
}
