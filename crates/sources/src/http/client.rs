//! HTTP client with a deadline and a size limit per request.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::text::truncated;
use bytes::Bytes;
use http::header::{AUTHORIZATION, LOCATION, PROXY_AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use locks::MutexExt as _;
use rustls::pki_types::ServerName;
use tokio::time::{Instant, timeout_at};

use super::endpoint::{Auth, Endpoint, ParsedUrl, basic, without_user};
use super::error::{HttpError, HttpErrorCause, classify};
use super::message::{BodySource, HttpRequest, HttpResponse, StreamedResponse};
use super::proxy::ProxyRules;
use super::trust::{self, FileStamp};
use crate::dial::{Dialer, ProxyServer, UriConnector};

/// Idle connections are closed after this time; shorter than the usual limit of servers.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(45);
/// Bytes that a connection buffers before its response is read: a response that waits for its share of a budget must not take
/// memory meanwhile.
const MAX_BUFFERED_BYTES: usize = 128 << 10;
/// Characters of the address of a redirect in an error. A server may send as many as fit into a header, and errors are stored in
/// the status of objects.
const MAX_REDIRECT_CHARS: usize = 200;
/// Value of the `User-Agent` header.
const USER_AGENT_VALUE: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));
type HyperClient = legacy::Client<HttpsConnector<UriConnector>, Full<Bytes>>;

/// Client of one server. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct HttpClient(Arc<HttpClientInner>);

struct HttpClientInner {
    endpoint: Endpoint,
    dialer: Dialer,
    proxy: Option<ProxyServer>,
    url: ParsedUrl,
    server: Arc<str>,
    fixed: HeaderMap,
    /// Connection pool, and stamps of the files it was built with.
    hyper: Mutex<(HyperClient, [FileStamp; 3])>,
    /// Token read from the token file, and the stamp of that file.
    token: Mutex<(Option<HeaderValue>, FileStamp)>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.endpoint.fmt(f)
    }
}

impl HttpClient {
    /// Creates a client for an address that an administrator has written. URL, headers and certificate files must be valid now;
    /// the token file may appear later.
    pub fn new(endpoint: Endpoint) -> Result<Self, HttpError> {
        Self::with_proxies(endpoint, Dialer::unrestricted(), &ProxyRules::default())
    }

    /// Creates a client whose connections are made by this dialer, for addresses that a tenant has chosen, and that sends its requests
    /// through a proxy, if there is one for its server.
    pub fn with_proxies(endpoint: Endpoint, dialer: Dialer, proxies: &ProxyRules) -> Result<Self, HttpError> {
        let url = ParsedUrl::parse(&endpoint.url).map_err(|cause| HttpError::new("", cause))?;
        let fail = |cause| HttpError::new(&url.server, cause);
        let mut fixed = HeaderMap::new();
        fixed.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_VALUE));
        for (name, value) in &endpoint.headers {
            let known = HeaderName::try_from(name).map_err(|_| {
                fail(HttpErrorCause::Invalid(format!("{name:?} cannot be the name of a header")))
            })?;
            let mut value = HeaderValue::try_from(value).map_err(|_| {
                fail(HttpErrorCause::Invalid(format!(
                    "the value of header {name} has characters that cannot be sent"
                )))
            })?;
            value.set_sensitive(true);
            fixed.append(known, value);
        }
        if let Some(own) = own_header(&endpoint.auth, &url).map_err(fail)? {
            fixed.insert(AUTHORIZATION, own);
        }
        let proxy = proxies.proxy_for(&url).map_err(fail)?;
        // Requests with TLS are sent through a tunnel, whose own request has this header.
        if let Some(authorization) =
            proxy.as_ref().filter(|_| !url.tls).and_then(|p| p.authorization.as_ref())
            && let Ok(mut value) = HeaderValue::try_from(authorization)
        {
            value.set_sensitive(true);
            fixed.insert(PROXY_AUTHORIZATION, value);
        }
        let stamps = trust::stamps(&endpoint);
        let hyper = connections(&endpoint, &url, &dialer, proxy.as_ref()).map_err(fail)?;
        let server = Arc::from(&*url.server);
        let hyper = Mutex::new((hyper, stamps));
        let token = Mutex::new((None, None));
        Ok(Self(Arc::new(HttpClientInner { endpoint, dialer, proxy, url, server, fixed, hyper, token })))
    }

    /// `https://host:port`, as shown in errors and metrics.
    pub fn server(&self) -> &str {
        &self.0.server
    }

    /// Base URL without user, password, query and trailing slash.
    pub fn base(&self) -> String {
        format!("{}{}", self.0.url.server, self.0.url.path)
    }

    /// Sends a request and reads the whole response.
    pub async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let budget = request.budget.clone();
        let mut answer = self.stream(request).await?;
        // A response whose `Content-Length` exceeds the limit is not read.
        if answer.announced() > answer.left {
            return Err(HttpError::new(&self.0.server, HttpErrorCause::TooLarge(answer.max_bytes)));
        }
        let body = match budget {
            Some(budget) => answer.rest_within(&budget).await?,
            None => answer.rest().await?,
        };
        Ok(HttpResponse { status: answer.status, headers: answer.headers, body })
    }

    /// Sends a request; the caller reads the body in chunks.
    pub async fn stream(&self, request: HttpRequest) -> Result<StreamedResponse, HttpError> {
        let started = Instant::now();
        let deadline = started + request.timeout;
        let fail = |cause| HttpError::new(&self.0.server, cause);
        let answer = timeout_at(deadline, self.attempts(&request))
            .await
            .map_err(|_| fail(HttpErrorCause::TimedOut(request.timeout)))?
            .map_err(fail)?;
        let (parts, body) = answer.into_parts();
        if parts.status.is_redirection()
            && let Some(to) = parts.headers.get(LOCATION)
        {
            let to = without_user(&String::from_utf8_lossy(to.as_bytes()));
            return Err(fail(HttpErrorCause::Redirected(truncated(&to, MAX_REDIRECT_CHARS))));
        }
        Ok(StreamedResponse {
            status: parts.status,
            headers: parts.headers,
            source: BodySource::Wire(body),
            server: Arc::clone(&self.0.server),
            started,
            deadline,
            left: request.max_bytes,
            max_bytes: request.max_bytes,
        })
    }

    /// Sends a request. Retries once if the token was refused and the file has a new one, or if a kept-alive
    /// connection was dead.
    async fn attempts(&self, request: &HttpRequest) -> Result<http::Response<Incoming>, HttpErrorCause> {
        let token = self.0.token(false)?;
        let mut again = true;
        loop {
            let answer = self.0.hyper().request(self.request(request, token.as_ref())?).await;
            match answer {
                Ok(answer) if answer.status() == StatusCode::UNAUTHORIZED && again => {
                    let fresh = self.0.token(true)?;
                    if fresh == token || fresh.is_none() {
                        return Ok(answer);
                    }
                    return self.once(request, fresh.as_ref()).await;
                }
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    let cause = classify(&error);
                    // The server closed an idle connection while it was reused. All requests are safe to repeat.
                    if again && !error.is_connect() && matches!(cause, HttpErrorCause::ConnectionLost(_)) {
                        again = false;
                        continue;
                    }
                    return Err(cause);
                }
            }
        }
    }

    async fn once(
        &self,
        request: &HttpRequest,
        token: Option<&HeaderValue>,
    ) -> Result<http::Response<Incoming>, HttpErrorCause> {
        self.0.hyper().request(self.request(request, token)?).await.map_err(|error| classify(&error))
    }

    fn request(
        &self,
        request: &HttpRequest,
        token: Option<&HeaderValue>,
    ) -> Result<Request<Full<Bytes>>, HttpErrorCause> {
        let ParsedUrl { server, path, .. } = &self.0.url;
        let invalid =
            |error: &dyn fmt::Display| HttpErrorCause::Invalid(format!("{}: {error}", request.path));
        let uri: Uri = format!("{server}{path}{}", request.path).parse().map_err(|error| invalid(&error))?;
        let mut sent = Request::new(Full::new(request.body.clone()));
        *sent.method_mut() = request.method.clone();
        *sent.uri_mut() = uri;
        sent.headers_mut().clone_from(&self.0.fixed);
        if let Some(token) = token {
            sent.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        for (name, value) in &request.headers {
            sent.headers_mut().insert(name, value.clone());
        }
        Ok(sent)
    }
}

impl HttpClientInner {
    /// Connection pool for the current certificate files. If new files cannot be used, the old pool stays.
    fn hyper(&self) -> HyperClient {
        let mut cached = self.hyper.locked();
        if self.url.tls {
            let stamps = trust::stamps(&self.endpoint);
            if stamps != cached.1 {
                // Stored in any case, so that a broken file is logged once.
                cached.1 = stamps;
                match connections(&self.endpoint, &self.url, &self.dialer, self.proxy.as_ref()) {
                    Ok(hyper) => cached.0 = hyper,
                    Err(cause) => {
                        tracing::warn!(server = %self.server, %cause, "new certificates cannot be used; the old ones stay");
                    }
                }
            }
        }
        cached.0.clone()
    }

    /// Token of the token file, read again if the file changed or if `again` is set.
    fn token(&self, again: bool) -> Result<Option<HeaderValue>, HttpErrorCause> {
        let Auth::TokenFile(path) = &self.endpoint.auth else { return Ok(None) };
        let mut cached = self.token.locked();
        let stamp = trust::stamp(path);
        if again || cached.0.is_none() || stamp != cached.1 {
            match trust::read(path).and_then(|bytes| bearer(&bytes, &path.display())) {
                Ok(token) => *cached = (Some(token), stamp),
                // The file may be missing for a moment while it is replaced.
                Err(cause) if cached.0.is_none() => return Err(cause),
                Err(_) => {}
            }
        }
        Ok(cached.0.clone())
    }
}

fn own_header(auth: &Auth, url: &ParsedUrl) -> Result<Option<HeaderValue>, HttpErrorCause> {
    let text = match (auth, &url.user) {
        (Auth::TokenFile(_), _) | (Auth::None, None) => return Ok(None),
        (Auth::Token(token), _) => return bearer(token.reveal().as_bytes(), &"token").map(Some),
        (Auth::Basic { user, password }, _) | (Auth::None, Some((user, password))) => basic(user, password),
    };
    let mut value = HeaderValue::try_from(text)
        .map_err(|_| HttpErrorCause::Invalid("user and password cannot be sent".to_owned()))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// Value of the `Authorization` header for a bearer token; surrounding white space is removed.
fn bearer(token: &[u8], origin: &dyn fmt::Display) -> Result<HeaderValue, HttpErrorCause> {
    let token = token.trim_ascii();
    let bad = |reason: &str| HttpErrorCause::File { path: origin.to_string(), reason: reason.to_owned() };
    if token.is_empty() {
        return Err(bad("the token is empty"));
    }
    let mut value = HeaderValue::from_bytes(&[b"Bearer ", token].concat())
        .map_err(|_| bad("the token has characters that cannot be sent"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn connections(
    endpoint: &Endpoint,
    url: &ParsedUrl,
    dialer: &Dialer,
    proxy: Option<&ProxyServer>,
) -> Result<HyperClient, HttpErrorCause> {
    let http = UriConnector::through(dialer.clone(), proxy.cloned());
    let config = if url.tls { trust::config(endpoint)? } else { trust::unused()? };
    let mut https = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
    if let Some(name) = &endpoint.server_name {
        let name = ServerName::try_from(name.clone())
            .map_err(|_| HttpErrorCause::Invalid(format!("{name} cannot be the name of a server")))?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
        .http1_max_buf_size(MAX_BUFFERED_BYTES)
        .http2_initial_stream_window_size(Some(MAX_BUFFERED_BYTES as u32))
        .http2_initial_connection_window_size(Some(2 * MAX_BUFFERED_BYTES as u32))
        .pool_max_idle_per_host(if endpoint.close_connections { 0 } else { usize::MAX })
        .build(https.enable_all_versions().wrap_connector(http)))
}
