//! TCP and TLS connections of clients with other protocols than HTTP (Kafka, MySQL, MongoDB).

use std::time::Duration;

use rustls::pki_types::ServerName;
use sources::http::HttpErrorCause;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::ScalerError;
use crate::dial::Dialer;
use crate::tls::TlsSettings;

/// Timeout of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes to and from a server.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A connection, with or without TLS.
pub(crate) type BoxStream = Box<dyn ByteStream>;

/// Connects to a server. All clients of this module connect here.
pub(crate) async fn dial(dialer: &Dialer, host: &str, port: u16) -> Result<BoxStream, ScalerError> {
    Ok(Box::new(dialer.connect(host, port).await?))
}

/// Starts TLS on a connection to this host.
pub(crate) async fn secure(
    stream: BoxStream,
    host: &str,
    tls: &TlsSettings,
) -> Result<BoxStream, ScalerError> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| scaler_error!("{host} cannot be the name of a server"))?;
    let connecting = TlsConnector::from(tls.config(&[])?).connect(name, stream);
    match timeout(HANDSHAKE_TIMEOUT, connecting).await {
        Ok(stream) => Ok(Box::new(stream.map_err(|error| io_error(&error))?)),
        Err(_) => Err(ScalerError::caused_by(
            format!("no TLS handshake within {HANDSHAKE_TIMEOUT:?}"),
            HttpErrorCause::TimedOut(HANDSHAKE_TIMEOUT),
        )),
    }
}

/// Describes a failure of a connection.
pub(crate) fn io_error(error: &std::io::Error) -> ScalerError {
    if error.kind() == std::io::ErrorKind::UnexpectedEof {
        return scaler_error!("the server closed the connection");
    }
    let cause = HttpErrorCause::classify(error);
    ScalerError::caused_by(cause.to_string(), cause)
}
