//! The events of a watch, one by one.

use std::time::Duration;

use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};

use super::transcript::ExchangeLog;

/// An open watch; dropping it closes the connection.
pub struct Watch {
    log: ExchangeLog,
    exchange: usize,
    body: Body,
    /// Received bytes that are not yet a whole line.
    rest: Vec<u8>,
}

/// The timeout of an expected event.
const EVENT_TIMEOUT: Duration = Duration::from_secs(10);

impl Watch {
    pub(crate) fn new(log: ExchangeLog, exchange: usize, body: Body) -> Self {
        Self { log, exchange, body, rest: Vec::new() }
    }

    /// Waits for the next event and records it. Returns none when the server ended the watch or no event came in time, which is recorded too.
    pub async fn next(&mut self) -> Option<Value> {
        let event = match tokio::time::timeout(EVENT_TIMEOUT, self.event()).await {
            Ok(Some(event)) => event,
            Ok(None) => {
                self.log.record_event(self.exchange, json!("<end>"));
                return None;
            }
            Err(_) => {
                self.log.record_event(self.exchange, json!(format!("<nothing within {EVENT_TIMEOUT:?}>")));
                return None;
            }
        };
        self.log.record_event(self.exchange, event.clone());
        Some(event)
    }

    /// The next `count` events, or fewer when the watch ends.
    pub async fn take(&mut self, count: usize) -> Vec<Value> {
        let mut events = Vec::new();
        while events.len() < count
            && let Some(event) = self.next().await
        {
            events.push(event);
        }
        events
    }

    /// All events until the server ends the watch.
    pub async fn rest(&mut self) -> Vec<Value> {
        self.take(usize::MAX).await
    }

    /// The next event that a request caused. Periodic bookmarks are skipped, because a server sends them at times that tests cannot predict.
    async fn event(&mut self) -> Option<Value> {
        loop {
            let line = self.line().await?;
            let event = serde_json::from_slice(&line)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&line).into_owned()));
            if !is_periodic_bookmark(&event) {
                return Some(event);
            }
        }
    }

    async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let tail = self.rest.split_off(end + 1);
                let line = std::mem::replace(&mut self.rest, tail);
                return Some(line);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.rest.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
                Some(Err(_)) | None => return None,
            }
        }
    }
}

/// Whether this is a bookmark other than the one that ends the initial events.
fn is_periodic_bookmark(event: &Value) -> bool {
    let text = |pointer| event.pointer(pointer).and_then(Value::as_str);
    // A slash in a key is written `~1` in a JSON pointer.
    text("/type") == Some("BOOKMARK")
        && text("/object/metadata/annotations/k8s.io~1initial-events-end") != Some("true")
}
