//! The TLS listener (HTTP/1.1 and HTTP/2), and injected faults.

use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use locks::MutexExt as _;
use rustls::ServerConfig;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::MetricsApiError;
use super::answer::{MetricsRequest, read};
use super::script::{Outage, Script};
use crate::access::{Authority, PkiError, server_config};
use crate::clock::Clock;
use crate::listen;
use crate::response::{PLAIN_TEXT, ResponseBody, respond};
use crate::status::Status;

/// Response header with the port of the server, so that registration can verify which server responds.
pub(super) const SERVED_BY_HEADER: &str = "x-simulated-metrics-port";

/// The listener; its certificate can be replaced.
#[derive(Clone)]
pub(super) struct MetricsEndpoint {
    pub(super) port: u16,
    authority: Authority,
    tls: Arc<Mutex<Arc<ServerConfig>>>,
}

impl MetricsEndpoint {
    pub(super) async fn open() -> Result<(Self, TcpListener), MetricsApiError> {
        let authority = Authority::new("simulated-metrics")?;
        let config = config(&authority, &["localhost", "127.0.0.1"])?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        Ok((Self { port, authority, tls: Arc::new(Mutex::new(config)) }, listener))
    }

    pub(super) fn ca_pem(&self) -> &str {
        self.authority.certificate()
    }

    /// Adds a host name to the certificate.
    pub(super) fn also_called(&self, name: &str) -> Result<(), PkiError> {
        let config = config(&self.authority, &["localhost", "127.0.0.1", name])?;
        *self.tls.locked() = config;
        Ok(())
    }

    fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.tls.locked()))
    }
}

fn config(authority: &Authority, names: &[&str]) -> Result<Arc<ServerConfig>, PkiError> {
    Ok(Arc::new(server_config(&authority.server(names)?, None)?))
}

/// Serves connections until it is dropped.
pub(super) async fn accept(endpoint: MetricsEndpoint, listener: TcpListener, script: Script, clock: Clock) {
    let serve = |stream| serve(endpoint.clone(), stream, script.clone(), clock);
    listen::accept(listener, serve).await;
}

async fn serve(endpoint: MetricsEndpoint, stream: TcpStream, script: Script, clock: Clock) {
    let Some(stream) = listen::handshake(&endpoint.acceptor(), stream).await else { return };
    let respond = move |request: Request<Incoming>| {
        let (script, port) = (script.clone(), endpoint.port);
        async move {
            let mut response = answer(&script, &request.into_parts().0, clock).await;
            response.headers_mut().insert(SERVED_BY_HEADER, HeaderValue::from(port));
            response
        }
    };
    listen::serve_http(stream, respond).await;
}

async fn answer(script: &Script, parts: &Parts, clock: Clock) -> Response<ResponseBody> {
    script.note(parts.uri.path());
    let asked = {
        let play = script.lock();
        read(parts, &[&play.contents, &play.measured])
    };
    let question = match asked {
        Err(status) => return json(status.code, &status.to_json()),
        Ok(MetricsRequest::Health) => return respond(200, PLAIN_TEXT, "ok"),
        Ok(MetricsRequest::Discovery(document)) => return json(200, &document),
        Ok(MetricsRequest::Metrics(question)) => question,
    };
    match script.outage(question.group) {
        Outage::None => {}
        Outage::Status { code, reason, message } => {
            let status = Status { code, reason, message, about: None, causes: Vec::new(), retry_after: None };
            return json(code, &status.to_json());
        }
        Outage::Text { code, body } => return respond(code, PLAIN_TEXT, body),
        Outage::Empty => return json(200, &question.nothing()),
        Outage::Hang => return std::future::pending().await,
        Outage::Garbage => {
            return respond(200, "application/json", "{\"kind\":\"PodMetricsList\",\"items\":[{\"met");
        }
        Outage::Cut => return cut(),
    }
    let answer = {
        let play = script.lock();
        question.answer(&[&play.contents, &play.measured], clock.now())
    };
    match answer {
        Ok(value) => json(200, &value),
        Err(status) => json(status.code, &status.to_json()),
    }
}

fn json(code: u16, value: &Value) -> Response<ResponseBody> {
    respond(code, "application/json", format!("{value}\n"))
}

/// A response that breaks off.
fn cut() -> Response<ResponseBody> {
    let begun = Frame::data(Bytes::from_static(b"{\"kind\":"));
    let broken = stream::once(async {
        // The first part must be sent before the connection breaks, or the client sees no response at all.
        tokio::time::sleep(Duration::from_millis(20)).await;
        Err(io::Error::from(io::ErrorKind::ConnectionReset).into())
    });
    let frames = stream::iter([Ok(begun)]).chain(broken);
    let mut response = Response::new(BodyExt::boxed_unsync(StreamBody::new(frames)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
