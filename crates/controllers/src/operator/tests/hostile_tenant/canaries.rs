//! What must not be seen: values that only the operator or another namespace has, and who would see them.

use std::collections::HashSet;
use std::io;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rustix::fs::inotify;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A variable that this process has.
pub(super) const VARIABLE: &str = "CARGO_MANIFEST_DIR";
/// The value of a Secret in another namespace.
pub(super) const OTHER_SECRET: &str = "canary-of-another-namespace";
/// `VAULT_TOKEN` of the operator.
pub(super) const VAULT_TOKEN: &str = "canary-vault-token";
/// A part of every file of the operator.
pub(super) const FILE_MARK: &str = "canary-file";
/// What the tenant's server answers.
const ANSWER: &str = r#"{"value": 5, "auth": {"client_token": "t"}, "data": {"renewable": false, "k": "5"}}"#;
/// Bytes of a server's memory.
const MAX_RECORDED_BYTES: usize = 64 << 20;

/// Whether a text shows a canary, plain or in base64.
pub(super) fn shown_canary(text: &[u8]) -> Option<String> {
    let variable = std::env::var(VARIABLE).unwrap();
    let plain = [OTHER_SECRET, VAULT_TOKEN, FILE_MARK, variable.as_str()];
    let coded = plain.iter().flat_map(|canary| {
        // Base64 of a text that starts at any of three offsets.
        (0..3).map(move |offset| {
            let padded = format!("{}{canary}", "x".repeat(offset));
            let coded = STANDARD.encode(padded);
            let stable = if offset == 0 { 0..coded.len() - 4 } else { 4..coded.len() - 4 };
            coded[stable].to_owned()
        })
    });
    let text = String::from_utf8_lossy(text);
    let mut all = plain.iter().map(|&canary| canary.to_owned()).chain(coded);
    all.find(|canary| text.contains(canary.as_str()))
}

/// A server that records all that it is sent.
#[derive(Clone)]
pub(super) struct RecordingServer {
    /// `127.0.0.1:port`.
    pub(super) address: String,
    received: Arc<Mutex<Vec<u8>>>,
}

impl RecordingServer {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = Self { address, received: Arc::default() };
        let own = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let received = Arc::clone(&own.received);
                tokio::spawn(serve(stream, received));
            }
        });
        server
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn received(&self) -> Vec<u8> {
        self.received.lock().unwrap().clone()
    }

    pub(super) fn has_received(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.received()).contains(text)
    }

    /// The names after `/control/` in the paths of all requests.
    pub(super) fn controls(&self) -> HashSet<String> {
        let received = self.received();
        let text = String::from_utf8_lossy(&received);
        let after = text.split("/control/").skip(1);
        after.filter_map(|rest| rest.split_whitespace().next()).map(str::to_owned).collect()
    }
}

/// Answers one HTTP request, and closes a connection that speaks anything else.
async fn serve(mut stream: tokio::net::TcpStream, received: Arc<Mutex<Vec<u8>>>) {
    let mut request = Vec::new();
    let mut buffer = [0; 8192];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        request.extend_from_slice(&buffer[..count]);
        {
            let mut received = received.lock().unwrap();
            if received.len() < MAX_RECORDED_BYTES {
                received.extend_from_slice(&buffer[..count]);
            }
        }
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if text.contains("HTTP/1.1") {
                continue;
            }
            return;
        };
        let length = head.lines().filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap_or(0))
        });
        if body.len() >= length.unwrap_or(0) {
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{ANSWER}",
                ANSWER.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
            return;
        }
    }
}

/// The files of the operator, and who opened them.
pub(super) struct OperatorFiles {
    folder: PathBuf,
    opened: std::os::fd::OwnedFd,
}

impl OperatorFiles {
    pub(super) fn new(name: &str) -> Self {
        // A long name: as the name of a host it is refused before it is resolved.
        let folder = format!("plimsoll-hostile-tenant-{name}-{}-{}", std::process::id(), "x".repeat(64));
        let folder = std::env::temp_dir().join(folder);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let claims =
            json!({"sub": "system:serviceaccount:keda:operator", "aud": ["vault"], "exp": 4_102_444_800_u64});
        let token = format!("{FILE_MARK}.{}.s", URL_SAFE_NO_PAD.encode(claims.to_string()));
        for (file, content) in [
            ("token", token.clone()),
            ("vault-token", token),
            ("parameters.json", json!({"token": FILE_MARK}).to_string()),
            ("ca.crt", format!("-----BEGIN CERTIFICATE-----\n{FILE_MARK}\n-----END CERTIFICATE-----\n")),
        ] {
            std::fs::write(folder.join(file), content).unwrap();
        }
        let opened = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(
            &opened,
            folder.as_path(),
            inotify::WatchFlags::OPEN | inotify::WatchFlags::ACCESS,
        )
        .unwrap();
        Self { folder, opened }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn path(&self, file: &str) -> String {
        self.folder.join(file).to_str().unwrap().to_owned()
    }

    /// The files that were opened since the last call.
    pub(super) fn opened(&self) -> Vec<String> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.opened, &mut buffer);
        let mut files = Vec::new();
        loop {
            match events.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
                    files.push(name.unwrap_or_else(|| "(the folder)".to_owned()));
                }
                Err(error) if io::Error::from(error).kind() == io::ErrorKind::WouldBlock => return files,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

impl Drop for OperatorFiles {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The log of this thread.
#[derive(Clone, Default)]
pub(super) struct RecordedLog(Arc<Mutex<Vec<u8>>>);

impl RecordedLog {
    /// Records until the guard is dropped.
    pub(super) fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    pub(super) fn text(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl io::Write for RecordedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
