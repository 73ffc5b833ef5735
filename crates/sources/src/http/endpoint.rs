//! A server: its URL, TLS material and credentials.

use std::fmt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;

use super::error::HttpErrorCause;

/// A server: its URL, TLS material and credentials.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Base URL. Its path is a prefix of every request path, its query is dropped. User and password in the URL
    /// become basic authentication.
    pub url: String,
    /// CA bundle (PEM file) that replaces the system roots.
    pub ca_file: Option<PathBuf>,
    /// CA bundle (PEM) in memory; [`Endpoint::ca_file`] takes precedence.
    pub ca_bundle: Option<Vec<u8>>,
    /// Whether the system roots are trusted in addition to the given CA.
    pub system_roots_too: bool,
    /// Client certificate (PEM) in memory; [`Endpoint::certificate_file`] takes precedence.
    pub certificate: Option<Vec<u8>>,
    /// Key (PEM) of the client certificate in memory.
    pub key: Option<Secret>,
    /// Client certificate (PEM file).
    pub certificate_file: Option<PathBuf>,
    /// Key (PEM file) of the client certificate.
    pub key_file: Option<PathBuf>,
    /// Whether server certificates are not verified.
    pub insecure: bool,
    /// Whether TLS 1.3 is required.
    pub only_tls13: bool,
    /// Whether every connection is closed after one request.
    pub close_connections: bool,
    /// Name that the server certificate must carry, if it is not the host of the URL.
    pub server_name: Option<String>,
    /// How requests are authenticated.
    pub auth: Auth,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
}

/// How requests are authenticated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Auth {
    /// Requests carry no credentials.
    #[default]
    None,
    /// Bearer token in a file, which is read again when it changes and when the server refuses it.
    TokenFile(PathBuf),
    /// Bearer token.
    Token(Secret),
    /// Basic authentication.
    Basic {
        /// User.
        user: String,
        /// Password.
        password: Secret,
    },
}

/// A secret text; `Debug` does not print it.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl fmt::Debug for Endpoint {
    /// Omits secrets; header values often are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| &**name).collect();
        f.debug_struct("Endpoint")
            .field("url", &without_user(&self.url))
            .field("ca_file", &self.ca_file)
            .field("certificate_file", &self.certificate_file)
            .field("insecure", &self.insecure)
            .field("server_name", &self.server_name)
            .field("auth", &self.auth)
            .field("headers", &headers)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint with defaults for everything but the URL.
    pub fn at(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }
}

/// A parsed base URL.
#[derive(Clone, Debug)]
pub(super) struct ParsedUrl {
    /// `https://host:port`, for requests and error texts.
    pub(super) server: String,
    /// Prefix of every request path, without a trailing slash.
    pub(super) path: String,
    /// User and password from the URL.
    pub(super) user: Option<(String, Secret)>,
    /// Whether the scheme is `https`.
    pub(super) tls: bool,
}

impl ParsedUrl {
    pub(super) fn parse(url: &str) -> Result<Self, HttpErrorCause> {
        let shown = without_user(url);
        let bad = |reason: &str| HttpErrorCause::Url { url: shown.clone(), reason: reason.to_owned() };
        let uri: Uri = url.trim().parse().map_err(|error: http::uri::InvalidUri| bad(&error.to_string()))?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) => return Err(bad("only http and https are known")),
            None => return Err(bad("it does not begin with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| bad("it has no host"))?.as_str();
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        if host.is_empty() || host.starts_with(':') {
            return Err(bad("it has no host"));
        }
        if !has_plain_port(host) {
            return Err(bad("its port is not a number"));
        }
        let user = user.map(|user| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            (decoded(name), Secret::new(decoded(password)))
        });
        let scheme = if tls { "https" } else { "http" };
        let path = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { server: format!("{scheme}://{host}"), path, user, tls })
    }
}

/// Value of the `Authorization` header for basic authentication.
pub(super) fn basic(user: &str, password: &Secret) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.reveal())))
}

/// A URL without user, password, query and fragment.
pub fn without_user(url: &str) -> String {
    let before_query = |text: &str| text.split(['?', '#']).next().unwrap_or_default().to_owned();
    let (scheme, whole) = url.split_once("://").unwrap_or(("", url));
    let authority = whole.split(['/', '?', '#']).next().unwrap_or_default();
    let shown = match (authority.rfind('@'), whole.rsplit_once('@')) {
        (Some(at), _) => before_query(whole.get(at + 1..).unwrap_or_default()),
        // `user:pass/word@host`: the text that looks like a port is the start of an unescaped password.
        (None, Some((_, host))) if !has_plain_port(authority) => before_query(host),
        _ => before_query(whole),
    };
    if scheme.is_empty() { shown } else { format!("{scheme}://{shown}") }
}

/// Whether the port, if there is one, is numeric.
fn has_plain_port(authority: &str) -> bool {
    let port = authority.rfind(':').filter(|at| authority.rfind(']').is_none_or(|end| end < *at));
    let port = port.and_then(|at| authority.get(at + 1..)).unwrap_or_default();
    port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Decodes `%XX`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = match (first, after) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high * 16 + low),
            _ => None,
        };
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|digit| digit as u8)
}
