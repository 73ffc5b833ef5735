//! Serves a scaler.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};
use tonic::{Request, Response, Status};

use crate::protocol::external_scaler_server::{ExternalScaler as Protocol, ExternalScalerServer};
use crate::protocol::{
    GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse, IsActiveResponse, ScaledObjectRef,
};
use crate::scaler::ExternalScaler;

/// Keep-alive interval; dead connections are detected after twice this time. A streaming client may be silent for hours.
const KEEPALIVE_INTERVAL: Duration = Duration::from_mins(1);

/// Why a scaler cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be bound.
    #[error("failed to listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// Certificates are invalid, or connections cannot be accepted any more.
    #[error("failed to serve the scaler: {}", innermost(.0))]
    Serve(#[from] tonic::transport::Error),
}

/// The innermost cause: the transport's own message is only "transport error".
fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Serves a scaler in plain text until the process ends. Inside a cluster, restrict access by network policies.
pub async fn serve(address: SocketAddr, scaler: impl ExternalScaler) -> Result<(), ServeError> {
    Server::new(scaler).serve(address).await
}

/// A server for a scaler.
pub struct Server<S> {
    scaler: Arc<S>,
    tls: Option<ServerTlsConfig>,
}

impl<S: ExternalScaler> Server<S> {
    /// In plain text.
    pub fn new(scaler: S) -> Self {
        Self { scaler: Arc::new(scaler), tls: None }
    }

    /// With TLS: certificate chain and key (PEM). The trigger then has `enableTLS: "true"`.
    #[must_use]
    pub fn tls(mut self, certificate: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        let tls = self.tls.unwrap_or_default();
        self.tls = Some(tls.identity(Identity::from_pem(certificate, key)));
        self
    }

    /// With TLS, and only for clients whose certificate this CA (PEM) has signed.
    #[must_use]
    pub fn client_authority(mut self, authority: impl AsRef<[u8]>) -> Self {
        let tls = self.tls.unwrap_or_default();
        self.tls = Some(tls.client_ca_root(Certificate::from_pem(authority)));
        self
    }

    /// Serves on this address until the process ends.
    pub async fn serve(self, address: SocketAddr) -> Result<(), ServeError> {
        let listener =
            TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })?;
        self.serve_until(listener, std::future::pending()).await
    }

    /// Serves on this listener until the future ends; running requests are completed.
    pub async fn serve_until(
        self,
        listener: TcpListener,
        end: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let mut server = tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
            .http2_keepalive_timeout(Some(KEEPALIVE_INTERVAL));
        if let Some(tls) = self.tls {
            server = server.tls_config(tls)?;
        }
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let service = ExternalScalerServer::new(ScalerService(self.scaler));
        server.serve_with_incoming_shutdown(service, incoming, end).await.map_err(ServeError::Serve)
    }
}

/// Adapts a scaler to the protocol.
struct ScalerService<S>(Arc<S>);

#[tonic::async_trait]
impl<S: ExternalScaler> Protocol for ScalerService<S> {
    async fn is_active(
        &self,
        object: Request<ScaledObjectRef>,
    ) -> Result<Response<IsActiveResponse>, Status> {
        let result = self.0.is_active(object.get_ref()).await?;
        Ok(Response::new(IsActiveResponse { result }))
    }

    type StreamIsActiveStream = Pin<Box<dyn Stream<Item = Result<IsActiveResponse, Status>> + Send>>;

    async fn stream_is_active(
        &self,
        object: Request<ScaledObjectRef>,
    ) -> Result<Response<Self::StreamIsActiveStream>, Status> {
        let activity = self.0.activity(object.get_ref()).await?;
        let answers = activity.map(|active| active.map(|result| IsActiveResponse { result }));
        Ok(Response::new(Box::pin(answers)))
    }

    async fn get_metric_spec(
        &self,
        object: Request<ScaledObjectRef>,
    ) -> Result<Response<GetMetricSpecResponse>, Status> {
        let metric_specs = self.0.metric_specs(object.get_ref()).await?;
        Ok(Response::new(GetMetricSpecResponse { metric_specs }))
    }

    async fn get_metrics(
        &self,
        request: Request<GetMetricsRequest>,
    ) -> Result<Response<GetMetricsResponse>, Status> {
        let GetMetricsRequest { scaled_object_ref, metric_name } = request.into_inner();
        let object = scaled_object_ref.unwrap_or_default();
        let metric_values = self.0.metrics(&object, &metric_name).await?;
        Ok(Response::new(GetMetricsResponse { metric_values }))
    }

    type StreamMetricSpecStream = Pin<Box<dyn Stream<Item = Result<GetMetricSpecResponse, Status>> + Send>>;

    async fn stream_metric_spec(
        &self,
        object: Request<ScaledObjectRef>,
    ) -> Result<Response<Self::StreamMetricSpecStream>, Status> {
        let changes = self.0.metric_spec_changes(object.get_ref()).await?;
        let answers = changes.map(|specs| specs.map(|metric_specs| GetMetricSpecResponse { metric_specs }));
        Ok(Response::new(Box::pin(answers)))
    }
}
