//! Servers that send prepared bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// The pause between two bytes of a slow server.
const DRIP_PAUSE: Duration = Duration::from_millis(20);

/// What a server sends on each connection.
#[derive(Clone)]
pub(crate) struct Answer {
    /// The bytes that are sent first.
    pub(crate) head: Vec<u8>,
    /// The part that is sent then, as the flow defines.
    pub(crate) rest: Arc<[u8]>,
    pub(crate) flow: Flow,
    pub(crate) start: Start,
}

/// When a server begins to send.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// Immediately, as MySQL does.
    AtOnce,
    /// When bytes have arrived.
    Asked,
    /// The head immediately, the rest when a request over HTTP/2 has arrived.
    AskedOverHttp2,
}

/// How the rest is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The rest is sent once; then the connection is closed.
    Once,
    /// The rest is sent once; then the connection stays open.
    Hold,
    /// The rest is sent repeatedly.
    Endless,
    /// The rest is sent byte by byte.
    Drip,
}

/// A running server. It ends when it is dropped.
pub(crate) struct Server {
    name: String,
    port: u16,
    requests: Arc<Requests>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Requests {
    count: AtomicUsize,
    changed: Notify,
}

impl Answer {
    pub(crate) fn new(head: impl Into<Vec<u8>>, rest: impl Into<Vec<u8>>, flow: Flow) -> Self {
        let rest: Vec<u8> = rest.into();
        Self { head: head.into(), rest: rest.into(), flow, start: Start::Asked }
    }

    pub(crate) fn starting(self, start: Start) -> Self {
        Self { start, ..self }
    }
}

/// A response over HTTP whose end is that of the connection.
pub(crate) fn http(content_type: &str, body: Vec<u8>) -> Answer {
    Answer::new(http_head(content_type, ""), body, Flow::Once)
}

pub(crate) fn http_head(content_type: &str, headers: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n{headers}\r\n")
}

impl Server {
    pub(crate) async fn hostile(name: &str, answer: Answer) -> Self {
        Self::start(name, move || answer.clone()).await
    }

    /// Starts a server that creates a response for each connection.
    pub(crate) async fn start(name: &str, answer: impl Fn() -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::<Requests>::default();
        let counted = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answer(), Arc::clone(&counted)));
            }
        });
        Self { name: name.to_owned(), port, requests, task }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The number of requests: connections, and what arrives on those that stay open.
    pub(crate) fn count(&self) -> usize {
        self.requests.count.load(Ordering::SeqCst)
    }

    /// Waits for that many requests.
    pub(crate) async fn until_queried(&self, times: usize) {
        loop {
            let changed = self.requests.changed.notified();
            if self.count() >= times {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Requests {
    fn add(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_waiters();
    }
}

/// Sends the response; ends when the client closes the connection.
async fn serve(mut stream: TcpStream, answer: Answer, requests: Arc<Requests>) -> Option<()> {
    let mut request = vec![0; 16 << 10];
    requests.add();
    if answer.start == Start::Asked && stream.read(&mut request).await.ok()? == 0 {
        return None;
    }
    stream.write_all(&answer.head).await.ok()?;
    let mut received = Vec::new();
    while answer.start == Start::AskedOverHttp2 && !has_http2_request(&received) {
        let length = stream.read(&mut request).await.ok()?;
        if length == 0 {
            return None;
        }
        received.extend_from_slice(&request[..length]);
    }
    match answer.flow {
        Flow::Once => stream.write_all(&answer.rest).await.ok()?,
        Flow::Hold => {
            stream.write_all(&answer.rest).await.ok()?;
            while stream.read(&mut request).await.ok()? > 0 {
                requests.add();
            }
        }
        Flow::Endless => loop {
            stream.write_all(&answer.rest).await.ok()?;
        },
        Flow::Drip => loop {
            for byte in &*answer.rest {
                stream.write_all(&[*byte]).await.ok()?;
                tokio::time::sleep(DRIP_PAUSE).await;
            }
        },
    }
    let _ = stream.shutdown().await;
    Some(())
}

/// Whether a frame with the headers of a request has arrived, after the preface of the connection.
fn has_http2_request(received: &[u8]) -> bool {
    const PREFACE_BYTES: usize = 24;
    const HEADERS: u8 = 1;
    let mut frames = received.get(PREFACE_BYTES..).unwrap_or_default();
    while let [a, b, c, kind, _, _, _, _, _, rest @ ..] = frames {
        if *kind == HEADERS {
            return true;
        }
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        frames = rest.get(length..).unwrap_or_default();
    }
    false
}
