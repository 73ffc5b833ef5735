//! A server in this process with scripted responses.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http_body::Frame;
use http_body_util::StreamBody;
use kube::Client;
use kube::client::Body;
use tokio::time::sleep;
use tower::BoxError;

pub(crate) const JSON: &str = "application/json";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// One answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<Bytes>,
    /// What ends it instead of its end.
    pub(crate) broken: Option<io::ErrorKind>,
    /// How long it takes.
    pub(crate) wait: Duration,
}

impl Reply {
    pub(crate) fn new(code: u16, content_type: &str, body: &str) -> Self {
        let headers = [("content-type", content_type.to_owned())];
        let headers = headers.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        Self { code, headers, body: vec![Bytes::copy_from_slice(body.as_bytes())], ..Self::default() }
    }

    pub(crate) fn json(body: &serde_json::Value) -> Self {
        Self::new(200, JSON, &body.to_string())
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn after(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }
}

/// A request as the server received it.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) line: String,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: String,
}

type Answers = dyn Fn(&ReceivedRequest) -> Reply + Send + Sync;

/// A server and the requests that it received.
#[derive(Clone)]
pub(crate) struct Fake {
    answers: Arc<Answers>,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Fake {
    pub(crate) fn new(answers: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self { answers: Arc::new(answers), received: Arc::default() }
    }

    pub(crate) fn always(reply: Reply) -> Self {
        Self::new(move |_| reply.clone())
    }

    pub(crate) fn client(&self) -> Client {
        let fake = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let fake = fake.clone();
            async move { fake.answer(request).await }
        });
        Client::new(service, "default")
    }

    /// The requests since the last call, as `GET /path`.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.taken().into_iter().map(|request| request.line).collect()
    }

    pub(crate) fn taken(&self) -> Vec<ReceivedRequest> {
        std::mem::take(&mut *self.received.lock().unwrap())
    }

    async fn answer(&self, request: http::Request<Body>) -> Result<http::Response<ReplyBody>, BoxError> {
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap();
        let request = ReceivedRequest {
            line: format!("{} {}", head.method, head.uri),
            headers: head.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        };
        let reply = (self.answers)(&request);
        self.received.lock().unwrap().push(request);
        if !reply.wait.is_zero() {
            sleep(reply.wait).await;
        }
        if let (Some(kind), true) = (reply.broken, reply.body.is_empty()) {
            return Err(io::Error::from(kind).into());
        }
        let mut response = http::Response::builder().status(reply.code);
        for (name, value) in &reply.headers {
            response = response.header(*name, value);
        }
        let frames: Vec<Result<Frame<Bytes>, BoxError>> = reply
            .body
            .into_iter()
            .map(|data| Ok(Frame::data(data)))
            .chain(reply.broken.map(|kind| Err(io::Error::from(kind).into())))
            .collect();
        Ok(response.body(StreamBody::new(futures::stream::iter(frames).boxed())).unwrap())
    }
}

type ReplyBody = StreamBody<futures::stream::BoxStream<'static, Result<Frame<Bytes>, BoxError>>>;
