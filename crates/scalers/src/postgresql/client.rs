//! Connections, shared by the triggers of a namespace with the same server and credentials.

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use sources::http::{HttpErrorCause, Secret};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, SimpleQueryMessage, config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::dsn::{Dsn, SslMode};
use super::metered::{Budget, Metered, ReadingResponse};
use super::query;
use crate::dial::Dialer;
use crate::off_thread::log_in;
use crate::pool::{self, PoolError, PoolFuture};
use crate::responses::excerpt;
use crate::tenant_files::TenantFiles;
use crate::tls::{CertificateCheck, TlsSettings};
use crate::wake::WakeSignal;
use crate::{ScalerError, SourceRefusal};

/// Timeout of a query, including the connection. Counting queries may be slow.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 5 } else { 15 });
/// After so many notifications a connection is not read for a while, so that a server cannot keep us busy with them.
const NOTIFICATIONS_PER_PAUSE: u32 = 1_000;
const NOTIFICATION_PAUSE: Duration = Duration::from_millis(50);
/// Statement timeout at the server. KEDA sets none, so that queries slower than their interval pile up.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(14);

/// A server, its credentials and TLS settings.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct PostgresServer {
    pub(super) dsn: Dsn,
    /// CA certificates that the process trusts in addition to the system's (PEM).
    pub(super) authorities: Vec<u8>,
    /// Opens its connections.
    pub(super) dialer: Dialer,
    /// Where certificates named in the connection string are read.
    pub(super) files: TenantFiles,
}

/// A connection to the server.
pub(super) struct PostgresConnection {
    client: Client,
    driver: JoinHandle<()>,
    budget: Budget,
}

impl Drop for PostgresConnection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl PostgresServer {
    fn config(&self) -> Config {
        let dsn = &self.dsn;
        let mut config = Config::new();
        config.user(&dsn.user);
        if !dsn.password.reveal().is_empty() {
            config.password(dsn.password.reveal());
        }
        if !dsn.database.is_empty() {
            config.dbname(&dsn.database);
        }
        if !dsn.options.is_empty() {
            config.options(&dsn.options);
        }
        config.application_name(if dsn.application.is_empty() { "plimsoll" } else { &dsn.application });
        config.ssl_mode(match dsn.ssl {
            SslMode::Disable => config::SslMode::Disable,
            SslMode::Prefer => config::SslMode::Prefer,
            SslMode::Require(_) => config::SslMode::Require,
        });
        config
    }

    async fn tls(&self) -> Result<TlsSettings, ScalerError> {
        let dsn = &self.dsn;
        let certificate_check = match dsn.ssl {
            // As in libpq, a configured CA certificate is checked even with `require`.
            SslMode::Require(CertificateCheck::Anything) if !dsn.ssl_root_certificate.is_empty() => {
                CertificateCheck::Authority
            }
            SslMode::Require(certificate_check) => certificate_check,
            _ => CertificateCheck::Anything,
        };
        let own = TlsSettings {
            authorities: self.files.text("sslrootcert", &dsn.ssl_root_certificate).await?,
            certificate: self.files.text("sslcert", &dsn.ssl_certificate).await?,
            key: Secret::new(self.files.text("sslkey", &dsn.ssl_key).await?),
            certificate_check,
        };
        Ok(own.trusting(&self.authorities))
    }

    /// Connects to the first host that accepts. Notifications are signalled.
    pub(super) async fn open(&self, signal: Option<&WakeSignal>) -> Result<PostgresConnection, ScalerError> {
        let mut failed = scaler_error!("there is no host");
        for (host, port) in &self.dsn.hosts {
            match self.open_at(host, *port, signal).await {
                Ok(connection) => return Ok(connection),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    async fn open_at(
        &self,
        host: &str,
        port: u16,
        signal: Option<&WakeSignal>,
    ) -> Result<PostgresConnection, ScalerError> {
        let failed = |error: tokio_postgres::Error| {
            let refusal = refusal(&error);
            ScalerError::caused_by(describe(&error), error).with_refusal(refusal)
        };
        let stream = self.dialer.connect(host, port).await?;
        let budget = Budget::new();
        let listener = signal.cloned();
        let (stream, config) = (Metered::new(stream, budget.clone()), self.config());
        // The driver computes the proof of SCRAM while it is polled, with as many iterations as the server demands (100,000 at most),
        // each of which hashes the whole password.
        let (client, driver) = if self.dsn.ssl == SslMode::Disable {
            let login = log_in(async move { config.connect_raw(stream, NoTls).await });
            let (client, connection) = login.await.map_err(failed)?;
            (client, tokio::spawn(drive(connection, listener)))
        } else {
            let tls = self.tls().await?.config(&[])?;
            let mut tls = MakeRustlsConnect::new((*tls).clone());
            let Ok(tls) = MakeTlsConnect::<Metered>::make_tls_connect(&mut tls, host);
            let login = log_in(async move { config.connect_raw(stream, tls).await });
            let (client, connection) = login.await.map_err(failed)?;
            (client, tokio::spawn(drive(connection, listener)))
        };
        let connection = PostgresConnection { client, driver, budget };
        // Some proxies refuse it; then only the client's timeout applies.
        let limit = format!("SET statement_timeout = {}", STATEMENT_TIMEOUT.as_millis());
        let _ = connection.client.simple_query(&limit).await;
        if signal.is_some() {
            // Notifications and whatever else the server sends are bounded together; then the connection is opened again.
            connection.budget.finish();
        }
        Ok(connection)
    }

    /// The number in the first row of the result of a query.
    async fn first_number(&self, connection: &PostgresConnection, request: &str) -> Result<f64, PoolError> {
        let server_error = |error: &tokio_postgres::Error| {
            let text = scaler_error!("{}: {}", self.dsn.name(), describe(error)).with_refusal(refusal(error));
            if error.as_db_error().is_some_and(|error| !ends_connection(error.code().code())) {
                PoolError::Refused(text)
            } else {
                PoolError::Lost(text)
            }
        };
        connection.budget.renew();
        let _reading = ReadingResponse(connection.budget.clone());
        let rows = connection.client.simple_query_raw(request).await.map_err(|error| server_error(&error))?;
        let mut rows = pin!(rows);
        while let Some(message) = rows.next().await {
            // Rows after the first are discarded.
            if let SimpleQueryMessage::Row(row) = message.map_err(|error| server_error(&error))? {
                let field = row.try_get(0).map_err(|error| server_error(&error))?;
                return query::number(field).map_err(|reason| PoolError::Refused(ScalerError::new(reason)));
            }
        }
        Err(PoolError::Refused(ScalerError::new(query::NO_ROWS)))
    }
}

impl pool::PooledServer for PostgresServer {
    type Connection = PostgresConnection;
    type Request = String;
    type Response = f64;
    const MAX_CONNECTIONS: usize = 4;
    const TIMEOUT: Duration = REQUEST_TIMEOUT;

    fn name(&self) -> String {
        self.dsn.name()
    }

    fn sharing_key(request: &String) -> String {
        request.clone()
    }

    fn connect(&self) -> PoolFuture<'_, PostgresConnection, ScalerError> {
        Box::pin(async move { self.open(None).await.map_err(|error| error.inside(self.name())) })
    }

    fn query<'a>(
        &'a self,
        connection: &'a mut PostgresConnection,
        request: &'a String,
    ) -> PoolFuture<'a, f64, PoolError> {
        Box::pin(async move {
            let answer = self.first_number(connection, request).await;
            if connection.budget.is_used_up() {
                // The next query opens a new connection.
                connection.driver.abort();
            }
            answer
        })
    }
}

impl PostgresConnection {
    /// Executes a statement without a result.
    pub(super) async fn execute(&self, statement: &str) -> Result<(), ScalerError> {
        match timeout(REQUEST_TIMEOUT, self.client.batch_execute(statement)).await {
            Ok(executed) => executed.map_err(|error| ScalerError::caused_by(describe(&error), error)),
            Err(_) => Err(scaler_error!("no answer within {REQUEST_TIMEOUT:?}")),
        }
    }

    /// Waits until the connection is closed.
    pub(super) async fn closed(&mut self) {
        let _ = (&mut self.driver).await;
    }
}

/// Runs a connection; signals its notifications, if there is a listener.
async fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, listener: Option<WakeSignal>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let Some(signal) = listener else {
        drop(connection.await);
        return;
    };
    let mut until_pause = NOTIFICATIONS_PER_PAUSE;
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if !matches!(message, AsyncMessage::Notification(_)) {
            continue;
        }
        signal.query_now();
        until_pause -= 1;
        if until_pause == 0 {
            until_pause = NOTIFICATIONS_PER_PAUSE;
            sleep(NOTIFICATION_PAUSE).await;
        }
    }
}

/// Whether the server closes the connection after this error: on shutdown, or if the session was terminated.
fn ends_connection(state: &str) -> bool {
    state.starts_with("57P") || state.starts_with("08")
}

/// What a SQLSTATE means that the server returned.
fn refusal(error: &tokio_postgres::Error) -> Option<SourceRefusal> {
    match error.as_db_error()?.code().code() {
        // Invalid authorization, insufficient privilege.
        state if state.starts_with("28") || state == "42501" => Some(SourceRefusal::Credentials),
        // Undefined database, schema and table.
        "3D000" | "3F000" | "42P01" => Some(SourceRefusal::UnknownName),
        _ => None,
    }
}

/// Describes an error for events.
fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return match error.code().code() {
            "57014" => {
                format!("the query took longer than {STATEMENT_TIMEOUT:?} ({})", excerpt(error.message()))
            }
            _ => format!("{} (SQLSTATE {})", excerpt(error.message()), error.code().code()),
        };
    }
    match HttpErrorCause::classify(error) {
        HttpErrorCause::ConnectionLost(_) => {
            let source = std::error::Error::source(error).map(|source| format!(": {source}"));
            format!("{error}{}", source.unwrap_or_default())
        }
        cause => cause.to_string(),
    }
}
