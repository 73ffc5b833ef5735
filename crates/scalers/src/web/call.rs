//! What is asked, and of whom.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use sources::http::{Auth, Endpoint, Secret};

use super::Settings;
use crate::Error;
use crate::urls::shown;

/// Answers that scalers read are small; what is larger is not one of them.
const AT_MOST: usize = 8 << 20;

/// What is asked, and of whom.
#[derive(Clone)]
pub struct Call {
    /// How.
    pub method: Method,
    /// Where, with path and query.
    pub url: String,
    /// Trust and credentials; its URL says nothing.
    pub access: Endpoint,
    /// Headers of this question.
    pub headers: HeaderMap,
    /// What is sent along.
    pub body: Bytes,
    /// How long the whole answer may take.
    pub within: Duration,
    /// How large it may be.
    pub at_most: usize,
    /// What makes it the same question as others, if it is not path and query: for those that have the time in them.
    pub same_as: Option<String>,
    /// Whether it is asked anew each time: for those who need the headers of the answer, which are not kept.
    pub alone: bool,
}

impl fmt::Debug for Call {
    /// Without anything that could be a secret: keys stand in queries, headers and bodies.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = shown(&self.url);
        f.debug_struct("Call")
            .field("method", &self.method)
            .field("url", &url.split('?').next().unwrap_or_default())
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

impl Call {
    /// `GET`.
    pub fn get(url: impl Into<String>, within: Duration) -> Self {
        Self {
            method: Method::GET,
            url: url.into(),
            access: Endpoint::default(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            within,
            at_most: AT_MOST,
            same_as: None,
            alone: false,
        }
    }

    /// `POST`, which is never shared.
    pub fn post(url: impl Into<String>, body: impl Into<Bytes>, within: Duration) -> Self {
        Self { method: Method::POST, body: body.into(), ..Self::get(url, within) }
    }

    /// With trust and credentials.
    pub fn access(self, access: Endpoint) -> Self {
        Self { access, ..self }
    }

    /// By user and password.
    pub fn basic(mut self, user: &str, password: &Secret) -> Self {
        self.access.auth = Auth::Basic { user: user.to_owned(), password: password.clone() };
        self
    }

    /// Without looking at the server's certificate.
    pub fn unsafe_ssl(mut self, yes: bool) -> Self {
        self.access.insecure = yes;
        self
    }

    /// With one more header; the error does not repeat the value.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, Error> {
        let known = HeaderName::try_from(name)
            .map_err(|_| Error::new(format!("{name:?} cannot be the name of a header")))?;
        let mut value = HeaderValue::try_from(value).map_err(|_| {
            Error::new(format!("the value of header {name} has characters that cannot be sent"))
        })?;
        value.set_sensitive(true);
        self.headers.insert(known, value);
        Ok(self)
    }

    /// The same question as all that are called so.
    pub fn same_as(self, name: impl Into<String>) -> Self {
        Self { same_as: Some(name.into()), ..self }
    }

    /// Not the same question as any other.
    pub fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    pub(super) fn is_shared(&self) -> bool {
        self.method == Method::GET && self.body.is_empty() && !self.alone
    }

    /// Whom to ask, and the path.
    pub(super) fn place(&self, settings: &Settings) -> (Endpoint, String) {
        let url = self.url.split('#').next().unwrap_or_default().trim();
        let authority = url.find("://").map_or(0, |at| at + 3);
        let rest = url.get(authority..).unwrap_or_default();
        let end = authority + rest.find(['/', '?']).unwrap_or(rest.len());
        let (server, path) = url.split_at_checked(end).unwrap_or((url, ""));
        let mut endpoint = Endpoint { url: server.to_owned(), ..self.access.clone() };
        settings.apply(&mut endpoint);
        let slash = if path.starts_with('/') { "" } else { "/" };
        (endpoint, format!("{slash}{}", sendable(path)))
    }
}

/// A path with query; what cannot stand in one is escaped.
fn sendable(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'!' | b'#'..=b';' | b'=' | b'?'..=b'Z' | b'[' | b']' | b'_' | b'a'..=b'z' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
