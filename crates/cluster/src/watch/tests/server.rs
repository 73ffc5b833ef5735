//! A server in this process with scripted responses.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use ::bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::Client;
use kube::client::Body;
use tokio::time::Instant;
use tower::{BoxError, service_fn};

use crate::watch::{WatchEvent, WatchHealth, WatchSource, watch};
use api::pod::Pod;

type Chunks = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, BoxError>> + Send>>;

/// How a body ends.
#[derive(Clone, Copy)]
pub(super) enum End {
    Clean,
    Cut,
    Silent,
}

/// The response to one request.
pub(super) enum ScriptedResponse {
    Body(String, End),
    Status(u16, Option<u32>, String),
    Unreachable,
}

/// The scripted responses; after the last one, requests get no response.
#[derive(Clone, Default)]
pub(super) struct Server {
    answers: Arc<Mutex<VecDeque<ScriptedResponse>>>,
    /// The requests and their times.
    requests: Arc<Mutex<Vec<(Instant, String)>>>,
    /// The answer to everything when no other is left.
    always: Option<fn() -> ScriptedResponse>,
}

impl Server {
    pub(super) fn new(answers: impl IntoIterator<Item = ScriptedResponse>) -> Self {
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        Self { answers, ..Self::default() }
    }

    pub(super) fn then_always(mut self, answer: fn() -> ScriptedResponse) -> Self {
        self.always = Some(answer);
        self
    }

    pub(super) fn client(&self) -> Client {
        let server = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { server.answer(&request) }
        });
        Client::new(service, "default")
    }

    fn answer(&self, request: &Request<Body>) -> Result<Response<StreamBody<Chunks>>, BoxError> {
        self.requests.lock().unwrap().push((Instant::now(), request.uri().to_string()));
        let next = self.answers.lock().unwrap().pop_front();
        let answer = next.or_else(|| self.always.map(|always| always()));
        let (status, retry, text, end) = match answer {
            Some(ScriptedResponse::Body(text, end)) => (200, None, text, end),
            Some(ScriptedResponse::Status(code, retry, text)) => (code, retry, text, End::Clean),
            Some(ScriptedResponse::Unreachable) => {
                return Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into());
            }
            None => (200, None, String::new(), End::Silent),
        };
        let pieces: Vec<_> = text.as_bytes().chunks(7).map(Bytes::copy_from_slice).collect();
        let pieces = stream::iter(pieces).map(|piece| Ok(Frame::data(piece)));
        let chunks: Chunks = match end {
            End::Clean => Box::pin(pieces),
            End::Cut => Box::pin(pieces.chain(stream::iter([Err("connection reset".into())]))),
            End::Silent => Box::pin(pieces.chain(stream::pending())),
        };
        let mut response = Response::builder().status(status);
        if let Some(seconds) = retry {
            response = response.header("Retry-After", seconds);
        }
        Ok(response.body(StreamBody::new(chunks))?)
    }

    /// The requests so far, without the timeouts of watches, which are random.
    pub(super) fn requests(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let query = |uri: &str| uri.strip_prefix("/api/v1/pods").unwrap().to_owned();
        requests.iter().map(|(_, uri)| without_timeout(&query(uri))).collect()
    }

    /// Times between one request and the next, in milliseconds.
    pub(super) fn pauses(&self) -> Vec<u128> {
        let requests = self.requests.lock().unwrap();
        requests.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_millis()).collect()
    }

    /// Reads the first changes.
    pub(super) async fn changes(&self, count: usize) -> (WatchHealth, Vec<String>) {
        let (health, changes) = watch::<Pod>(self.client(), WatchSource::pods());
        let reported = changes.take(count).map(|change| reported(&change)).collect().await;
        (health, reported)
    }

    /// Reads the first changes, while texts of objects are applied without decoding them.
    pub(super) async fn changes_beside(
        &self,
        count: usize,
        handler: impl Fn(&[u8]) -> Option<String> + Send + Sync + 'static,
    ) -> Vec<String> {
        let source = WatchSource::pods().with_text_handler(handler);
        let (_, changes) = watch::<Pod>(self.client(), source);
        changes.take(count).map(|change| reported(&change)).collect().await
    }

    /// Reads changes for a while.
    pub(super) async fn changes_for(&self, seconds: u64) -> (WatchHealth, Vec<String>) {
        let (health, changes) = watch::<Pod>(self.client(), WatchSource::pods());
        let end = tokio::time::sleep(std::time::Duration::from_secs(seconds));
        let reported = changes.take_until(end).map(|change| reported(&change)).collect().await;
        (health, reported)
    }
}

fn without_timeout(query: &str) -> String {
    let parts = query.split('&').filter(|part| {
        let seconds = part.strip_prefix("timeoutSeconds=").map(|seconds| seconds.parse().unwrap());
        assert!(seconds.is_none_or(|seconds: u64| (300..=600).contains(&seconds)), "{query}");
        seconds.is_none()
    });
    parts.collect::<Vec<_>>().join("&")
}

pub(super) fn reported(change: &WatchEvent<Pod>) -> String {
    match change {
        WatchEvent::Listing => "listing".to_owned(),
        WatchEvent::Listed => "listed".to_owned(),
        WatchEvent::Applied(pod) => {
            format!("+{} {}", pod.metadata.name, pod.status.phase).trim_end().to_owned()
        }
        WatchEvent::Deleted { namespace, name } => format!("-{namespace}/{name}"),
        WatchEvent::Unreadable { namespace, name, .. } => format!("?{namespace}/{name}"),
    }
}

pub(super) fn pod(name: &str, version: u32) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","namespace":"ns","resourceVersion":"{version}"}}}}"#)
}

pub(super) fn list(version: u32, pods: &[String]) -> ScriptedResponse {
    ScriptedResponse::Body(list_text(version, pods), End::Clean)
}

pub(super) fn list_text(version: u32, pods: &[String]) -> String {
    format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":[{}]}}"#,
        pods.join(",")
    )
}

pub(super) fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

pub(super) fn bookmark(version: u32) -> String {
    event("BOOKMARK", &format!(r#"{{"kind":"Pod","metadata":{{"resourceVersion":"{version}"}}}}"#))
}

pub(super) fn watched(lines: &[String], end: End) -> ScriptedResponse {
    ScriptedResponse::Body(lines.concat(), end)
}
