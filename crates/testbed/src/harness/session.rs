//! A client of one cluster that records its requests and the responses.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, header};
use kube::Client;
use kube::client::Body;
use locks::MutexExt as _;
use serde_json::Value;

use super::transcript::{Exchange, ExchangeLog, Transcript};
use super::volatile::normalise;
use super::watch::Watch;

/// A case's connection to one cluster; clones share one transcript. `{ns}` in paths and bodies is the namespace of the
/// case, which also makes names outside of namespaces unique.
#[derive(Clone)]
pub struct Session {
    inner: Arc<SessionInner>,
}

struct SessionInner {
    client: Client,
    namespace: String,
    log: ExchangeLog,
    leftovers: Mutex<Vec<String>>,
}

/// A request in the making.
#[must_use]
pub struct ApiRequest {
    session: Session,
    method: Method,
    path: String,
    parameters: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// A response of the server.
#[derive(Clone, Debug)]
pub struct ApiResponse {
    /// HTTP code; 0 when there was no answer at all.
    pub code: u16,
    /// JSON, or any other text as a string.
    pub body: Value,
}

/// The type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patch {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Kubernetes' own.
    Strategic,
    /// Server-side apply.
    Apply,
}

/// What can be sent.
pub trait Payload {
    /// Its bytes.
    fn bytes(self) -> Vec<u8>;
}

/// The default user agent. The server derives the name of the field manager from it, so recordings contain it.
const USER_AGENT: &str = "twin/1.0";
/// Timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an awaited state may take; a namespace that ends beside many others takes long on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(90);
/// Time between two looks of a wait.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The `Accept` header of kubectl for tables.
const TABLE_MEDIA_TYPE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

impl Session {
    pub(crate) fn new(client: Client, namespace: &str) -> Self {
        let (log, leftovers) = Default::default();
        Self { inner: Arc::new(SessionInner { client, namespace: namespace.to_owned(), log, leftovers }) }
    }

    /// The underlying client, whose requests are not recorded.
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The namespace of the case.
    pub fn namespace(&self) -> &str {
        &self.inner.namespace
    }

    /// A request with any headers and body.
    pub fn ask(&self, method: Method, path: &str) -> ApiRequest {
        let (parameters, headers, body) = Default::default();
        ApiRequest { session: self.clone(), method, path: path.to_owned(), parameters, headers, body }
    }

    /// GET.
    pub async fn get(&self, path: &str) -> ApiResponse {
        self.ask(Method::GET, path).send().await
    }

    /// GET with an `Accept` header.
    pub async fn get_as(&self, path: &str, accept: &str) -> ApiResponse {
        self.ask(Method::GET, path).header("accept", accept).send().await
    }

    /// GET of a table, as kubectl does.
    pub async fn get_as_table(&self, path: &str) -> ApiResponse {
        self.get_as(path, TABLE_MEDIA_TYPE).await
    }

    /// POST of JSON.
    pub async fn post(&self, path: &str, body: impl Payload) -> ApiResponse {
        self.ask(Method::POST, path).json(body).send().await
    }

    /// PUT of JSON.
    pub async fn put(&self, path: &str, body: impl Payload) -> ApiResponse {
        self.ask(Method::PUT, path).json(body).send().await
    }

    /// PATCH.
    pub async fn patch(&self, path: &str, patch: Patch, body: impl Payload) -> ApiResponse {
        self.ask(Method::PATCH, path).header("content-type", patch.content_type()).body(body).send().await
    }

    /// DELETE without options.
    pub async fn delete(&self, path: &str) -> ApiResponse {
        self.ask(Method::DELETE, path).send().await
    }

    /// DELETE with `DeleteOptions`.
    pub async fn delete_with(&self, path: &str, options: impl Payload) -> ApiResponse {
        self.ask(Method::DELETE, path).json(options).send().await
    }

    /// Begins a watch; events are recorded as they are read.
    pub async fn watch(&self, path: &str) -> Watch {
        self.ask(Method::GET, path).watch().await
    }

    /// Begins a watch from a resource version.
    pub async fn watch_from(&self, path: &str, version: &str) -> Watch {
        self.ask(Method::GET, path).parameter("resourceVersion", version).watch().await
    }

    /// GET of the page of a list behind a continue token.
    pub async fn get_next(&self, path: &str, token: &str) -> ApiResponse {
        self.ask(Method::GET, path).parameter("continue", token).send().await
    }

    /// Records something else, such as a part of a response.
    pub fn note(&self, what: &str, body: Value) {
        self.inner.log.record(Exchange { request: what.to_owned(), body, ..Exchange::default() });
    }

    /// Repeats a GET until the response is as wanted, and records only the last one; gives up after a timeout.
    pub async fn until(&self, path: &str, wanted: impl Fn(&ApiResponse) -> bool) -> ApiResponse {
        self.wait(path, wanted).await;
        self.get(path).await
    }

    /// Repeats a GET until the response is as wanted, without recording; false on a timeout.
    pub async fn wait(&self, path: &str, wanted: impl Fn(&ApiResponse) -> bool) -> bool {
        let end = tokio::time::Instant::now() + WAIT_TIMEOUT;
        while !wanted(&self.ask(Method::GET, path).quietly().await) {
            if tokio::time::Instant::now() > end {
                return false;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        true
    }

    /// Registers an object outside of the namespace that is deleted when the case ends.
    pub fn leaves(&self, path: &str) {
        self.inner.leftovers.locked().push(path.to_owned());
    }

    /// Deletes what the case left outside of its namespace.
    pub(crate) async fn tidy(&self) {
        let paths = std::mem::take(&mut *self.inner.leftovers.locked());
        for path in paths.iter().rev() {
            self.ask(Method::DELETE, path).quietly().await;
        }
    }

    /// All exchanges so far, as a transcript.
    pub(crate) fn transcript(&self, case: &str) -> Transcript {
        normalise(case, &self.inner.namespace, &self.inner.log.exchanges())
    }

    fn fill(&self, text: &str) -> String {
        text.replace("{ns}", &self.inner.namespace)
    }
}

impl ApiRequest {
    /// With a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a query parameter whose value differs from run to run and is not recorded.
    pub fn parameter(mut self, name: &str, value: &str) -> Self {
        self.parameters.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a body; a header has to name its type.
    pub fn body(mut self, body: impl Payload) -> Self {
        self.body = body.bytes();
        self
    }

    /// With a body of JSON.
    pub fn json(self, body: impl Payload) -> Self {
        self.header("content-type", "application/json").body(body)
    }

    /// Sends the request and records the response.
    pub async fn send(self) -> ApiResponse {
        let (log, request) = (self.session.inner.log.clone(), self.shown());
        let (mut exchange, body) = self.begin(request).await;
        if let Ok(body) = body {
            exchange.body = collect(body).await;
        }
        let answer = ApiResponse { code: exchange.code, body: exchange.body.clone() };
        log.record(exchange);
        answer
    }

    /// Sends the request without recording it.
    pub async fn quietly(self) -> ApiResponse {
        let (exchange, body) = self.begin(String::new()).await;
        let body = match body {
            Ok(body) => collect(body).await,
            Err(()) => exchange.body,
        };
        ApiResponse { code: exchange.code, body }
    }

    /// Sends the request and reads the response as watch events.
    pub async fn watch(self) -> Watch {
        let (log, request) = (self.session.inner.log.clone(), self.shown());
        let (mut exchange, body) = self.begin(request).await;
        let mut events = Body::empty();
        match body {
            Ok(body) if exchange.code == 200 => {
                exchange.body = Value::Array(Vec::new());
                events = body;
            }
            Ok(body) => exchange.body = collect(body).await,
            Err(()) => {}
        }
        let at = log.record(exchange);
        Watch::new(log, at, events)
    }

    /// The request as it is shown in a transcript.
    fn shown(&self) -> String {
        format!("{} {}", self.method, self.target(|_| "…"))
    }

    /// Path and query.
    fn target<'a>(&'a self, value: impl Fn(&'a str) -> &'a str) -> String {
        let mut target = self.path.clone();
        for (name, text) in &self.parameters {
            let joint = if target.contains('?') { '&' } else { '?' };
            target += &format!("{joint}{name}={}", value(text));
        }
        target
    }

    async fn begin(self, request: String) -> (Exchange, Result<Body, ()>) {
        let uri = self.session.fill(&self.target(|text| text));
        let mut builder = Request::builder().method(self.method).uri(uri);
        if self.headers.iter().all(|(name, _)| name != "user-agent") {
            builder = builder.header(header::USER_AGENT, USER_AGENT);
        }
        for (name, value) in &self.headers {
            builder = builder.header(name.as_str(), value.as_str());
        }
        // Bodies that are not text go as they are.
        let body = match String::from_utf8(self.body) {
            Ok(text) => self.session.fill(&text).into_bytes(),
            Err(error) => error.into_bytes(),
        };
        let mut exchange = Exchange { request, ..Exchange::default() };
        let sent = async {
            let request = builder.body(Body::from(Bytes::from(body))).map_err(|error| error.to_string())?;
            let answer = tokio::time::timeout(REQUEST_TIMEOUT, self.session.inner.client.send(request)).await;
            answer
                .map_err(|_| format!("no answer within {REQUEST_TIMEOUT:?}"))?
                .map_err(|error| error.to_string())
        };
        match sent.await {
            Ok(answer) => {
                exchange.code = answer.status().as_u16();
                exchange.content = headers(&answer, "content-type").join(", ");
                exchange.warnings = headers(&answer, "warning");
                (exchange, Ok(answer.into_body()))
            }
            Err(error) => {
                exchange.body = error.into();
                (exchange, Err(()))
            }
        }
    }
}

fn headers(answer: &Response<Body>, name: &str) -> Vec<String> {
    let values = answer.headers().get_all(name).into_iter();
    values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
}

async fn collect(body: Body) -> Value {
    match tokio::time::timeout(REQUEST_TIMEOUT, body.collect_bytes()).await {
        Ok(Ok(bytes)) => serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())),
        Ok(Err(error)) => format!("the answer broke off: {error}").into(),
        Err(_) => format!("the answer did not end within {REQUEST_TIMEOUT:?}").into(),
    }
}

impl ApiResponse {
    /// A text in the body by JSON pointer; empty if there is none, which shows in what is done with it.
    pub fn text(&self, pointer: &str) -> String {
        self.body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// The resource version of the object or list.
    pub fn version(&self) -> String {
        self.text("/metadata/resourceVersion")
    }

    /// The uid of the object.
    pub fn uid(&self) -> String {
        self.text("/metadata/uid")
    }
}

impl Patch {
    fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

impl Payload for Value {
    fn bytes(self) -> Vec<u8> {
        self.to_string().into_bytes()
    }
}

impl Payload for &Value {
    fn bytes(self) -> Vec<u8> {
        self.to_string().into_bytes()
    }
}

impl Payload for &str {
    fn bytes(self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }
}

impl Payload for String {
    fn bytes(self) -> Vec<u8> {
        self.into_bytes()
    }
}

impl Payload for Vec<u8> {
    fn bytes(self) -> Vec<u8> {
        self
    }
}
