//! The SEMP URL of a queue, and its response.

use crate::ScalerError;
use crate::responses::{error_field, json, number};
use crate::web::path_escaped;

/// Decoded SEMP response for a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SolaceQueue {
    /// Messages in it.
    pub(super) messages: f64,
    /// Spool usage in bytes.
    pub(super) spool: f64,
    /// Received messages per second, averaged over a minute.
    pub(super) rate: f64,
}

/// The URL of a queue.
pub(super) fn url(base: &str, vpn: &str, queue: &str) -> String {
    let (base, vpn, queue) = (base.trim_end_matches('/'), path_escaped(vpn), path_escaped(queue));
    format!("{base}/SEMP/v2/monitor/msgVpns/{vpn}/queues/{queue}?select=msgs,msgSpoolUsage,averageRxMsgRate")
}

/// Decoded SEMP response for a queue.
pub(super) fn queue(status: u16, body: &[u8]) -> Result<SolaceQueue, ScalerError> {
    if status != 200 {
        bail!("Solace SEMP API returned {status}: {}", error_field(body, "/meta/error/description"));
    }
    let answer = json(body)?;
    Ok(SolaceQueue {
        messages: number(&answer, "/collections/msgs/count")?,
        spool: number(&answer, "/data/msgSpoolUsage")?,
        rate: number(&answer, "/data/averageRxMsgRate")?,
    })
}
