//! Connection strings, without IO: `key=value` pairs and URLs, as libpq takes them.

use sources::http::Secret;

use crate::tls::Belief;

/// The port of hosts without one.
const PORT: u16 = 5432;

/// Whether TLS is spoken, and how much of the server's certificate is believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum SslMode {
    /// Never.
    Disable,
    /// If the server can.
    #[default]
    Prefer,
    /// Always.
    Require(Belief),
}

/// Where a server is, and how to speak with it. Not printed: it has a password in it.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Dsn {
    /// Hosts and ports, tried in turn.
    pub(super) hosts: Vec<(String, u16)>,
    /// User.
    pub(super) user: String,
    /// Password.
    pub(super) password: Secret,
    /// Database; the user's if it is empty.
    pub(super) database: String,
    /// TLS.
    pub(super) ssl: SslMode,
    /// File of authorities that are trusted besides the system's; empty if none.
    pub(super) ssl_root_certificate: String,
    /// File of our certificate.
    pub(super) ssl_certificate: String,
    /// File of its key.
    pub(super) ssl_key: String,
    /// Settings for the server, such as `-c search_path=shop`.
    pub(super) options: String,
    /// What we are called in the server's list.
    pub(super) application: String,
}

impl Dsn {
    /// Of parameters.
    pub(super) fn of_parts(
        host: &str,
        port: &str,
        user: &str,
        password: &Secret,
        database: &str,
        sslmode: &str,
    ) -> Result<Self, String> {
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

    /// Of a whole connection string. Errors do not repeat it: there is a password in it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
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

/// What was read so far.
#[derive(Default)]
struct Parts {
    dsn: Dsn,
    host: String,
    port: String,
}

impl Parts {
    fn set(&mut self, key: &str, value: String) -> Result<(), String> {
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
            "sslpassword" => return Err("sslpassword: give the key without a password".to_owned()),
            "service" | "servicefile" | "passfile" => {
                return Err(format!("{key}: there are no such files here; give host, user and password"));
            }
            // Time limits are ours; the others say nothing about where or who.
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
            // As libpq and its likes do it: settings of the session.
            other if other.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.') => {
                let value = value.replace('\\', "\\\\").replace(' ', "\\ ");
                dsn.options.push_str(&format!(" -c {other}={value}"));
            }
            _ => return Err("a key of the connection string has characters that no key has".to_owned()),
        }
        Ok(())
    }

    /// What follows `postgres://`.
    fn url(&mut self, rest: &str) -> Result<(), String> {
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
                // Not repeated: it is the beginning of a password that has a `/` in it.
                let what = "a port of the connection string is no number";
                return Err(format!("{what}; write / ? # @ : in a password as %2F %3F %23 %40 %3A"));
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

    fn finish(self) -> Result<Dsn, String> {
        let Self { mut dsn, host, port } = self;
        let hosts: Vec<&str> = host.split(',').map(str::trim).collect();
        let ports: Vec<&str> = port.split(',').map(str::trim).collect();
        if ports.len() > 1 && ports.len() != hosts.len() {
            return Err(format!("there are {} hosts but {} ports", hosts.len(), ports.len()));
        }
        for (index, host) in hosts.iter().enumerate() {
            let port = match ports.get(index).or(ports.first()).copied().unwrap_or_default() {
                "" => PORT,
                text => match text.parse::<u16>() {
                    Ok(port @ 1..) => port,
                    _ => return Err(format!("{text:?} is no port")),
                },
            };
            let host = if host.is_empty() { "localhost" } else { *host };
            dsn.hosts.push((host.to_owned(), port));
        }
        if dsn.user.is_empty() {
            return Err("there is no user in the connection string".to_owned());
        }
        Ok(dsn)
    }
}

fn ssl_mode(text: &str) -> Result<SslMode, String> {
    match text {
        "disable" => Ok(SslMode::Disable),
        "allow" | "prefer" => Ok(SslMode::Prefer),
        "require" => Ok(SslMode::Require(Belief::Anything)),
        "verify-ca" => Ok(SslMode::Require(Belief::Authority)),
        "verify-full" => Ok(SslMode::Require(Belief::Full)),
        other => Err(format!(
            "sslmode {other:?} is not one of disable, allow, prefer, require, verify-ca and verify-full"
        )),
    }
}

/// `key=value key2='quoted \' value'`.
fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let bad = "the connection string is neither a URL nor made of key=value pairs";
        let (key, after) = rest.split_once('=').ok_or(bad)?;
        let key = key.trim();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(bad.to_owned());
        }
        let (value, after) = value(after.trim_start(), key)?;
        pairs.push((key.to_owned(), value));
        rest = after.trim_start();
    }
    Ok(pairs)
}

/// A value, and what follows it.
fn value<'a>(text: &'a str, key: &str) -> Result<(String, &'a str), String> {
    let quoted = text.strip_prefix('\'');
    let text = quoted.unwrap_or(text);
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        let rest = || text.get(at..).unwrap_or_default();
        match c {
            '\\' => match characters.next() {
                Some((_, escaped)) => value.push(escaped),
                None => return Err(format!("{key}: there is nothing after the last backslash")),
            },
            '\'' if quoted.is_some() => return Ok((value, rest().get(1..).unwrap_or_default())),
            c if c.is_whitespace() && quoted.is_none() => return Ok((value, rest())),
            c => value.push(c),
        }
    }
    if quoted.is_some() { Err(format!("{key}: a quote is not closed")) } else { Ok((value, "")) }
}

/// Text without `%XX`.
fn decoded(text: &str) -> Result<String, String> {
    let bad = || "the connection string has a % that is followed by no code".to_owned();
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16)).ok_or_else(bad);
            bytes.push((digit()? * 16 + digit()?) as u8);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).map_err(|_| "the connection string has codes that are no text".to_owned())
}
