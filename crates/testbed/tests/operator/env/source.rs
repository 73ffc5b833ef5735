//! Sources whose responses a test sets: an external scaler and a page for `metrics-api`, one of each for all tests.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use external_scaler::{ExternalScaler, MetricSpec, MetricValue, ScaledObjectRef, Server, Status};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// The response of a source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SourceResponse {
    /// This value; active if it is above zero.
    Value(u32),
    /// The same, for requests with this token.
    Guarded(u32, &'static str),
    /// An error.
    Fails(&'static str),
    /// No response.
    Hangs,
    /// A response that never ends; an external scaler does not respond.
    Drips,
}

/// All sources, by namespace and name; the default response is zero.
#[derive(Clone, Default)]
struct Script(Arc<Mutex<HashMap<(String, String), Source>>>);

#[derive(Default)]
struct Source {
    says: Option<SourceResponse>,
    /// The value that the external scaler reported last.
    reported: Option<u32>,
    /// When it was queried.
    queried_at: Vec<Instant>,
}

/// The addresses of the sources.
pub(crate) struct Sources {
    script: Script,
    /// `host:port` of the external scaler.
    pub(crate) scaler: String,
    /// `host:port` of the page.
    page: String,
}

impl Sources {
    pub(crate) async fn start() -> Self {
        let script = Script::default();
        let scaler = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let page = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
        let sources = Self { script: script.clone(), scaler: address(&scaler), page: address(&page) };
        let server = Server::new(script.clone());
        tokio::spawn(async move { server.serve_until(scaler, std::future::pending()).await.unwrap() });
        tokio::spawn(async move {
            while let Ok((connection, _)) = page.accept().await {
                tokio::spawn(serve_request(connection, script.clone()));
            }
        });
        sources
    }

    pub(crate) fn set_response(&self, namespace: &str, source: &str, says: SourceResponse) {
        let key = (namespace.to_owned(), source.to_owned());
        self.script.0.lock().unwrap().entry(key).or_default().says = Some(says);
    }

    /// Number of queries to a source.
    pub(crate) fn query_count(&self, namespace: &str, source: &str) -> u64 {
        let key = (namespace.to_owned(), source.to_owned());
        self.script.0.lock().unwrap().get(&key).map_or(0, |source| source.queried_at.len() as u64)
    }

    /// When a source was queried.
    pub(crate) fn query_times(&self, namespace: &str, source: &str) -> Vec<Instant> {
        let key = (namespace.to_owned(), source.to_owned());
        self.script.0.lock().unwrap().get(&key).map(|source| source.queried_at.clone()).unwrap_or_default()
    }

    /// The URL of a source.
    pub(crate) fn url(&self, namespace: &str, source: &str) -> String {
        format!("http://{}/{namespace}/{source}", self.page)
    }
}

impl Script {
    fn response(&self, namespace: &str, source: &str) -> SourceResponse {
        self.source(namespace, source, |source| {
            source.queried_at.push(Instant::now());
            source.says.clone().unwrap_or(SourceResponse::Value(0))
        })
    }

    fn source<T>(&self, namespace: &str, source: &str, with: impl FnOnce(&mut Source) -> T) -> T {
        with(self.0.lock().unwrap().entry((namespace.to_owned(), source.to_owned())).or_default())
    }
}

impl ExternalScaler for Script {
    async fn metric_specs(&self, object: &ScaledObjectRef) -> Result<Vec<MetricSpec>, Status> {
        let name = object.text("source")?;
        Ok(vec![MetricSpec::new(name, object.number_or("target", 10.0)?)])
    }

    async fn metrics(&self, object: &ScaledObjectRef, metric: &str) -> Result<Vec<MetricValue>, Status> {
        match self.response(&object.namespace, object.text("source")?) {
            SourceResponse::Value(value) | SourceResponse::Guarded(value, _) => {
                self.source(&object.namespace, object.text("source")?, |source| {
                    source.reported = Some(value);
                });
                Ok(vec![MetricValue::new(metric, f64::from(value))])
            }
            SourceResponse::Fails(why) => Err(Status::unavailable(why)),
            SourceResponse::Hangs | SourceResponse::Drips => std::future::pending().await,
        }
    }

    /// Agrees with the value that was reported last: a poll asks for the metric first, and the response may be set between both requests.
    async fn is_active(&self, object: &ScaledObjectRef) -> Result<bool, Status> {
        let name = object.text("source")?;
        match self.response(&object.namespace, name) {
            SourceResponse::Value(value) | SourceResponse::Guarded(value, _) => {
                let reported = self.source(&object.namespace, name, |source| source.reported);
                Ok(reported.unwrap_or(value) > 0)
            }
            SourceResponse::Fails(why) => Err(Status::unavailable(why)),
            SourceResponse::Hangs | SourceResponse::Drips => std::future::pending().await,
        }
    }
}

/// Serves one request for `/namespace/source`.
async fn serve_request(connection: TcpStream, script: Script) -> Option<()> {
    let mut reader = BufReader::new(connection);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_lowercase());
    }
    let path = head.first()?.split(' ').nth(1)?.to_owned();
    let (namespace, source) = path.trim_start_matches('/').split_once('/')?;
    let shown = |token: &str| head.contains(&format!("authorization: bearer {token}"));
    let value = |value| ("200 OK", format!("{{\"value\": {value}}}"));
    let (code, body) = match script.response(namespace, source) {
        SourceResponse::Value(reported) => value(reported),
        SourceResponse::Guarded(reported, token) if shown(token) => value(reported),
        SourceResponse::Guarded(..) => ("401 Unauthorized", String::new()),
        SourceResponse::Fails(why) => ("503 Service Unavailable", why.to_owned()),
        SourceResponse::Hangs => std::future::pending().await,
        SourceResponse::Drips => return drip(reader.into_inner()).await,
    };
    let http_response = format!(
        "HTTP/1.1 {code}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    reader.get_mut().write_all(http_response.as_bytes()).await.ok()
}

/// Sends a response that never ends, byte by byte.
async fn drip(mut connection: TcpStream) -> Option<()> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n{\"value\": 0";
    connection.write_all(head.as_bytes()).await.ok()?;
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        // The write fails when the client has closed the connection.
        connection.write_all(b" ").await.ok()?;
    }
}
