//! Test servers that can be stopped and made to fail.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;

use crate::federation::{Body, Route, full};

/// A server that stops, with its connections, when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requested: Arc<AtomicUsize>,
    accepting: AbortHandle,
}

impl Server {
    /// Serves at an address; port 0 for a free one.
    pub(crate) async fn at(address: SocketAddr, route: Route, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let requested = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requested);
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (route, tls, count) = (route.clone(), tls.clone(), Arc::clone(&count));
                connections.spawn(connection(stream, route, tls, count));
            }
        });
        Self { address, requested, accepting: accepting.abort_handle() }
    }

    pub(crate) async fn new(route: Route) -> Self {
        Self::at(([127, 0, 0, 1], 0).into(), route, None).await
    }

    /// Responds with the result of a function of path and query.
    pub(crate) async fn answering(respond: impl Fn(&str) -> (u16, String) + Send + Sync + 'static) -> Self {
        Self::answering_with(&Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)), respond).await
    }

    /// As [`Server::answering`], but each response waits for one of the permits.
    pub(crate) async fn answering_with(
        permits: &Arc<Semaphore>,
        respond: impl Fn(&str) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        let (permits, respond) = (Arc::clone(permits), Arc::new(respond));
        Self::new(BoxCloneSyncService::new(tower::service_fn(move |request: Request<Body>| {
            let (permits, respond) = (Arc::clone(&permits), Arc::clone(&respond));
            async move {
                let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
                let _permit = permits.acquire().await.unwrap();
                let (code, text) = respond(&path);
                Ok::<_, Infallible>(Response::builder().status(code).body(full(text)).unwrap())
            }
        })))
        .await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests so far.
    pub(crate) fn requested(&self) -> usize {
        self.requested.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn connection(stream: TcpStream, route: Route, tls: Option<TlsAcceptor>, count: Arc<AtomicUsize>) {
    // Boxed to keep the lifetimes simple for the compiler.
    let service = tower::service_fn(move |request: Request<Incoming>| {
        count.fetch_add(1, Ordering::SeqCst);
        let (parts, body) = request.into_parts();
        let body: Body = body.map_err(Into::into).boxed_unsync();
        let answer: BoxFuture<'static, Result<Response<Body>, Infallible>> =
            route.clone().oneshot(Request::from_parts(parts, body)).boxed();
        answer
    });
    let (service, builder) = (TowerToHyperService::new(service), auto::Builder::new(TokioExecutor::new()));
    match tls {
        None => drop(builder.serve_connection(TokioIo::new(stream), service).await),
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                drop(builder.serve_connection(TokioIo::new(stream), service).await);
            }
        }
    }
}

/// A metrics API server with one external metric.
pub(crate) fn metrics_api(
    metric: &'static str,
    value: &'static str,
) -> impl Fn(&str) -> (u16, String) + Send + Sync {
    move |path| {
        let list = "/apis/external.metrics.k8s.io/v1beta1";
        if path == list {
            let entry = format!(
                r#"{{"name":"{metric}","singularName":"","namespaced":true,"kind":"ExternalMetricValueList","verbs":["get"]}}"#
            );
            return (
                200,
                format!(
                    r#"{{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"external.metrics.k8s.io/v1beta1","resources":[{entry}]}}"#
                ),
            );
        }
        let Some(requested) =
            path.strip_prefix(list).and_then(|rest| rest.strip_prefix("/namespaces/default/"))
        else {
            return (404, "404 page not found\n".into());
        };
        if requested == metric {
            (200, values(metric, value))
        } else {
            (
                404,
                status(
                    404,
                    "NotFound",
                    &format!("the server could not find the metric {requested} for namespaces"),
                ),
            )
        }
    }
}

/// A list with one value.
pub(crate) fn values(metric: &str, value: &str) -> String {
    format!(
        r#"{{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","metadata":{{}},"items":[{{"metricName":"{metric}","metricLabels":{{}},"timestamp":"2026-11-15T00:21:10Z","value":"{value}"}}]}}"#
    )
}

/// An empty list.
pub(crate) fn nothing() -> String {
    r#"{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","metadata":{},"items":[]}"#.into()
}

/// An error.
pub(crate) fn status(code: u16, reason: &str, message: &str) -> String {
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":{message:?},"reason":"{reason}","code":{code}}}"#
    )
}
