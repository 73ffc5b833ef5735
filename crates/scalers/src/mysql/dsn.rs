//! Connection strings: `[user[:password]@][protocol[(address)]]/database[?parameter=value]`.

use crate::ParseError;
use crate::parameters::Secret;
use crate::tls::CertificateCheck;
use crate::web::path_unescaped;

/// The default port.
const DEFAULT_PORT: u16 = 3306;

/// Where and as whom to connect.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct MysqlDsn {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) password: Secret,
    pub(super) database: String,
    pub(super) tls: TlsMode,
}

/// When TLS is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum TlsMode {
    /// Never.
    #[default]
    Off,
    /// If the server offers it; its certificate is not checked.
    Preferred,
    /// Always.
    Required(CertificateCheck),
}

impl MysqlDsn {
    /// Parses a connection string. Errors do not quote it, because it contains a password.
    pub(super) fn parse(text: &str) -> Result<Self, ParseError> {
        let (server, rest) = text
            .rsplit_once('/')
            .ok_or("invalid DSN: missing the slash separating the database name".to_owned())?;
        let (database, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (login, address) = server.rsplit_once('@').unwrap_or(("", server));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let (protocol, address) = match address.split_once('(') {
            Some((protocol, address)) => {
                let address = address.strip_suffix(')');
                (
                    protocol,
                    address.ok_or(
                        "invalid DSN: network address not terminated (missing closing brace)".to_owned(),
                    )?,
                )
            }
            None => (address, ""),
        };
        if !matches!(protocol, "" | "tcp") {
            return Err("only connections over tcp are possible".into());
        }
        let (host, port) = host_and_port(address)?;
        let mut dsn = Self {
            host,
            port,
            user: user.to_owned(),
            password: Secret::new(password),
            database: path_unescaped(database)
                .ok_or("invalid DSN: the database name has an invalid escape".to_owned())?,
            tls: TlsMode::Off,
        };
        for pair in parameters.split('&') {
            if let Some(("tls", value)) = pair.split_once('=') {
                dsn.tls = tls_mode(value)?;
            }
        }
        Ok(dsn)
    }
}

/// Host and port; both have a default.
pub(super) fn host_and_port(address: &str) -> Result<(String, u16), ParseError> {
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port),
        _ => (address, ""),
    };
    let port = match port {
        "" => DEFAULT_PORT,
        port => port.parse().map_err(|_| ParseError::from("the port is no number from 0 to 65535"))?,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok((if host.is_empty() { "127.0.0.1" } else { host }.to_owned(), port))
}

fn tls_mode(value: &str) -> Result<TlsMode, ParseError> {
    match &*value.to_ascii_lowercase() {
        "true" | "1" => Ok(TlsMode::Required(CertificateCheck::Full)),
        "false" | "0" => Ok(TlsMode::Off),
        "skip-verify" => Ok(TlsMode::Required(CertificateCheck::Anything)),
        "preferred" => Ok(TlsMode::Preferred),
        _ => Err("tls in the connection string must be true, false, skip-verify or preferred".into()),
    }
}
