//! Connections to MySQL and MariaDB, shared by the triggers of a namespace with the same server and credentials.
//!
//! Implemented here and not with a library, because it needs the login and one command; the libraries bring a second TLS stack.

use std::time::Duration;

use sources::http::{ByteShare, UNCOUNTED_BYTES};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::dsn::{MysqlDsn, TlsMode};
use super::query::{self, FirstField};
use super::wire::{self, Greeting, InvalidPacket, Reply, WITH_TLS};
use crate::dial::Dialer;
use crate::pool::{self, PoolError, PoolFuture};
use crate::responses::excerpt;
use crate::stream::{BoxStream, dial, io_error, secure};
use crate::tls::{CertificateCheck, TlsSettings};
use crate::web::response_budget;
use crate::{ScalerError, SourceRefusal};

/// Timeout of a query, including the connection. Counting queries may be slow.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 5 } else { 15 });
/// Statement timeout at the server, in seconds.
const STATEMENT_TIMEOUT_SECONDS: u32 = 14;
/// Maximum size of a result, in bytes.
const MAX_RESULT_BYTES: usize = 8 << 20;
/// Maximum number of messages of a login.
const MAX_LOGIN_MESSAGES: usize = 10;
/// `COM_QUERY`.
const QUERY: u8 = 3;
/// The answers of `caching_sha2_password`: the password is cached, and the password must be sent.
const FAST_LOGIN: u8 = 3;
const FULL_LOGIN: u8 = 4;
/// The request for the public key of the server.
const WANT_KEY: u8 = 2;

/// A server and credentials.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct MysqlServer {
    pub(super) dsn: MysqlDsn,
    /// CA certificates that the process trusts in addition to the system's (PEM).
    pub(super) authorities: Vec<u8>,
    /// Opens its connections.
    pub(super) dialer: Dialer,
}

/// A connection.
pub(super) struct MysqlConnection {
    stream: BoxStream,
    sequence: u8,
    tls: bool,
    /// Bytes that the current answer may still have.
    budget: usize,
    /// The share of the current answer in the budget of all responses, if it has a large packet.
    share: Option<ByteShare>,
}

impl From<InvalidPacket> for ScalerError {
    fn from(error: InvalidPacket) -> Self {
        Self::caused_by(error.to_string(), error)
    }
}

impl MysqlConnection {
    fn new(stream: BoxStream) -> Self {
        Self { stream, sequence: 0, tls: false, budget: MAX_RESULT_BYTES, share: None }
    }

    async fn receive(&mut self) -> Result<Vec<u8>, ScalerError> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).await.map_err(|error| io_error(&error))?;
        let [low, middle, high, sequence] = head;
        let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
        self.sequence = sequence.wrapping_add(1);
        // The header counts too, so that empty packets end.
        self.budget = match self.budget.checked_sub(head.len() + length) {
            Some(budget) => budget,
            None => bail!("the answer has more than {} MiB", MAX_RESULT_BYTES >> 20),
        };
        if length > UNCOUNTED_BYTES && self.share.is_none() {
            self.share = response_budget().share(MAX_RESULT_BYTES).await;
        }
        let mut packet = vec![0; length];
        self.stream.read_exact(&mut packet).await.map_err(|error| io_error(&error))?;
        Ok(packet)
    }

    async fn send(&mut self, packet: &[u8]) -> Result<(), ScalerError> {
        // Longer packets are split in the protocol; no login and no query of a trigger is that long.
        let [low, middle, high, 0] = u32::try_from(packet.len()).unwrap_or(u32::MAX).to_le_bytes() else {
            bail!("the query is longer than 16 MiB");
        };
        let frame = [&[low, middle, high, self.sequence], packet].concat();
        self.stream.write_all(&frame).await.map_err(|error| io_error(&error))?;
        self.stream.flush().await.map_err(|error| io_error(&error))
    }

    async fn log_in(&mut self, dsn: &MysqlDsn, greeting: Greeting) -> Result<(), ScalerError> {
        let Greeting { mut nonce, mut plugin, .. } = greeting;
        let password = dsn.password.reveal();
        // A server with another default plugin asks to switch.
        let first = wire::response(&plugin, password, &nonce, self.tls);
        if first.is_none() {
            "mysql_native_password".clone_into(&mut plugin);
        }
        let response = wire::response(&plugin, password, &nonce, self.tls).unwrap_or_default();
        self.send(&wire::login(&dsn.user, &dsn.database, &plugin, &response, self.tls)).await?;
        for _ in 0..MAX_LOGIN_MESSAGES {
            let packet = self.receive().await?;
            match wire::reply(&packet)? {
                Reply::Ok => return Ok(()),
                Reply::Error { code, message, .. } => return Err(refused(code, &message)),
                Reply::Switch { plugin: other, nonce: new } => {
                    (plugin, nonce) = (other, new);
                    let Some(response) = wire::response(&plugin, password, &nonce, self.tls) else {
                        let plugin = excerpt(&plugin);
                        bail!("the server wants authentication plugin {plugin}, which is not supported here");
                    };
                    self.send(&response).await?;
                }
                Reply::More([FAST_LOGIN]) => {}
                Reply::More([FULL_LOGIN]) if self.tls => self.send(&wire::clear(password)).await?,
                Reply::More([FULL_LOGIN]) => self.send(&[WANT_KEY]).await?,
                Reply::More(key) => self.send(&wire::encrypted(password, &nonce, key)?).await?,
                Reply::Columns(_) | Reply::LocalFile => return Err(InvalidPacket.into()),
            }
        }
        Err(InvalidPacket.into())
    }

    /// The first field of the first row.
    async fn query(&mut self, query: &str) -> Result<Result<FirstField, ScalerError>, ScalerError> {
        (self.sequence, self.budget) = (0, MAX_RESULT_BYTES);
        let answer = self.result(query).await;
        self.share = None;
        answer
    }

    async fn result(&mut self, query: &str) -> Result<Result<FirstField, ScalerError>, ScalerError> {
        self.send(&[&[QUERY], query.as_bytes()].concat()).await?;
        let packet = self.receive().await?;
        match wire::reply(&packet)? {
            Reply::Ok => return Ok(Ok(FirstField::NoRow)),
            Reply::Error { code, state, message } => {
                return Ok(Err(failed(code, &state, &message)));
            }
            Reply::Columns(1..) => {}
            Reply::LocalFile => bail!("the server asks for a file of this machine"),
            _ => return Err(InvalidPacket.into()),
        }
        while !wire::is_end(&self.receive().await?) {}
        let mut first = FirstField::NoRow;
        loop {
            let packet = self.receive().await?;
            if wire::is_end(&packet) {
                return Ok(Ok(first));
            }
            if packet.first() == Some(&0xff) {
                let Reply::Error { code, state, message } = wire::reply(&packet)? else {
                    return Err(InvalidPacket.into());
                };
                return Ok(Err(failed(code, &state, &message)));
            }
            if first == FirstField::NoRow {
                first = wire::first_field(&packet)?.map_or(FirstField::Null, FirstField::Text);
            }
        }
    }
}

/// The error of a login.
fn refused(code: u16, message: &str) -> ScalerError {
    scaler_error!("{} (error {code})", excerpt(message)).with_refusal(refusal(code))
}

/// The error of a query.
fn failed(code: u16, state: &str, message: &str) -> ScalerError {
    scaler_error!("Error {code} ({}): {}", excerpt(state), excerpt(message)).with_refusal(refusal(code))
}

/// What an error code of the server means.
fn refusal(code: u16) -> Option<SourceRefusal> {
    match code {
        // Access denied to the server, a database, a table, a column or a routine; host not allowed, password expired, account locked.
        1044 | 1045 | 1130 | 1142 | 1143 | 1227 | 1370 | 1698 | 1820 | 1862 | 3118 => {
            Some(SourceRefusal::Credentials)
        }
        // Unknown database, no such table.
        1049 | 1146 => Some(SourceRefusal::UnknownName),
        _ => None,
    }
}

impl MysqlServer {
    async fn open(&self) -> Result<MysqlConnection, ScalerError> {
        let dsn = &self.dsn;
        let stream = dial(&self.dialer, &dsn.host, dsn.port).await?;
        let mut connection = MysqlConnection::new(stream);
        let packet = connection.receive().await?;
        let greeting = match wire::greeting(&packet)? {
            Ok(greeting) => greeting,
            Err(Reply::Error { code, message, .. }) => return Err(refused(code, &message)),
            Err(_) => return Err(InvalidPacket.into()),
        };
        let offers_tls = greeting.capabilities & WITH_TLS != 0;
        let check = match dsn.tls {
            TlsMode::Off => None,
            TlsMode::Preferred => offers_tls.then_some(CertificateCheck::Anything),
            TlsMode::Required(_) if !offers_tls => bail!("the server does not offer TLS"),
            TlsMode::Required(check) => Some(check),
        };
        if let Some(certificate_check) = check {
            connection.send(&wire::tls_request(&dsn.database)).await?;
            let tls = TlsSettings { certificate_check, ..TlsSettings::default() }.trusting(&self.authorities);
            connection.stream = secure(connection.stream, &dsn.host, &tls).await?;
            (connection.sequence, connection.tls) = (connection.sequence.wrapping_add(1), true);
        }
        let is_mariadb = greeting.version.contains("MariaDB");
        connection.log_in(dsn, greeting).await?;
        // Old servers do not know it; then only the client's timeout applies.
        let limit = if is_mariadb {
            format!("SET SESSION max_statement_time = {STATEMENT_TIMEOUT_SECONDS}")
        } else {
            format!("SET SESSION max_execution_time = {}", 1000 * STATEMENT_TIMEOUT_SECONDS)
        };
        let _ = connection.query(&limit).await?;
        Ok(connection)
    }
}

impl pool::PooledServer for MysqlServer {
    type Connection = MysqlConnection;
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

    fn connect(&self) -> PoolFuture<'_, MysqlConnection, ScalerError> {
        Box::pin(async move { self.open().await.map_err(|error| error.inside(self.name())) })
    }

    fn query<'a>(
        &'a self,
        connection: &'a mut MysqlConnection,
        request: &'a String,
    ) -> PoolFuture<'a, f64, PoolError> {
        Box::pin(async move {
            match connection.query(request).await {
                Err(error) => Err(PoolError::Lost(error.inside(self.name()))),
                Ok(Err(error)) => Err(PoolError::Refused(error.inside(self.name()))),
                Ok(Ok(field)) => {
                    query::number(field).map_err(|error| PoolError::Refused(ScalerError::new(error)))
                }
            }
        })
    }
}
