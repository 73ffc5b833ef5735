//! Connection strings: `sqlserver://user:password@host:port?database=db` or `server=host,port;user id=user;password=…`.

use crate::ParseError;
use crate::parameters::Secret;
use crate::tls::CertificateCheck;
use crate::web::{path_unescaped, query_unescaped};

/// The default port.
const DEFAULT_PORT: u16 = 1433;

/// Where and as whom to connect.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct MssqlDsn {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) password: Secret,
    pub(super) database: String,
    pub(super) encryption: MssqlEncryption,
    /// Name in the server's certificate; that of the host if it is empty.
    pub(super) certificate_name: String,
    /// Whether a replica may answer.
    pub(super) read_only: bool,
    /// How to log in at Microsoft Entra ID; empty for a login of SQL Server.
    pub(super) federated: String,
}

/// When TLS is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum MssqlEncryption {
    Never,
    /// If the server supports it.
    Preferred(CertificateCheck),
    Required(CertificateCheck),
}

impl MssqlDsn {
    /// Parses a connection string. Errors do not quote it, because it contains a password.
    pub(super) fn parse(text: &str) -> Result<Self, ParseError> {
        let mut fields = match text.split_once("://") {
            Some(("sqlserver" | "mssql" | "azuresql", rest)) => url_fields(rest)?,
            _ => match text.strip_prefix("odbc:") {
                Some(pairs) => pair_fields(pairs, ('{', '}'))?,
                None => pair_fields(text, ('"', '"'))?,
            },
        };
        let mut take = |names: &[&str]| {
            let found = fields.iter().rposition(|(name, _)| names.contains(&&**name))?;
            Some(fields.remove(found).1).filter(|value| !value.is_empty())
        };
        let server = take(&["server", "data source", "addr", "address", "network address"])
            .ok_or("the connection string names no server".to_owned())?;
        let port = take(&["port"]);
        let (host, port) = host_and_port(&server, port.as_deref())?;
        let trust = take(&["trustservercertificate"]);
        Ok(Self {
            host,
            port,
            user: take(&["user id", "uid", "user"]).unwrap_or_default(),
            password: Secret::new(take(&["password", "pwd"]).unwrap_or_default()),
            database: take(&["database", "initial catalog"]).unwrap_or_default(),
            encryption: encryption(take(&["encrypt"]).as_deref(), trust.as_deref())?,
            certificate_name: take(&["hostnameincertificate"]).unwrap_or_default(),
            read_only: take(&["applicationintent"])
                .is_some_and(|given| given.eq_ignore_ascii_case("readonly")),
            federated: take(&["fedauth"]).unwrap_or_default(),
        })
    }

    /// A server without a connection string, as KEDA connects to it.
    pub(super) fn new(host: &str, port: &str) -> Result<Self, ParseError> {
        let host = host.strip_prefix("tcp:").unwrap_or(host);
        let port = Some(port).filter(|port| !matches!(*port, "" | "0"));
        // KEDA makes a URL of the host, which may contain a port.
        let (host, port) = match (port, host.rsplit_once(':')) {
            (None, Some((name, port))) if !name.contains(':') || name.ends_with(']') => (name, Some(port)),
            (port, _) => (host, port),
        };
        let (host, port) = host_and_port(host, port)?;
        Ok(Self {
            host,
            port,
            user: String::new(),
            password: Secret::default(),
            database: String::new(),
            encryption: MssqlEncryption::Preferred(CertificateCheck::Anything),
            certificate_name: String::new(),
            read_only: false,
            federated: String::new(),
        })
    }
}

/// `user:password@host:port/instance?name=value&…`.
fn url_fields(text: &str) -> Result<Vec<(String, String)>, ParseError> {
    let invalid = || ParseError::from("the connection string is no valid URL");
    let plain = |text: &str| query_unescaped(text).ok_or_else(invalid);
    let (server, query) = text.split_once('?').unwrap_or((text, ""));
    let (login, address) = server.rsplit_once('@').unwrap_or(("", server));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let (address, instance) = address.split_once('/').unwrap_or((address, ""));
    let mut fields = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        fields.push((plain(name)?.to_lowercase(), plain(value)?));
    }
    // A plus sign is itself before the question mark.
    let plain = |text: &str| path_unescaped(text).ok_or_else(invalid);
    let server = match address.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            fields.push(("port".to_owned(), port.to_owned()));
            host
        }
        _ => address,
    };
    let server = if instance.is_empty() { plain(server)? } else { format!("{}\\{instance}", plain(server)?) };
    fields.push(("server".to_owned(), server));
    fields.push(("user id".to_owned(), plain(user)?));
    fields.push(("password".to_owned(), plain(password)?));
    Ok(fields)
}

/// `name=value;…`; values may be in quotes. Microsoft's Go driver knows braces after `odbc:`, and else double quotes only: passwords
/// may begin with all other characters.
fn pair_fields(text: &str, (open, close): (char, char)) -> Result<Vec<(String, String)>, ParseError> {
    let mut fields = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_at(rest.find(['=', ';']).unwrap_or(rest.len()));
        let Some(after) = after.strip_prefix('=') else {
            // The driver ignores a part without an equals sign.
            rest = next_field(after);
            continue;
        };
        let after = after.trim_start();
        let (value, tail) = if after.starts_with(open) {
            let (value, tail) = quoted(after, close)?;
            let tail = tail.trim_start();
            if !tail.is_empty() && !tail.starts_with(';') {
                return Err("the connection string has a quoted value without a semicolon after it".into());
            }
            (value, tail)
        } else {
            let (value, tail) = after.split_once(';').unwrap_or((after, ""));
            (value.trim().to_owned(), tail)
        };
        fields.push((name.trim().to_lowercase(), value));
        rest = next_field(tail);
    }
    Ok(fields)
}

/// The text without the end of a field.
fn next_field(tail: &str) -> &str {
    tail.trim_start_matches(|c: char| c == ';' || c.is_whitespace())
}

/// A value in quotes, and what follows it; the closing quote is written twice inside of it.
fn quoted(text: &str, close: char) -> Result<(String, &str), ParseError> {
    let mut value = String::new();
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter != close {
            value.push(letter);
        } else if letters.next_if(|(_, next)| *next == close).is_some() {
            value.push(close);
        } else {
            return Ok((value, text.get(at + 1..).unwrap_or_default()));
        }
    }
    Err("the connection string has a value whose quote is not closed".into())
}

/// Host and port of `[tcp:]host[\instance][,port]`.
fn host_and_port(server: &str, port: Option<&str>) -> Result<(String, u16), ParseError> {
    let server = server.strip_prefix("tcp:").unwrap_or(server);
    let (server, given) = server.split_once(',').map_or((server, port), |(host, port)| (host, Some(port)));
    let (host, instance) = server.split_once('\\').unwrap_or((server, ""));
    let port = match given.map(str::trim) {
        None if !instance.is_empty() => {
            return Err(
                "instances are not looked up: give the port of the instance instead of its name".into()
            );
        }
        None => DEFAULT_PORT,
        Some(port) => port.parse().map_err(|_| ParseError::from("the port is no number from 0 to 65535"))?,
    };
    let host = host.trim().trim_start_matches('[').trim_end_matches(']');
    let host = if matches!(host, "." | "(local)" | "") { "localhost" } else { host };
    Ok((host.to_owned(), port))
}

/// The certificate is checked if the connection string requires encryption and does not trust any certificate, as in Microsoft's driver.
fn encryption(encrypt: Option<&str>, trust: Option<&str>) -> Result<MssqlEncryption, ParseError> {
    let is_trusted = match trust.map(str::to_ascii_lowercase).as_deref() {
        None => encrypt.is_none(),
        Some("true" | "yes" | "1" | "t") => true,
        Some("false" | "no" | "0" | "f") => false,
        Some(_) => return Err("trustServerCertificate in the connection string must be true or false".into()),
    };
    let check = if is_trusted { CertificateCheck::Anything } else { CertificateCheck::Full };
    match encrypt.map(str::to_ascii_lowercase).as_deref() {
        None | Some("false" | "optional" | "no" | "0" | "f") => Ok(MssqlEncryption::Preferred(check)),
        Some("true" | "mandatory" | "yes" | "1" | "t") => Ok(MssqlEncryption::Required(check)),
        Some("disable") => Ok(MssqlEncryption::Never),
        Some("strict") => Err("encrypt=strict (TDS 8.0) is not supported: use encrypt=true".into()),
        Some(_) => Err("encrypt in the connection string must be true, false or disable".into()),
    }
}
