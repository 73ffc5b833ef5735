//! gRPC channels, shared by all triggers with the same server and TLS settings.
//!
//! TCP keepalive detects dead streams. HTTP/2 pings are no option, because servers in Go close connections that ping more often
//! than every 5 minutes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use external_scaler::ScaledObjectRef;
use external_scaler::protocol::external_scaler_client::ExternalScalerClient;
use external_scaler::protocol::{GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse};
use futures::future::BoxFuture;
use rustls::crypto::aws_lc_rs;
use sources::http::HttpErrorCause;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tonic::transport::{self, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};

use super::calls::CallCounter;
use super::query;
use crate::ScalerError;
use crate::dial::{Dialer, UriConnector};
use crate::tls::TlsSettings;
use crate::urls::shown;

/// Timeout of a call, including the connection. KEDA has none, so that a server that hangs blocks its object.
pub(super) const CALL_TIMEOUT: Duration =
    if cfg!(test) { Duration::from_secs(2) } else { Duration::from_secs(10) };
/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after a failed connection attempt, because many triggers may use the same server.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);
/// Maximum size of a message, in bytes. Messages of external scalers have some hundred bytes.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// Maximum size of the headers and trailers of a response, in bytes.
const MAX_HEADER_BYTES: u32 = 16 << 10;

/// A server, its credentials and TLS settings.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Destination {
    /// The address as written in the trigger.
    pub(super) address: String,
    /// TLS settings; none for plain text.
    pub(super) tls: Option<TlsSettings>,
    /// Opens its connections.
    pub(super) dialer: Dialer,
}

/// The connection to a server, and the result of the last attempt.
pub(super) struct Channel {
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
pub(super) struct Channels(Mutex<HashMap<Destination, Weak<Channel>>>);

/// Sends one kind of request.
type Ask<Q, T> = fn(
    ExternalScalerClient<transport::Channel>,
    Request<Q>,
) -> BoxFuture<'static, Result<tonic::Response<T>, Status>>;

/// Why a call failed.
pub(super) enum CallError {
    /// The server returned an error.
    Refused(ScalerError),
    /// The connection was lost.
    Lost(ScalerError),
}

impl CallError {
    pub(super) fn into_error(self) -> ScalerError {
        match self {
            Self::Refused(error) | Self::Lost(error) => error,
        }
    }
}

impl Channels {
    /// The channel of a destination; it connects on first use.
    pub(super) fn of(&self, destination: Destination) -> Arc<Channel> {
        let mut channels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
    pub(super) fn address(&self) -> String {
        shown(&self.destination.address)
    }

    pub(super) async fn metric_spec(
        &self,
        object: &ScaledObjectRef,
        counter: &CallCounter,
    ) -> Result<GetMetricSpecResponse, ScalerError> {
        self.call("GetMetricSpec", object, counter, |mut client, request| {
            Box::pin(async move { client.get_metric_spec(request).await })
        })
        .await
    }

    pub(super) async fn metrics(
        &self,
        asked: &GetMetricsRequest,
        counter: &CallCounter,
    ) -> Result<GetMetricsResponse, ScalerError> {
        self.call("GetMetrics", asked, counter, |mut client, request| {
            Box::pin(async move { client.get_metrics(request).await })
        })
        .await
    }

    pub(super) async fn is_active(
        &self,
        object: &ScaledObjectRef,
        counter: &CallCounter,
    ) -> Result<bool, ScalerError> {
        let answer = self
            .call("IsActive", object, counter, |mut client, request| {
                Box::pin(async move { client.is_active(request).await })
            })
            .await?;
        Ok(answer.result)
    }

    /// Forwards activity from the server until the stream ends; an error if it does not end cleanly.
    pub(super) async fn listen(
        &self,
        object: &ScaledObjectRef,
        counter: &CallCounter,
        tell: &mpsc::Sender<bool>,
    ) -> Result<(), ScalerError> {
        let name = "StreamIsActive";
        let (channel, _) = timeout(CALL_TIMEOUT, self.connected()).await.map_err(|_| self.late(name))??;
        let mut client = client(channel);
        let call = counter.stream(name);
        // Servers respond with the first activity, which may take forever; TCP keepalive detects dead servers meanwhile.
        let answer = tokio::select! {
            answer = client.stream_is_active(object.clone()) => answer,
            () = tell.closed() => return Ok(()),
        };
        let mut stream = match answer {
            Ok(answer) => answer.into_inner(),
            Err(status) => {
                call.end(status.code());
                let fault = self.fault(name, &status);
                if matches!(fault, CallError::Lost(_)) {
                    self.forget().await;
                }
                return Err(fault.into_error());
            }
        };
        loop {
            tokio::select! {
                message = stream.message() => match message {
                    Ok(Some(message)) => {
                        call.received();
                        if tell.send(message.result).await.is_err() {
                            return Ok(());
                        }
                    }
                    Ok(None) => {
                        call.end(Code::Ok);
                        return Ok(());
                    }
                    Err(status) => {
                        call.end(status.code());
                        return Err(self.fault(name, &status).into_error());
                    }
                },
                () = tell.closed() => return Ok(()),
            }
        }
    }

    /// Sends a request, and once more if a reused connection turns out to be dead.
    async fn call<Q: Clone, T>(
        &self,
        name: &'static str,
        message: &Q,
        counter: &CallCounter,
        ask: Ask<Q, T>,
    ) -> Result<T, ScalerError> {
        let begun = Instant::now();
        let attempts = async {
            loop {
                let (channel, used) = self.connected().await?;
                let left = CALL_TIMEOUT.saturating_sub(begun.elapsed());
                let mut request = Request::new(message.clone());
                // Tells the server the deadline; the timeout below enforces it.
                request.set_timeout(left + CALL_TIMEOUT / 10);
                let counted = counter.unary(name);
                let answer = ask(client(channel), request).await;
                if answer.is_ok() {
                    counted.received();
                }
                counted.end(answer.as_ref().map_or_else(Status::code, |_| Code::Ok));
                match answer.map_err(|status| self.fault(name, &status)) {
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
    pub(super) async fn connected(&self) -> Result<(transport::Channel, bool), ScalerError> {
        let mut state = self.state.lock().await;
        match &*state {
            ChannelState::Connected(channel) => return Ok((channel.clone(), true)),
            ChannelState::Failed(error, at) if at.elapsed() < RECONNECT_PAUSE => return Err(error.clone()),
            _ => {}
        }
        let made = match self.destination.endpoint() {
            Ok(endpoint) => {
                let connector = UriConnector::new(self.destination.dialer.clone());
                endpoint.connect_with_connector(connector).await.map_err(transport_failure)
            }
            Err(error) => Err(error),
        };
        match made {
            Ok(channel) => {
                *state = ChannelState::Connected(channel.clone());
                Ok((channel, false))
            }
            Err(error) => {
                let error = error.inside(format!("external scaler {}", self.address()));
                *state = ChannelState::Failed(error.clone(), Instant::now());
                Err(error)
            }
        }
    }

    pub(super) async fn forget(&self) {
        *self.state.lock().await = ChannelState::New;
    }

    pub(super) fn late(&self, name: &str) -> ScalerError {
        scaler_error!("external scaler {}: no answer to {name} within {CALL_TIMEOUT:?}", self.address())
    }

    pub(super) fn fault(&self, name: &str, status: &Status) -> CallError {
        let address = self.address();
        // Errors of the transport have a source, statuses returned by the server have none.
        if let Some(source) = std::error::Error::source(status) {
            let cause = HttpErrorCause::classify(source);
            return CallError::Lost(scaler_error!("external scaler {address}: {name} failed: {cause}"));
        }
        let shorten = query::shorten(status.message());
        let text = match status.code() {
            Code::Unimplemented => format!("external scaler {address} does not know {name} ({shorten})"),
            code if shorten.is_empty() => format!("external scaler {address} refused {name}: {code:?}"),
            code => format!("external scaler {address} refused {name}: {shorten} ({code:?})"),
        };
        CallError::Refused(ScalerError::new(text))
    }
}

/// A client that refuses large messages by their announced length. Decoded values take much more memory than their bytes.
pub(super) fn client(channel: transport::Channel) -> ExternalScalerClient<transport::Channel> {
    ExternalScalerClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES)
}

/// The error of a connection attempt, named by its cause.
fn transport_failure(error: transport::Error) -> ScalerError {
    ScalerError::caused_by(HttpErrorCause::classify(&error).to_string(), error)
}

impl Destination {
    fn endpoint(&self) -> Result<Endpoint, ScalerError> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let host = query::parse_address(&self.address).map_err(ScalerError::new)?;
        let endpoint = Endpoint::from_shared(format!("{scheme}://{host}"))
            .map_err(transport_failure)?
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_max_header_list_size(MAX_HEADER_BYTES);
        let Some(tls) = &self.tls else { return Ok(endpoint) };
        let mut config = ClientTlsConfig::new();
        if !tls.certificate.is_empty() || !tls.key.reveal().is_empty() {
            // Validates the certificate first, for a clearer error than tonic's.
            tls.config(&[])?;
            config = config.identity(Identity::from_pem(&tls.certificate, tls.key.reveal()));
        }
        let verifier = tls.verifier(&Arc::new(aws_lc_rs::default_provider()))?;
        endpoint.tls_config_with_verifier(config, verifier).map_err(transport_failure)
    }
}
