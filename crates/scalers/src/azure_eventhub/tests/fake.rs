//! A stand-in for Event Hubs that checks frames and tokens: hub `hub`, key `k` with the value `hunter2`. Its handles differ from
//! those of the client, and it sends messages in two parts.

use aws_lc_rs::hmac;
use base64::Engine as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::azure_eventhub::amqp_value::AmqpValue;
use crate::web::{escaped, query_unescaped};

const HANDLE_OFFSET: u32 = 10;

/// Starts a server with these partitions: first and last number of the events. Returns the port.
pub(super) async fn fake_event_hub(partitions: &'static [(i64, i64)]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move { Hub { stream, partitions, sent: 7 }.serve().await });
        }
    });
    port
}

struct Hub {
    stream: TcpStream,
    partitions: &'static [(i64, i64)],
    /// The number of the next transfer.
    sent: u32,
}

fn list(kind: u64, fields: Vec<AmqpValue>) -> AmqpValue {
    AmqpValue::described(kind, fields)
}

impl Hub {
    async fn send(&mut self, frame_type: u8, value: &AmqpValue, payload: &[u8]) -> Option<()> {
        let mut content = Vec::new();
        value.encode(&mut content);
        content.extend(payload);
        let mut frame = (content.len() as u32 + 8).to_be_bytes().to_vec();
        frame.extend([2, frame_type, 0, 0]);
        frame.extend(content);
        self.stream.write_all(&frame).await.ok()
    }

    /// The kind and fields of a frame, and what follows them.
    async fn receive(&mut self) -> Option<(u64, AmqpValue, Vec<u8>)> {
        let mut head = [0; 8];
        self.stream.read_exact(&mut head).await.ok()?;
        let mut content = vec![0; u32::from_be_bytes(head[..4].try_into().ok()?) as usize - 8];
        self.stream.read_exact(&mut content).await.ok()?;
        let mut rest = &*content;
        let AmqpValue::Described(kind, fields) = AmqpValue::decode(&mut rest).unwrap() else { panic!() };
        Some((kind, *fields, rest.to_vec()))
    }

    async fn header(&mut self, expected: &[u8; 8]) -> Option<()> {
        let mut header = [0; 8];
        self.stream.read_exact(&mut header).await.ok()?;
        assert_eq!(&header, expected);
        self.stream.write_all(expected).await.ok()
    }

    async fn serve(&mut self) -> Option<()> {
        self.header(b"AMQP\x03\x01\x00\x00").await?;
        let mechanisms = ["MSSBCBS", "ANONYMOUS"].map(|name| AmqpValue::Symbol(name.to_owned()));
        self.send(1, &list(0x40, vec![AmqpValue::List(mechanisms.to_vec())]), &[]).await?;
        let (kind, fields, _) = self.receive().await?;
        assert_eq!((kind, fields.field(0).unwrap().as_text()), (0x41, Some("ANONYMOUS")));
        self.send(1, &list(0x44, vec![AmqpValue::Ubyte(0)]), &[]).await?;
        self.header(b"AMQP\x00\x01\x00\x00").await?;
        // The numbers of the next deliveries over the links to the client, by its handles.
        let mut deliveries = [3_u32; 4];
        loop {
            let (kind, fields, payload) = self.receive().await?;
            let number = |index| fields.field(index).and_then(AmqpValue::as_number).unwrap() as u32;
            match kind {
                0x10 => self.send(0, &list(0x10, vec![AmqpValue::text("hub")]), &[]).await?,
                0x11 => {
                    let numbers = [0, self.sent, 100, 100].map(AmqpValue::Uint);
                    self.send(0, &list(0x11, numbers.to_vec()), &[]).await?;
                }
                0x12 => {
                    let (mut answer, handle) = (fields.items().to_vec(), number(1));
                    let is_receiver = answer[2] == AmqpValue::Bool(true);
                    answer[1] = AmqpValue::Uint(handle + HANDLE_OFFSET);
                    answer[2] = AmqpValue::Bool(!is_receiver);
                    answer.resize(9, AmqpValue::Null);
                    if is_receiver {
                        answer.push(AmqpValue::Uint(deliveries[handle as usize]));
                    }
                    self.send(0, &list(0x12, answer), &[]).await?;
                    if !is_receiver {
                        let mut flow = [self.sent, 100, 0, 100].map(AmqpValue::Uint).to_vec();
                        flow.extend([handle + HANDLE_OFFSET, 0, 50].map(AmqpValue::Uint));
                        self.send(0, &list(0x13, flow), &[]).await?;
                    }
                    // An empty frame, which keeps the connection alive.
                    self.stream.write_all(&[0, 0, 0, 8, 2, 0, 0, 0]).await.ok()?;
                }
                0x13 => {
                    assert_eq!(number(0), self.sent);
                    assert_eq!((number(5), number(6)), (deliveries[number(4) as usize], 1));
                }
                0x14 => {
                    let handle = number(0);
                    let reply = self.reply(handle, &payload);
                    let delivery = deliveries[handle as usize + 1];
                    deliveries[handle as usize + 1] += 1;
                    let (one, two) = reply.split_at(reply.len() / 2);
                    for (part, more) in [(one, true), (two, false)] {
                        let transfer = vec![
                            AmqpValue::Uint(handle + 1 + HANDLE_OFFSET),
                            AmqpValue::Uint(delivery),
                            AmqpValue::Binary(vec![1]),
                            AmqpValue::Uint(0),
                            AmqpValue::Bool(false),
                            AmqpValue::Bool(more),
                        ];
                        self.send(0, &list(0x14, transfer), part).await?;
                        self.sent += 1;
                    }
                    let (kind, fields, _) = self.receive().await?;
                    assert_eq!((kind, fields.field(1)), (0x15, Some(&AmqpValue::Uint(delivery))));
                }
                other => panic!("frame {other:#x}"),
            }
        }
    }

    /// The message that answers a request.
    fn reply(&self, handle: u32, mut message: &[u8]) -> Vec<u8> {
        let mut sections = Vec::new();
        while !message.is_empty() {
            sections.push(AmqpValue::decode(&mut message).unwrap());
        }
        let [
            AmqpValue::Described(0x73, head),
            AmqpValue::Described(0x74, given),
            AmqpValue::Described(0x77, body),
        ] = &*sections
        else {
            panic!("{sections:?}");
        };
        let id = head.field(0).unwrap().clone();
        let text = |name: &str| given.get(name).and_then(AmqpValue::as_text).unwrap_or_default();
        let reply_to = head.field(4).unwrap().as_text();
        let (status, value) = if handle == 0 {
            assert_eq!(reply_to, Some("plimsoll-cbs"));
            assert_eq!((text("operation"), text("name")), ("put-token", "amqps://127.0.0.1/hub"));
            assert_eq!(text("type"), "servicebus.windows.net:sastoken");
            (if is_signed(body.as_text().unwrap()) { 202 } else { 401 }, AmqpValue::Null)
        } else {
            assert_eq!(reply_to, Some("plimsoll-management"));
            assert_eq!((text("operation"), text("name")), ("READ", "hub"));
            assert!(is_signed(text("security_token")));
            (200, self.described(text("type"), text("partition")))
        };
        let mut out = Vec::new();
        let mut head = vec![AmqpValue::Null; 5];
        head.push(id);
        list(0x73, head).encode(&mut out);
        let properties = vec![
            (AmqpValue::text("status-code"), AmqpValue::Number(status)),
            (AmqpValue::text("status-description"), AmqpValue::text("InvalidSignature")),
        ];
        AmqpValue::Described(0x74, Box::new(AmqpValue::Map(properties))).encode(&mut out);
        AmqpValue::Described(0x77, Box::new(value)).encode(&mut out);
        out
    }

    /// The properties of the hub or of a partition.
    fn described(&self, kind: &str, partition: &str) -> AmqpValue {
        if kind == "com.microsoft:eventhub" {
            let ids = (0..self.partitions.len()).map(|id| AmqpValue::text(id.to_string()));
            return AmqpValue::Map(vec![(AmqpValue::text("partition_ids"), AmqpValue::List(ids.collect()))]);
        }
        assert_eq!(kind, "com.microsoft:partition");
        let (first, last) = self.partitions[partition.parse::<usize>().unwrap()];
        AmqpValue::Map(vec![
            (AmqpValue::text("begin_sequence_number"), AmqpValue::Number(first)),
            (AmqpValue::text("last_enqueued_sequence_number"), AmqpValue::Number(last)),
        ])
    }
}

/// Whether a signature is one of key `k` for the hub.
fn is_signed(token: &str) -> bool {
    let part = |name: &str| {
        let fields = token.strip_prefix("SharedAccessSignature ").unwrap_or_default();
        let mut pairs = fields.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).unwrap_or_default()
    };
    let resource = escaped("amqps://127.0.0.1/hub").to_lowercase();
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"hunter2");
    let tag = hmac::sign(&key, format!("{resource}\n{}", part("se")).as_bytes());
    let signature = base64::prelude::BASE64_STANDARD.encode(tag.as_ref());
    part("sr") == resource && part("skn") == "k" && query_unescaped(&part("sig")) == Some(signature)
}
