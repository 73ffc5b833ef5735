//! The HTTP server that records name `{httpServer}`.

use std::sync::{Arc, Mutex};

use locks::MutexExt as _;
use scalers::Trigger;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The placeholder of its base URL.
const ADDRESS: &str = "{httpServer}";

/// A server with the response of a record for every request.
pub(super) struct HttpServer {
    base: String,
    state: Arc<Mutex<ServedState>>,
}

#[derive(Default)]
struct ServedState {
    status: u64,
    body: String,
    requests: Vec<Value>,
}

impl HttpServer {
    /// Listens for as long as the runtime lives.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let base = format!("http://{}", listener.local_addr()?);
        let state = Arc::<Mutex<ServedState>>::default();
        let served = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&served)));
            }
        });
        Ok(Self { base, state })
    }

    /// Sets the response, and puts the address of the server into the trigger.
    pub(super) fn prepare(&self, says: Option<&Value>, trigger: &mut Trigger) {
        let field = |name: &str| says.and_then(|says| says.get(name));
        *self.state.locked() = ServedState {
            status: field("status").and_then(Value::as_u64).unwrap_or(200),
            body: field("body").and_then(Value::as_str).unwrap_or_default().to_owned(),
            requests: Vec::new(),
        };
        let maps = [&mut trigger.metadata, &mut trigger.auth, &mut trigger.environment];
        for value in maps.into_iter().flat_map(|map| map.values_mut()) {
            *value = value.replace(ADDRESS, &self.base);
        }
    }

    /// A text with the name of the server instead of its address.
    pub(super) fn named(&self, text: &str) -> String {
        text.replace(&self.base, ADDRESS)
    }

    /// The requests it received; null if there was none.
    pub(super) fn saw(&self) -> Value {
        let state = self.state.locked();
        if state.requests.is_empty() { Value::Null } else { json!(state.requests) }
    }
}

/// Serves the requests of one connection.
async fn serve(mut stream: TcpStream, state: Arc<Mutex<ServedState>>) -> Option<()> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut piece).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(piece.get(..read)?);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, _)) = text.split_once("\r\n\r\n") else { continue };
        bytes.clear();
        let answer = {
            let mut state = state.locked();
            state.requests.push(request(head));
            let ServedState { status, body, .. } = &*state;
            format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        };
        stream.write_all(answer.as_bytes()).await.ok()?;
    }
}

/// The recorded parts of a request.
fn request(head: &str) -> Value {
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, uri) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = lines.filter_map(|line| line.split_once(':'));
    let authorization = headers.find(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let authorization = authorization.map_or("", |(_, value)| value.trim());
    json!({"method": method, "uri": uri, "authorization": authorization})
}
