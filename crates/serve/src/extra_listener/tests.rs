#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::Timestamp;
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower::service_fn;

use super::*;
use crate::app::Exposition;
use crate::tls::{CertificateBundle, CertificateLifetimes};

fn here() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get(path).header("host", "x").body(Full::<Bytes>::default()).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn health_needs_no_authentication_and_a_starting_server_is_alive() {
    let ready = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ready);
    let mut checks = HealthChecks::new();
    checks.add_live("loop", || Ok(()));
    checks.add_ready("watches", move || if seen.load(Ordering::Relaxed) { Ok(()) } else { Err("no".into()) });
    let server = ExtraListener::health(here(), checks).await.unwrap();
    let address = server.address();
    assert_eq!(get(address, "/healthz").await, (200, "ok".into()));
    assert_eq!(get(address, "/readyz").await.0, 500);
    ready.store(true, Ordering::Relaxed);
    assert_eq!(get(address, "/readyz").await, (200, "ok".into()));
    assert_eq!(get(address, "/metrics").await.0, 404);
    server.stop().await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn exported_metrics_are_served_at_the_configured_address() {
    let page = || Exposition { content_type: "text/plain".into(), text: "a 1\n".into() };
    let server = ExtraListener::exported_metrics(here(), Arc::new(page)).await.unwrap();
    assert_eq!(get(server.address(), "/metrics").await, (200, "a 1\n".into()));
    assert_eq!(get(server.address(), "/healthz").await.0, 404);
}

fn material() -> CertificateBundle {
    CertificateBundle::make(&["localhost".to_owned()], &CertificateLifetimes::default(), Timestamp::now())
        .unwrap()
}

/// Sends a request with one bundle to a server that trusts the authorities of another.
async fn get_status(
    address: SocketAddr,
    own: Option<&CertificateBundle>,
    trusted: &CertificateBundle,
) -> Result<u16, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(trusted.authorities.as_bytes()).flatten());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let chain = CertificateDer::pem_slice_iter(own.certificate.as_bytes()).flatten().collect();
            let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream =
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|e| e.to_string())?;
    let http = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = http.map_err(|error| error.to_string())?;
    tokio::spawn(connection);
    let request = Request::get("https://localhost/").body(Full::<Bytes>::default()).unwrap();
    let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
    Ok(answer.status().as_u16())
}

#[tokio::test]
async fn client_certificate_is_required_and_may_be_renewed() {
    let (first, second, stranger) = (material(), material(), material());
    let keyring = Keyring::new(first.clone()).unwrap();
    let route = Route::new(service_fn(async |_: Request<Body>| Ok(response::text(200, "yes"))));
    let server = ExtraListener::mutual_tls(here(), &keyring, route).await.unwrap();
    let address = server.address();
    assert_eq!(get_status(address, Some(&first), &first).await, Ok(200));
    assert!(get_status(address, None, &first).await.is_err(), "without a certificate");
    assert!(get_status(address, Some(&stranger), &first).await.is_err(), "with a stranger's");

    let both = CertificateBundle {
        authorities: format!("{}{}", second.authorities, first.authorities),
        ..second.clone()
    };
    assert!(keyring.replace(both).unwrap());
    assert_eq!(
        get_status(address, Some(&first), &second).await,
        Ok(200),
        "the old authority is still believed"
    );
    assert!(keyring.replace(second.clone()).unwrap() && !keyring.replace(second.clone()).unwrap());
    assert_eq!(get_status(address, Some(&second), &second).await, Ok(200));
    assert!(get_status(address, Some(&first), &second).await.is_err(), "the old authority is gone");
    // What cannot be used changes nothing.
    assert!(keyring.replace(CertificateBundle { key: first.key.clone(), ..second.clone() }).is_err());
    assert_eq!(get_status(address, Some(&second), &second).await, Ok(200));
    server.stop().await;
}
