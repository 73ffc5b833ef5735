//! Sends, once, within a time and a size.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::ServerName;
use tokio::time::{Instant, timeout_at};

use super::endpoint::{Auth, Endpoint, Place, basic, without_user};
use super::error::{Cause, Error, classified};
use super::trust::{self, Stamp};

/// How long a connection may take, its TLS handshake not included.
const CONNECT: Duration = Duration::from_secs(5);
/// Connections that nobody used for so long are closed; shorter than what servers usually allow.
const IDLE: Duration = Duration::from_secs(45);
/// Who we say we are.
const AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));
/// How long an answer may take, and how large it may be, unless it is said.
const WITHIN: Duration = Duration::from_secs(30);
const AT_MOST: usize = 64 << 20;

type Hyper = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// What is asked of a server.
#[derive(Clone, Debug)]
pub struct Ask {
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Bytes,
    within: Duration,
    at_most: usize,
}

impl Ask {
    /// A question; `path` may have a query, and follows the path of the endpoint.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        let headers = HeaderMap::new();
        Self { method, path: path.into(), headers, body: Bytes::new(), within: WITHIN, at_most: AT_MOST }
    }

    /// A question without a body.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// With one more header.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// With all these headers.
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }

    /// With a body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Answered to the last byte within this time.
    pub fn within(mut self, time: Duration) -> Self {
        self.within = time;
        self
    }

    /// Answered by at most so many bytes.
    pub fn at_most(mut self, bytes: usize) -> Self {
        self.at_most = bytes;
        self
    }

    /// How it is asked.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Path and query, without the path of the endpoint.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is sent along.
    pub fn payload(&self) -> &Bytes {
        &self.body
    }
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// Code.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// An answer whose body comes in pieces.
pub struct Streamed {
    /// Code.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    source: Source,
    server: Arc<str>,
    started: Instant,
    deadline: Instant,
    left: usize,
    at_most: usize,
}

enum Source {
    Wire(Incoming),
    Pieces(std::collections::VecDeque<Bytes>),
}

impl Streamed {
    /// An answer from memory, for whoever plays the server.
    pub fn from_pieces(status: StatusCode, pieces: impl IntoIterator<Item = Bytes>) -> Self {
        let now = Instant::now();
        Self {
            status,
            headers: HeaderMap::new(),
            source: Source::Pieces(pieces.into_iter().collect()),
            server: Arc::from(""),
            started: now,
            deadline: now + WITHIN,
            left: usize::MAX,
            at_most: usize::MAX,
        }
    }

    /// The next piece of the body; none at its end.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, Error> {
        let fail = |server: &str, cause| Err(Error::new(server, cause));
        loop {
            let piece = match &mut self.source {
                Source::Pieces(pieces) => return Ok(pieces.pop_front()),
                Source::Wire(body) => match timeout_at(self.deadline, body.frame()).await {
                    Err(_) => return fail(&self.server, Cause::TimedOut(self.deadline - self.started)),
                    Ok(None) => return Ok(None),
                    Ok(Some(Err(error))) => return fail(&self.server, classified(&error)),
                    Ok(Some(Ok(frame))) => frame.into_data(),
                },
            };
            // Trailers say nothing to us.
            let Ok(piece) = piece else { continue };
            match self.left.checked_sub(piece.len()) {
                Some(left) => self.left = left,
                None => return fail(&self.server, Cause::TooLarge(self.at_most)),
            }
            return Ok(Some(piece));
        }
    }

    /// The rest of the body.
    pub async fn rest(&mut self) -> Result<Bytes, Error> {
        let Some(first) = self.piece().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.piece().await? else { return Ok(first) };
        let mut all = BytesMut::from(first);
        all.extend_from_slice(&second);
        while let Some(piece) = self.piece().await? {
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }

    /// How large the body will be at least, if the server said so.
    fn announced(&self) -> usize {
        match &self.source {
            Source::Wire(body) => usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX),
            Source::Pieces(pieces) => pieces.iter().map(Bytes::len).sum(),
        }
    }
}

/// Asks one server. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    endpoint: Endpoint,
    place: Place,
    server: Arc<str>,
    fixed: HeaderMap,
    /// Connections, and the files they were made with.
    hyper: Mutex<(Hyper, [Stamp; 3])>,
    /// The token of a file, and the file it was in.
    token: Mutex<(Option<HeaderValue>, Stamp)>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.endpoint.fmt(f)
    }
}

impl Client {
    /// A client for an endpoint whose URL, headers and files can be used now. The token file may come later.
    pub fn new(endpoint: Endpoint) -> Result<Self, Error> {
        let place = Place::parse(&endpoint.url).map_err(|cause| Error::new("", cause))?;
        let fail = |cause| Error::new(&place.server, cause);
        let mut fixed = HeaderMap::new();
        fixed.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        for (name, value) in &endpoint.headers {
            let known = HeaderName::try_from(name)
                .map_err(|_| fail(Cause::Invalid(format!("{name:?} cannot be the name of a header"))))?;
            let mut value = HeaderValue::try_from(value).map_err(|_| {
                fail(Cause::Invalid(format!("the value of header {name} has characters that cannot be sent")))
            })?;
            value.set_sensitive(true);
            fixed.append(known, value);
        }
        if let Some(own) = own_header(&endpoint.auth, &place).map_err(fail)? {
            fixed.insert(AUTHORIZATION, own);
        }
        let stamps = trust::stamps(&endpoint);
        let hyper = connections(&endpoint, &place).map_err(fail)?;
        let server = Arc::from(&*place.server);
        let hyper = Mutex::new((hyper, stamps));
        let token = Mutex::new((None, None));
        Ok(Self(Arc::new(Inner { endpoint, place, server, fixed, hyper, token })))
    }

    /// `https://host:port`, as it is named in errors and metrics.
    pub fn server(&self) -> &str {
        &self.0.server
    }

    /// The URL without user, password, query and trailing slash.
    pub fn base(&self) -> String {
        format!("{}{}", self.0.place.server, self.0.place.path)
    }

    /// Asks, and reads the whole answer.
    pub async fn send(&self, ask: Ask) -> Result<Response, Error> {
        let mut answer = self.stream(ask).await?;
        // What is announced as too large is not begun.
        if answer.announced() > answer.left {
            return Err(Error::new(&self.0.server, Cause::TooLarge(answer.at_most)));
        }
        let body = answer.rest().await?;
        Ok(Response { status: answer.status, headers: answer.headers, body })
    }

    /// Asks, and leaves the body to be read piece by piece.
    pub async fn stream(&self, ask: Ask) -> Result<Streamed, Error> {
        let started = Instant::now();
        let deadline = started + ask.within;
        let fail = |cause| Error::new(&self.0.server, cause);
        let answer = timeout_at(deadline, self.attempts(&ask))
            .await
            .map_err(|_| fail(Cause::TimedOut(ask.within)))?
            .map_err(fail)?;
        let (parts, body) = answer.into_parts();
        if parts.status.is_redirection()
            && let Some(to) = parts.headers.get(LOCATION)
        {
            return Err(fail(Cause::Redirected(without_user(&String::from_utf8_lossy(to.as_bytes())))));
        }
        Ok(Streamed {
            status: parts.status,
            headers: parts.headers,
            source: Source::Wire(body),
            server: Arc::clone(&self.0.server),
            started,
            deadline,
            left: ask.at_most,
            at_most: ask.at_most,
        })
    }

    /// Asks; again if the token was refused and there is a new one, or if a kept connection turned out to be dead.
    async fn attempts(&self, ask: &Ask) -> Result<http::Response<Incoming>, Cause> {
        let token = self.0.token(false)?;
        let mut again = true;
        loop {
            let answer = self.0.hyper().request(self.request(ask, token.as_ref())?).await;
            match answer {
                Ok(answer) if answer.status() == StatusCode::UNAUTHORIZED && again => {
                    let fresh = self.0.token(true)?;
                    if fresh == token || fresh.is_none() {
                        return Ok(answer);
                    }
                    return self.once(ask, fresh.as_ref()).await;
                }
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    let cause = classified(&error);
                    // Closed by the server just when we used it again. Whatever we ask may be asked twice.
                    if again && !error.is_connect() && matches!(cause, Cause::BrokeOff(_)) {
                        again = false;
                        continue;
                    }
                    return Err(cause);
                }
            }
        }
    }

    async fn once(&self, ask: &Ask, token: Option<&HeaderValue>) -> Result<http::Response<Incoming>, Cause> {
        self.0.hyper().request(self.request(ask, token)?).await.map_err(|error| classified(&error))
    }

    fn request(&self, ask: &Ask, token: Option<&HeaderValue>) -> Result<Request<Full<Bytes>>, Cause> {
        let Place { server, path, .. } = &self.0.place;
        let invalid = |error: &dyn fmt::Display| Cause::Invalid(format!("{}: {error}", ask.path));
        let uri: Uri = format!("{server}{path}{}", ask.path).parse().map_err(|error| invalid(&error))?;
        let mut request = Request::new(Full::new(ask.body.clone()));
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = uri;
        request.headers_mut().clone_from(&self.0.fixed);
        if let Some(token) = token {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        for (name, value) in &ask.headers {
            request.headers_mut().insert(name, value.clone());
        }
        Ok(request)
    }
}

impl Inner {
    /// Connections made with the files as they are now. While new files cannot be used, the old ones stay.
    fn hyper(&self) -> Hyper {
        let mut kept = locked(&self.hyper);
        if self.place.tls {
            let stamps = trust::stamps(&self.endpoint);
            if stamps != kept.1 {
                // Remembered in any case: a broken file is complained about once.
                kept.1 = stamps;
                match connections(&self.endpoint, &self.place) {
                    Ok(hyper) => kept.0 = hyper,
                    Err(cause) => {
                        tracing::warn!(server = %self.server, %cause, "new certificates cannot be used; the old ones stay");
                    }
                }
            }
        }
        kept.0.clone()
    }

    /// The token of the token file, read again if the file changed or if it must be.
    fn token(&self, again: bool) -> Result<Option<HeaderValue>, Cause> {
        let Auth::TokenFile(path) = &self.endpoint.auth else { return Ok(None) };
        let mut kept = locked(&self.token);
        let stamp = trust::stamp(path);
        if again || kept.0.is_none() || stamp != kept.1 {
            match trust::read(path).and_then(|bytes| bearer(&bytes, &path.display())) {
                Ok(token) => *kept = (Some(token), stamp),
                // Between two versions of a file there may be none for a moment.
                Err(cause) if kept.0.is_none() => return Err(cause),
                Err(_) => {}
            }
        }
        Ok(kept.0.clone())
    }
}

fn own_header(auth: &Auth, place: &Place) -> Result<Option<HeaderValue>, Cause> {
    let text = match (auth, &place.user) {
        (Auth::TokenFile(_), _) | (Auth::None, None) => return Ok(None),
        (Auth::Token(token), _) => return bearer(token.reveal().as_bytes(), &"token").map(Some),
        (Auth::Basic { user, password }, _) | (Auth::None, Some((user, password))) => basic(user, password),
    };
    let mut value = HeaderValue::try_from(text)
        .map_err(|_| Cause::Invalid("user and password cannot be sent".to_owned()))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// The header of a token; what is around it in its file does not belong to it.
fn bearer(token: &[u8], origin: &dyn fmt::Display) -> Result<HeaderValue, Cause> {
    let token = token.trim_ascii();
    let bad = |reason: &str| Cause::File { path: origin.to_string(), reason: reason.to_owned() };
    if token.is_empty() {
        return Err(bad("the token is empty"));
    }
    let mut value = HeaderValue::from_bytes(&[b"Bearer ", token].concat())
        .map_err(|_| bad("the token has characters that cannot be sent"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn connections(endpoint: &Endpoint, place: &Place) -> Result<Hyper, Cause> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT));
    http.set_keepalive(Some(IDLE));
    let config = if place.tls { trust::config(endpoint)? } else { trust::unused()? };
    let mut https = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
    if let Some(name) = &endpoint.server_name {
        let name = ServerName::try_from(name.clone())
            .map_err(|_| Cause::Invalid(format!("{name} cannot be the name of a server")))?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(if endpoint.close { 0 } else { usize::MAX })
        .build(https.enable_all_versions().wrap_connector(http)))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
