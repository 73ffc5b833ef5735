//! gRPC channels, shared by all triggers with the same server and TLS settings.
//!
//! TCP keepalive detects dead streams. HTTP/2 pings are no option, because servers in Go close connections that ping more often
//! than every 5 minutes.

mod address;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use http::uri::PathAndQuery;
use locks::MutexExt as _;
use rustls::crypto::aws_lc_rs;
use sources::http::{HttpErrorCause, ProxyRules};
use tokio::time::{Instant, timeout};
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::{self, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::dial::{Dialer, UriConnector};
use crate::parameters::Secret;
use crate::tls::TlsSettings;
use crate::urls::shown;
use crate::{ScalerError, SourceRefusal};

/// Timeout of a call, including the connection. KEDA has none, so that a server that hangs blocks its object.
pub(crate) const CALL_TIMEOUT: Duration =
    if cfg!(test) { Duration::from_secs(4) } else { Duration::from_secs(10) };
/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after a failed connection attempt, because many triggers may use the same server.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);
/// Maximum size of a response of [`Channel::unary`], in bytes. Fields that are not known here are skipped and take no memory.
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// Maximum size of the headers and trailers of a response, in bytes.
const MAX_HEADER_BYTES: u32 = 16 << 10;

/// A server, its credentials and TLS settings.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Destination {
    /// What the server is, for errors.
    pub(crate) what: &'static str,
    /// The address as written in the trigger.
    pub(crate) address: String,
    /// TLS settings; none for plain text.
    pub(crate) tls: Option<TlsSettings>,
    /// Name in the server's certificate; that of the host if it is empty.
    pub(crate) server_name: String,
    /// Opens its connections.
    pub(crate) dialer: Dialer,
    /// Which servers are reached through which proxy.
    pub(crate) proxies: ProxyRules,
}

/// The connection to a server, and the result of the last attempt.
pub(crate) struct Channel {
    destination: Destination,
    /// Held while connecting, so that only one caller connects.
    state: tokio::sync::Mutex<ChannelState>,
}

#[derive(Default)]
enum ChannelState {
    #[default]
    New,
    Connected(transport::Channel),
    Failed(ScalerError, Instant),
}

/// All channels that are in use.
#[derive(Default)]
pub(crate) struct Channels(Mutex<HashMap<Destination, Weak<Channel>>>);

/// Why a call failed.
pub(crate) enum CallError {
    /// The server returned an error.
    Refused(ScalerError),
    /// The connection was lost.
    Lost(ScalerError),
}

impl CallError {
    pub(crate) fn into_error(self) -> ScalerError {
        match self {
            Self::Refused(error) | Self::Lost(error) => error,
        }
    }
}

impl Channels {
    /// The channel of a destination; it connects on first use.
    pub(crate) fn of(&self, destination: Destination) -> Arc<Channel> {
        let mut channels = self.0.locked();
        if let Some(channel) = channels.get(&destination).and_then(Weak::upgrade) {
            return channel;
        }
        channels.retain(|_, channel| channel.strong_count() > 0);
        let state = tokio::sync::Mutex::default();
        let channel = Arc::new(Channel { destination: destination.clone(), state });
        channels.insert(destination, Arc::downgrade(&channel));
        channel
    }
}

impl Channel {
    /// The address as written in the trigger, without credentials, for errors.
    pub(crate) fn address(&self) -> String {
        shown(&self.destination.address)
    }

    /// Sends a message of a method, e.g. `/package.Service/Method`, with these headers, and decodes the response.
    pub(crate) async fn unary<Q, T>(
        &self,
        path: &'static str,
        message: &Q,
        headers: &[(&'static str, Secret)],
    ) -> Result<T, ScalerError>
    where
        Q: prost::Message + Clone + 'static,
        T: prost::Message + Default + 'static,
    {
        let name = path.rsplit('/').next().unwrap_or(path);
        let mut sent = Vec::new();
        for (name, value) in headers {
            let mut value = AsciiMetadataValue::try_from(value.reveal()).map_err(|_| {
                scaler_error!("the value of header {name} has characters that headers cannot have")
            })?;
            // Not shown in debug output, and not kept in the compression tables of HTTP/2.
            value.set_sensitive(true);
            sent.push((*name, value));
        }
        self.call(name, message, |channel, mut request| {
            for (name, value) in &sent {
                request.metadata_mut().insert(*name, value.clone());
            }
            Box::pin(async move {
                let mut client =
                    tonic::client::Grpc::new(channel).max_decoding_message_size(MAX_RESPONSE_BYTES);
                client.ready().await.map_err(|error| Status::from_error(error.into()))?;
                client.unary(request, PathAndQuery::from_static(path), ProstCodec::<Q, T>::default()).await
            })
        })
        .await
    }

    /// Sends a request, and once more if a reused connection turns out to be dead.
    pub(crate) async fn call<'a, Q: Clone, T>(
        &self,
        name: &str,
        message: &Q,
        send: impl Fn(transport::Channel, Request<Q>) -> BoxFuture<'a, Result<tonic::Response<T>, Status>>,
    ) -> Result<T, ScalerError> {
        let begun = Instant::now();
        let attempts = async {
            loop {
                let (channel, used) = self.connected().await?;
                let left = CALL_TIMEOUT.saturating_sub(begun.elapsed());
                let mut request = Request::new(message.clone());
                // Tells the server the deadline; the timeout below enforces it.
                request.set_timeout(left + CALL_TIMEOUT / 10);
                match send(channel, request).await.map_err(|status| self.fault(name, &status)) {
                    Ok(answer) => return Ok(answer.into_inner()),
                    Err(CallError::Refused(error)) => return Err(error),
                    Err(CallError::Lost(error)) => {
                        self.forget().await;
                        if !used {
                            return Err(error);
                        }
                    }
                }
            }
        };
        if let Ok(answer) = timeout(CALL_TIMEOUT, attempts).await {
            return answer;
        }
        // The server may be gone, so the next call reconnects. If the lock is taken, a caller is connecting already.
        if let Ok(mut state) = self.state.try_lock() {
            *state = ChannelState::New;
        }
        Err(self.late(name))
    }

    /// A connection, and whether it is reused.
    pub(crate) async fn connected(&self) -> Result<(transport::Channel, bool), ScalerError> {
        let mut state = self.state.lock().await;
        match &*state {
            ChannelState::Connected(channel) => return Ok((channel.clone(), true)),
            ChannelState::Failed(error, at) if at.elapsed() < RECONNECT_PAUSE => return Err(error.clone()),
            _ => {}
        }
        let made = match (self.destination.endpoint(), self.destination.connector()) {
            (Ok(endpoint), Ok(connector)) => {
                endpoint.connect_with_connector(connector).await.map_err(transport_failure)
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        match made {
            Ok(channel) => {
                *state = ChannelState::Connected(channel.clone());
                Ok((channel, false))
            }
            Err(error) => {
                let error = error.inside(format!("{} {}", self.destination.what, self.address()));
                *state = ChannelState::Failed(error.clone(), Instant::now());
                Err(error)
            }
        }
    }

    pub(crate) async fn forget(&self) {
        *self.state.lock().await = ChannelState::New;
    }

    pub(crate) fn late(&self, name: &str) -> ScalerError {
        let (what, address) = (self.destination.what, self.address());
        ScalerError::caused_by(
            format!("{what} {address}: no answer to {name} within {CALL_TIMEOUT:?}"),
            HttpErrorCause::TimedOut(CALL_TIMEOUT),
        )
    }

    pub(crate) fn fault(&self, name: &str, status: &Status) -> CallError {
        let (what, address) = (self.destination.what, self.address());
        // Errors of the transport have a source, statuses returned by the server have none.
        if let Some(source) = std::error::Error::source(status) {
            let cause = HttpErrorCause::classify(source);
            let text = format!("{what} {address}: {name} failed: {cause}");
            return CallError::Lost(ScalerError::caused_by(text, cause));
        }
        let shorten = address::shorten(status.message());
        let text = match status.code() {
            Code::Unimplemented => format!("{what} {address} does not know {name} ({shorten})"),
            code if shorten.is_empty() => format!("{what} {address} refused {name}: {code:?}"),
            code => format!("{what} {address} refused {name}: {shorten} ({code:?})"),
        };
        CallError::Refused(ScalerError::new(text).with_refusal(refusal(status.code())))
    }
}

/// What a status code means that a server returned.
fn refusal(code: Code) -> Option<SourceRefusal> {
    match code {
        Code::Unauthenticated | Code::PermissionDenied => Some(SourceRefusal::Credentials),
        Code::NotFound => Some(SourceRefusal::UnknownName),
        _ => None,
    }
}

/// The error of a connection attempt, named by its cause.
fn transport_failure(error: transport::Error) -> ScalerError {
    ScalerError::caused_by(HttpErrorCause::classify(&error).to_string(), error)
}

impl Destination {
    fn connector(&self) -> Result<UriConnector, ScalerError> {
        let host = address::parse_address(&self.address).map_err(ScalerError::new)?;
        let proxy = self.proxies.tunnel_for(&host);
        let proxy = proxy.map_err(|cause| ScalerError::caused_by(cause.to_string(), cause))?;
        Ok(UriConnector::tunneled(self.dialer.clone(), proxy))
    }

    fn endpoint(&self) -> Result<Endpoint, ScalerError> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let host = address::parse_address(&self.address).map_err(ScalerError::new)?;
        let endpoint = Endpoint::from_shared(format!("{scheme}://{host}"))
            .map_err(transport_failure)?
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_max_header_list_size(MAX_HEADER_BYTES);
        let Some(tls) = &self.tls else { return Ok(endpoint) };
        let mut config = ClientTlsConfig::new();
        if !self.server_name.is_empty() {
            config = config.domain_name(&*self.server_name);
        }
        if !tls.certificate.is_empty() || !tls.key.reveal().is_empty() {
            // Validates the certificate first, for a clearer error than tonic's.
            tls.config(&[])?;
            config = config.identity(Identity::from_pem(&tls.certificate, tls.key.reveal()));
        }
        let verifier = tls.verifier(&Arc::new(aws_lc_rs::default_provider()))?;
        endpoint.tls_config_with_verifier(config, verifier).map_err(transport_failure)
    }
}
