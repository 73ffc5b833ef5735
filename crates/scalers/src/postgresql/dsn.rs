//! Connection strings as in libpq, without IO: `key=value` pairs and URLs.

use api::url_escape::unescaped_bytes;
use sources::http::Secret;

use crate::ParseError;
use crate::tls::CertificateCheck;

/// Default port.
const DEFAULT_PORT: u16 = 5432;
/// Maximum length of a password, in bytes: a login with SCRAM hashes it in each iteration.
const MAX_PASSWORD_BYTES: usize = 4 << 10;

/// Whether TLS is used, and how the server certificate is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum SslMode {
    /// Never.
    Disable,
    /// If the server supports it.
    #[default]
    Prefer,
    /// Always.
    Require(CertificateCheck),
}

/// A parsed connection string. It has no Debug, because it contains a password.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Dsn {
    /// Hosts and ports, tried in turn.
    pub(super) hosts: Vec<(String, u16)>,
    /// User name.
    pub(super) user: String,
    /// Password.
    pub(super) password: Secret,
    /// Database; by default that of the user.
    pub(super) database: String,
    /// TLS.
    pub(super) ssl: SslMode,
    /// File of CA certificates that are trusted in addition to the system's; empty if none.
    pub(super) ssl_root_certificate: String,
    /// File of the client certificate.
    pub(super) ssl_certificate: String,
    /// File of its key.
    pub(super) ssl_key: String,
    /// Settings for the server, such as `-c search_path=shop`.
    pub(super) options: String,
    /// Application name, as in `pg_stat_activity`.
    pub(super) application: String,
}

impl Dsn {
    /// Builds a connection string from separate parameters.
    pub(super) fn of_parts(
        host: &str,
        port: &str,
        user: &str,
        password: &Secret,
        database: &str,
        sslmode: &str,
    ) -> Result<Self, ParseError> {
        let dsn = Self {
            user: user.to_owned(),
            password: password.clone(),
            database: database.to_owned(),
            ssl: ssl_mode(sslmode)?,
            ..Self::default()
        };
        let parts = Parts { dsn, host: host.to_owned(), port: port.to_owned() };
        parts.finish()
    }

    /// Parses a connection string. Errors do not quote it, because it contains a password.
    pub(super) fn parse(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        let mut parts = Parts::default();
        if let Some(rest) =
            ["postgres://", "postgresql://"].iter().find_map(|scheme| text.strip_prefix(scheme))
        {
            parts.url(rest)?;
        } else {
            for (key, value) in pairs(text)? {
                parts.set(&key, value)?;
            }
        }
        parts.finish()
    }

    /// Hosts and ports, for errors.
    pub(super) fn name(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        hosts.join(",")
    }
}

/// A connection string while it is parsed.
#[derive(Default)]
struct Parts {
    dsn: Dsn,
    host: String,
    port: String,
}

impl Parts {
    fn set(&mut self, key: &str, value: String) -> Result<(), ParseError> {
        let dsn = &mut self.dsn;
        match key {
            "host" | "hostaddr" => self.host = value,
            "port" => self.port = value,
            "user" => dsn.user = value,
            "password" => dsn.password = Secret::new(value),
            "dbname" | "database" => dsn.database = value,
            "sslmode" => dsn.ssl = ssl_mode(&value)?,
            "sslrootcert" if value == "system" => {}
            "sslrootcert" => dsn.ssl_root_certificate = value,
            "sslcert" => dsn.ssl_certificate = value,
            "sslkey" => dsn.ssl_key = value,
            "options" => dsn.options = value,
            "application_name" | "fallback_application_name" => dsn.application = value,
            "sslpassword" => return Err("sslpassword: give the key without a password".into()),
            "service" | "servicefile" | "passfile" => {
                return Err(
                    format!("{key}: there are no such files here; give host, user and password").into()
                );
            }
            // Ignored: timeouts are set by the client, the others do not affect where to connect or as whom.
            "connect_timeout"
            | "keepalives"
            | "keepalives_idle"
            | "keepalives_interval"
            | "keepalives_count"
            | "tcp_user_timeout"
            | "target_session_attrs"
            | "gssencmode"
            | "krbsrvname"
            | "channel_binding"
            | "client_encoding"
            | "sslnegotiation"
            | "sslsni"
            | "sslcrl"
            | "pool_max_conns" => {}
            // Other keys are session settings, as in libpq.
            other if other.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.') => {
                let value = value.replace('\\', "\\\\").replace(' ', "\\ ");
                dsn.options.push_str(&format!(" -c {other}={value}"));
            }
            _ => return Err("a key of the connection string has characters that no key has".into()),
        }
        Ok(())
    }

    /// Parses the part after `postgres://`.
    fn url(&mut self, rest: &str) -> Result<(), ParseError> {
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let hosts = match authority.rsplit_once('@') {
            Some((user, hosts)) => {
                let (user, password) = user.split_once(':').unwrap_or((user, ""));
                self.dsn.user = decoded(user)?;
                self.dsn.password = Secret::new(decoded(password)?);
                hosts
            }
            None => authority,
        };
        let (mut names, mut ports) = (Vec::new(), Vec::new());
        for host in hosts.split(',') {
            let port_at = host.rfind(':').filter(|at| host.rfind(']').is_none_or(|end| end < *at));
            let (name, port) = port_at.and_then(|at| host.split_at_checked(at)).unwrap_or((host, ""));
            names.push(decoded(name.trim_start_matches('[').trim_end_matches(']'))?);
            let port = port.trim_start_matches(':');
            if !port.bytes().all(|byte| byte.is_ascii_digit()) {
                // The port is not quoted: it may be the beginning of a password that contains `/`.
                let what = "a port of the connection string is no number";
                return Err(format!("{what}; write / ? # @ : in a password as %2F %3F %23 %40 %3A").into());
            }
            ports.push(port.to_owned());
        }
        self.host = names.join(",");
        self.port = if ports.iter().all(String::is_empty) { String::new() } else { ports.join(",") };
        self.dsn.database = decoded(path)?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            self.set(&decoded(key)?, decoded(value)?)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Dsn, ParseError> {
        let Self { mut dsn, host, port } = self;
        if dsn.password.reveal().len() > MAX_PASSWORD_BYTES {
            return Err(format!("the password has more than {MAX_PASSWORD_BYTES} bytes").into());
        }
        let hosts: Vec<&str> = host.split(',').map(str::trim).collect();
        let ports: Vec<&str> = port.split(',').map(str::trim).collect();
        if ports.len() > 1 && ports.len() != hosts.len() {
            return Err(format!("there are {} hosts but {} ports", hosts.len(), ports.len()).into());
        }
        for (index, host) in hosts.iter().enumerate() {
            let port = match ports.get(index).or(ports.first()).copied().unwrap_or_default() {
                "" => DEFAULT_PORT,
                text => match text.parse::<u16>() {
                    Ok(port @ 1..) => port,
                    _ => return Err(format!("{text:?} is no port").into()),
                },
            };
            let host = if host.is_empty() { "localhost" } else { *host };
            dsn.hosts.push((host.to_owned(), port));
        }
        if dsn.user.is_empty() {
            return Err("there is no user in the connection string".into());
        }
        Ok(dsn)
    }
}

fn ssl_mode(text: &str) -> Result<SslMode, ParseError> {
    match text {
        "disable" => Ok(SslMode::Disable),
        "allow" | "prefer" => Ok(SslMode::Prefer),
        "require" => Ok(SslMode::Require(CertificateCheck::Anything)),
        "verify-ca" => Ok(SslMode::Require(CertificateCheck::Authority)),
        "verify-full" => Ok(SslMode::Require(CertificateCheck::Full)),
        other => Err(format!(
            "sslmode {other:?} is not one of disable, allow, prefer, require, verify-ca and verify-full"
        )
        .into()),
    }
}

/// `key=value key2='quoted \' value'`.
fn pairs(text: &str) -> Result<Vec<(String, String)>, ParseError> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let bad = "the connection string is neither a URL nor made of key=value pairs";
        let (key, after) = rest.split_once('=').ok_or(bad)?;
        let key = key.trim();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(bad.into());
        }
        let (value, after) = value(after.trim_start(), key)?;
        pairs.push((key.to_owned(), value));
        rest = after.trim_start();
    }
    Ok(pairs)
}

/// Parses a value; also returns the rest.
fn value<'a>(text: &'a str, key: &str) -> Result<(String, &'a str), ParseError> {
    let quoted = text.strip_prefix('\'');
    let text = quoted.unwrap_or(text);
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        let rest = || text.get(at..).unwrap_or_default();
        match c {
            '\\' => match characters.next() {
                Some((_, escaped)) => value.push(escaped),
                None => return Err(format!("{key}: there is nothing after the last backslash").into()),
            },
            '\'' if quoted.is_some() => return Ok((value, rest().get(1..).unwrap_or_default())),
            c if c.is_whitespace() && quoted.is_none() => return Ok((value, rest())),
            c => value.push(c),
        }
    }
    if quoted.is_some() { Err(format!("{key}: a quote is not closed").into()) } else { Ok((value, "")) }
}

/// Decodes `%XX`.
fn decoded(text: &str) -> Result<String, ParseError> {
    let bad = || "the connection string has a % that is followed by no code".to_owned();
    let bytes = unescaped_bytes(text, false).ok_or_else(bad)?;
    String::from_utf8(bytes).map_err(|_| "the connection string has codes that are no text".into())
}
