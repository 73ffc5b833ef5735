//! A proxy in front of a Kafka broker that counts requests by their API key.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use localkube::listen;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// The maximum size of a request. Larger ones are refused, because Kafka's clients send none.
const MAX_REQUEST_BYTES: usize = 64 << 20;
/// The size of the API key, API version and correlation id at the begin of each request.
const HEADER_BYTES: usize = 8;

/// A proxy that forwards connections until the process ends.
pub(crate) struct KafkaProxy {
    pub(crate) port: u16,
    traffic: Arc<Mutex<KafkaTraffic>>,
}

/// What went through a proxy.
#[derive(Clone, Default)]
pub(crate) struct KafkaTraffic {
    /// Requests by API key.
    pub(crate) requests: BTreeMap<i16, u64>,
    /// Connections that are open.
    pub(crate) connections: u64,
}

impl KafkaProxy {
    /// Starts a proxy for the broker on this port, which may be started later.
    pub(crate) async fn start(broker: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let traffic = Arc::new(Mutex::new(KafkaTraffic::default()));
        let shared = Arc::clone(&traffic);
        tokio::spawn(listen::accept(listener, move |client| {
            let traffic = Arc::clone(&shared);
            async move {
                traffic.lock().unwrap().connections += 1;
                // Either side may close the connection at any time.
                let _ = forward(client, broker, &traffic).await;
                traffic.lock().unwrap().connections -= 1;
            }
        }));
        Self { port, traffic }
    }

    /// The requests since this was last called, and the connections that are open now.
    pub(crate) fn take(&self) -> KafkaTraffic {
        let mut traffic = self.traffic.lock().unwrap();
        let requests = std::mem::take(&mut traffic.requests);
        KafkaTraffic { requests, connections: traffic.connections }
    }
}

impl KafkaTraffic {
    pub(crate) fn total(&self) -> f64 {
        self.requests.values().sum::<u64>() as f64
    }

    pub(crate) fn of(&self, api_key: i16) -> f64 {
        self.requests.get(&api_key).copied().unwrap_or_default() as f64
    }
}

/// The name of a request that clients of consumer groups send.
pub(crate) fn request_name(api_key: i16) -> String {
    match api_key {
        1 => "Fetch".to_owned(),
        2 => "ListOffsets".to_owned(),
        3 => "Metadata".to_owned(),
        9 => "OffsetFetch".to_owned(),
        10 => "FindCoordinator".to_owned(),
        15 => "DescribeGroups".to_owned(),
        18 => "ApiVersions".to_owned(),
        other => format!("API key {other}"),
    }
}

async fn forward(client: TcpStream, broker: u16, traffic: &Mutex<KafkaTraffic>) -> io::Result<()> {
    let broker = TcpStream::connect(("127.0.0.1", broker)).await?;
    broker.set_nodelay(true)?;
    let (from_client, mut to_client) = client.into_split();
    let (mut from_broker, to_broker) = broker.into_split();
    tokio::select! {
        ended = count_requests(from_client, to_broker, traffic) => ended,
        ended = copy(&mut from_broker, &mut to_client) => ended.map(|_| ()),
    }
}

/// Forwards and counts requests. Each is a length in four bytes, then the request, which begins with its API key.
async fn count_requests(
    mut from_client: OwnedReadHalf,
    mut to_broker: OwnedWriteHalf,
    traffic: &Mutex<KafkaTraffic>,
) -> io::Result<()> {
    let mut request = Vec::new();
    loop {
        let length = from_client.read_u32().await? as usize;
        if !(HEADER_BYTES..=MAX_REQUEST_BYTES).contains(&length) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        request.resize(length, 0);
        from_client.read_exact(&mut request).await?;
        let api_key = i16::from_be_bytes([request[0], request[1]]);
        *traffic.lock().unwrap().requests.entry(api_key).or_default() += 1;
        to_broker.write_u32(length as u32).await?;
        to_broker.write_all(&request).await?;
    }
}
