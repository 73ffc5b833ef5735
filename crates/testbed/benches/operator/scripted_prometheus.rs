//! A simulated Prometheus that counts queries.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// How long to wait for queries.
const QUERIES_TIMEOUT: Duration = Duration::from_mins(10);

/// A simulated Prometheus, which runs until the process ends.
#[derive(Clone)]
pub(crate) struct ScriptedPrometheus {
    pub(crate) url: String,
    state: Arc<ScriptedPrometheusState>,
}

#[derive(Default)]
struct ScriptedPrometheusState {
    value: AtomicU64,
    query_count: AtomicU64,
    queries: Mutex<HashSet<String>>,
}

impl ScriptedPrometheus {
    /// Starts a server that returns this value for every query.
    pub(crate) async fn start(value: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(ScriptedPrometheusState {
            value: AtomicU64::new(value),
            ..ScriptedPrometheusState::default()
        });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let _ = stream.set_nodelay(true);
                let state = Arc::clone(&shared);
                let service = service_fn(move |request| {
                    let response = respond(&state, &request);
                    async move { Ok::<_, Infallible>(response) }
                });
                tokio::spawn(async move {
                    let connection = hyper::server::conn::http1::Builder::new();
                    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { url, state }
    }

    /// Sets the value of every query.
    pub(crate) fn set_value(&self, value: u64) {
        self.state.value.store(value, Ordering::SeqCst);
    }

    /// The number of queries so far.
    pub(crate) fn query_count(&self) -> u64 {
        self.state.query_count.load(Ordering::SeqCst)
    }

    /// Waits for `more` further queries, and until there were `distinct` different queries in all.
    pub(crate) async fn until_queried(&self, more: u64, distinct: usize) {
        let (begun, before) = (std::time::Instant::now(), self.query_count());
        while self.query_count() < before + more || self.state.queries.lock().unwrap().len() < distinct {
            assert!(
                begun.elapsed() < QUERIES_TIMEOUT,
                "{} queries, {} different ones: {more} and {distinct} were expected",
                self.query_count() - before,
                self.state.queries.lock().unwrap().len()
            );
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

fn respond(state: &ScriptedPrometheusState, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    state.query_count.fetch_add(1, Ordering::SeqCst);
    let query = request.uri().query().unwrap_or_default();
    let query = query.split('&').find_map(|part| part.strip_prefix("query=")).unwrap_or_default();
    {
        let mut queries = state.queries.lock().unwrap();
        if !queries.contains(query) {
            queries.insert(query.to_owned());
        }
    }
    let body = format!(
        r#"{{"status":"success","data":{{"resultType":"vector","result":[{{"metric":{{}},"value":[1779883200.781,"{}"]}}]}}}}"#,
        state.value.load(Ordering::SeqCst)
    );
    let response = Response::builder().header("content-type", "application/json");
    response.body(Full::new(Bytes::from(body))).unwrap()
}
