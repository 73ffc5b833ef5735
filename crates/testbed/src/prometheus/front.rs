//! A proxy before Prometheus that injects faults into responses.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::components::local;
use crate::error::Error;
use crate::kubelets::held;
use crate::plain;
use crate::side::SideServer;

/// What is wrong with responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ResponseFault {
    /// Nothing.
    #[default]
    None,
    /// They come late.
    Slow(Duration),
    /// They are a page for people, as a proxy's that has lost its server.
    Html,
    /// They have this code.
    Code(u16),
    /// All values are this text, such as `NaN`.
    Values(&'static str),
    /// Every series is there twice.
    Twice,
    /// They come with warnings.
    Warnings,
    /// They are cut off.
    Half,
}

/// A proxy that answers until it is dropped.
pub struct Front {
    server: SideServer,
    shared: Arc<Mutex<FrontState>>,
}

#[derive(Default)]
struct FrontState {
    behind: String,
    fault: ResponseFault,
    /// What was asked, decoded: path and query or body.
    asked: Vec<(String, String)>,
    headers: HeaderMap,
}

impl Front {
    /// Leads to the server at this address.
    pub fn start(behind: &str) -> Result<Self, Error> {
        let shared = Arc::new(Mutex::new(FrontState { behind: behind.to_owned(), ..FrontState::default() }));
        let state = Arc::clone(&shared);
        let server = SideServer::start_http("the front of Prometheus", move |request| {
            let state = Arc::clone(&state);
            async move { answer(request, &state).await }
        })?;
        Ok(Self { server, shared })
    }

    /// Where it answers.
    pub fn url(&self) -> String {
        local("http", self.server.port)
    }

    /// What is wrong from now on.
    pub fn set(&self, fault: ResponseFault) {
        held(&self.shared).fault = fault;
    }

    /// What was asked since the last look: the path, and the query or body.
    pub fn asked(&self) -> Vec<(String, String)> {
        std::mem::take(&mut held(&self.shared).asked)
    }

    /// The headers of the last request.
    pub fn headers(&self) -> HeaderMap {
        held(&self.shared).headers.clone()
    }
}

async fn answer(request: Request<Incoming>, shared: &Mutex<FrontState>) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let (behind, fault) = {
        let mut shared = held(shared);
        let query = parts.uri.query().unwrap_or_default();
        let said =
            if body.is_empty() { query.to_owned() } else { String::from_utf8_lossy(&body).into_owned() };
        shared.asked.push((parts.uri.path().to_owned(), said));
        shared.headers.clone_from(&parts.headers);
        (shared.behind.clone(), shared.fault.clone())
    };
    match fault {
        ResponseFault::Html => {
            return page(200, "text/html", b"<html><body><h1>502 Bad Gateway</h1></body></html>".as_slice());
        }
        ResponseFault::Code(code) => return page(code, "text/plain", b"no".as_slice()),
        ResponseFault::Slow(wait) => tokio::time::sleep(wait).await,
        _ => {}
    }
    let place = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let mut onward = Request::builder().method(parts.method).uri(format!("{behind}{place}"));
    if let Some(kind) = parts.headers.get(http::header::CONTENT_TYPE) {
        onward = onward.header(http::header::CONTENT_TYPE, kind);
    }
    let answered = async { plain::send(onward.body(Full::new(body)).map_err(io::Error::other)?).await };
    match answered.await {
        Ok(answer) => {
            let code = answer.status().as_u16();
            page(code, "application/json", with_fault(answer.into_body(), &fault))
        }
        Err(error) => page(502, "text/plain", Bytes::from(error.to_string())),
    }
}

/// The body with its fault.
fn with_fault(body: Bytes, fault: &ResponseFault) -> Bytes {
    if *fault == ResponseFault::Half {
        return body.slice(..body.len() / 2);
    }
    let Ok(mut answer) = serde_json::from_slice::<Value>(&body) else { return body };
    let result = answer.pointer_mut("/data/result").and_then(Value::as_array_mut);
    match (fault, result) {
        (ResponseFault::Values(text), Some(result)) => {
            for value in result.iter_mut().filter_map(|sample| sample.pointer_mut("/value/1")) {
                *value = json!(text);
            }
        }
        (ResponseFault::Twice, Some(result)) => {
            let again = result.clone();
            result.extend(again);
        }
        (ResponseFault::Warnings, _) => {
            if let Some(answer) = answer.as_object_mut() {
                answer.insert("warnings".into(), json!(["a part of the store did not answer"]));
            }
        }
        _ => return body,
    }
    Bytes::from(answer.to_string())
}

fn page(code: u16, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY);
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn responses_are_changed_by_each_fault() {
        let good = json!({"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [1, "2"]}]}});
        let bad =
            |fault| serde_json::from_slice::<Value>(&with_fault(Bytes::from(good.to_string()), &fault)).ok();
        assert_eq!(bad(ResponseFault::None), Some(good.clone()));
        assert_eq!(
            bad(ResponseFault::Values("NaN")).unwrap().pointer("/data/result/0/value/1"),
            Some(&json!("NaN"))
        );
        assert_eq!(
            bad(ResponseFault::Twice).unwrap().pointer("/data/result").unwrap().as_array().unwrap().len(),
            2
        );
        assert!(bad(ResponseFault::Warnings).unwrap().get("warnings").is_some());
        assert_eq!(bad(ResponseFault::Half), None);
    }
}
