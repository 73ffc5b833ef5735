//! The address of a queue in SEMP, and what it answers.

use crate::Error;
use crate::answers::{excerpt, json, number};
use crate::web::path_escaped;

/// What SEMP says of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Queue {
    /// Messages in it.
    pub(super) messages: f64,
    /// Bytes they take.
    pub(super) spool: f64,
    /// Messages that came per second, averaged over a minute.
    pub(super) rate: f64,
}

/// The address of a queue.
pub(super) fn url(base: &str, vpn: &str, queue: &str) -> String {
    let (base, vpn, queue) = (base.trim_end_matches('/'), path_escaped(vpn), path_escaped(queue));
    format!("{base}/SEMP/v2/monitor/msgVpns/{vpn}/queues/{queue}?select=msgs,msgSpoolUsage,averageRxMsgRate")
}

/// What SEMP says of a queue.
pub(super) fn queue(status: u16, body: &[u8]) -> Result<Queue, Error> {
    if status != 200 {
        return Err(Error::new(format!("Solace SEMP API returned {status}: {}", excerpt(body))));
    }
    let answer = json(body)?;
    Ok(Queue {
        messages: number(&answer, "/collections/msgs/count")?,
        spool: number(&answer, "/data/msgSpoolUsage")?,
        rate: number(&answer, "/data/averageRxMsgRate")?,
    })
}
