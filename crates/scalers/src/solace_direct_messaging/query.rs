//! Requests of SEMP version 1 for the clients of a broker, and their responses, both in XML.

use crate::ScalerError;
use crate::responses::hidden;
use crate::xml::{element, inner};

/// The queue of a client for direct messages.
const DIRECT_QUEUE: &str = "D-1";
/// Bytes of a unit of work, in which the length of a client's queue is counted.
const WORK_UNIT_BYTES: i64 = 2048;

/// What a request reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requested {
    /// The egress rates of the clients.
    Rates,
    /// The queues of the clients.
    Queues,
}

/// Egress rates of all clients together, and what waits for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientRates {
    /// Messages per second.
    pub(super) messages: i64,
    /// Bytes per second.
    pub(super) bytes: i64,
    /// Messages per second, averaged over a minute.
    pub(super) average_messages: i64,
    /// Bytes per second, averaged over a minute.
    pub(super) average_bytes: i64,
    /// Messages in the queues for direct messages.
    pub(super) queued_messages: i64,
    /// Units of work in these queues.
    pub(super) queued_work: i64,
}

impl ClientRates {
    /// The rates with the waiting messages and bytes, times a factor.
    pub(super) fn with_queued(self, factor: i64) -> Self {
        let messages = self.queued_messages.saturating_mul(factor);
        let bytes = self.queued_work.saturating_mul(factor).saturating_mul(WORK_UNIT_BYTES);
        Self {
            messages: self.messages.saturating_add(messages),
            average_messages: self.average_messages.saturating_add(messages),
            bytes: self.bytes.saturating_add(bytes),
            average_bytes: self.average_bytes.saturating_add(bytes),
            ..self
        }
    }
}

/// Whether KEDA accepts a base URL: `http://` or `https://` and at least two characters of a host.
pub(super) fn is_base_url(text: &str) -> bool {
    let is_host = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    ["http://", "https://"].iter().any(|scheme| {
        text.split(scheme).skip(1).any(|rest| rest.chars().take_while(is_host).take(2).count() == 2)
    })
}

/// The URL of SEMP.
pub(super) fn url(base: &str) -> String {
    format!("{}/SEMP", base.trim_end_matches('/'))
}

/// The request for clients with a part of a name.
pub(super) fn request_body(pattern: &str, what: Requested) -> String {
    let pattern = pattern.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let queues = if what == Requested::Queues { "<queues/>" } else { "" };
    format!("<rpc><show><client><name>*{pattern}*</name><stats/>{queues}</client></show></rpc>")
}

/// Adds the clients of a message VPN in a response; returns the request for the next page if there is one.
pub(super) fn add(
    status: u16,
    body: &[u8],
    (what, vpn): (Requested, &str),
    rates: &mut ClientRates,
) -> Result<Option<String>, ScalerError> {
    match status {
        200..=299 => {}
        401 => bail!("SEMP returned 401: wrong user name or password"),
        _ => bail!("SEMP returned {status}: {}", hidden(body)),
    }
    let text = std::str::from_utf8(body).map_err(|_| scaler_error!("the answer of SEMP is not text"))?;
    // Without this element the request was refused or the answer is incomplete, so no clients does not mean that there are none.
    if !text.contains("<rpc-reply") || !text.contains(r#"<execute-result code="ok""#) {
        bail!("SEMP did not execute the request: {}", hidden(body));
    }
    let mut rest = inner(text, "primary-virtual-router").map_or("", |(clients, _)| clients);
    while let Some((client, after)) = inner(rest, "client") {
        rest = after;
        if element(client, "message-vpn").as_deref() != Some(vpn) {
            continue;
        }
        match what {
            Requested::Rates => add_rates(client, rates)?,
            Requested::Queues => add_queues(client, rates)?,
        }
    }
    Ok(inner(text, "more-cookie").map(|(next, _)| next.trim().to_owned()).filter(|next| !next.is_empty()))
}

fn add_rates(client: &str, rates: &mut ClientRates) -> Result<(), ScalerError> {
    let stats = inner(client, "stats").map_or("", |(stats, _)| stats);
    for (sum, name) in [
        (&mut rates.messages, "current-egress-rate-per-second"),
        (&mut rates.average_messages, "average-egress-rate-per-minute"),
        (&mut rates.bytes, "current-egress-byte-rate-per-second"),
        (&mut rates.average_bytes, "average-egress-byte-rate-per-minute"),
    ] {
        *sum = sum.saturating_add(number(stats, name)?);
    }
    Ok(())
}

fn add_queues(client: &str, rates: &mut ClientRates) -> Result<(), ScalerError> {
    let mut rest = client;
    while let Some((queue, after)) = inner(rest, "client-queue") {
        rest = after;
        if element(queue, "queue-priority").as_deref() == Some(DIRECT_QUEUE) {
            rates.queued_messages = rates.queued_messages.saturating_add(number(queue, "length-msgs")?);
            rates.queued_work = rates.queued_work.saturating_add(number(queue, "length-work")?);
        }
    }
    Ok(())
}

/// The whole number in an element.
fn number(xml: &str, name: &str) -> Result<i64, ScalerError> {
    let text =
        element(xml, name).ok_or_else(|| scaler_error!("a client in the answer of SEMP has no {name}"))?;
    text.parse()
        .map_err(|_| scaler_error!("a client in the answer of SEMP has {name} that is no whole number"))
}
