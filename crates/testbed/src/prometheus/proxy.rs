//! A proxy in front of Prometheus that injects faults into responses.

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
use crate::kubelets::locked;
use crate::plain;
use crate::simulated::SimulatedServer;

/// A fault that the proxy injects into responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ResponseFault {
    /// Responses are forwarded unchanged.
    #[default]
    None,
    /// Responses are delayed.
    Slow(Duration),
    /// Responses are an HTML page, as from a proxy whose server is down.
    Html,
    /// Responses have this status code.
    Code(u16),
    /// All sample values are this text, such as `NaN`.
    Values(&'static str),
    /// Every series occurs twice.
    DuplicateSeries,
    /// Responses contain warnings.
    Warnings,
    /// Bodies are truncated.
    Truncated,
}

/// A running proxy; it ends when this is dropped.
pub struct PrometheusProxy {
    server: SimulatedServer,
    shared: Arc<Mutex<PrometheusProxyState>>,
}

#[derive(Default)]
struct PrometheusProxyState {
    upstream: String,
    fault: ResponseFault,
    headers: HeaderMap,
}

impl PrometheusProxy {
    /// Starts a proxy in front of the server at this URL.
    pub fn start(upstream: &str) -> Result<Self, Error> {
        let shared = Arc::new(Mutex::new(PrometheusProxyState {
            upstream: upstream.to_owned(),
            ..PrometheusProxyState::default()
        }));
        let state = Arc::clone(&shared);
        let server = SimulatedServer::start_http("the front of Prometheus", move |request| {
            let state = Arc::clone(&state);
            async move { respond(request, &state).await }
        })?;
        Ok(Self { server, shared })
    }

    /// The URL of the proxy.
    pub fn url(&self) -> String {
        local("http", self.server.port)
    }

    /// Sets the fault of all responses from now on.
    pub fn set_fault(&self, fault: ResponseFault) {
        locked(&self.shared).fault = fault;
    }

    /// The headers of the last request.
    pub fn headers(&self) -> HeaderMap {
        locked(&self.shared).headers.clone()
    }
}

async fn respond(request: Request<Incoming>, shared: &Mutex<PrometheusProxyState>) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let (upstream, fault) = {
        let mut shared = locked(shared);
        shared.headers.clone_from(&parts.headers);
        (shared.upstream.clone(), shared.fault.clone())
    };
    match fault {
        ResponseFault::Html => {
            return page(200, "text/html", b"<html><body><h1>502 Bad Gateway</h1></body></html>".as_slice());
        }
        ResponseFault::Code(code) => return page(code, "text/plain", b"no".as_slice()),
        ResponseFault::Slow(wait) => tokio::time::sleep(wait).await,
        _ => {}
    }
    let path = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let mut onward = Request::builder().method(parts.method).uri(format!("{upstream}{path}"));
    if let Some(kind) = parts.headers.get(http::header::CONTENT_TYPE) {
        onward = onward.header(http::header::CONTENT_TYPE, kind);
    }
    let answered = async { plain::send(onward.body(Full::new(body)).map_err(io::Error::other)?).await };
    match answered.await {
        Ok(response) => {
            let code = response.status().as_u16();
            page(code, "application/json", with_fault(response.into_body(), &fault))
        }
        Err(error) => page(502, "text/plain", Bytes::from(error.to_string())),
    }
}

/// The body with the fault injected.
fn with_fault(body: Bytes, fault: &ResponseFault) -> Bytes {
    if *fault == ResponseFault::Truncated {
        return body.slice(..body.len() / 2);
    }
    let Ok(mut response) = serde_json::from_slice::<Value>(&body) else { return body };
    let result = response.pointer_mut("/data/result").and_then(Value::as_array_mut);
    match (fault, result) {
        (ResponseFault::Values(text), Some(result)) => {
            for value in result.iter_mut().filter_map(|sample| sample.pointer_mut("/value/1")) {
                *value = json!(text);
            }
        }
        (ResponseFault::DuplicateSeries, Some(result)) => {
            let again = result.clone();
            result.extend(again);
        }
        (ResponseFault::Warnings, _) => {
            if let Some(response) = response.as_object_mut() {
                response.insert("warnings".into(), json!(["a part of the store did not answer"]));
            }
        }
        _ => return body,
    }
    Bytes::from(response.to_string())
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
            bad(ResponseFault::DuplicateSeries)
                .unwrap()
                .pointer("/data/result")
                .unwrap()
                .as_array()
                .unwrap()
                .len(),
            2
        );
        assert!(bad(ResponseFault::Warnings).unwrap().get("warnings").is_some());
        assert_eq!(bad(ResponseFault::Truncated), None);
    }
}
