//! The SEMP URLs of a message VPN and of a queue, and their responses.

use serde_json::Value;

use crate::ScalerError;
use crate::responses::{error_field, excerpt, json, kind, number};
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

/// The URL of the state of a message VPN.
pub(super) fn vpn_url(base: &str, vpn: &str) -> String {
    let (base, vpn) = (base.trim_end_matches('/'), path_escaped(vpn));
    format!("{base}/SEMP/v2/monitor/msgVpns/{vpn}?select=state")
}

/// Fails if the message VPN is not up: the standby of a broker reports empty queues.
pub(super) fn check_vpn(status: u16, body: &[u8]) -> Result<(), ScalerError> {
    let answer = successful(status, body)?;
    let state = answer.pointer("/data/state");
    match state.and_then(Value::as_str) {
        Some("up") => Ok(()),
        Some(state) => Err(scaler_error!("the message VPN is not up ({})", excerpt(state))),
        None => Err(scaler_error!("the answer has {} at data.state instead of a text", kind(state))),
    }
}

/// The URL of a queue.
pub(super) fn url(base: &str, vpn: &str, queue: &str) -> String {
    let (base, vpn, queue) = (base.trim_end_matches('/'), path_escaped(vpn), path_escaped(queue));
    format!("{base}/SEMP/v2/monitor/msgVpns/{vpn}/queues/{queue}?select=msgs,msgSpoolUsage,averageRxMsgRate")
}

/// Decoded SEMP response for a queue.
pub(super) fn queue(status: u16, body: &[u8]) -> Result<SolaceQueue, ScalerError> {
    let answer = successful(status, body)?;
    Ok(SolaceQueue {
        messages: number(&answer, "/collections/msgs/count")?,
        spool: number(&answer, "/data/msgSpoolUsage")?,
        rate: number(&answer, "/data/averageRxMsgRate")?,
    })
}

fn successful(status: u16, body: &[u8]) -> Result<Value, ScalerError> {
    if status != 200 {
        bail!("Solace SEMP API returned {status}: {}", error_field(body, "/meta/error/description"));
    }
    json(body)
}
