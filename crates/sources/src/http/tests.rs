#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, LOCATION};
use http::{Request, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::AlertDescription;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

pub(crate) type TestBody = BoxBody<Bytes, Infallible>;
pub(crate) type Handler =
    Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, http::Response<TestBody>> + Send + Sync>;

/// A body from memory.
pub(crate) fn whole(text: impl Into<Bytes>) -> TestBody {
    Full::new(text.into()).boxed()
}

/// A response from memory.
pub(crate) fn answer(status: u16, text: impl Into<Bytes>) -> http::Response<TestBody> {
    http::Response::builder().status(status).body(whole(text)).unwrap()
}

/// Serves on a free port until the test ends.
pub(crate) async fn serve(handler: Handler, tls: Option<TlsAcceptor>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (handler, tls) = (Arc::clone(&handler), tls.clone());
            tokio::spawn(async move {
                let service = service_fn(move |request: Request<Incoming>| {
                    let handler = Arc::clone(&handler);
                    async move {
                        let (parts, body) = request.into_parts();
                        let body =
                            body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
                        Ok::<_, Infallible>(handler(Request::from_parts(parts, body)).await)
                    }
                });
                let builder = auto::Builder::new(TokioExecutor::new());
                let _ = match tls {
                    None => builder.serve_connection(TokioIo::new(stream), service).await,
                    Some(tls) => match tls.accept(stream).await {
                        Ok(stream) => builder.serve_connection(TokioIo::new(stream), service).await,
                        Err(_) => Ok(()),
                    },
                };
            });
        }
    });
    address
}

/// Serves the result of a function.
pub(crate) async fn plainly(
    respond: impl Fn(Request<Bytes>) -> http::Response<TestBody> + Send + Sync + 'static,
) -> SocketAddr {
    let respond = Arc::new(respond);
    let handler: Handler = Arc::new(move |request| {
        let respond = Arc::clone(&respond);
        Box::pin(async move { respond(request) })
    });
    serve(handler, None).await
}

/// A temporary directory for a test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("plimsoll-sources-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn client(address: SocketAddr) -> HttpClient {
    HttpClient::new(Endpoint::at(format!("http://{address}"))).unwrap()
}

fn request_line(request: &Request<Bytes>) -> String {
    let auth = request.headers().get(AUTHORIZATION).map_or("", |value| value.to_str().unwrap());
    format!("{} {} {auth}", request.method(), request.uri())
}

#[tokio::test]
async fn base_path_and_basic_auth_come_from_the_url() {
    let address = plainly(|request| answer(200, request_line(&request))).await;
    let url = format!("http://me:a%40b@{address}/prom/?x=y");
    let client = HttpClient::new(Endpoint::at(url)).unwrap();
    assert_eq!(client.base(), format!("http://{address}/prom"));
    let received = client.send(HttpRequest::get("/api/v1/query?query=up")).await.unwrap();
    // "me:a@b"
    assert_eq!(received.body, "GET /prom/api/v1/query?query=up Basic bWU6YUBi");
    assert!(!format!("{client:?}").contains("a%40b"));
}

#[tokio::test]
async fn token_file_is_reloaded_on_change_and_on_401() {
    let path = folder("token").join("token");
    fs::write(&path, "one\n").unwrap();
    let requested = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&requested);
    let address = plainly(move |request| {
        count.fetch_add(1, Ordering::SeqCst);
        let good =
            request_line(&request).ends_with("Bearer two") || request_line(&request).ends_with("Bearer one!");
        answer(if good { 200 } else { 401 }, request_line(&request))
    })
    .await;
    let endpoint =
        Endpoint { auth: Auth::TokenFile(path.clone()), ..Endpoint::at(format!("http://{address}")) };
    let client = HttpClient::new(endpoint).unwrap();
    // The token is refused and the file has no other: the 401 is returned.
    assert_eq!(client.send(HttpRequest::get("/")).await.unwrap().status, StatusCode::UNAUTHORIZED);
    assert_eq!(requested.load(Ordering::SeqCst), 1);
    // Detected by its size.
    fs::write(&path, "one!\n").unwrap();
    assert_eq!(client.send(HttpRequest::get("/")).await.unwrap().status, StatusCode::OK);
    assert_eq!(requested.load(Ordering::SeqCst), 2);
    // The same size and, as far as the client can see, the same time.
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "two \n").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    assert_eq!(client.send(HttpRequest::get("/")).await.unwrap().status, StatusCode::OK);
    // The old token was accepted, so the file was not read again.
    assert_eq!(requested.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn refused_token_is_reloaded_and_retried() {
    let path = folder("refused").join("token");
    fs::write(&path, "old").unwrap();
    let address = plainly(|request| {
        answer(if request_line(&request).ends_with("Bearer new") { 200 } else { 401 }, request_line(&request))
    })
    .await;
    let endpoint =
        Endpoint { auth: Auth::TokenFile(path.clone()), ..Endpoint::at(format!("http://{address}")) };
    let client = HttpClient::new(endpoint).unwrap();
    assert_eq!(client.send(HttpRequest::get("/")).await.unwrap().status, StatusCode::UNAUTHORIZED);
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "new").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    assert_eq!(client.send(HttpRequest::get("/")).await.unwrap().status, StatusCode::OK);
    // A file that is missing for a moment is tolerated.
    fs::remove_file(&path).unwrap();
    assert_eq!(client.send(HttpRequest::get("/")).await.unwrap().status, StatusCode::OK);
}

#[test]
fn alerts_about_the_client_certificate_are_told_from_others() {
    let cause = |alert| HttpErrorCause::classify(&rustls::Error::AlertReceived(alert));
    for (alert, text) in [
        (AlertDescription::CertificateRequired, "CertificateRequired"),
        (AlertDescription::BadCertificate, "BadCertificate"),
        (AlertDescription::UnknownCA, "UnknownCA"),
    ] {
        assert_eq!(cause(alert), HttpErrorCause::ClientCertificateRejected(text.to_owned()));
    }
    let other = cause(AlertDescription::HandshakeFailure);
    assert_eq!(other, HttpErrorCause::Tls("HandshakeFailure".to_owned()));
}

#[tokio::test]
async fn errors_have_one_line_texts() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    let error = client(closed).send(HttpRequest::get("/")).await.unwrap_err();
    assert_eq!(error.to_string(), format!("http://{closed}: connection refused"));
    assert!(error.remedy().contains("port"));

    let nowhere = HttpClient::new(Endpoint::at("http://no-such-host.invalid")).unwrap();
    let error = nowhere.send(HttpRequest::get("/")).await.unwrap_err();
    assert!(matches!(error.cause, HttpErrorCause::UnknownHost(_) | HttpErrorCause::TimedOut(_)), "{error}");

    let moved = plainly(|_| {
        let answer = http::Response::builder().status(302).header(LOCATION, "https://u:p@login/page?token=x");
        answer.body(whole("")).unwrap()
    })
    .await;
    let error = client(moved).send(HttpRequest::get("/")).await.unwrap_err();
    assert_eq!(error.cause, HttpErrorCause::Redirected("https://login/page".to_owned()));

    let far = plainly(|_| {
        let answer = http::Response::builder().status(302).header(LOCATION, "/x".repeat(10_000));
        answer.body(whole("")).unwrap()
    })
    .await;
    let error = client(far).send(HttpRequest::get("/")).await.unwrap_err();
    assert!(error.to_string().len() < 300, "{error}");

    for forgotten in
        ["http://user:secret/word@host/", "http://user:secret?word@host/", "http://u:secret#word@h"]
    {
        let error = HttpClient::new(Endpoint::at(forgotten)).unwrap_err().to_string();
        assert!(!error.contains("secret") && !error.contains("word"), "{forgotten}: {error}");
    }
    let error = HttpClient::new(Endpoint::at("ftp://user:secret@host/")).unwrap_err();
    assert!(
        error.to_string().contains("only http and https") && !error.to_string().contains("secret"),
        "{error}"
    );
    assert!(HttpClient::new(Endpoint::at("prometheus:9090")).is_err());
}

#[tokio::test]
async fn responses_are_limited_in_time_and_size() {
    let hangs: Handler = Arc::new(|_| Box::pin(std::future::pending()));
    let hangs = serve(hangs, None).await;
    let timeout = Duration::from_millis(50);
    let error = client(hangs).send(HttpRequest::get("/").timeout(timeout)).await.unwrap_err();
    assert_eq!(error.cause, HttpErrorCause::TimedOut(timeout));

    // The body starts and never ends.
    let endless = plainly(|_| {
        let pieces = futures::stream::unfold(0, |n| async move {
            if n > 2 {
                std::future::pending::<()>().await;
            }
            Some((Ok(Frame::data(Bytes::from_static(b"piece"))), n + 1))
        });
        http::Response::new(BodyExt::boxed(StreamBody::new(pieces)))
    });
    let error = client(endless.await).send(HttpRequest::get("/").timeout(timeout)).await.unwrap_err();
    assert_eq!(error.cause, HttpErrorCause::TimedOut(timeout));

    let large = plainly(|_| answer(200, vec![b'x'; 10 << 20])).await;
    let error = client(large).send(HttpRequest::get("/").max_bytes(1 << 20)).await.unwrap_err();
    assert_eq!(error.cause, HttpErrorCause::TooLarge(1 << 20));
    let received = client(large).send(HttpRequest::get("/")).await.unwrap();
    assert_eq!(received.body.len(), 10 << 20);

    // Without a length and without an end.
    let flood = plainly(|_| {
        let pieces = futures::stream::repeat_with(|| Ok(Frame::data(Bytes::from(vec![b'x'; 4096]))));
        http::Response::new(BodyExt::boxed(StreamBody::new(pieces)))
    });
    let error = client(flood.await).send(HttpRequest::get("/").max_bytes(100_000)).await.unwrap_err();
    assert_eq!(error.cause, HttpErrorCause::TooLarge(100_000));
}

/// A CA, and a server with a certificate for `localhost`.
fn certificates() -> (String, TlsAcceptor) {
    let _ = aws_lc_rs::default_provider().install_default();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let own = KeyPair::generate().unwrap();
    let leaf =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&own, &issuer).unwrap();
    let key = PrivateKeyDer::try_from(own.serialize_der()).unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (authority.pem(), TlsAcceptor::from(Arc::new(config)))
}

#[tokio::test]
async fn ca_file_is_reloaded_on_change() {
    let (pem, tls) = certificates();
    let handler: Handler = Arc::new(|request| {
        let version = format!("{:?}", request.version());
        Box::pin(async move { answer(200, version) })
    });
    let address = serve(handler, Some(tls)).await;
    let by_name = Endpoint::at(format!("https://localhost:{}", address.port()));

    // Another CA first.
    let path = folder("ca").join("ca.pem");
    fs::write(&path, certificates().0).unwrap();
    let trusting = Endpoint { ca_file: Some(path.clone()), ..by_name.clone() };
    let client = HttpClient::new(trusting).unwrap();
    let error = client.send(HttpRequest::get("/")).await.unwrap_err();
    assert_eq!(error.cause, HttpErrorCause::UnknownAuthority);
    fs::write(&path, format!("{pem}\n# another size\n")).unwrap();
    let received = client.send(HttpRequest::get("/")).await.unwrap();
    assert_eq!(received.body, "HTTP/2.0");
    // An invalid file does not replace a valid one.
    fs::write(&path, "nonsense").unwrap();
    assert!(client.send(HttpRequest::get("/")).await.is_ok());
    assert!(matches!(
        HttpClient::new(Endpoint { ca_file: Some(path), ..by_name.clone() }).unwrap_err().cause,
        HttpErrorCause::File { .. }
    ));

    let by_address = Endpoint::at(format!("https://{address}"));
    let bundle = Some(pem.into_bytes());
    let strict = HttpClient::new(Endpoint { ca_bundle: bundle.clone(), ..by_address.clone() }).unwrap();
    let error = strict.send(HttpRequest::get("/")).await.unwrap_err();
    assert!(matches!(error.cause, HttpErrorCause::WrongName(_)), "{error}");
    let named = Endpoint { ca_bundle: bundle, server_name: Some("localhost".into()), ..by_address.clone() };
    assert!(HttpClient::new(named).unwrap().send(HttpRequest::get("/")).await.is_ok());
    let any_certificate = HttpClient::new(Endpoint { insecure: true, ..by_address }).unwrap();
    assert!(any_certificate.send(HttpRequest::get("/")).await.is_ok());

    let plain = plainly(|_| answer(200, "")).await;
    let error = HttpClient::new(Endpoint::at(format!("https://{plain}")))
        .unwrap()
        .send(HttpRequest::get("/"))
        .await
        .unwrap_err();
    assert!(matches!(error.cause, HttpErrorCause::NotTls), "{error:?}");
}

#[tokio::test]
async fn client_certificate_from_memory_is_sent() {
    let _ = aws_lc_rs::default_provider().install_default();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let made = |name: &str| {
        let own = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&own, &issuer).unwrap();
        (leaf, own)
    };
    let (server, server_key) = made("localhost");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier =
        rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![server.der().clone()],
            PrivateKeyDer::try_from(server_key.serialize_der()).unwrap(),
        )
        .unwrap();
    let handler: Handler = Arc::new(|_| Box::pin(async { answer(200, "welcome") }));
    let address = serve(handler, Some(TlsAcceptor::from(Arc::new(config)))).await;
    let stranger = Endpoint {
        ca_bundle: Some(authority.pem().into_bytes()),
        system_roots_too: true,
        only_tls13: true,
        close_connections: true,
        ..Endpoint::at(format!("https://localhost:{}", address.port()))
    };
    assert!(HttpClient::new(stranger.clone()).unwrap().send(HttpRequest::get("/")).await.is_err());
    let (own, own_key) = made("me");
    let known = Endpoint {
        certificate: Some(own.pem().into_bytes()),
        key: Some(Secret::new(own_key.serialize_pem())),
        ..stranger
    };
    assert_eq!(
        HttpClient::new(known.clone()).unwrap().send(HttpRequest::get("/")).await.unwrap().body,
        "welcome"
    );
    let broken = Endpoint { key: Some(Secret::new("hunter2")), ..known };
    let error = HttpClient::new(broken).unwrap_err().to_string();
    assert!(error.contains("not a private key") && !error.contains("hunter"), "{error}");
}

#[test]
fn secrets_are_not_printed() {
    let endpoint = Endpoint {
        auth: Auth::Basic { user: "me".into(), password: Secret::new("hunter2") },
        headers: vec![("X-Scope".into(), "hunter3".into())],
        ..Endpoint::at("http://a:hunter1@host/path?token=hunter4")
    };
    let shown = format!("{endpoint:?} {:?}", HttpClient::new(endpoint.clone()).unwrap());
    assert!(!shown.contains("hunter"), "{shown}");
    let bad = Endpoint { headers: vec![("X".into(), "hunter\n5".into())], ..Endpoint::at("http://host") };
    assert!(!HttpClient::new(bad).unwrap_err().to_string().contains("hunter"));
    let token = Endpoint { auth: Auth::Token(Secret::new("hunter\n6")), ..Endpoint::at("http://host") };
    assert!(!HttpClient::new(token).unwrap_err().to_string().contains("hunter"));
}

#[tokio::test]
async fn many_large_responses_share_one_budget_without_deadlock() {
    const LARGE: usize = 300 << 10;
    // With and without `Content-Length`, and short responses, which no budget counts.
    let address = plainly(|request| match request.uri().path() {
        "/whole" => answer(200, vec![b'x'; LARGE]),
        "/short" => answer(200, "x"),
        _ => {
            let piece = |_| Ok(Frame::data(Bytes::from(vec![b'x'; LARGE / 10])));
            let pieces = futures::stream::iter((0..10).map(piece));
            http::Response::new(BodyExt::boxed(StreamBody::new(pieces)))
        }
    })
    .await;
    // Room for one response of unknown length at a time.
    let (budget, most) = (ByteBudget::new(1 << 20), 1 << 20);
    let client = HttpClient::new(Endpoint::at(format!("http://{address}"))).unwrap();
    let bounded_request = |path: &str| HttpRequest::get(path).max_bytes(most).budget(budget.clone());
    let all = (0..60).map(|number| {
        let (client, path) = (client.clone(), ["/whole", "/pieces", "/short"][number % 3]);
        let request = bounded_request(path).timeout(Duration::from_mins(2));
        async move { client.send(request).await.map(|response| (path, response.body.len())) }
    });
    for response in futures::future::join_all(all).await {
        let (path, length) = response.unwrap();
        assert_eq!(length, if path == "/short" { 1 } else { LARGE }, "{path}");
    }
    assert!(budget.try_share(1 << 20).is_some(), "all shares are returned");

    // A response that gets no share in time is an error; a short one needs none.
    let _all = budget.try_share(1 << 20);
    for path in ["/whole", "/pieces"] {
        let error = client.send(bounded_request(path).timeout(Duration::from_millis(300))).await.unwrap_err();
        assert!(matches!(error.cause, HttpErrorCause::TimedOut(_)), "{error}");
    }
    assert_eq!(client.send(bounded_request("/short")).await.unwrap().body, "x");
}
