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

/// A case's connection to one cluster; clones share one transcript. `{ns}` in paths and bodies is replaced by the namespace of the case,
/// which also makes names of cluster-scoped objects unique.
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

/// A request that is being built.
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
    /// The HTTP status code; 0 when there was no response.
    pub code: u16,
    /// The body: JSON, or any other text as a string.
    pub body: Value,
}

/// The type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patch {
    /// A JSON patch (RFC 6902).
    Json,
    /// A JSON merge patch (RFC 7386).
    Merge,
    /// A strategic merge patch.
    Strategic,
    /// A server-side apply.
    Apply,
}

/// A value that can be sent as a body.
pub trait Payload {
    /// The bytes of the body.
    fn bytes(self) -> Vec<u8>;
}

/// The default user agent. The server derives the name of the field manager from it, so recordings contain it.
const USER_AGENT: &str = "twin/1.0";
/// The timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout of a wait. It is long, because the deletion of many namespaces takes long on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(90);
/// The time between two requests of a wait.
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

    /// Begins a request, to which headers and a body can be added.
    pub fn request(&self, method: Method, path: &str) -> ApiRequest {
        let (parameters, headers, body) = Default::default();
        ApiRequest { session: self.clone(), method, path: path.to_owned(), parameters, headers, body }
    }

    /// Sends GET.
    pub async fn get(&self, path: &str) -> ApiResponse {
        self.request(Method::GET, path).send().await
    }

    /// Sends GET with an `Accept` header.
    pub async fn get_as(&self, path: &str, accept: &str) -> ApiResponse {
        self.request(Method::GET, path).header("accept", accept).send().await
    }

    /// Sends GET for a table, as kubectl does.
    pub async fn get_as_table(&self, path: &str) -> ApiResponse {
        self.get_as(path, TABLE_MEDIA_TYPE).await
    }

    /// Sends POST with a JSON body.
    pub async fn post(&self, path: &str, body: impl Payload) -> ApiResponse {
        self.request(Method::POST, path).json(body).send().await
    }

    /// Sends PUT with a JSON body.
    pub async fn put(&self, path: &str, body: impl Payload) -> ApiResponse {
        self.request(Method::PUT, path).json(body).send().await
    }

    /// Sends PATCH.
    pub async fn patch(&self, path: &str, patch: Patch, body: impl Payload) -> ApiResponse {
        self.request(Method::PATCH, path).header("content-type", patch.content_type()).body(body).send().await
    }

    /// Sends DELETE without options.
    pub async fn delete(&self, path: &str) -> ApiResponse {
        self.request(Method::DELETE, path).send().await
    }

    /// Sends DELETE with `DeleteOptions`.
    pub async fn delete_with(&self, path: &str, options: impl Payload) -> ApiResponse {
        self.request(Method::DELETE, path).json(options).send().await
    }

    /// Begins a watch; events are recorded as they are read.
    pub async fn watch(&self, path: &str) -> Watch {
        self.request(Method::GET, path).watch().await
    }

    /// Begins a watch from a resource version.
    pub async fn watch_from(&self, path: &str, version: &str) -> Watch {
        self.request(Method::GET, path).parameter("resourceVersion", version).watch().await
    }

    /// Sends GET for the page of a list after a continue token.
    pub async fn get_next(&self, path: &str, token: &str) -> ApiResponse {
        self.request(Method::GET, path).parameter("continue", token).send().await
    }

    /// Records a value that is not a response, such as a part of one.
    pub fn note(&self, what: &str, body: Value) {
        self.inner.log.record(Exchange { request: what.to_owned(), body, ..Exchange::default() });
    }

    /// Repeats a GET until `wanted` is true for the response, or until a timeout, and records only the last response.
    pub async fn until(&self, path: &str, wanted: impl Fn(&ApiResponse) -> bool) -> ApiResponse {
        self.wait(path, wanted).await;
        self.get(path).await
    }

    /// Repeats a GET until `wanted` is true for the response, without recording it; returns false on a timeout.
    pub async fn wait(&self, path: &str, wanted: impl Fn(&ApiResponse) -> bool) -> bool {
        let end = tokio::time::Instant::now() + WAIT_TIMEOUT;
        while !wanted(&self.request(Method::GET, path).send_unrecorded().await) {
            if tokio::time::Instant::now() > end {
                return false;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        true
    }

    /// Registers an object outside of the namespace, which is deleted when the case ends.
    pub fn delete_at_end(&self, path: &str) {
        self.inner.leftovers.locked().push(path.to_owned());
    }

    /// Deletes the objects that were registered with `delete_at_end`.
    pub(crate) async fn delete_leftovers(&self) {
        let paths = std::mem::take(&mut *self.inner.leftovers.locked());
        for path in paths.iter().rev() {
            self.request(Method::DELETE, path).send_unrecorded().await;
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
    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a query parameter whose value differs from run to run and is not recorded.
    pub fn parameter(mut self, name: &str, value: &str) -> Self {
        self.parameters.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body; its type must be set as a header.
    pub fn body(mut self, body: impl Payload) -> Self {
        self.body = body.bytes();
        self
    }

    /// Sets a JSON body and its content type.
    pub fn json(self, body: impl Payload) -> Self {
        self.header("content-type", "application/json").body(body)
    }

    /// Sends the request and records the response.
    pub async fn send(self) -> ApiResponse {
        let (log, request) = (self.session.inner.log.clone(), self.recorded_form());
        let (mut exchange, body) = self.begin(request).await;
        if let Ok(body) = body {
            exchange.body = collect(body).await;
        }
        let response = ApiResponse { code: exchange.code, body: exchange.body.clone() };
        log.record(exchange);
        response
    }

    /// Sends the request without recording it.
    pub async fn send_unrecorded(self) -> ApiResponse {
        let (exchange, body) = self.begin(String::new()).await;
        let body = match body {
            Ok(body) => collect(body).await,
            Err(()) => exchange.body,
        };
        ApiResponse { code: exchange.code, body }
    }

    /// Sends the request and reads the response as watch events.
    pub async fn watch(self) -> Watch {
        let (log, request) = (self.session.inner.log.clone(), self.recorded_form());
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

    /// The request as it is recorded in a transcript.
    fn recorded_form(&self) -> String {
        format!("{} {}", self.method, self.target(|_| "…"))
    }

    /// The path and query of the request.
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
        // `{ns}` is not replaced in bodies that are not text.
        let body = match String::from_utf8(self.body) {
            Ok(text) => self.session.fill(&text).into_bytes(),
            Err(error) => error.into_bytes(),
        };
        let mut exchange = Exchange { request, ..Exchange::default() };
        let sent = async {
            let request = builder.body(Body::from(Bytes::from(body))).map_err(|error| error.to_string())?;
            let response =
                tokio::time::timeout(REQUEST_TIMEOUT, self.session.inner.client.send(request)).await;
            response
                .map_err(|_| format!("no answer within {REQUEST_TIMEOUT:?}"))?
                .map_err(|error| error.to_string())
        };
        match sent.await {
            Ok(response) => {
                exchange.code = response.status().as_u16();
                exchange.content = headers(&response, "content-type").join(", ");
                exchange.warnings = headers(&response, "warning");
                (exchange, Ok(response.into_body()))
            }
            Err(error) => {
                exchange.body = error.into();
                (exchange, Err(()))
            }
        }
    }
}

fn headers(response: &Response<Body>, name: &str) -> Vec<String> {
    let values = response.headers().get_all(name).into_iter();
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
    /// The string at a JSON pointer in the body; empty if there is none, so that the next request with it fails visibly.
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
