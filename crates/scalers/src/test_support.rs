//! Test support: scripted servers, triggers and a fake cluster.
pub(crate) mod fake_server;
pub(crate) mod grpc_server;
pub(crate) mod scram_server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::provider::Compat;
use api::selector::Selector;
use http::{HeaderMap, StatusCode};
use sources::http::{HttpResponse, ProxyRules};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::backends::{Backends, Cluster, ClusterFuture, PodView};
use crate::dial::Dialer;
use crate::web::{HttpCall, HttpSettings, SharedHttpClient};
use crate::{Owner, Reading, Scaler, ScalerError, Trigger, table};

/// How a test server responds to a request.
pub(crate) enum ServerAction {
    /// Responds with a status and a body.
    Answer(u16, String),
    /// Sends these bytes and closes the connection.
    Raw(Vec<u8>),
    /// Never responds.
    Hang,
}

/// Starts a server that calls `act` with each request (head and body); returns `http://127.0.0.1:port`.
pub(crate) async fn server(act: impl Fn(&str) -> ServerAction + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let act = Arc::new(act);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let act = Arc::clone(&act);
            tokio::spawn(async move {
                let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
                loop {
                    let Ok(read @ 1..) = stream.read(&mut piece).await else { return };
                    bytes.extend_from_slice(piece.get(..read).unwrap());
                    if !is_whole(&bytes) {
                        continue;
                    }
                    let head = String::from_utf8_lossy(&bytes).into_owned();
                    bytes.clear();
                    let done = match act(&head) {
                        ServerAction::Answer(status, body) => {
                            let length = body.len();
                            let answer =
                                format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}");
                            stream.write_all(answer.as_bytes()).await
                        }
                        ServerAction::Raw(raw) => {
                            let _ = stream.write_all(&raw).await;
                            return;
                        }
                        ServerAction::Hang => std::future::pending().await,
                    };
                    if done.is_err() {
                        return;
                    }
                }
            });
        }
    });
    format!("http://{address}")
}

/// Whether head and body are complete.
fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let mut headers = head.lines().filter_map(|line| line.split_once(": "));
    let length = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    body.len() >= length.map_or(0, |(_, length)| length.parse().unwrap())
}

/// A trigger of `ScaledObject ns/so`.
pub(crate) fn trigger(type_: &str, metadata: &[(&str, &str)]) -> Trigger {
    Trigger {
        owner: Owner { kind: "ScaledObject".into(), namespace: "ns".into(), name: "so".into() },
        type_: type_.to_owned(),
        metadata: texts(metadata),
        http_timeout: Duration::from_secs(10),
        ..Trigger::default()
    }
}

/// Pairs as a map.
pub(crate) fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A fake cluster with fixed pods and endpoints.
#[derive(Default)]
pub(crate) struct FakeCluster {
    pub(crate) pods: Vec<PodView>,
    pub(crate) endpoints: Vec<(String, Option<u16>)>,
    pub(crate) fails: bool,
}

impl Cluster for FakeCluster {
    fn pods<'a>(&'a self, namespace: &'a str, _: &'a Selector) -> ClusterFuture<'a, Vec<PodView>> {
        assert_eq!(namespace, "ns");
        Box::pin(async {
            if self.fails { Err(ScalerError::new("no pods today")) } else { Ok(self.pods.clone()) }
        })
    }

    fn endpoints<'a>(&'a self, _: &'a str, _: &'a str) -> ClusterFuture<'a, Vec<(String, Option<u16>)>> {
        Box::pin(async { Ok(self.endpoints.clone()) })
    }
}

/// Shared state that does not cache responses.
pub(crate) fn backends(fake_cluster: FakeCluster) -> Backends {
    backends_with(fake_cluster, Dialer::allowing_loopback())
}

/// The same with another dialer.
pub(crate) fn backends_with(fake_cluster: FakeCluster, dialer: Dialer) -> Backends {
    let settings = HttpSettings { fresh: Duration::ZERO, dialer, ..HttpSettings::default() };
    Backends::new(Arc::new(fake_cluster), settings, Compat::default())
}

/// Shared state whose HTTP requests go through a proxy on this port of this machine: for servers at fixed addresses. No name is
/// looked up.
pub(crate) fn backends_through_proxy(port: u16) -> Backends {
    let proxies = ProxyRules::from_environment(|name| {
        matches!(name, "HTTP_PROXY" | "HTTPS_PROXY").then(|| format!("http://127.0.0.1:{port}"))
    });
    let dialer = Dialer::unrestricted();
    let settings = HttpSettings { fresh: Duration::ZERO, dialer, proxies, ..HttpSettings::default() };
    Backends::new(Arc::new(FakeCluster::default()), settings, Compat::default())
}

/// Builds the scaler of a trigger.
pub(crate) fn build(trigger: &Trigger) -> Result<Arc<dyn Scaler>, ScalerError> {
    table::build(trigger, &backends(FakeCluster::default()))
}

/// Reads the first metric of a scaler.
pub(crate) async fn read_first(scaler: &dyn Scaler) -> Result<Reading, ScalerError> {
    let specs = scaler.specs().await.unwrap_or_default();
    let name = specs.first().and_then(|spec| spec.external.as_ref()).map(|external| &*external.metric.name);
    scaler.read(name.unwrap_or("m")).await
}

/// Builds the scaler of a trigger and reads it.
pub(crate) async fn read(trigger: &Trigger) -> Result<Reading, ScalerError> {
    build(trigger)?.read("m").await
}

/// The first value of a reading, or the message of its error.
pub(crate) fn value(reading: Result<Reading, ScalerError>) -> String {
    match reading {
        Ok(reading) => reading.values.first().unwrap().value.canonical(),
        Err(error) => error.message,
    }
}

/// Builds the scaler of a trigger and reads it. Its requests are answered by a function and never sent: for servers at fixed addresses.
pub(crate) async fn read_answered(
    trigger: &Trigger,
    answer: impl Fn(&HttpCall) -> (u16, String) + Send + Sync + 'static,
) -> Result<Reading, ScalerError> {
    let web = SharedHttpClient::answered_by(move |call| {
        let (status, body) = answer(call);
        let status = StatusCode::from_u16(status).unwrap();
        HttpResponse { status, headers: HeaderMap::new(), body: body.into() }
    });
    let mut backends = backends(FakeCluster::default());
    backends.web = Arc::new(web);
    table::build(trigger, &backends)?.read("m").await
}

/// Answers like the metadata server of Google for requests to it: token `t`, project `p`. None for other requests.
pub(crate) fn google_metadata(call: &HttpCall) -> Option<(u16, String)> {
    let path = call.url.strip_prefix("http://127.0.0.1:1/computeMetadata/v1/")?;
    assert_eq!(call.headers.get("metadata-flavor").unwrap(), "Google");
    let is_project = path == "project/project-id";
    assert!(is_project || path.starts_with("instance/service-accounts/default/token?scopes=https"), "{path}");
    let token = r#"{"access_token": "t", "expires_in": 3600}"#;
    Some((200, if is_project { "p" } else { token }.to_owned()))
}

/// Answers like the token endpoint of Azure for requests of client `c` in tenant `t`: token `token`. None for other requests.
pub(crate) fn azure_token(call: &HttpCall, scope: &str) -> Option<(u16, String)> {
    if call.url != "https://login.microsoftonline.com/t/oauth2/v2.0/token" {
        return None;
    }
    let form = std::str::from_utf8(&call.body).unwrap();
    let scope = crate::web::escaped(scope);
    assert_eq!(
        form,
        format!("client_id=c&grant_type=client_credentials&scope={scope}&client_secret=hunter2")
    );
    Some((200, r#"{"access_token": "token", "expires_in": 3600}"#.to_owned()))
}
