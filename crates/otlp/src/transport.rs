//! Sends messages to a collector.

use std::path::{Path, PathBuf};

use http::header::CONTENT_TYPE;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, StatusCode};
use prost::Message;
use sources::http::{
    Endpoint, HttpClient, HttpError, HttpErrorCause, HttpRequest, Secret, system_bundle, without_user,
};
use tokio::time::timeout;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::settings::{CollectorSettings, Protocol};
use crate::wire::{ExportResponse, PartialSuccess};

/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 << 10;
/// Characters of a collector's own message that are logged.
const MAX_MESSAGE_CHARS: usize = 200;

/// Why telemetry was not exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The request failed.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The collector answered with this status.
    #[error("the collector answered {0}")]
    Refused(StatusCode),
    /// The call failed on the way.
    #[error("{0}")]
    Connection(HttpErrorCause),
    /// The collector answered the call with an error.
    #[error("the collector answered {code:?}: {message}")]
    Call {
        /// The code.
        code: Code,
        /// Its message, shortened.
        message: String,
    },
    /// There was no answer in time.
    #[error("no answer within {0:?}")]
    TimedOut(std::time::Duration),
    /// The text of `/metrics` could not be rendered.
    #[error("metrics could not be rendered")]
    Render(#[from] tokio::task::JoinError),
    /// The collector took a part only.
    #[error("the collector refused {rejected} of what was sent: {message}")]
    Partial {
        /// How many data points or spans.
        rejected: i64,
        /// Why, shortened.
        message: String,
    },
}

/// The settings of a collector cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// URL, header or certificate.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The URL or a certificate, for gRPC.
    #[error("{url}: {cause}")]
    Grpc {
        /// The URL, without user and password.
        url: String,
        /// The cause.
        cause: HttpErrorCause,
    },
    /// A file cannot be read.
    #[error("failed to read {}: {source}", .path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A header cannot be sent. Its value is not shown.
    #[error("header {0:?} cannot be sent: name and value must be ASCII")]
    Header(String),
}

/// A collector. Cheap to clone; clones share their connection.
#[derive(Clone, Debug)]
pub struct Collector {
    settings: CollectorSettings,
    connection: Connection,
}

/// A header of gRPC calls.
type MetadataPair = (AsciiMetadataKey, AsciiMetadataValue);

#[derive(Clone, Debug)]
enum Connection {
    Http(HttpClient),
    Grpc { channel: Channel, headers: Vec<MetadataPair> },
}

impl Collector {
    /// A collector that is connected on first use. Call it in a tokio runtime.
    pub fn new(settings: CollectorSettings) -> Result<Self, CollectorError> {
        let connection = match settings.protocol {
            Protocol::HttpProtobuf => Connection::Http(http_client(&settings)?),
            Protocol::Grpc => {
                Connection::Grpc { channel: grpc_channel(&settings)?, headers: metadata(&settings)? }
            }
        };
        Ok(Self { settings, connection })
    }

    /// Sends a message and reads the collector's response.
    pub(crate) async fn send<M: Message + 'static>(&self, message: M) -> Result<(), ExportError> {
        let limit = self.settings.timeout;
        let response = match &self.connection {
            Connection::Http(client) => {
                let content_type = HeaderValue::from_static("application/x-protobuf");
                let request = HttpRequest::new(Method::POST, "")
                    .header(CONTENT_TYPE, content_type)
                    .body(message.encode_to_vec())
                    .timeout(limit)
                    .max_bytes(MAX_RESPONSE_BYTES);
                let response = client.send(request).await?;
                if !response.status.is_success() {
                    return Err(ExportError::Refused(response.status));
                }
                // Some collectors answer a success with a text.
                ExportResponse::decode(response.body).unwrap_or_default()
            }
            Connection::Grpc { channel, headers } => {
                let mut request = Request::new(message);
                for (name, value) in headers {
                    request.metadata_mut().insert(name.clone(), value.clone());
                }
                let path = PathAndQuery::from_static(self.settings.signal.grpc_path());
                let call = async {
                    let mut client = tonic::client::Grpc::new(channel.clone())
                        .max_decoding_message_size(MAX_RESPONSE_BYTES);
                    client.ready().await.map_err(|error| Status::from_error(error.into()))?;
                    client.unary(request, path, ProstCodec::<M, ExportResponse>::default()).await
                };
                let answer = timeout(limit, call).await.map_err(|_| ExportError::TimedOut(limit))?;
                answer.map_err(|status| call_error(&status))?.into_inner()
            }
        };
        match response.partial_success {
            Some(PartialSuccess { rejected, error_message }) if rejected > 0 => {
                Err(ExportError::Partial { rejected, message: shortened(&error_message) })
            }
            _ => Ok(()),
        }
    }
}

fn call_error(status: &Status) -> ExportError {
    // Errors of the transport have a source, statuses that the collector returned have none.
    match std::error::Error::source(status) {
        Some(source) => ExportError::Connection(HttpErrorCause::classify(source)),
        None => ExportError::Call { code: status.code(), message: shortened(status.message()) },
    }
}

fn shortened(message: &str) -> String {
    message.chars().take(MAX_MESSAGE_CHARS).collect()
}

fn http_client(settings: &CollectorSettings) -> Result<HttpClient, HttpError> {
    let headers = settings.headers.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned()));
    let (certificate_file, key_file) = settings.client_certificate.clone().unzip();
    HttpClient::new(Endpoint {
        ca_file: settings.ca_file.clone(),
        certificate_file,
        key_file,
        headers: headers.collect(),
        ..Endpoint::at(settings.url.clone())
    })
}

fn grpc_channel(settings: &CollectorSettings) -> Result<Channel, CollectorError> {
    let fail = |error: tonic::transport::Error| CollectorError::Grpc {
        url: without_user(&settings.url),
        cause: HttpErrorCause::classify(&error),
    };
    let endpoint = tonic::transport::Endpoint::from_shared(settings.url.clone())
        .map_err(fail)?
        .connect_timeout(settings.timeout);
    if settings.url.starts_with("http://") {
        return Ok(endpoint.connect_lazy());
    }
    let mut tls = ClientTlsConfig::new();
    let authorities = match &settings.ca_file {
        Some(path) => Some(read(path)?),
        None => system_bundle(),
    };
    if let Some(pem) = authorities {
        tls = tls.ca_certificate(Certificate::from_pem(pem));
    }
    if let Some((certificate, key)) = &settings.client_certificate {
        tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    Ok(endpoint.tls_config(tls).map_err(fail)?.connect_lazy())
}

fn read(path: &Path) -> Result<Vec<u8>, CollectorError> {
    std::fs::read(path).map_err(|source| CollectorError::File { path: path.to_owned(), source })
}

fn metadata(settings: &CollectorSettings) -> Result<Vec<MetadataPair>, CollectorError> {
    let header = |(name, value): &(String, Secret)| -> Result<MetadataPair, CollectorError> {
        let invalid = || CollectorError::Header(name.clone());
        let key = AsciiMetadataKey::from_bytes(name.to_lowercase().as_bytes()).map_err(|_| invalid())?;
        let mut value = AsciiMetadataValue::try_from(value.reveal()).map_err(|_| invalid())?;
        // Not shown in debug output, and not kept in the compression tables of HTTP/2.
        value.set_sensitive(true);
        Ok((key, value))
    };
    settings.headers.iter().map(header).collect()
}
