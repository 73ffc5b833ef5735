//! A scripted Prometheus that counts queries.

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

/// How long to wait for questions.
const PATIENCE: Duration = Duration::from_mins(10);

/// Answers until the process ends.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) url: String,
    state: Arc<SourceState>,
}

#[derive(Default)]
struct SourceState {
    value: AtomicU64,
    asked: AtomicU64,
    queries: Mutex<HashSet<String>>,
}

impl Source {
    /// One whose every query has this value.
    pub(crate) async fn start(value: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(SourceState { value: AtomicU64::new(value), ..SourceState::default() });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let _ = stream.set_nodelay(true);
                let state = Arc::clone(&shared);
                let service = service_fn(move |request| {
                    let answer = answer(&state, &request);
                    async move { Ok::<_, Infallible>(answer) }
                });
                tokio::spawn(async move {
                    let connection = hyper::server::conn::http1::Builder::new();
                    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { url, state }
    }

    /// From now on every query has this value.
    pub(crate) fn say(&self, value: u64) {
        self.state.value.store(value, Ordering::SeqCst);
    }

    /// How many queries it was sent.
    pub(crate) fn asked(&self) -> u64 {
        self.state.asked.load(Ordering::SeqCst)
    }

    /// Waits until so many more queries came, all of which were among `distinct` different ones.
    pub(crate) async fn until_asked(&self, more: u64, distinct: usize) {
        let (begun, before) = (std::time::Instant::now(), self.asked());
        while self.asked() < before + more || self.state.queries.lock().unwrap().len() < distinct {
            assert!(
                begun.elapsed() < PATIENCE,
                "{} queries, {} different ones: {more} and {distinct} were meant",
                self.asked() - before,
                self.state.queries.lock().unwrap().len()
            );
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

fn answer(state: &SourceState, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    state.asked.fetch_add(1, Ordering::SeqCst);
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
    let answer = Response::builder().header("content-type", "application/json");
    answer.body(Full::new(Bytes::from(body))).unwrap()
}
