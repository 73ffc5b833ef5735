//! Frames and messages of AMQP 1.0, without IO.

use super::amqp_value::{AmqpValue, InvalidAmqp};
use crate::SourceRefusal;

/// The protocol headers that both peers send first: for SASL, and after it.
pub(super) const SASL_HEADER: [u8; 8] = *b"AMQP\x03\x01\x00\x00";
pub(super) const AMQP_HEADER: [u8; 8] = *b"AMQP\x00\x01\x00\x00";
/// Types of frames.
pub(super) const AMQP_FRAME: u8 = 0;
pub(super) const SASL_FRAME: u8 = 1;
/// Maximum size of a frame in both directions, in bytes.
pub(super) const MAX_FRAME_BYTES: u32 = 64 << 10;
/// Number of transfer frames that a peer may send before the next flow frame.
const SESSION_WINDOW_FRAMES: u32 = 1000;

/// The kinds of frames that are used here.
const OPEN: u64 = 0x10;
const BEGIN: u64 = 0x11;
const ATTACH: u64 = 0x12;
const FLOW: u64 = 0x13;
const TRANSFER: u64 = 0x14;
const DISPOSITION: u64 = 0x15;
const DETACH: u64 = 0x16;
const END: u64 = 0x17;
const CLOSE: u64 = 0x18;
const SASL_MECHANISMS: u64 = 0x40;
const SASL_INIT: u64 = 0x41;
const SASL_OUTCOME: u64 = 0x44;
/// Other types.
const ACCEPTED: u64 = 0x24;
const SOURCE: u64 = 0x28;
const TARGET: u64 = 0x29;
/// Sections of messages.
const PROPERTIES: u64 = 0x73;
const APPLICATION_PROPERTIES: u64 = 0x74;
const VALUE: u64 = 0x77;

/// The content of a frame of the peer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AmqpFrame {
    /// An empty frame, or one that changes nothing here.
    Nothing,
    /// The mechanisms of SASL.
    Mechanisms(Vec<String>),
    /// The result of SASL; 0 is success.
    Outcome(i64),
    Opened,
    /// The session has begun; the number of the first transfer.
    Begun(u32),
    /// A link is attached, and the handle of the peer; for links to us, the number of its first delivery.
    Attached {
        name: String,
        handle: u32,
        delivery_count: u32,
    },
    /// A link to the peer may have this many more deliveries, counted from the number before.
    Credit {
        handle: u32,
        delivery_count: u32,
        credit: u32,
    },
    /// A message or a part of it.
    Transfer {
        delivery: Option<u32>,
        settled: bool,
        more: bool,
        payload: Vec<u8>,
    },
    /// The link, session or connection ends, with an error if there is one, and what its condition means.
    Ended(String, Option<SourceRefusal>),
}

/// Decodes the content of a frame.
pub(super) fn frame(mut content: &[u8]) -> Result<AmqpFrame, InvalidAmqp> {
    if content.is_empty() {
        return Ok(AmqpFrame::Nothing);
    }
    let AmqpValue::Described(kind, fields) = AmqpValue::decode(&mut content)? else {
        return Err(InvalidAmqp);
    };
    let number = |index| fields.field(index).and_then(AmqpValue::as_number);
    let uint = |index| number(index).and_then(|number| u32::try_from(number).ok());
    let flag = |index| fields.field(index) == Some(&AmqpValue::Bool(true));
    Ok(match kind {
        SASL_MECHANISMS => {
            let offered = fields.field(0).ok_or(InvalidAmqp)?;
            // One alone may be written without a list.
            let names = if let Some(one) = offered.as_text() {
                vec![one.to_owned()]
            } else {
                offered.items().iter().filter_map(AmqpValue::as_text).map(str::to_owned).collect()
            };
            AmqpFrame::Mechanisms(names)
        }
        SASL_OUTCOME => AmqpFrame::Outcome(number(0).ok_or(InvalidAmqp)?),
        OPEN => AmqpFrame::Opened,
        BEGIN => AmqpFrame::Begun(uint(1).ok_or(InvalidAmqp)?),
        ATTACH => AmqpFrame::Attached {
            name: fields.field(0).and_then(AmqpValue::as_text).ok_or(InvalidAmqp)?.to_owned(),
            handle: uint(1).ok_or(InvalidAmqp)?,
            delivery_count: uint(9).unwrap_or_default(),
        },
        FLOW => match (uint(4), uint(6)) {
            (Some(handle), Some(credit)) => {
                AmqpFrame::Credit { handle, delivery_count: uint(5).unwrap_or_default(), credit }
            }
            _ => AmqpFrame::Nothing,
        },
        TRANSFER => AmqpFrame::Transfer {
            delivery: uint(1),
            settled: flag(4),
            more: flag(5),
            payload: content.to_vec(),
        },
        DETACH => ended(fields.field(2)),
        END | CLOSE => ended(fields.field(0)),
        _ => AmqpFrame::Nothing,
    })
}

/// The end of a link, session or connection, with the condition and description of its error.
fn ended(error: Option<&AmqpValue>) -> AmqpFrame {
    let Some(AmqpValue::Described(_, fields)) = error else { return AmqpFrame::Ended(String::new(), None) };
    let text = |index| fields.field(index).and_then(AmqpValue::as_text);
    let refusal = match text(0) {
        Some("amqp:unauthorized-access") => Some(SourceRefusal::Credentials),
        Some("amqp:not-found") => Some(SourceRefusal::UnknownName),
        _ => None,
    };
    let why = match (text(0), text(1)) {
        (Some(condition), Some(description)) => format!("{condition}: {description}"),
        (condition, description) => condition.or(description).unwrap_or_default().to_owned(),
    };
    AmqpFrame::Ended(why, refusal)
}

fn whole(frame_type: u8, kind: u64, fields: Vec<AmqpValue>, payload: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    AmqpValue::described(kind, fields).encode(&mut content);
    content.extend(payload);
    let mut out = (content.len() as u32 + 8).to_be_bytes().to_vec();
    // The offset of the content in words of four bytes, the type, and channel 0.
    out.extend([2, frame_type, 0, 0]);
    out.extend(content);
    out
}

/// Logs in without a name: a token follows.
pub(super) fn sasl_anonymous() -> Vec<u8> {
    let fields = vec![AmqpValue::Symbol("ANONYMOUS".to_owned()), AmqpValue::Binary(Vec::new())];
    whole(SASL_FRAME, SASL_INIT, fields, &[])
}

/// Opens a connection and a session.
pub(super) fn open_and_begin(host: &str) -> Vec<u8> {
    let open = vec![AmqpValue::text("plimsoll"), AmqpValue::text(host), AmqpValue::Uint(MAX_FRAME_BYTES)];
    let mut out = whole(AMQP_FRAME, OPEN, open, &[]);
    let begin = vec![
        AmqpValue::Null,
        AmqpValue::Uint(0),
        AmqpValue::Uint(SESSION_WINDOW_FRAMES),
        AmqpValue::Uint(SESSION_WINDOW_FRAMES),
    ];
    out.extend(whole(AMQP_FRAME, BEGIN, begin, &[]));
    out
}

/// Opens a pair of links: to a node with this handle, and back with the next one.
pub(super) fn attach_pair(node: &str, handle: u32) -> Vec<u8> {
    let address = |kind, address: &str| AmqpValue::described(kind, vec![AmqpValue::text(address)]);
    let [there, reply] = link_names(node);
    // Both ends send settled messages: each request has a response.
    let link = |name: &str, handle, is_receiver, source, target| {
        let settle = [AmqpValue::Ubyte(1), AmqpValue::Ubyte(0)];
        let mut fields = vec![AmqpValue::text(name), AmqpValue::Uint(handle), AmqpValue::Bool(is_receiver)];
        fields.extend(settle);
        fields.extend([source, target]);
        if !is_receiver {
            fields.extend([AmqpValue::Null, AmqpValue::Null, AmqpValue::Uint(0)]);
        }
        whole(AMQP_FRAME, ATTACH, fields, &[])
    };
    let mut out = link(&there, handle, false, address(SOURCE, &reply), address(TARGET, node));
    out.extend(link(&reply, handle + 1, true, address(SOURCE, node), address(TARGET, &reply)));
    out
}

/// The names of the links to a node and back. The second one is also the address of replies.
pub(super) fn link_names(node: &str) -> [String; 2] {
    let node = node.trim_start_matches('$');
    [format!("plimsoll-to-{node}"), format!("plimsoll-{node}")]
}

/// Allows the peer to send one message over a link. The numbers are those of the next transfers and deliveries.
pub(super) fn credit(handle: u32, next_incoming: u32, next_outgoing: u32, delivery_count: u32) -> Vec<u8> {
    let fields = [
        next_incoming,
        SESSION_WINDOW_FRAMES,
        next_outgoing,
        SESSION_WINDOW_FRAMES,
        handle,
        delivery_count,
        1,
    ];
    whole(AMQP_FRAME, FLOW, fields.into_iter().map(AmqpValue::Uint).collect(), &[])
}

/// Accepts a delivery.
pub(super) fn accept(delivery: u32) -> Vec<u8> {
    let fields = vec![
        AmqpValue::Bool(true),
        AmqpValue::Uint(delivery),
        AmqpValue::Uint(delivery),
        AmqpValue::Bool(true),
        AmqpValue::described(ACCEPTED, Vec::new()),
    ];
    whole(AMQP_FRAME, DISPOSITION, fields, &[])
}

/// A request to a node; `id` is its number and that of its transfer.
pub(super) fn request(
    node: &str,
    handle: u32,
    id: u32,
    properties: &[(&str, &str)],
    value: AmqpValue,
) -> Vec<u8> {
    let mut message = Vec::new();
    let [_, reply] = link_names(node);
    let head = vec![
        AmqpValue::text(id.to_string()),
        AmqpValue::Null,
        AmqpValue::Null,
        AmqpValue::Null,
        AmqpValue::text(reply),
    ];
    AmqpValue::described(PROPERTIES, head).encode(&mut message);
    let pairs = properties.iter().map(|(name, text)| (AmqpValue::text(*name), AmqpValue::text(*text)));
    AmqpValue::Described(APPLICATION_PROPERTIES, Box::new(AmqpValue::Map(pairs.collect())))
        .encode(&mut message);
    AmqpValue::Described(VALUE, Box::new(value)).encode(&mut message);
    let fields = vec![
        AmqpValue::Uint(handle),
        AmqpValue::Uint(id),
        AmqpValue::Binary(id.to_be_bytes().to_vec()),
        AmqpValue::Uint(0),
        AmqpValue::Bool(true),
    ];
    whole(AMQP_FRAME, TRANSFER, fields, &message)
}

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AmqpReply {
    /// The number of the request.
    pub(super) correlation: Option<String>,
    pub(super) status: i64,
    pub(super) description: String,
    pub(super) value: AmqpValue,
}

/// Decodes a message.
pub(super) fn reply(mut message: &[u8]) -> Result<AmqpReply, InvalidAmqp> {
    let mut reply =
        AmqpReply { correlation: None, status: 0, description: String::new(), value: AmqpValue::Null };
    while !message.is_empty() {
        let AmqpValue::Described(section, content) = AmqpValue::decode(&mut message)? else {
            return Err(InvalidAmqp);
        };
        match section {
            PROPERTIES => {
                reply.correlation = content.field(5).and_then(AmqpValue::as_text).map(str::to_owned);
            }
            APPLICATION_PROPERTIES => {
                let either = |one, other| content.get(one).or_else(|| content.get(other));
                let status = either("status-code", "statusCode").and_then(AmqpValue::as_number);
                reply.status = status.unwrap_or_default();
                let text = either("status-description", "statusDescription").and_then(AmqpValue::as_text);
                text.unwrap_or_default().clone_into(&mut reply.description);
            }
            VALUE => reply.value = *content,
            _ => {}
        }
    }
    Ok(reply)
}
