//! Faults between the operator and the API server: requests are refused or slow, watch events are held back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::sync::watch;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Answer = UnsyncBoxBody<<Body as http_body::Body>::Data, Error>;

/// Requests that are refused.
#[derive(Debug)]
struct Refusal {
    method: Method,
    /// A part of their path.
    part: String,
    code: u16,
    /// How many more are refused.
    times: u32,
}

/// The faults of one client.
#[derive(Clone, Debug)]
pub(super) struct ClientFaults {
    refusals: Arc<Mutex<Vec<Refusal>>>,
    seen: Arc<Mutex<Vec<(Method, String)>>>,
    /// Requests that take long: method, part of the path, how long.
    slow: Arc<Mutex<Vec<(Method, String, Duration)>>>,
    /// Parts of the paths of watches whose events are held back.
    held: Arc<watch::Sender<Vec<String>>>,
}

impl Default for ClientFaults {
    fn default() -> Self {
        let held = Arc::new(watch::Sender::default());
        Self { refusals: Arc::default(), seen: Arc::default(), slow: Arc::default(), held }
    }
}

impl ClientFaults {
    /// Answers the next `times` requests of a method to paths with this part with this code.
    pub(super) fn refuse(&self, method: Method, part: &str, code: u16, times: u32) {
        self.refusals.lock().unwrap().push(Refusal { method, part: part.to_owned(), code, times });
    }

    /// Delays requests of a method to paths with this part.
    pub(super) fn slow(&self, method: Method, part: &str, by: Duration) {
        self.slow.lock().unwrap().push((method, part.to_owned(), by));
    }

    /// Refuses no more requests.
    pub(super) fn clear_refusals(&self) {
        self.refusals.lock().unwrap().clear();
    }

    /// Holds back the events of watches of paths with this part until they are released; none is lost.
    pub(super) fn hold_watch(&self, part: &str) {
        self.held.send_modify(|held| held.push(part.to_owned()));
    }

    /// Delivers the events of all watches again.
    pub(super) fn release_watches(&self) {
        self.held.send_modify(Vec::clear);
    }

    /// Number of requests of a method to paths with this part, including refused ones.
    pub(super) fn count(&self, method: &Method, part: &str) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|(own, path)| own == method && path.contains(part)).count()
    }

    /// A client with these faults.
    pub(super) fn client(&self, inner: &Client) -> Client {
        let (wire, inner) = (self.clone(), inner.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (wire, inner) = (wire.clone(), inner.clone());
            async move { wire.send(&inner, request).await }
        });
        Client::new(service, "default")
    }

    fn refusal(&self, method: &Method, path: &str) -> Option<u16> {
        let mut all = self.refusals.lock().unwrap();
        let found =
            all.iter_mut().find(|one| one.times > 0 && one.method == *method && path.contains(&one.part))?;
        found.times -= 1;
        Some(found.code)
    }

    async fn send(&self, inner: &Client, request: Request<Body>) -> Result<Response<Answer>, Error> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        self.seen.lock().unwrap().push((method.clone(), path.clone()));
        if let Some(code) = self.refusal(&method, &path) {
            let reason = if code == 403 { "Forbidden" } else { "InternalError" };
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                "reason": reason, "message": format!("no: {method} {path}")});
            let response = Response::builder().status(code).header("content-type", "application/json");
            return Ok(response.body(plain(Body::from(status.to_string().into_bytes())))?);
        }
        let is_it = |(own, part, _): &&(Method, String, Duration)| *own == method && path.contains(part);
        let late = self.slow.lock().unwrap().iter().find(is_it).map(|(_, _, by)| *by);
        if let Some(by) = late {
            tokio::time::sleep(by).await;
        }
        let response = inner.send(request).await?;
        Ok(response.map(|body| if is_watch { self.delayed(path, body) } else { plain(body) }))
    }

    fn delayed(&self, path: String, body: Body) -> Answer {
        let held = self.held.clone();
        let late = body.into_data_stream().then(move |chunk| {
            let (mut held, path) = (held.subscribe(), path.clone());
            async move {
                let _ = held.wait_for(|parts| !parts.iter().any(|part| path.contains(part))).await;
                chunk
            }
        });
        http_body_util::BodyExt::map_err(StreamBody::new(late.map_ok(Frame::data)), Into::into).boxed_unsync()
    }
}

fn plain(body: Body) -> Answer {
    body.map_err(Into::into).boxed_unsync()
}
