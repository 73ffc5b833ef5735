//! The HTTP interface of ClickHouse: its URL, and the number in the first column of the first row.

use serde_json::Value;

use crate::parameters::Secret;
use crate::responses::{hidden, json, kind, parsed};
use crate::web::{escaped, path_unescaped};
use crate::{ParseError, ScalerError};

/// Ports of the native protocol, without and with TLS, and the ports of the HTTP interface of the same server.
const NATIVE_PORTS: [(u16, u16); 2] = [(9000, PLAIN_PORT), (9440, TLS_PORT)];
/// Default port of the HTTP interface.
const PLAIN_PORT: u16 = 8123;
/// Default port of the HTTP interface with TLS.
const TLS_PORT: u16 = 8443;
/// Exceptions of ClickHouse that have a remedy in the trigger or its authentication.
const EXCEPTIONS: [(u32, &str); 10] = [
    (46, "unknown function"),
    (47, "unknown identifier"),
    (60, "unknown table"),
    (62, "syntax error"),
    (81, "unknown database"),
    (164, "the query writes, but only reading is allowed"),
    (192, "unknown user"),
    (193, "wrong password"),
    (497, "the user may not do this"),
    (516, "wrong user or password"),
];

/// Where and as whom a query is sent.
#[derive(Debug, PartialEq)]
pub(super) struct ClickHouseServer {
    /// URLs of the HTTP interface, without a path; the first that responds is used.
    pub(super) urls: Vec<String>,
    /// User name.
    pub(super) user: String,
    /// Password.
    pub(super) password: Secret,
    /// Database.
    pub(super) database: String,
    /// Accepts any server certificate.
    pub(super) insecure: bool,
}

impl ClickHouseServer {
    /// A server of the parameters `host` and `port`, which is the native port by default.
    pub(super) fn new(host: &str, port: &str, tls: bool) -> Result<Self, ParseError> {
        let port = number(port)?;
        // An IPv6 address has brackets in a URL.
        let host =
            if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
        Ok(Self {
            urls: vec![address(&host, http_port(port), tls)],
            user: "default".to_owned(),
            password: Secret::new(""),
            database: "default".to_owned(),
            insecure: false,
        })
    }

    /// Parses a connection string. Errors do not quote it, because it contains a password.
    pub(super) fn parse(text: &str) -> Result<Self, ParseError> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let native = match scheme {
            "clickhouse" | "tcp" | "native" => true,
            "http" | "https" => false,
            _ => return Err("connectionString must begin with clickhouse://, http:// or https://".into()),
        };
        let (server, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (server, database) = server.split_once('/').unwrap_or((server, ""));
        let (login, hosts) = server.rsplit_once('@').unwrap_or(("", server));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let mut password = clear(password)?;
        let (mut user, mut database) = (clear(user)?, clear(database.trim_end_matches('/'))?);
        let (mut tls, mut insecure) = (scheme == "https", false);
        for (name, value) in options.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "secure" => tls |= is_true(value),
                "skip_verify" => insecure = is_true(value),
                "username" => user = clear(value)?,
                "password" => password = clear(value)?,
                "database" => database = clear(value)?,
                _ => {}
            }
        }
        for text in [&mut user, &mut database] {
            if text.is_empty() {
                "default".clone_into(text);
            }
        }
        let urls = hosts.split(',').map(|one| url_of(one.trim(), native, tls)).collect::<Result<_, _>>()?;
        Ok(Self { urls, user, password: Secret::new(password), database, insecure })
    }

    /// The URL of a query. `GET` makes the server refuse queries that write.
    pub(super) fn query_url(&self, url: &str, query: &str) -> String {
        let plain = |text: &str| escaped(text).replace('+', "%20");
        let (database, query) = (plain(&self.database), plain(query));
        format!("{url}/?database={database}&default_format=JSONCompact&query={query}")
    }
}

fn url_of(text: &str, native: bool, tls: bool) -> Result<String, ParseError> {
    // The colons of an IPv6 address are in brackets.
    let colon = text.rfind(':').filter(|at| text.rfind(']').is_none_or(|end| end < *at));
    let (host, port) = match colon {
        Some(at) => text.split_at_checked(at).unwrap_or((text, "")),
        None => (text, ""),
    };
    if host.is_empty() {
        return Err("connectionString names no host".into());
    }
    let port = match port.trim_start_matches(':') {
        "" if tls => TLS_PORT,
        "" => PLAIN_PORT,
        port if native => http_port(number(port)?),
        port => number(port)?,
    };
    Ok(address(host, port, tls))
}

fn address(host: &str, port: u16, tls: bool) -> String {
    format!("{}://{host}:{port}", if tls { "https" } else { "http" })
}

fn http_port(port: u16) -> u16 {
    NATIVE_PORTS.iter().find(|(native, _)| *native == port).map_or(port, |(_, http)| *http)
}

fn number(port: &str) -> Result<u16, ParseError> {
    port.trim().parse().map_err(|_| ParseError::from("the port of ClickHouse must be a number up to 65535"))
}

fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

fn clear(text: &str) -> Result<String, ParseError> {
    path_unescaped(text).ok_or_else(|| ParseError::from("connectionString has an invalid escape"))
}

/// The number in the first column of the first row; 0 without rows, as in KEDA.
pub(super) fn value(status: u16, body: &[u8]) -> Result<f64, ScalerError> {
    if status != 200 {
        return Err(refused(status, body));
    }
    let answer = json(body)?;
    if answer.get("exception").is_some() {
        bail!("ClickHouse stopped in the middle of the result");
    }
    let (columns, rows) = (answer.get("meta"), answer.get("data"));
    let (Some(_), Some(rows)) = (columns.and_then(Value::as_array), rows.and_then(Value::as_array)) else {
        bail!(
            "the answer has {} at meta and {} at data instead of lists: the query must not have FORMAT",
            kind(columns),
            kind(rows)
        );
    };
    let Some(row) = rows.first() else { return Ok(0.0) };
    let first = row.get(0);
    let number = match first {
        // Numbers of 64 bits are strings.
        Some(Value::String(text)) => parsed(text),
        other => other.and_then(Value::as_f64),
    };
    number.filter(|number| number.is_finite()).ok_or_else(|| {
        scaler_error!("the first column of the first row has {} instead of a number", kind(first))
    })
}

/// The error of a response; of the body, only the number of the exception is quoted.
fn refused(status: u16, body: &[u8]) -> ScalerError {
    let text = std::str::from_utf8(body).unwrap_or_default();
    if text.contains("clickhouse-client program") {
        return scaler_error!(
            "the port is that of ClickHouse's native protocol: give the port of the HTTP interface, such as {PLAIN_PORT}"
        );
    }
    let code =
        text.strip_prefix("Code: ").and_then(|rest| rest.split(['.', ',']).next()?.parse::<u32>().ok());
    match code {
        Some(code) => {
            let known = EXCEPTIONS.iter().find(|(number, _)| *number == code);
            let known = known.map_or_else(String::new, |(_, text)| format!(" ({text})"));
            scaler_error!("ClickHouse returned {status} with exception {code}{known}")
        }
        None => scaler_error!("ClickHouse returned {status}: {}", hidden(body)),
    }
}
