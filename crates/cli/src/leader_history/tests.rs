#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Mutex;

use bytes::Bytes;
use controllers::hpa::records::HistoryCopyError;
use http::header::AUTHORIZATION;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use localkube::access::Authority;
use sources::http::HttpErrorCause;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

const NAME: &str = "plimsoll-controller.plimsoll-system.svc";

type SeenRequests = Arc<Mutex<Vec<String>>>;

/// A server with a certificate of this CA for a name. It notes what it was sent, and answers with one status.
async fn server(authority: &Authority, name: &str, status: u16, seen: &SeenRequests) -> SocketAddr {
    let identity = authority.server(&[name]).unwrap();
    let config = localkube::access::server_config(&identity, None).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::clone(seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = hyper::service::service_fn(move |request: http::Request<Incoming>| {
                    let token =
                        request.headers().get(AUTHORIZATION).map_or("", |text| text.to_str().unwrap());
                    seen.lock().unwrap().push(format!("{} {token}", request.uri().path_and_query().unwrap()));
                    async move {
                        let body = Bytes::from_static(br#"{"metadata": {"cursor": "ab-7"}, "items": []}"#);
                        let response = http::Response::builder().status(status).body(Full::new(body));
                        Ok::<_, Infallible>(response.unwrap())
                    }
                });
                let builder = auto::Builder::new(TokioExecutor::new());
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    address
}

/// Reads pages with the token `secret`, and trusts this CA.
fn trusting(authority: &Authority, test: &str) -> FetchPasses {
    let token_file =
        std::env::temp_dir().join(format!("plimsoll-leader-history-{}-{test}", std::process::id()));
    std::fs::write(&token_file, "secret\n").unwrap();
    let pem = authority.certificate().to_owned();
    let history = LeaderHistory {
        api_version: api::decisions::API_VERSION,
        server_name: NAME.to_owned(),
        token_file,
        authorities: Arc::new(move || pem.clone()),
    };
    history.fetcher()
}

#[tokio::test]
async fn the_leader_gets_the_token_and_the_cursor() {
    let (ours, seen) = (Authority::new("ours").unwrap(), SeenRequests::default());
    let address = server(&ours, NAME, 200, &seen).await;
    let fetch = trusting(&ours, "leader");
    let page = fetch(address, None).await.unwrap();
    assert_eq!(page.metadata.cursor, "ab-7");
    fetch(address, Some(page.metadata.cursor)).await.unwrap();
    let path = "/apis/decisions.plimsoll.dev/v1alpha1/passes?detail=full&limit=1000";
    let expected = [format!("{path} Bearer secret"), format!("{path}&after=ab-7 Bearer secret")];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn only_the_leader_gets_a_token_whatever_the_lease_contains() {
    let (ours, theirs) = (Authority::new("ours").unwrap(), Authority::new("theirs").unwrap());
    let seen = SeenRequests::default();
    let fetch = trusting(&ours, "others");
    let stranger = server(&theirs, NAME, 200, &seen).await;
    assert_eq!(
        fetch(stranger, None).await.unwrap_err(),
        HistoryCopyError::Http(HttpErrorCause::UnknownAuthority)
    );
    let other_name = server(&ours, "other.plimsoll-system.svc", 200, &seen).await;
    let error = fetch(other_name, None).await.unwrap_err();
    assert!(matches!(error, HistoryCopyError::Http(HttpErrorCause::WrongName(_))), "{error:?}");
    assert!(seen.lock().unwrap().is_empty(), "{seen:?}");
}

#[tokio::test]
async fn refusals_have_different_causes() {
    let (ours, seen) = (Authority::new("ours").unwrap(), SeenRequests::default());
    let fetch = trusting(&ours, "refusals");
    for (status, expected) in [
        (401, HistoryCopyError::Unauthenticated),
        (403, HistoryCopyError::Unauthorized),
        (410, HistoryCopyError::UnknownCursor),
        (500, HistoryCopyError::Status(http::StatusCode::INTERNAL_SERVER_ERROR)),
    ] {
        let address = server(&ours, NAME, status, &seen).await;
        assert_eq!(fetch(address, None).await.unwrap_err(), expected);
        assert!(!expected.remedy().is_empty());
    }
}

#[test]
fn only_a_secret_that_replicas_share_is_trusted() {
    let names = [NAME.to_owned()];
    let now = jiff::Timestamp::from_second(1_800_000_000).unwrap();
    let bundle =
        serve::CertificateBundle::make(&names, &serve::CertificateLifetimes::default(), now).unwrap();
    let keyring = Keyring::new(bundle).unwrap();
    let secret = Shared::Secret { namespace: "plimsoll-system".into(), name: "certs".into() };
    let of = |shared: &Shared, keyring| {
        fetcher(shared, keyring, "g/v1", "plimsoll-controller", &Credentials::default()).is_some()
    };
    assert!(of(&secret, Some(&keyring)));
    assert!(!of(&secret, None));
    assert!(!of(&Shared::Nothing, Some(&keyring)));
    assert!(!of(&Shared::Folder(PathBuf::from("/certs")), Some(&keyring)));
}
