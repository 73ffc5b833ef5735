//! Connections to single servers: only to addresses that are allowed, also to those that a sentinel or a Cluster names.

use std::time::Duration;

use sources::http::{HttpErrorCause, Secret};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

use super::resp::{self, RedisReply, ReplyError};
use crate::dial::Dialer;
use crate::responses::excerpt;
use crate::stream::{BoxStream, dial, io_error, secure};
use crate::tls::TlsSettings;
use crate::{ScalerError, SourceRefusal};

/// Timeout of a request, including the connection.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a connection attempt, including the login.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Host and port.
pub(super) type RedisAddress = (String, u16);

/// A connection to one server.
pub(super) struct RedisConnection(BufReader<BoxStream>);

/// Why a command failed.
#[derive(Debug)]
pub(super) enum RedisFailure {
    /// The server returned an error; the first word is its code.
    Refused(String),
    /// The reply has another type than expected.
    Unexpected(String),
    /// The connection is lost.
    Lost(ScalerError),
}

/// Credentials and database of one kind of server.
pub(super) struct RedisLogin<'a> {
    pub(super) username: &'a str,
    pub(super) password: &'a Secret,
    pub(super) database: i64,
}

/// TLS settings and dialer of all servers of one trigger.
#[derive(Clone, Copy)]
pub(super) struct RedisConnector<'a> {
    pub(super) tls: Option<&'a TlsSettings>,
    pub(super) dialer: &'a Dialer,
}

impl From<std::io::Error> for RedisFailure {
    fn from(error: std::io::Error) -> Self {
        Self::Lost(io_error(&error))
    }
}

impl From<ReplyError> for RedisFailure {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::Connection(error) => error.into(),
            error => Self::Lost(ScalerError::caused_by(error.to_string(), error)),
        }
    }
}

impl From<RedisFailure> for ScalerError {
    fn from(failure: RedisFailure) -> Self {
        match failure {
            RedisFailure::Refused(text) => {
                let is_denied = matches!(text.split(' ').next(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"));
                Self::new(excerpt(&text)).with_refusal(is_denied.then_some(SourceRefusal::Credentials))
            }
            RedisFailure::Unexpected(text) => Self::new(text),
            RedisFailure::Lost(error) => error,
        }
    }
}

impl RedisFailure {
    /// Whether the connection must be replaced: also after errors of a server that changed its role.
    pub(super) fn is_fatal(&self) -> bool {
        match self {
            Self::Lost(_) => true,
            Self::Unexpected(_) => false,
            Self::Refused(text) => {
                let code = text.split(' ').next();
                matches!(code, Some("READONLY" | "MASTERDOWN" | "LOADING" | "NOAUTH"))
            }
        }
    }
}

/// The reply to a command has another type than expected.
pub(super) fn unexpected(command: &str) -> RedisFailure {
    RedisFailure::Unexpected(format!("{command} was answered with a value of another type"))
}

impl RedisConnection {
    /// Sends a command; an error of the server is an error.
    pub(super) async fn call(&mut self, words: &[&str]) -> Result<RedisReply, RedisFailure> {
        self.0.write_all(&resp::command(words)).await?;
        self.0.flush().await?;
        match resp::read(&mut self.0).await? {
            RedisReply::Error(text) => Err(RedisFailure::Refused(text)),
            reply => Ok(reply),
        }
    }

    async fn log_in(&mut self, login: &RedisLogin<'_>) -> Result<(), ScalerError> {
        let (user, password) = (login.username, login.password.reveal());
        if !password.is_empty() {
            let (of_user, of_default) = (["AUTH", user, password], ["AUTH", password]);
            let words: &[&str] = if user.is_empty() { &of_default } else { &of_user };
            let mut answer = self.call(words).await;
            // Servers before version 6 have no users.
            if let Err(RedisFailure::Refused(text)) = &answer
                && !user.is_empty()
                && text.contains("wrong number of arguments")
            {
                answer = self.call(&of_default).await;
            }
            match answer {
                // A server without a password lets everybody in, as KEDA's client finds out by naming the user `default`.
                Err(RedisFailure::Refused(text))
                    if user.is_empty() && text.contains("without any password configured") => {}
                Err(RedisFailure::Refused(text)) => {
                    let error = scaler_error!("user or password was refused ({})", excerpt(&text));
                    return Err(error.with_refusal(Some(SourceRefusal::Credentials)));
                }
                answer => {
                    answer?;
                }
            }
        }
        if login.database != 0 {
            self.call(&["SELECT", &login.database.to_string()]).await?;
        }
        Ok(())
    }
}

impl RedisConnector<'_> {
    /// Connects and logs in.
    pub(super) async fn connect(
        &self,
        (host, port): &RedisAddress,
        login: &RedisLogin<'_>,
    ) -> Result<RedisConnection, ScalerError> {
        let connecting = async {
            let mut stream = dial(self.dialer, host, *port).await?;
            if let Some(tls) = self.tls {
                stream = secure(stream, host, tls).await?;
            }
            let mut connection = RedisConnection(BufReader::new(stream));
            connection.log_in(login).await?;
            Ok::<_, ScalerError>(connection)
        };
        let late = || ScalerError::caused_by("timed out", HttpErrorCause::TimedOut(CONNECT_TIMEOUT));
        timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(|_| Err(late()))
    }

    /// The address of the master that a sentinel names.
    pub(super) async fn master(
        &self,
        sentinel: &RedisAddress,
        login: &RedisLogin<'_>,
        master: &str,
    ) -> Result<RedisAddress, ScalerError> {
        let mut sentinel = self.connect(sentinel, login).await?;
        let found = sentinel.call(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", master]).await?;
        match &found {
            RedisReply::Nil => bail!("the sentinels know no master of this name"),
            RedisReply::List(found) => {
                if let [host, port] = &**found
                    && let (Some(host), Some(port)) = (host.text(), port.text())
                    && let Ok(port) = port.parse()
                {
                    return Ok((host, port));
                }
            }
            _ => {}
        }
        Err(unexpected("SENTINEL").into())
    }

    /// Connects to a server that a sentinel has named, and checks that it is a master.
    pub(super) async fn connect_master(
        &self,
        address: &RedisAddress,
        login: &RedisLogin<'_>,
    ) -> Result<RedisConnection, ScalerError> {
        let mut connection = self.connect(address, login).await?;
        match connection.call(&["ROLE"]).await {
            Ok(RedisReply::List(role))
                if role.first().and_then(RedisReply::text).as_deref() != Some("master") =>
            {
                bail!("the server that the sentinels name as master is none");
            }
            Err(RedisFailure::Lost(error)) => Err(error),
            // The user may lack the right to run `ROLE`; then the answer of the sentinel counts.
            _ => Ok(connection),
        }
    }
}
