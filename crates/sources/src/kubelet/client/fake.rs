//! Fake kubelets: real TLS on loopback, and all kinds of invalid responses.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// A stream with or without TLS.
type Stream = Box<dyn Io>;

trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// A CA that signs kubelet certificates.
pub(crate) struct TestCa {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl TestCa {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "kubernetes");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate for these names and addresses.
    pub(crate) fn certificate(&self, names: &[&str], common: &str) -> Arc<ServerConfig> {
        self.certificate_of(names, common, (2020, 2099))
    }

    /// A certificate for a server with this TLS version only.
    pub(crate) fn with_tls_version(
        &self,
        version: &'static rustls::SupportedProtocolVersion,
        names: &[&str],
    ) -> Arc<ServerConfig> {
        self.config(names, "a", (2020, 2099), &[version])
    }

    pub(crate) fn certificate_of(
        &self,
        names: &[&str],
        common: &str,
        years: (i32, i32),
    ) -> Arc<ServerConfig> {
        self.config(names, common, years, rustls::DEFAULT_VERSIONS)
    }

    fn config(
        &self,
        names: &[&str],
        common: &str,
        years: (i32, i32),
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Arc<ServerConfig> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, common);
        params.not_before = rcgen::date_time_ymd(years.0, 1, 1);
        params.not_after = rcgen::date_time_ymd(years.1, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        Arc::new(config)
    }
}

/// Reaction of a fake kubelet.
pub(crate) enum FakeAction {
    /// Sends this and waits for the next request.
    Respond(Vec<u8>),
    /// Sends this after a delay.
    RespondAfter(Duration, Vec<u8>),
    /// Sends this and closes the connection.
    RespondAndClose(Vec<u8>),
    /// Never responds.
    Silence,
    /// Sends this one byte at a time.
    Dribble(Vec<u8>, Duration),
    /// Sends the first once and the second forever.
    Endless(Vec<u8>, Vec<u8>),
    /// Closes the connection without a response.
    HangUp,
}

/// A received request, and its number from 1.
pub(crate) struct ReceivedRequest<'a> {
    pub(crate) number: usize,
    pub(crate) head: &'a str,
}

type Script = dyn Fn(ReceivedRequest<'_>) -> FakeAction + Send + Sync;

/// A fake kubelet on a local port; it stops when dropped.
pub(crate) struct Fake {
    pub(crate) port: u16,
    counts: Arc<Counts>,
    task: JoinHandle<()>,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) connections: AtomicUsize,
    pub(crate) requests: AtomicUsize,
    at_once: AtomicUsize,
    most: AtomicUsize,
}

impl Counts {
    /// Maximum number of concurrent requests.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    pub(crate) async fn new(
        tls: Arc<ServerConfig>,
        script: impl Fn(ReceivedRequest<'_>) -> FakeAction + Send + Sync + 'static,
    ) -> Self {
        Self::start(0, Some(tls), Arc::default(), script).await
    }

    pub(crate) async fn start(
        port: u16,
        tls: Option<Arc<ServerConfig>>,
        counts: Arc<Counts>,
        script: impl Fn(ReceivedRequest<'_>) -> FakeAction + Send + Sync + 'static,
    ) -> Self {
        let listener = loop {
            match TcpListener::bind(("127.0.0.1", port)).await {
                Ok(listener) => break listener,
                // The previous owner of the port is about to close it.
                Err(error) if port != 0 && error.kind() == std::io::ErrorKind::AddrInUse => {
                    tokio::task::yield_now().await;
                }
                Err(error) => panic!("{error}"),
            }
        };
        let port = listener.local_addr().unwrap().port();
        let (script, own): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&counts));
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let (tls, script, counts) = (tls.clone(), Arc::clone(&script), Arc::clone(&own));
                connections.spawn(async move {
                    let stream: Stream = match tls {
                        None => Box::new(tcp),
                        Some(tls) => match TlsAcceptor::from(tls).accept(tcp).await {
                            Ok(stream) => Box::new(stream),
                            Err(_) => return,
                        },
                    };
                    counts.connections.fetch_add(1, Ordering::SeqCst);
                    let _ = serve(stream, &*script, &counts).await;
                });
            }
        });
        Self { port, counts, task }
    }

    pub(crate) fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> usize {
        self.counts.requests.load(Ordering::SeqCst)
    }
}

async fn serve(mut stream: Stream, script: &Script, counts: &Counts) -> std::io::Result<()> {
    let mut head = Vec::new();
    loop {
        head.clear();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let number = counts.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let open = counts.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        counts.most.fetch_max(open, Ordering::SeqCst);
        let head = String::from_utf8_lossy(&head).to_lowercase();
        let next = script(ReceivedRequest { number, head: &head });
        if let FakeAction::RespondAfter(wait, _) = &next {
            tokio::time::sleep(*wait).await;
        }
        // Before the response, because afterwards the client may be faster.
        counts.at_once.fetch_sub(1, Ordering::SeqCst);
        let went = act(&mut stream, next).await;
        if !went? {
            return stream.shutdown().await;
        }
    }
}

/// Whether the connection stays open.
async fn act(stream: &mut Stream, act: FakeAction) -> std::io::Result<bool> {
    match act {
        FakeAction::Respond(bytes) | FakeAction::RespondAfter(_, bytes) => stream.write_all(&bytes).await?,
        FakeAction::RespondAndClose(bytes) => {
            stream.write_all(&bytes).await?;
            return Ok(false);
        }
        FakeAction::Silence => std::future::pending().await,
        FakeAction::Dribble(bytes, wait) => {
            for byte in bytes {
                stream.write_all(&[byte]).await?;
                stream.flush().await?;
                tokio::time::sleep(wait).await;
            }
        }
        FakeAction::Endless(head, more) => {
            stream.write_all(&head).await?;
            loop {
                stream.write_all(&more).await?;
            }
        }
        FakeAction::HangUp => return Ok(false),
    }
    stream.flush().await?;
    Ok(true)
}

/// A complete response.
pub(crate) fn answer(status: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A valid response in chunks, as kubelets send it.
pub(crate) fn chunked(body: &[u8]) -> Vec<u8> {
    let mut all =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(2048) {
        all.extend(format!("{:x}\r\n", chunk.len()).bytes());
        all.extend(chunk);
        all.extend(b"\r\n");
    }
    all.extend(b"0\r\n\r\n");
    all
}
