//! Connections to Event Hubs, shared by all triggers with the same hub and token.
//!
//! Implemented here and not with a library, because it needs two pairs of links and one request at a time; the libraries bring a
//! second TLS stack.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::amqp::{self, AmqpFrame, AmqpReply};
use super::amqp_value::{AmqpValue, InvalidAmqp};
use super::query::{self, HubAddress, PartitionInfo};
use crate::dial::Dialer;
use crate::parameters::Secret;
use crate::pool::{self, PoolError, PoolFuture};
use crate::responses::excerpt;
use crate::stream::{BoxStream, dial, io_error, secure};
use crate::tls::TlsSettings;
use crate::{ScalerError, SourceRefusal};

/// Timeout of a read, including the connection. Each partition is a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 5 } else { 20 });
/// Maximum size of a message, in bytes: enough for the ids of all partitions. Each byte may become a value of 24 bytes.
const MAX_MESSAGE_BYTES: usize = 128 << 10;
/// Maximum number of frames that a request waits for.
const MAX_FRAMES: usize = 1000;
/// The outcome of a SASL login whose credentials are wrong.
const SASL_AUTHENTICATION_FAILED: i64 = 1;
/// The node that checks tokens, and the one that knows hubs; with the handles of the links to them.
const CBS: (&str, u32) = ("$cbs", 0);
const MANAGEMENT: (&str, u32) = ("$management", 2);

/// A hub and a token for it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct EventHubServer {
    pub(super) hub: HubAddress,
    /// `jwt`, or the type of shared access signatures.
    pub(super) token_type: &'static str,
    pub(super) token: Secret,
    /// CA certificates that the process trusts in addition to the system's (PEM).
    pub(super) authorities: Vec<u8>,
    /// Opens its connections.
    pub(super) dialer: Dialer,
}

/// A connection.
pub(super) struct EventHubConnection {
    stream: BoxStream,
    /// The number of the next transfer of the peer, and of ours.
    next_incoming: u32,
    next_outgoing: u32,
    /// The links, by our handles.
    links: [AmqpLink; 4],
    /// The message that is received.
    message: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct AmqpLink {
    /// The handle of the peer; none before the link is attached.
    remote: Option<u32>,
    /// The number of the next delivery.
    delivery_count: u32,
    /// How many more deliveries the peer allows.
    credit: u32,
}

impl From<InvalidAmqp> for ScalerError {
    fn from(error: InvalidAmqp) -> Self {
        Self::caused_by(error.to_string(), error)
    }
}

impl EventHubConnection {
    async fn send(&mut self, bytes: &[u8]) -> Result<(), ScalerError> {
        self.stream.write_all(bytes).await.map_err(|error| io_error(&error))?;
        self.stream.flush().await.map_err(|error| io_error(&error))
    }

    /// Sends a protocol header, which the peer repeats.
    async fn exchange(&mut self, header: [u8; 8]) -> Result<(), ScalerError> {
        self.send(&header).await?;
        let mut answer = [0; 8];
        self.stream.read_exact(&mut answer).await.map_err(|error| io_error(&error))?;
        if answer == header { Ok(()) } else { Err(InvalidAmqp.into()) }
    }

    async fn receive(&mut self, frame_type: u8) -> Result<AmqpFrame, ScalerError> {
        let mut head = [0; 8];
        self.stream.read_exact(&mut head).await.map_err(|error| io_error(&error))?;
        let [a, b, c, d, offset, received_type, ..] = head;
        let size = u32::from_be_bytes([a, b, c, d]);
        let skip = 4 * usize::from(offset);
        if received_type != frame_type || !(8..=amqp::MAX_FRAME_BYTES).contains(&size) || skip < head.len() {
            return Err(InvalidAmqp.into());
        }
        let mut content = vec![0; size as usize - head.len()];
        self.stream.read_exact(&mut content).await.map_err(|error| io_error(&error))?;
        let content = content.get(skip - head.len()..).ok_or(InvalidAmqp)?;
        Ok(amqp::frame(content)?)
    }

    /// Handles a frame; returns a message that is complete with it.
    async fn step(&mut self) -> Result<Option<AmqpReply>, ScalerError> {
        match self.receive(amqp::AMQP_FRAME).await? {
            AmqpFrame::Nothing | AmqpFrame::Opened => {}
            AmqpFrame::Begun(first) => self.next_incoming = first,
            AmqpFrame::Attached { name, handle, delivery_count } => {
                let names = [CBS, MANAGEMENT].map(|(node, _)| amqp::link_names(node)).concat();
                let ours = names.iter().position(|own| *own == name).ok_or(InvalidAmqp)?;
                let link = self.link(ours as u32)?;
                (link.remote, link.delivery_count) = (Some(handle), delivery_count);
            }
            AmqpFrame::Credit { handle, delivery_count, credit } => {
                let found = self.links.iter_mut().find(|link| link.remote == Some(handle));
                let link = found.ok_or(InvalidAmqp)?;
                link.credit = delivery_count.wrapping_add(credit).wrapping_sub(link.delivery_count);
            }
            AmqpFrame::Transfer { delivery, settled, more, payload } => {
                self.next_incoming = self.next_incoming.wrapping_add(1);
                if self.message.len() + payload.len() > MAX_MESSAGE_BYTES {
                    bail!("the answer has more than {} KiB", MAX_MESSAGE_BYTES >> 10);
                }
                self.message.extend(payload);
                if more {
                    return Ok(None);
                }
                if let Some(delivery) = delivery.filter(|_| !settled) {
                    self.send(&amqp::accept(delivery)).await?;
                }
                return Ok(Some(amqp::reply(&std::mem::take(&mut self.message))?));
            }
            AmqpFrame::Ended(why, refusal) => {
                let error = scaler_error!("Event Hubs closed the connection: {}", excerpt(&why));
                return Err(error.with_refusal(refusal));
            }
            AmqpFrame::Mechanisms(_) | AmqpFrame::Outcome(_) => return Err(InvalidAmqp.into()),
        }
        Ok(None)
    }

    /// The link with this handle of ours.
    fn link(&mut self, handle: u32) -> Result<&mut AmqpLink, ScalerError> {
        self.links.get_mut(handle as usize).ok_or_else(|| InvalidAmqp.into())
    }

    /// Handles frames until a condition holds. Messages are not expected meanwhile.
    async fn wait(&mut self, is_met: impl Fn(&[AmqpLink; 4]) -> bool) -> Result<(), ScalerError> {
        for _ in 0..MAX_FRAMES {
            if is_met(&self.links) {
                return Ok(());
            }
            self.step().await?;
        }
        Err(InvalidAmqp.into())
    }

    async fn log_in(&mut self, host: &str) -> Result<(), ScalerError> {
        self.exchange(amqp::SASL_HEADER).await?;
        let AmqpFrame::Mechanisms(offered) = self.receive(amqp::SASL_FRAME).await? else {
            return Err(InvalidAmqp.into());
        };
        if !offered.iter().any(|name| name == "ANONYMOUS") {
            bail!("the server does not accept tokens (SASL ANONYMOUS)");
        }
        self.send(&amqp::sasl_anonymous()).await?;
        match self.receive(amqp::SASL_FRAME).await? {
            AmqpFrame::Outcome(0) => {}
            AmqpFrame::Outcome(code) => {
                let refusal = (code == SASL_AUTHENTICATION_FAILED).then_some(SourceRefusal::Credentials);
                let error = scaler_error!("the server refused the login (SASL code {code})");
                return Err(error.with_refusal(refusal));
            }
            _ => return Err(InvalidAmqp.into()),
        }
        self.exchange(amqp::AMQP_HEADER).await?;
        self.send(&amqp::open_and_begin(host)).await
    }

    async fn attach(&mut self, (node, handle): (&str, u32)) -> Result<(), ScalerError> {
        self.send(&amqp::attach_pair(node, handle)).await?;
        let handle = handle as usize;
        self.wait(|links| links.iter().skip(handle).take(2).all(|link| link.remote.is_some())).await
    }

    /// Sends a request to a node; returns the response.
    async fn call(
        &mut self,
        (node, handle): (&str, u32),
        properties: &[(&str, &str)],
        value: AmqpValue,
    ) -> Result<AmqpReply, ScalerError> {
        self.wait(|links| links.get(handle as usize).is_some_and(|link| link.credit > 0)).await?;
        let (id, next_incoming) = (self.next_outgoing, self.next_incoming);
        let back = self.link(handle + 1)?;
        let delivery_count = back.delivery_count;
        back.delivery_count = delivery_count.wrapping_add(1);
        let there = self.link(handle)?;
        (there.credit, there.delivery_count) = (there.credit - 1, there.delivery_count.wrapping_add(1));
        self.next_outgoing = id.wrapping_add(1);
        let mut frames = amqp::credit(handle + 1, next_incoming, id, delivery_count);
        let request = amqp::request(node, handle, id, properties, value);
        if request.len() > amqp::MAX_FRAME_BYTES as usize {
            bail!("the request has more than {} KiB", amqp::MAX_FRAME_BYTES >> 10);
        }
        frames.extend(request);
        self.send(&frames).await?;
        for _ in 0..MAX_FRAMES {
            match self.step().await? {
                Some(reply) if reply.correlation.as_deref() == Some(&*id.to_string()) => return Ok(reply),
                Some(_) => return Err(InvalidAmqp.into()),
                None => {}
            }
        }
        Err(InvalidAmqp.into())
    }
}

/// The error in a response, if it is one.
fn refused(what: &str, reply: &AmqpReply) -> Result<(), ScalerError> {
    if (200..300).contains(&reply.status) {
        return Ok(());
    }
    // Codes of HTTP.
    let refusal = match reply.status {
        401 | 403 => Some(SourceRefusal::Credentials),
        404 => Some(SourceRefusal::UnknownName),
        _ => None,
    };
    let error = scaler_error!("{what}: {} (status {})", excerpt(&reply.description), reply.status);
    Err(error.with_refusal(refusal))
}

impl EventHubServer {
    async fn open(&self) -> Result<EventHubConnection, ScalerError> {
        let HubAddress { host, port, uses_tls, .. } = &self.hub;
        let mut stream = dial(&self.dialer, host, *port).await?;
        if *uses_tls {
            stream = secure(stream, host, &TlsSettings::default().trusting(&self.authorities)).await?;
        }
        let links = [AmqpLink::default(); 4];
        let message = Vec::new();
        let mut connection =
            EventHubConnection { stream, next_incoming: 0, next_outgoing: 0, links, message };
        connection.log_in(host).await?;
        connection.attach(CBS).await?;
        let token_scope = self.hub.token_scope();
        let properties = [("operation", "put-token"), ("type", self.token_type), ("name", &*token_scope)];
        let reply = connection.call(CBS, &properties, AmqpValue::text(self.token.reveal())).await?;
        refused("Event Hubs refused the token", &reply)?;
        connection.attach(MANAGEMENT).await?;
        Ok(connection)
    }

    /// Reads all partitions.
    async fn partitions(
        &self,
        connection: &mut EventHubConnection,
    ) -> Result<Result<Vec<PartitionInfo>, ScalerError>, ScalerError> {
        let name = &*self.hub.name;
        let mut properties = vec![
            ("operation", "READ"),
            ("name", name),
            ("type", "com.microsoft:eventhub"),
            ("security_token", self.token.reveal()),
        ];
        let reply = connection.call(MANAGEMENT, &properties, AmqpValue::Null).await?;
        if let Err(error) = refused("unable to get runtimeInfo for metrics", &reply) {
            return Ok(Err(error));
        }
        let ids = query::partition_ids(&reply.value)?;
        if let Some(kind) = properties.get_mut(2) {
            *kind = ("type", "com.microsoft:partition");
        }
        let mut partitions = Vec::new();
        for id in &ids {
            let properties = [&*properties, &[("partition", &**id)]].concat();
            let reply = connection.call(MANAGEMENT, &properties, AmqpValue::Null).await?;
            if let Err(error) = refused("unable to get partitionRuntimeInfo for metrics", &reply) {
                return Ok(Err(error));
            }
            partitions.push(query::partition(id, &reply.value)?);
        }
        Ok(Ok(partitions))
    }
}

impl pool::PooledServer for EventHubServer {
    type Connection = EventHubConnection;
    type Request = ();
    type Response = Vec<PartitionInfo>;
    const MAX_CONNECTIONS: usize = 2;
    const TIMEOUT: Duration = REQUEST_TIMEOUT;

    fn name(&self) -> String {
        format!("{}:{}", self.hub.host, self.hub.port)
    }

    fn sharing_key((): &()) -> String {
        String::new()
    }

    fn connect(&self) -> PoolFuture<'_, EventHubConnection, ScalerError> {
        Box::pin(async move { self.open().await.map_err(|error| error.inside(self.name())) })
    }

    fn query<'a>(
        &'a self,
        connection: &'a mut EventHubConnection,
        (): &'a (),
    ) -> PoolFuture<'a, Vec<PartitionInfo>, PoolError> {
        Box::pin(async move {
            match self.partitions(connection).await {
                Err(error) => Err(PoolError::Lost(error.inside(self.name()))),
                Ok(Err(error)) => Err(PoolError::Refused(error)),
                Ok(Ok(partitions)) => Ok(partitions),
            }
        })
    }
}
