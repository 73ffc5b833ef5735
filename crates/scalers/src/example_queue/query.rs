//! URLs and responses of example-queue, without IO.

use crate::ScalerError;
use crate::responses::{hidden, json, number};
use crate::web::path_escaped;

/// The URL of a queue.
pub(super) fn url(server: &str, queue: &str) -> String {
    format!("{}/queues/{}", server.trim_end_matches('/'), path_escaped(queue))
}

/// The number of messages in a response. Errors say what was found instead, and quote no body.
pub(super) fn length(status: u16, body: &[u8]) -> Result<f64, ScalerError> {
    if status != 200 {
        bail!("the server returned {status}: {}", hidden(body));
    }
    number(&json(body)?, "/messages")
}
