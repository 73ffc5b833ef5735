//! Connection strings: `mongodb://[user:password@]host[:port][,host]/[database][?option=value]`.

use crate::ParseError;
use crate::parameters::Secret;
use crate::web::path_unescaped;

/// The default port.
const DEFAULT_PORT: u16 = 27017;

/// Where and as whom to connect.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct MongoUri {
    pub(super) hosts: Vec<(String, u16)>,
    pub(super) user: String,
    pub(super) password: Secret,
    /// The database of the user.
    pub(super) auth_source: String,
    /// The mechanism; chosen by the server if empty.
    pub(super) mechanism: String,
    pub(super) tls: bool,
    /// Whether the server's certificate is accepted unchecked.
    pub(super) insecure: bool,
    /// Whether the first host is queried even if it is not the primary.
    pub(super) direct: bool,
}

impl MongoUri {
    /// Parses a connection string. Errors do not quote it, because it contains a password.
    pub(super) fn parse(text: &str) -> Result<Self, ParseError> {
        let rest = match text.split_once("://") {
            Some(("mongodb", rest)) => rest,
            Some(("mongodb+srv", _)) => {
                return Err("mongodb+srv is not supported yet, because it needs SRV records of DNS: give a \
                            connection string with mongodb:// and the names of the hosts"
                    .into());
            }
            _ => return Err("the connection string must begin with mongodb://".into()),
        };
        let (server, options) = rest.split_once('?').unwrap_or((rest, ""));
        // A slash in a password must be escaped, so the first one ends the hosts.
        let (server, database) = server.split_once('/').unwrap_or((server, ""));
        let (login, hosts) = server.rsplit_once('@').unwrap_or(("", server));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let clear = |text: &str, what: &str| {
            let text = path_unescaped(text);
            text.ok_or_else(|| {
                ParseError::from(format!("the {what} in the connection string has an invalid escape"))
            })
        };
        let mut uri = Self {
            hosts: hosts.split(',').map(host).collect::<Result<_, _>>()?,
            user: clear(user, "user")?,
            password: Secret::new(clear(password, "password")?),
            auth_source: clear(database, "database")?,
            mechanism: String::new(),
            tls: false,
            insecure: false,
            direct: false,
        };
        for (name, value) in options.split('&').filter_map(|pair| pair.split_once('=')) {
            let yes = value.eq_ignore_ascii_case("true");
            match &*name.to_ascii_lowercase() {
                "authsource" => uri.auth_source = clear(value, "authSource")?,
                "authmechanism" => value.clone_into(&mut uri.mechanism),
                "tls" | "ssl" => uri.tls = yes,
                "tlsinsecure" | "tlsallowinvalidcertificates" | "sslinsecure" => uri.insecure = yes,
                "directconnection" => uri.direct = yes,
                _ => {}
            }
        }
        if uri.auth_source.is_empty() {
            "admin".clone_into(&mut uri.auth_source);
        }
        Ok(uri)
    }
}

/// Host and port.
pub(super) fn host(text: &str) -> Result<(String, u16), ParseError> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port),
        _ => (text, ""),
    };
    let port = match port {
        "" => DEFAULT_PORT,
        port => port.parse().map_err(|_| ParseError::from("a port is no number from 0 to 65535"))?,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || host.contains('/') {
        return Err("the connection string names no host".into());
    }
    Ok((host.to_owned(), port))
}
