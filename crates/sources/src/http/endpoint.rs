//! Where a server is, and how it wants to be asked.

use std::fmt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;

use super::error::Cause;

/// Where a server is, and how it wants to be asked.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Base URL; its path stays in front of every path that is asked, its query is dropped. A user and password in it
    /// become basic authentication.
    pub url: String,
    /// Authorities that are trusted instead of the system's (PEM).
    pub ca_file: Option<PathBuf>,
    /// The same from memory, for those who have them from elsewhere (PEM); [`Endpoint::ca_file`] goes first.
    pub ca_bundle: Option<Vec<u8>>,
    /// Whether the system's authorities are trusted besides the given ones.
    pub system_too: bool,
    /// Our own certificate from memory (PEM); [`Endpoint::certificate_file`] goes first.
    pub certificate: Option<Vec<u8>>,
    /// Its key from memory (PEM).
    pub key: Option<Secret>,
    /// Our own certificate (PEM).
    pub certificate_file: Option<PathBuf>,
    /// Its key (PEM).
    pub key_file: Option<PathBuf>,
    /// Whether any certificate of the server will do.
    pub insecure: bool,
    /// Whether TLS 1.2 is too old.
    pub only_tls13: bool,
    /// Whether every connection is used only once.
    pub close: bool,
    /// The name that the server's certificate must have, if it is not the host of the URL.
    pub server_name: Option<String>,
    /// How we show who we are.
    pub auth: Auth,
    /// Headers that go with every request.
    pub headers: Vec<(String, String)>,
}

/// How we show who we are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Auth {
    /// Not at all.
    #[default]
    None,
    /// By the bearer token in a file, which is read again when it changes and when the server refuses it.
    TokenFile(PathBuf),
    /// By a bearer token.
    Token(Secret),
    /// By user and password.
    Basic {
        /// User.
        user: String,
        /// Password.
        password: Secret,
    },
}

/// A text that is never printed.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text from being printed.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one who sends it.
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
    /// Without anything that could be a secret: values of headers often are.
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
    /// An endpoint of which only the URL is special.
    pub fn at(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }
}

/// What a URL says, taken apart.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// `https://host:port`, for people and for requests.
    pub(super) server: String,
    /// Path in front of all paths, without a slash at its end.
    pub(super) path: String,
    /// User and password, if the URL had them.
    pub(super) user: Option<(String, Secret)>,
    /// Whether it is `https`.
    pub(super) tls: bool,
}

impl Place {
    pub(super) fn parse(url: &str) -> Result<Self, Cause> {
        let shown = without_user(url);
        let bad = |reason: &str| Cause::Url { url: shown.clone(), reason: reason.to_owned() };
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
            return Err(bad("its port is no number"));
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

/// The header of basic authentication.
pub(super) fn basic(user: &str, password: &Secret) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.reveal())))
}

/// A URL without user, password, query and fragment.
pub(super) fn without_user(url: &str) -> String {
    let before_query = |text: &str| text.split(['?', '#']).next().unwrap_or_default().to_owned();
    let (scheme, whole) = url.split_once("://").unwrap_or(("", url));
    let authority = whole.split(['/', '?', '#']).next().unwrap_or_default();
    let shown = match (authority.rfind('@'), whole.rsplit_once('@')) {
        (Some(at), _) => before_query(whole.get(at + 1..).unwrap_or_default()),
        // `user:pass/word@host`: what looks like a port is the beginning of a password that nobody escaped.
        (None, Some((_, host))) if !has_plain_port(authority) => before_query(host),
        _ => before_query(whole),
    };
    if scheme.is_empty() { shown } else { format!("{scheme}://{shown}") }
}

/// Whether what follows the host, if anything does, is a number.
fn has_plain_port(authority: &str) -> bool {
    let port = authority.rfind(':').filter(|at| authority.rfind(']').is_none_or(|end| end < *at));
    let port = port.and_then(|at| authority.get(at + 1..)).unwrap_or_default();
    port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Text without `%XX`.
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
