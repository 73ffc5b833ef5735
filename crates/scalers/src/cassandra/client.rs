//! Connections to Cassandra, shared by the triggers of a namespace with the same node and credentials.

use std::time::Duration;

use sources::http::UNCOUNTED_BYTES;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::wire::{self, CqlField, CqlResponse, InvalidCqlFrame};
use crate::dial::Dialer;
use crate::parameters::Secret;
use crate::pool::{self, PoolError, PoolFuture};
use crate::responses::excerpt;
use crate::stream::{BoxStream, dial, io_error, secure};
use crate::tls::TlsSettings;
use crate::web::response_budget;
use crate::{ScalerError, SourceRefusal};

/// Timeout of a query, including the connection. Counting queries may be slow.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 5 } else { 15 });
/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 8 << 20;

/// A node and credentials.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct CassandraNode {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) password: Secret,
    /// Version of the protocol: 3 or 4.
    pub(super) version: u8,
    /// TLS settings; none for clear text.
    pub(super) tls: Option<TlsSettings>,
    /// Opens its connections.
    pub(super) dialer: Dialer,
}

/// A query and the number of its consistency level.
pub(super) struct CqlQuery {
    pub(super) text: String,
    pub(super) consistency: u16,
}

/// A connection.
pub(super) struct CassandraConnection {
    stream: BoxStream,
    version: u8,
}

impl From<InvalidCqlFrame> for ScalerError {
    fn from(error: InvalidCqlFrame) -> Self {
        Self::caused_by(error.to_string(), error)
    }
}

impl CassandraConnection {
    async fn call(&mut self, frame: &[u8]) -> Result<CqlResponse, ScalerError> {
        self.stream.write_all(frame).await.map_err(|error| io_error(&error))?;
        self.stream.flush().await.map_err(|error| io_error(&error))?;
        let mut header = [0; wire::HEADER_BYTES];
        self.stream.read_exact(&mut header).await.map_err(|error| io_error(&error))?;
        let length = wire::content_bytes(header, self.version)?;
        if length > MAX_RESPONSE_BYTES {
            bail!("the answer has more than {} MiB", MAX_RESPONSE_BYTES >> 20);
        }
        let _share = if length > UNCOUNTED_BYTES { response_budget().share(length).await } else { None };
        let mut content = vec![0; length];
        self.stream.read_exact(&mut content).await.map_err(|error| io_error(&error))?;
        Ok(wire::response(header, &content)?)
    }
}

impl CassandraNode {
    async fn open(&self) -> Result<CassandraConnection, ScalerError> {
        let mut stream = dial(&self.dialer, &self.host, self.port).await?;
        if let Some(tls) = &self.tls {
            stream = secure(stream, &self.host, tls).await?;
        }
        let mut connection = CassandraConnection { stream, version: self.version };
        match connection.call(&wire::startup(self.version)).await? {
            CqlResponse::Ready => return Ok(connection),
            CqlResponse::Authenticate(class) if !class.ends_with("Authenticator") => {
                bail!("the server wants authentication by {}, which is not supported here", excerpt(&class));
            }
            CqlResponse::Authenticate(_) => {}
            CqlResponse::Error { code, message } => return Err(refused(code, &message)),
            _ => return Err(InvalidCqlFrame.into()),
        }
        match connection.call(&wire::login(self.version, &self.user, self.password.reveal())).await? {
            CqlResponse::LoggedIn => Ok(connection),
            CqlResponse::Challenge => Err(scaler_error!("the server wants more than a user and a password")),
            CqlResponse::Error { code, message } => Err(refused(code, &message)),
            _ => Err(InvalidCqlFrame.into()),
        }
    }
}

/// The error that a server returned.
fn refused(code: u32, message: &str) -> ScalerError {
    // Bad credentials, unauthorized.
    let refusal = matches!(code, 0x0100 | 0x2100).then_some(SourceRefusal::Credentials);
    scaler_error!("{} (error {code:#06x})", excerpt(message)).with_refusal(refusal)
}

/// The number in the field. No row is 0, as in KEDA.
fn number(field: &CqlField) -> Result<f64, ScalerError> {
    match field {
        CqlField::NoRow => Ok(0.0),
        CqlField::Number(number) => Ok(*number as f64),
        // Errors and not 0, because 0 would scale the target in.
        CqlField::Null => Err(scaler_error!("the first field of the first row is null")),
        CqlField::Other => Err(scaler_error!("the first field of the first row is no whole number")),
    }
}

impl pool::PooledServer for CassandraNode {
    type Connection = CassandraConnection;
    type Request = CqlQuery;
    type Response = f64;
    const MAX_CONNECTIONS: usize = 4;
    const TIMEOUT: Duration = REQUEST_TIMEOUT;

    fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    fn sharing_key(request: &CqlQuery) -> String {
        format!("{} {}", request.consistency, request.text)
    }

    fn connect(&self) -> PoolFuture<'_, CassandraConnection, ScalerError> {
        Box::pin(async move { self.open().await.map_err(|error| error.inside(self.name())) })
    }

    fn query<'a>(
        &'a self,
        connection: &'a mut CassandraConnection,
        request: &'a CqlQuery,
    ) -> PoolFuture<'a, f64, PoolError> {
        Box::pin(async move {
            let frame = wire::query(self.version, &request.text, request.consistency);
            match connection.call(&frame).await {
                Err(error) => Err(PoolError::Lost(error.inside(self.name()))),
                Ok(CqlResponse::Result(field)) => number(&field).map_err(PoolError::Refused),
                Ok(CqlResponse::Error { code, message }) => {
                    Err(PoolError::Refused(refused(code, &message).inside(self.name())))
                }
                Ok(_) => Err(PoolError::Lost(ScalerError::from(InvalidCqlFrame).inside(self.name()))),
            }
        })
    }
}
