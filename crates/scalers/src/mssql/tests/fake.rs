//! A stand-in for SQL Server that checks the login as strictly as the real one: user `u`, password `hunter2`, database `d`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

use crate::mssql::prelogin_stream::PreloginStream;
use crate::mssql::wire;
use crate::stream::BoxStream;
use crate::test_support::fake_server::FakeServer;

/// How the server behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FakeMode {
    /// Without TLS.
    Plain,
    /// With TLS and a certificate for `localhost` that nobody signed.
    Tls,
    /// Sends the first login on to another port of the same host.
    Routes(u16),
}

/// Starts a server.
pub(super) async fn fake_mssql(mode: FakeMode) -> FakeServer {
    FakeServer::start(move |stream| async move { TdsPeer { stream: Box::new(stream) }.serve(mode).await })
        .await
}

struct TdsPeer {
    stream: BoxStream,
}

impl TdsPeer {
    async fn send(&mut self, message: &[u8]) -> Option<()> {
        self.stream.write_all(&wire::packets(wire::TABULAR_RESULT, message)).await.ok()?;
        self.stream.flush().await.ok()
    }

    /// The kind and content of a message.
    async fn receive(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut message = Vec::new();
        loop {
            let mut head = [0; 8];
            self.stream.read_exact(&mut head).await.ok()?;
            let mut piece = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]])) - 8];
            self.stream.read_exact(&mut piece).await.ok()?;
            message.extend(piece);
            if head[1] == 1 {
                return Some((head[0], message));
            }
        }
    }

    async fn serve(&mut self, mode: FakeMode) -> Option<()> {
        let (kind, prelogin) = self.receive().await?;
        assert_eq!(kind, 0x12);
        // Version and encryption, which the client requests.
        assert_eq!(prelogin, [0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xff, 0, 0, 0, 0, 0, 0, 1]);
        let encryption = if mode == FakeMode::Tls { 1 } else { 2 };
        self.send(&[0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xff, 16, 0, 0, 0, 0, 0, encryption]).await?;
        if mode == FakeMode::Tls {
            let stream = std::mem::replace(&mut self.stream, Box::new(tokio::io::empty()));
            let shaking = Arc::new(AtomicBool::new(true));
            let inner = PreloginStream::new(stream, Arc::clone(&shaking));
            let stream = TlsAcceptor::from(server_config()).accept(inner).await.ok()?;
            shaking.store(false, Ordering::Release);
            self.stream = Box::new(stream);
        }
        let (kind, login) = self.receive().await?;
        assert_eq!((kind, &login[4..8]), (0x10, &0x7400_0004_u32.to_le_bytes()[..]));
        assert_eq!(u32::from_le_bytes(login[..4].try_into().ok()?) as usize, login.len());
        let field = |number: usize| {
            let at = 36 + 4 * number;
            let [offset, length] =
                [at, at + 2].map(|at| usize::from(login[at]) + 256 * usize::from(login[at + 1]));
            login[offset..offset + 2 * length].to_vec()
        };
        let text = |number| wire::utf16(&field(number));
        let password: Vec<u8> = field(2).iter().map(|byte| (byte ^ 0xa5).rotate_right(4)).collect();
        assert_eq!((&*text(1), &*text(3), &*text(8)), ("u", "plimsoll", "d"));
        if wire::utf16(&password) != "hunter2" {
            self.send(&error(18456, "Login failed for user 'u'.")).await?;
            return None;
        }
        let mut answer = Vec::new();
        if let FakeMode::Routes(port) = mode {
            let name: Vec<u8> = "127.0.0.1".encode_utf16().flat_map(u16::to_le_bytes).collect();
            let mut route = vec![20, 23, 0, 0];
            route.extend(port.to_le_bytes());
            route.extend([9, 0]);
            route.extend(name);
            route.extend([0, 0]);
            answer.push(0xe3);
            answer.extend((route.len() as u16).to_le_bytes());
            answer.extend(route);
        }
        answer.extend([0xad, 10, 0, 1, 0x74, 0, 0, 4, 0, 16, 0, 0, 0]);
        answer.extend(done());
        self.send(&answer).await?;
        loop {
            let (kind, batch) = self.receive().await?;
            assert_eq!((kind, &batch[..10]), (1, &[22, 0, 0, 0, 18, 0, 0, 0, 2, 0][..]));
            let answer = answer_to(&wire::utf16(&batch[22..]))?;
            self.send(&answer).await?;
        }
    }
}

fn server_config() -> Arc<ServerConfig> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        // SQL Server speaks TLS 1.3 in TDS 8.0 only: its messages after the handshake would not be inside of packets.
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    Arc::new(config)
}

pub(super) fn done() -> [u8; 13] {
    [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}

/// An error token and the end of the response.
pub(super) fn error(number: u32, message: &str) -> Vec<u8> {
    let text: Vec<u8> = message.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut token = number.to_le_bytes().to_vec();
    token.extend([1, 14]);
    token.extend((message.len() as u16).to_le_bytes());
    token.extend(text);
    token.extend([0, 0, 1, 0, 0, 0]);
    let mut out = vec![0xaa];
    out.extend((token.len() as u16).to_le_bytes());
    out.extend(token);
    out.extend(done());
    out
}

/// The description of one column without a name.
pub(super) fn column(type_info: &[u8]) -> Vec<u8> {
    [&[0x81, 1, 0, 0, 0, 0, 0, 0, 0], type_info, &[0]].concat()
}

fn answer_to(query: &str) -> Option<Vec<u8>> {
    let int = column(&[0x26, 4]);
    let row = |number: i32| [&[0xd1, 4][..], &number.to_le_bytes()].concat();
    let mut out = match query {
        "no rows" => int,
        "an update" => Vec::new(),
        "null" => [int, vec![0xd1, 0]].concat(),
        "broken" => return Some(error(208, "Invalid object name 'x'.")),
        "a number and an error" => return Some([int, row(5), error(8134, "Divide by zero.")].concat()),
        // More than one packet.
        "many rows" => [int, (1..=3000).flat_map(row).collect()].concat(),
        // So large that it is decoded on a worker thread.
        "a large answer" => [int, (1..=20_000).flat_map(row).collect()].concat(),
        "text" => [column(&[0xe7, 20, 0, 9, 4, 0xd0, 0, 0x34]), vec![0xd1, 6, 0, b'4', 0, b'.', 0, b'5', 0]]
            .concat(),
        "words" => [column(&[0xa7, 20, 0, 9, 4, 0xd0, 0, 0x34]), vec![0xd1, 3, 0, b'a', b'b', b'c']].concat(),
        "xml" => column(&[0xf1, 0]),
        other => [int, row(other.strip_prefix("SELECT ")?.parse().ok()?)].concat(),
    };
    out.extend(done());
    Some(out)
}
