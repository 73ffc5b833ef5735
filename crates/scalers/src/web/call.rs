//! An HTTP request with credentials and TLS settings.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use sources::http::{Auth, Endpoint, Secret};

use super::HttpSettings;
use crate::ScalerError;
use crate::urls::shown;

/// Default maximum size of a response, in bytes.
pub(super) const MAX_RESPONSE_BYTES: usize = 8 << 20;

/// An HTTP request with credentials and TLS settings.
#[derive(Clone)]
pub struct HttpCall {
    /// Method.
    pub method: Method,
    /// URL with path and query.
    pub url: String,
    /// TLS settings and credentials; its URL is not used.
    pub access: Endpoint,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
    /// Timeout, including the whole response.
    pub within: Duration,
    /// Maximum size of the response, in bytes.
    pub at_most: usize,
    /// Key that identifies equal requests, instead of path and query: for URLs that contain the current time, and for `POST`.
    pub same_as: Option<String>,
    /// Never shares a response: for callers that need response headers, which are not kept.
    pub alone: bool,
    /// The address does not come from a tenant, so it is not checked.
    pub own_address: bool,
    /// Credentials with which the headers are signed; empty if the headers themselves identify the caller.
    pub signers: Vec<Secret>,
}

impl fmt::Debug for HttpCall {
    /// Prints no query, headers or body, because they may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = shown(&self.url);
        f.debug_struct("HttpCall")
            .field("method", &self.method)
            .field("url", &url.split('?').next().unwrap_or_default())
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

impl HttpCall {
    /// `GET`.
    pub fn get(url: impl Into<String>, within: Duration) -> Self {
        Self {
            method: Method::GET,
            url: url.into(),
            access: Endpoint::default(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            within,
            at_most: MAX_RESPONSE_BYTES,
            same_as: None,
            alone: false,
            own_address: false,
            signers: Vec::new(),
        }
    }

    /// `POST`; its response is not shared.
    pub fn post(url: impl Into<String>, body: impl Into<Bytes>, within: Duration) -> Self {
        Self { method: Method::POST, body: body.into(), ..Self::get(url, within) }
    }

    /// `POST` of a query that changes nothing: requests with the same URL and body share a response.
    pub fn post_query(url: impl Into<String>, body: impl Into<Bytes>, within: Duration) -> Self {
        let call = Self::post(url, body, within);
        let same_as = format!("POST {}", call.url);
        call.same_as(same_as)
    }

    /// Sets TLS settings and credentials.
    pub fn access(self, access: Endpoint) -> Self {
        Self { access, ..self }
    }

    /// User name and password.
    pub fn basic(mut self, user: &str, password: &Secret) -> Self {
        self.access.auth = Auth::Basic { user: user.to_owned(), password: password.clone() };
        self
    }

    /// Accepts any server certificate.
    pub fn unsafe_ssl(mut self, yes: bool) -> Self {
        self.access.insecure = yes;
        self
    }

    /// Adds a header; the error does not quote the value.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, ScalerError> {
        let known = HeaderName::try_from(name)
            .map_err(|_| scaler_error!("{name:?} cannot be the name of a header"))?;
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| scaler_error!("the value of header {name} has characters that cannot be sent"))?;
        value.set_sensitive(true);
        self.headers.insert(known, value);
        Ok(self)
    }

    /// Shares a response with all requests that have this key, and the same server, credentials, headers and body.
    pub fn same_as(self, name: impl Into<String>) -> Self {
        Self { same_as: Some(name.into()), ..self }
    }

    /// Shares a response with no other request.
    pub fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    /// Sends to an address that no tenant has chosen: the fixed endpoints of identity providers. It is connected to without the
    /// check of [`sources::dial`].
    pub fn own_address(self) -> Self {
        Self { own_address: true, ..self }
    }

    /// Names the credentials of a request whose headers change with time, so that a pause that the source requires is that of all
    /// requests with the same ones.
    pub fn signed_by(mut self, credentials: &[&str]) -> Self {
        self.signers = credentials.iter().copied().map(Secret::new).collect();
        self
    }

    pub(super) fn is_shared(&self) -> bool {
        !self.alone && (self.same_as.is_some() || self.method == Method::GET && self.body.is_empty())
    }

    /// The endpoint to connect to, and the path.
    pub(super) fn source(&self, settings: &HttpSettings) -> (Endpoint, String) {
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

/// Escapes the characters that are invalid in a path with query.
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
