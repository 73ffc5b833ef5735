//! For tests: somebody to ask.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::provider::Compat;
use api::selector::Selector;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::backends::{Backends, Cluster, FromCluster, PodView};
use crate::web::Settings;
use crate::{Error, Owner, Reading, Scaler, Trigger, table};

/// What a server does with a question: head and body go in.
pub(crate) enum Act {
    /// Answers with a status and a body.
    Answer(u16, String),
    /// Sends exactly this, and closes.
    Raw(Vec<u8>),
    /// Says nothing, ever.
    Hang,
}

/// A server that does what it is told; returns `http://127.0.0.1:port`.
pub(crate) async fn server(act: impl Fn(&str) -> Act + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let act = Arc::new(act);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let act = Arc::clone(&act);
            tokio::spawn(async move {
                let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
                loop {
                    let Ok(read @ 1..) = stream.read(&mut piece).await else { return };
                    bytes.extend_from_slice(piece.get(..read).unwrap());
                    if !is_whole(&bytes) {
                        continue;
                    }
                    let head = String::from_utf8_lossy(&bytes).into_owned();
                    bytes.clear();
                    let done = match act(&head) {
                        Act::Answer(status, body) => {
                            let length = body.len();
                            let answer =
                                format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}");
                            stream.write_all(answer.as_bytes()).await
                        }
                        Act::Raw(raw) => {
                            let _ = stream.write_all(&raw).await;
                            return;
                        }
                        Act::Hang => std::future::pending().await,
                    };
                    if done.is_err() {
                        return;
                    }
                }
            });
        }
    });
    format!("http://{address}")
}

/// Whether head and body are there.
fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let mut headers = head.lines().filter_map(|line| line.split_once(": "));
    let length = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    body.len() >= length.map_or(0, |(_, length)| length.parse().unwrap())
}

/// A trigger of `ScaledObject ns/so`.
pub(crate) fn trigger(type_: &str, metadata: &[(&str, &str)]) -> Trigger {
    Trigger {
        owner: Owner { kind: "ScaledObject".into(), namespace: "ns".into(), name: "so".into() },
        type_: type_.to_owned(),
        metadata: texts(metadata),
        http_timeout: Duration::from_secs(10),
        ..Trigger::default()
    }
}

/// Pairs as a map.
pub(crate) fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A cluster of a few pods and endpoints.
#[derive(Default)]
pub(crate) struct Ground {
    pub(crate) pods: Vec<PodView>,
    pub(crate) endpoints: Vec<(String, Option<u16>)>,
    pub(crate) fails: bool,
}

impl Cluster for Ground {
    fn pods<'a>(&'a self, namespace: &'a str, _: &'a Selector) -> FromCluster<'a, Vec<PodView>> {
        assert_eq!(namespace, "ns");
        Box::pin(async { if self.fails { Err("no pods today".into()) } else { Ok(self.pods.clone()) } })
    }

    fn endpoints<'a>(&'a self, _: &'a str, _: &'a str) -> FromCluster<'a, Vec<(String, Option<u16>)>> {
        Box::pin(async { Ok(self.endpoints.clone()) })
    }
}

/// Everything shared, and nothing kept.
pub(crate) fn backends(ground: Ground) -> Backends {
    let settings = Settings { fresh: Duration::ZERO, ..Settings::default() };
    Backends::new(Arc::new(ground), settings, Compat::default())
}

/// Builds the scaler of a trigger.
pub(crate) fn build(trigger: &Trigger) -> Result<Arc<dyn Scaler>, Error> {
    table::build(trigger, &backends(Ground::default()))
}

/// Asks the scaler of a trigger.
pub(crate) async fn read(trigger: &Trigger) -> Result<Reading, Error> {
    build(trigger)?.read("m").await
}
