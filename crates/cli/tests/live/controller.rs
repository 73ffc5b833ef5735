//! A simulated controller: it serves decisions that a test has set, over TLS.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use api::decisions::{
    API_VERSION, DecisionList, DecisionMeta, DecisionRecord, DifferenceList, DifferenceRecord,
};
use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use localkube::access::Authority;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Serialize;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio_rustls::TlsAcceptor;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The state of the simulated controller, which clones share.
#[derive(Clone)]
pub(crate) struct Controller(Arc<Inner>);

struct Inner {
    known: Mutex<Known>,
    /// `None` ends all watches.
    news: broadcast::Sender<Option<DecisionRecord>>,
}

#[derive(Default)]
struct Known {
    records: Vec<DecisionRecord>,
    differences: Vec<DifferenceRecord>,
}

impl Controller {
    /// Starts the simulated controller on a free port.
    pub(crate) async fn start() -> (Self, u16) {
        let controller = Self(Arc::new(Inner { known: Mutex::default(), news: broadcast::Sender::new(100) }));
        let identity = Authority::new("controller").unwrap().server(&["plimsoll.default.svc"]).unwrap();
        let chain = vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(chain, key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = controller.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, served) = (acceptor.clone(), served.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                        let answer = served.answer(request.uri());
                        async move { Ok::<_, Infallible>(answer) }
                    });
                    let builder = auto::Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        (controller, port)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap()
    }

    /// Records a decision.
    pub(crate) fn keep(&self, record: DecisionRecord) -> &Self {
        self.known().records.push(record.clone());
        let _ = self.0.news.send(Some(record));
        self
    }

    /// Ends all watches.
    pub(crate) fn cut(&self) {
        let _ = self.0.news.send(None);
    }

    /// Records a difference.
    pub(crate) fn differ(&self) {
        let at = jiff::Timestamp::now();
        self.known().differences.push(DifferenceRecord {
            api_version: API_VERSION.into(),
            kind: "Difference".into(),
            metadata: DecisionMeta { name: "hpa.web".into(), namespace: "shop".into() },
            since: at,
            last: at,
            over: false,
            field: "desiredReplicas".into(),
            theirs: "4".into(),
            ours: "5".into(),
            why: "we saw a pod sooner".into(),
        });
    }

    fn answer(&self, uri: &http::Uri) -> Response<Body> {
        let path = uri.path().strip_prefix(&format!("/apis/{API_VERSION}")).unwrap_or("/else");
        let words: Vec<&str> = path.split('/').skip(1).collect();
        let known = self.known();
        let in_scope =
            |namespace: &str, meta: &DecisionMeta| namespace.is_empty() || meta.namespace == namespace;
        match words.as_slice() {
            [] => {
                json_body(&json!({"kind": "APIResourceList", "groupVersion": API_VERSION, "resources": []}))
            }
            ["decisions"] | ["namespaces", _, "decisions"] => {
                let namespace = if words.len() == 1 { "" } else { words[1] };
                let mut latest: Vec<DecisionRecord> = Vec::new();
                for record in known.records.iter().filter(|record| in_scope(namespace, &record.metadata)) {
                    latest.retain(|earlier| earlier.metadata != record.metadata);
                    latest.push(record.clone());
                }
                json_body(&DecisionList { items: latest, ..DecisionList::default() })
            }
            ["namespaces", namespace, "decisions", name] => {
                let meta = DecisionMeta { name: (*name).to_owned(), namespace: (*namespace).to_owned() };
                let kept: Vec<DecisionRecord> =
                    known.records.iter().filter(|record| record.metadata == meta).cloned().collect();
                if kept.is_empty() {
                    return not_found();
                }
                if uri.query() == Some("watch=true") {
                    return stream_body(kept, self.0.news.subscribe());
                }
                json_body(&DecisionList { items: kept, ..DecisionList::default() })
            }
            ["differences"] | ["namespaces", _, "differences"] => {
                let items = known.differences.clone();
                json_body(&DifferenceList {
                    autoscalers: 2,
                    compared: 40,
                    items,
                    ..DifferenceList::default()
                })
            }
            _ => not_found(),
        }
    }
}

fn json_body(value: &impl Serialize) -> Response<Body> {
    Response::new(Full::from(serde_json::to_vec(value).unwrap()).boxed_unsync())
}

fn not_found() -> Response<Body> {
    let mut response =
        json_body(&json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": 404, "reason": "NotFound", "message": "not found"}));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

fn stream_body(
    kept: Vec<DecisionRecord>,
    news: broadcast::Receiver<Option<DecisionRecord>>,
) -> Response<Body> {
    let frame = |record: DecisionRecord| {
        let line = format!("{}\n", json!({"type": "ADDED", "object": record}));
        Ok::<_, Infallible>(Frame::data(Bytes::from(line)))
    };
    let follow = stream::unfold(news, |mut news| async move {
        let record = news.recv().await.ok().flatten()?;
        Some((record, news))
    });
    Response::new(StreamBody::new(all(kept, follow).map(frame)).boxed_unsync())
}

fn all(
    kept: Vec<DecisionRecord>,
    follow: impl Stream<Item = DecisionRecord> + Send + 'static,
) -> impl Stream<Item = DecisionRecord> + Send + 'static {
    stream::iter(kept).chain(follow)
}
