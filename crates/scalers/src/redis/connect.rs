//! Connections to single servers: only to addresses that are allowed, also to those that a sentinel or a Cluster names.

use std::net::SocketAddr;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::AsyncDNSResolver;
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ErrorKind, IntoConnectionInfo as _,
    RedisConnectionInfo, RedisError, RedisFuture, TlsCertificates, Value, cmd,
};
use sources::http::HttpErrorCause;

use crate::ScalerError;
use crate::dial::Dialer;
use crate::responses::excerpt;
use crate::tls::{CertificateCheck, TlsSettings};

/// Timeout of a request, including the connection.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a connection attempt.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Resolves every host for the client, which connects to no other address.
pub(super) struct AllowedAddresses(pub(super) Dialer);

impl AsyncDNSResolver for AllowedAddresses {
    fn resolve<'a, 'b: 'a>(
        &'a self,
        host: &'b str,
        port: u16,
    ) -> RedisFuture<'a, Box<dyn Iterator<Item = SocketAddr> + Send + 'a>> {
        Box::pin(async move {
            let found = self.0.resolve(host, port).await.map_err(std::io::Error::from)?;
            let found: Box<dyn Iterator<Item = SocketAddr> + Send> = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

/// TLS settings and dialer of all servers of one trigger.
#[derive(Clone, Copy)]
pub(super) struct RedisConnector<'a> {
    pub(super) tls: Option<&'a TlsSettings>,
    pub(super) dialer: &'a Dialer,
}

impl RedisConnector<'_> {
    pub(super) fn address(&self, host: String, port: u16) -> ConnectionAddr {
        match self.tls {
            Some(tls) => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: tls.certificate_check == CertificateCheck::Anything,
                tls_params: None,
            },
            None => ConnectionAddr::Tcp(host, port),
        }
    }

    pub(super) async fn connect(
        &self,
        address: ConnectionAddr,
        settings: RedisConnectionInfo,
    ) -> Result<MultiplexedConnection, ScalerError> {
        let info = address.into_connection_info().map_err(failed)?.set_redis_settings(settings);
        let client = match self.tls {
            Some(tls) => Client::build_with_tls(info, certificates(tls)?),
            None => Client::open(info),
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(REQUEST_TIMEOUT))
            .set_dns_resolver(AllowedAddresses(self.dialer.clone()));
        let client = client.map_err(failed)?;
        client.get_multiplexed_async_connection_with_config(&config).await.map_err(failed)
    }

    /// The address of the master that a sentinel names. The sentinel client of the library is not used, because it resolves names
    /// by itself.
    pub(super) async fn master(
        &self,
        sentinel: ConnectionAddr,
        settings: &RedisConnectionInfo,
        master: &str,
    ) -> Result<ConnectionAddr, ScalerError> {
        let mut sentinel = self.connect(sentinel, settings.clone()).await?;
        let mut command = cmd("SENTINEL");
        command.arg("GET-MASTER-ADDR-BY-NAME").arg(master);
        let found: Option<(String, u16)> = command.query_async(&mut sentinel).await.map_err(failed)?;
        let Some((host, port)) = found else {
            let unknown = (ErrorKind::MasterNameNotFoundBySentinel, "the sentinel does not know it");
            return Err(failed(RedisError::from(unknown)));
        };
        Ok(self.address(host, port))
    }

    /// Connects to a server that a sentinel has named, and checks that it is a master.
    pub(super) async fn connect_master(
        &self,
        address: ConnectionAddr,
        settings: RedisConnectionInfo,
    ) -> Result<MultiplexedConnection, ScalerError> {
        let mut connection = self.connect(address, settings).await?;
        let role: Result<Vec<Value>, RedisError> = cmd("ROLE").query_async(&mut connection).await;
        // Users may not be allowed to ask for the role; then the sentinel is believed.
        if let Ok(role) = role
            && !matches!(role.first(), Some(Value::BulkString(name)) if name == b"master")
        {
            bail!("the server that the sentinels name as master is none");
        }
        Ok(connection)
    }
}

/// The certificates for the client.
pub(super) fn certificates(tls: &TlsSettings) -> Result<TlsCertificates, ScalerError> {
    // Validates the certificates first, for clearer errors than the client's.
    tls.config(&[])?;
    let client_tls = (!tls.certificate.is_empty()).then(|| ClientTlsConfig {
        client_cert: tls.certificate.clone().into_bytes(),
        client_key: tls.key.reveal().as_bytes().to_vec(),
    });
    let root_cert = (!tls.authorities.is_empty()).then(|| tls.all_authorities());
    Ok(TlsCertificates { client_tls, root_cert })
}

/// An error of the client, for events.
pub(super) fn failed(error: RedisError) -> ScalerError {
    ScalerError::caused_by(describe(&error), error)
}

/// Describes an error for events.
pub(super) fn describe(error: &RedisError) -> String {
    if error.is_timeout() {
        return "timed out".to_owned();
    }
    if error.is_connection_refusal() {
        return "connection refused".to_owned();
    }
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => match (error.code(), error.detail()) {
            (Some(code), Some(detail)) => format!("{code} {}", excerpt(detail)),
            (Some(code), None) => code.to_owned(),
            _ => error.to_string(),
        },
        ErrorKind::AuthenticationFailed => {
            format!(
                "user or password was refused ({})",
                error.detail().map_or_else(|| "no reason given".to_owned(), excerpt)
            )
        }
        ErrorKind::MasterNameNotFoundBySentinel => "the sentinels know no master of this name".to_owned(),
        ErrorKind::Io => match HttpErrorCause::classify(error) {
            HttpErrorCause::ConnectionLost(_) => error.to_string(),
            cause => cause.to_string(),
        },
        _ => error.to_string(),
    }
}
