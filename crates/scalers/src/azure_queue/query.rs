//! Azure storage queues: requests and message counts.

use crate::ScalerError;
use crate::azure_storage::{StorageConnection, StorageRequest, StorageService, check_storage_answer};
use crate::responses::hidden;
use crate::web::path_escaped;

/// Maximum number of messages that one request can peek at.
pub(super) const MAX_PEEKED_MESSAGES: usize = 32;

/// A connection to the queues of an account.
#[derive(Clone, Debug)]
pub(super) struct QueueConnection(pub(super) StorageConnection);

/// Parses a connection string.
pub(super) fn connection(text: &str) -> Result<QueueConnection, ScalerError> {
    StorageConnection::parse(text, StorageService::Queue).map(QueueConnection)
}

impl QueueConnection {
    /// The request for the approximate message count.
    pub(super) fn count(&self, queue: &str, date: &str) -> Result<StorageRequest, ScalerError> {
        self.0.request(&format!("/{}", path_escaped(queue)), &[("comp", "metadata")], date)
    }

    /// The request that peeks at messages without dequeuing them.
    pub(super) fn peek(&self, queue: &str, date: &str) -> Result<StorageRequest, ScalerError> {
        let path = format!("/{}/messages", path_escaped(queue));
        self.0.request(&path, &[("numofmessages", "32"), ("peekonly", "true")], date)
    }
}

/// The approximate count, which is in a header.
pub(super) fn counted(status: u16, header: Option<&str>, body: &[u8]) -> Result<f64, ScalerError> {
    checked(status, body)?;
    let count = header.and_then(|text| text.trim().parse::<u64>().ok());
    count
        .map(|count| count as f64)
        .ok_or_else(|| scaler_error!("the storage queue does not report how many messages it has"))
}

/// The number of peeked messages.
pub(super) fn peeked(status: u16, body: &[u8]) -> Result<usize, ScalerError> {
    checked(status, body)?;
    let text = std::str::from_utf8(body)
        .map_err(|_| scaler_error!("the answer of the storage queue is not text"))?;
    if !text.contains("<QueueMessagesList") {
        bail!("the answer of the storage queue is not a list of messages: {}", hidden(body));
    }
    Ok(text.matches("<QueueMessage>").count())
}

fn checked(status: u16, body: &[u8]) -> Result<(), ScalerError> {
    check_storage_answer("storage queue", status, body)
}
