//! Connections to SQL Server, shared by the triggers of a namespace with the same server and credentials.
//!
//! Implemented here and not with a library, because it needs the login and one command; the libraries bring a second TLS stack.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sources::http::{ByteShare, UNCOUNTED_BYTES};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::dsn::{MssqlDsn, MssqlEncryption};
use super::prelogin_stream::PreloginStream;
use super::query;
use super::tokens::{self, MssqlError, TdsResponse, TdsTokenError};
use super::wire::{self, InvalidTds, LoginAs};
use crate::dial::Dialer;
use crate::off_thread::decode_elsewhere;
use crate::parameters::Secret;
use crate::pool::{self, PoolError, PoolFuture};
use crate::responses::excerpt;
use crate::stream::{BoxStream, dial, io_error, secure};
use crate::tls::TlsSettings;
use crate::web::response_budget;
use crate::{ScalerError, SourceRefusal};

/// Timeout of a query, including the connection. Counting queries may be slow.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 5 } else { 15 });
/// Maximum size of a result, in bytes.
const MAX_RESULT_BYTES: usize = 8 << 20;
/// Maximum number of servers that a login is sent on to.
const MAX_ROUTES: usize = 3;

/// A server and credentials.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct MssqlServer {
    pub(super) dsn: MssqlDsn,
    /// A token instead of user and password.
    pub(super) token: Option<Secret>,
    /// Whether the token is one of the operator, which only hosts of Azure get.
    pub(super) is_operators: bool,
    /// CA certificates that the process trusts in addition to the system's (PEM).
    pub(super) authorities: Vec<u8>,
    /// Opens its connections.
    pub(super) dialer: Dialer,
}

/// A connection.
pub(super) struct MssqlConnection {
    stream: BoxStream,
}

impl From<InvalidTds> for ScalerError {
    fn from(error: InvalidTds) -> Self {
        Self::caused_by(error.to_string(), error)
    }
}

impl From<TdsTokenError> for ScalerError {
    fn from(error: TdsTokenError) -> Self {
        Self::caused_by(error.to_string(), error)
    }
}

impl MssqlConnection {
    async fn send(&mut self, kind: u8, message: &[u8]) -> Result<(), ScalerError> {
        self.stream.write_all(&wire::packets(kind, message)).await.map_err(|error| io_error(&error))?;
        self.stream.flush().await.map_err(|error| io_error(&error))
    }

    /// The packets of a message, put together, and its share of the budget of all responses, which the caller holds until the
    /// message is decoded. After a large message the caller runs on a worker thread.
    async fn receive(&mut self) -> Result<(Vec<u8>, Option<ByteShare>), ScalerError> {
        let (mut message, mut share) = (Vec::new(), None);
        loop {
            let mut head = [0; wire::HEADER_BYTES];
            self.stream.read_exact(&mut head).await.map_err(|error| io_error(&error))?;
            let [kind, status, high, low, ..] = head;
            let length = usize::from(u16::from_be_bytes([high, low]));
            if kind != wire::TABULAR_RESULT || length < wire::HEADER_BYTES {
                return Err(InvalidTds.into());
            }
            let (begin, is_last) = (message.len(), status & wire::END_OF_MESSAGE != 0);
            // An empty packet would let a message without an end be received forever.
            if length == wire::HEADER_BYTES && !is_last {
                return Err(InvalidTds.into());
            }
            let end = begin + length - wire::HEADER_BYTES;
            if end > MAX_RESULT_BYTES {
                bail!("the answer has more than {} MiB", MAX_RESULT_BYTES >> 20);
            }
            if end > UNCOUNTED_BYTES && share.is_none() {
                share = response_budget().share(MAX_RESULT_BYTES).await;
            }
            message.resize(end, 0);
            let piece = message.get_mut(begin..).unwrap_or_default();
            self.stream.read_exact(piece).await.map_err(|error| io_error(&error))?;
            if is_last {
                decode_elsewhere(message.len()).await;
                return Ok((message, share));
            }
        }
    }

    async fn query(&mut self, query: &str) -> Result<Result<TdsResponse, ScalerError>, ScalerError> {
        self.send(wire::SQL_BATCH, &wire::batch(query)).await?;
        let (message, _share) = self.receive().await?;
        match tokens::response(&message) {
            // The whole message is received, so the connection is usable.
            Err(error @ TdsTokenError::UnsupportedColumn(_)) => Ok(Err(error.into())),
            Err(error) => Err(error.into()),
            Ok(response) if !response.done => Err(InvalidTds.into()),
            Ok(TdsResponse { error: Some(error), .. }) => Ok(Err(refused(&error))),
            Ok(response) => Ok(Ok(response)),
        }
    }
}

impl MssqlServer {
    async fn open(&self) -> Result<MssqlConnection, ScalerError> {
        let (mut host, mut port) = (self.dsn.host.clone(), self.dsn.port);
        for _ in 0..=MAX_ROUTES {
            if self.is_operators {
                query::check_workload_host(&host).map_err(ScalerError::new)?;
            }
            match self.log_in(&host, port).await? {
                Ok(connection) => return Ok(connection),
                Err(route) => (host, port) = route,
            }
        }
        Err(scaler_error!("the login is sent on to more than {MAX_ROUTES} servers"))
    }

    /// Logs in at a server; returns the connection, or the server that it redirects to.
    async fn log_in(
        &self,
        host: &str,
        port: u16,
    ) -> Result<Result<MssqlConnection, (String, u16)>, ScalerError> {
        let stream = dial(&self.dialer, host, port).await?;
        let mut connection = MssqlConnection { stream };
        let (offered, check) = match self.dsn.encryption {
            MssqlEncryption::Never => (wire::ENCRYPT_NOT_SUPPORTED, None),
            MssqlEncryption::Preferred(check) | MssqlEncryption::Required(check) => {
                (wire::ENCRYPT_ON, Some(check))
            }
        };
        connection.send(wire::PRELOGIN, &wire::prelogin(offered, self.token.is_some())).await?;
        let (message, share) = connection.receive().await?;
        let answer = wire::prelogin_answer(&message)?;
        drop((message, share));
        let refuses_tls = matches!(answer.encryption, wire::ENCRYPT_NOT_SUPPORTED | wire::ENCRYPT_OFF);
        match check {
            None if !refuses_tls => bail!("the server wants TLS: leave out encrypt=disable"),
            Some(_) if refuses_tls && matches!(self.dsn.encryption, MssqlEncryption::Required(_)) => {
                bail!("the server does not support TLS");
            }
            Some(certificate_check) if !refuses_tls => {
                let tls =
                    TlsSettings { certificate_check, ..TlsSettings::default() }.trusting(&self.authorities);
                let name = match &*self.dsn.certificate_name {
                    "" => host,
                    name => name,
                };
                connection.stream = handshake(connection.stream, name, &tls).await?;
            }
            _ => {}
        }
        let who = match &self.token {
            // Never in clear text.
            Some(_) if refuses_tls => bail!("the server does not support TLS, so it gets no token"),
            Some(token) => LoginAs::Token { token: token.reveal(), echo: answer.federated },
            None => LoginAs::User { name: &self.dsn.user, password: self.dsn.password.reveal() },
        };
        let login = wire::login(who, host, &self.dsn.database, self.dsn.read_only);
        connection.send(wire::LOGIN7, &login).await?;
        let (message, _share) = connection.receive().await?;
        match tokens::response(&message)? {
            TdsResponse { error: Some(error), .. } => Err(refused(&error)),
            TdsResponse { logged_in: false, .. } => Err(InvalidTds.into()),
            TdsResponse { route: Some((host, port)), .. } => Ok(Err((host, port))),
            _ => Ok(Ok(connection)),
        }
    }
}

/// The error that a server returned.
fn refused(error: &MssqlError) -> ScalerError {
    let refusal = match error.number {
        // Login failed, expired, disabled or locked; permission denied on a database or object.
        18450 | 18452 | 18456 | 18470 | 18486..=18488 | 229 | 230 | 262 | 297 | 300 | 916 => {
            Some(SourceRefusal::Credentials)
        }
        // Invalid object name, unknown database.
        208 | 911 => Some(SourceRefusal::UnknownName),
        _ => None,
    };
    scaler_error!("{} (error {})", excerpt(&error.message), error.number).with_refusal(refusal)
}

/// Starts TLS inside of PRELOGIN packets.
async fn handshake(stream: BoxStream, name: &str, tls: &TlsSettings) -> Result<BoxStream, ScalerError> {
    let shaking = Arc::new(AtomicBool::new(true));
    let inner = PreloginStream::new(stream, Arc::clone(&shaking));
    let stream = secure(Box::new(inner), name, tls).await?;
    shaking.store(false, Ordering::Release);
    Ok(stream)
}

impl pool::PooledServer for MssqlServer {
    type Connection = MssqlConnection;
    type Request = String;
    type Response = f64;
    const MAX_CONNECTIONS: usize = 4;
    const TIMEOUT: Duration = REQUEST_TIMEOUT;

    fn name(&self) -> String {
        format!("{}:{}", self.dsn.host, self.dsn.port)
    }

    fn sharing_key(request: &String) -> String {
        request.clone()
    }

    fn connect(&self) -> PoolFuture<'_, MssqlConnection, ScalerError> {
        Box::pin(async move { self.open().await.map_err(|error| error.inside(self.name())) })
    }

    fn query<'a>(
        &'a self,
        connection: &'a mut MssqlConnection,
        request: &'a String,
    ) -> PoolFuture<'a, f64, PoolError> {
        Box::pin(async move {
            match connection.query(request).await {
                Err(error) => Err(PoolError::Lost(error.inside(self.name()))),
                Ok(Err(error)) => Err(PoolError::Refused(error.inside(self.name()))),
                Ok(Ok(response)) => {
                    query::number(response.first).map_err(|error| PoolError::Refused(ScalerError::new(error)))
                }
            }
        })
    }
}
