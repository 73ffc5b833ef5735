//! Connections, shared by every trigger that asks the same server in the same way.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use sources::http::{HttpErrorCause, Secret};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage, config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::dsn::{Dsn, SslMode};
use super::metered::{Budget, Metered};
use super::query;
use crate::Error;
use crate::pool::{self, Fault, Step};
use crate::tls::{Belief, Tls};

/// How long an answer may take, the connection included. Queries that count take their time.
const WITHIN: Duration = Duration::from_secs(if cfg!(test) { 5 } else { 15 });
/// How long the server works on a query. KEDA sets no limit: queries that take longer than their interval pile up.
const STATEMENT: Duration = Duration::from_secs(14);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// A server, and how to speak with it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub(super) dsn: Dsn,
    /// Authorities that the process trusts besides the system's (PEM).
    pub(super) authorities: Vec<u8>,
}

/// A connection to it.
pub(super) struct Connection {
    client: Client,
    driver: AbortHandle,
    budget: Budget,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Server {
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

    async fn tls(&self) -> Result<Tls, String> {
        let dsn = &self.dsn;
        let belief = match dsn.ssl {
            // As libpq has it: an authority that is given is not given in vain.
            SslMode::Require(Belief::Anything) if !dsn.ssl_root_certificate.is_empty() => Belief::Authority,
            SslMode::Require(belief) => belief,
            _ => Belief::Anything,
        };
        let own = Tls {
            authorities: file(&dsn.ssl_root_certificate).await?,
            certificate: file(&dsn.ssl_certificate).await?,
            key: Secret::new(file(&dsn.ssl_key).await?),
            belief,
        };
        Ok(own.trusting(&self.authorities))
    }

    /// A connection to the first host that takes one.
    async fn open(&self) -> Result<Connection, String> {
        let mut failed = "there is no host".to_owned();
        for (host, port) in &self.dsn.hosts {
            match self.open_at(host, *port).await {
                Ok(connection) => return Ok(connection),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    async fn open_at(&self, host: &str, port: u16) -> Result<Connection, String> {
        let stream = match timeout(CONNECT, TcpStream::connect((host, port))).await {
            Ok(stream) => stream.map_err(|error| HttpErrorCause::classify(&error).to_string())?,
            Err(_) => return Err(format!("no connection within {CONNECT:?}")),
        };
        // Questions are small and wait for their answers.
        let _ = stream.set_nodelay(true);
        let budget = Budget::new();
        let (stream, config) = (Metered::new(stream, budget.clone()), self.config());
        let (client, driver) = if self.dsn.ssl == SslMode::Disable {
            let (client, connection) =
                config.connect_raw(stream, NoTls).await.map_err(|error| words(&error))?;
            (client, tokio::spawn(async move { drop(connection.await) }).abort_handle())
        } else {
            let tls = self.tls().await?.config(&[]).map_err(|error| error.0)?;
            let mut tls = MakeRustlsConnect::new((*tls).clone());
            let Ok(tls) = MakeTlsConnect::<Metered>::make_tls_connect(&mut tls, host);
            let (client, connection) =
                config.connect_raw(stream, tls).await.map_err(|error| words(&error))?;
            (client, tokio::spawn(async move { drop(connection.await) }).abort_handle())
        };
        let connection = Connection { client, driver, budget };
        // Some proxies do not know it; then only our own limit holds.
        let limit = format!("SET statement_timeout = {}", STATEMENT.as_millis());
        let _ = connection.client.simple_query(&limit).await;
        Ok(connection)
    }
}

/// A file that a connection string names; empty if it names none.
async fn file(path: &str) -> Result<String, String> {
    if path.is_empty() {
        return Ok(String::new());
    }
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        std::fs::read_to_string(&path).map_err(|error| format!("failed to read {path}: {error}"))
    });
    read.await.unwrap_or_else(|_| Err("failed to read a certificate".to_owned()))
}

impl pool::Server for Server {
    type Connection = Connection;
    type Question = String;
    type Said = f64;
    const AT_ONCE: usize = 4;

    fn name(&self) -> String {
        self.dsn.name()
    }

    fn within(&self) -> Duration {
        WITHIN
    }

    fn connect(&self) -> Step<'_, Connection, Error> {
        Box::pin(async move {
            self.open().await.map_err(|reason| Error::new(format!("{}: {reason}", self.name())))
        })
    }

    fn ask<'a>(&'a self, connection: &'a mut Connection, question: &'a String) -> Step<'a, f64, Fault> {
        Box::pin(async move {
            let said = |error: &tokio_postgres::Error| {
                let text = Error::new(format!("{}: {}", self.name(), words(error)));
                if error.as_db_error().is_some_and(|error| !ends_connection(error.code().code())) {
                    Fault::Answer(text)
                } else {
                    Fault::Lost(text)
                }
            };
            connection.budget.renew();
            let rows = connection.client.simple_query_raw(question).await.map_err(|error| said(&error))?;
            let mut rows = pin!(rows);
            while let Some(message) = rows.next().await {
                // What follows the first row is thrown away as it comes.
                if let SimpleQueryMessage::Row(row) = message.map_err(|error| said(&error))? {
                    let field = row.try_get(0).map_err(|error| said(&error))?;
                    return query::number(field).map_err(|reason| Fault::Answer(Error::new(reason)));
                }
            }
            Err(Fault::Answer(Error::new(query::NO_ROWS)))
        })
    }
}

/// Whether the server closes the connection after an error: it shuts down, or somebody ended our session.
fn ends_connection(state: &str) -> bool {
    state.starts_with("57P") || state.starts_with("08")
}

/// What a server or the library says, in words that an event can have.
fn words(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return match error.code().code() {
            "57014" => format!("the query took longer than {STATEMENT:?} ({})", error.message()),
            _ => format!("{} (SQLSTATE {})", error.message(), error.code().code()),
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
