//! Aggregated APIs: requests for the group and version of an APIService go to the server that it names.

#[cfg(test)]
pub(crate) mod tests;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use crate::access::{Pki, User};
use crate::discovery::{AggregatedVersion, ApiResource};
use crate::peer::{PeerAddress, PeerClient, PeerError, ServerTrust, ServiceResolver};
use crate::response::{PLAIN_TEXT, ResponseBody, respond};
use crate::status::Status;

/// How long an aggregated server may take to respond to discovery.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a request to an aggregated server failed.
#[derive(Debug, thiserror::Error)]
enum UpstreamError {
    #[error("its certificates cannot be used")]
    Certificates,
    #[error("its service has no proper name")]
    ServiceName,
    #[error(transparent)]
    Peer(#[from] PeerError),
}

/// The discovery of an aggregated server failed.
#[derive(Debug, thiserror::Error)]
#[error("failing or missing response from {address}: {}", reason.text(address))]
struct DiscoveryError {
    address: String,
    reason: DiscoveryReason,
}

#[derive(Debug, thiserror::Error)]
enum DiscoveryReason {
    #[error("{0}")]
    Send(UpstreamError),
    #[error("{0}")]
    Body(#[from] hyper::Error),
    #[error("bad status {0}")]
    Code(u16),
    #[error("context deadline exceeded")]
    Late,
}

impl DiscoveryReason {
    fn text(&self, address: &str) -> String {
        match self {
            Self::Send(_) | Self::Late => format!("Get {address:?}: {self}"),
            Self::Body(error) => error.to_string(),
            Self::Code(code) => format!("bad status from {address}: {code}"),
        }
    }
}

/// The server of an APIService.
pub(crate) struct Upstream {
    group_version: String,
    namespace: String,
    service: String,
    port: u16,
    find: ServiceResolver,
    /// `None` if its certificates are unusable.
    peer: Option<PeerClient>,
    bundle: Option<Vec<u8>>,
    identity: crate::access::Identity,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Upstream({})", self.group_version)
    }
}

impl Upstream {
    /// The server of an APIService; `None` if the API is served here. Its service is assumed to be on this machine
    /// until [`Upstream::resolved_by`] is called.
    pub(crate) fn of(api_service: &Value, pki: &Pki) -> Option<Self> {
        let service = api_service.pointer("/spec/service").filter(|service| service.is_object())?;
        let text = |value: &Value, field: &str| {
            value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let spec = api_service.get("spec")?;
        let port = service
            .get("port")
            .and_then(Value::as_u64)
            .and_then(|port| u16::try_from(port).ok())
            .unwrap_or(443);
        let insecure = spec.get("insecureSkipTLSVerify") == Some(&Value::Bool(true));
        let bundle = STANDARD.decode(text(spec, "caBundle")).unwrap_or_default();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let upstream = Self {
            group_version: format!("{}/{}", text(spec, "group"), text(spec, "version")),
            namespace: text(service, "namespace"),
            service: text(service, "name"),
            port,
            find: Arc::new(move || Some(address)),
            peer: None,
            bundle: (!insecure).then_some(bundle),
            identity: pki.front_proxy_client.clone(),
        };
        Some(upstream.connected())
    }

    /// The same server; its service is resolved by namespace, name and port for each connection.
    pub(crate) fn resolved_by(
        mut self,
        resolve: impl Fn(&str, &str, u16) -> Option<SocketAddr> + Send + Sync + 'static,
    ) -> Self {
        let (namespace, service, port) = (self.namespace.clone(), self.service.clone(), self.port);
        self.find = Arc::new(move || resolve(&namespace, &service, port));
        self.connected()
    }

    fn connected(mut self) -> Self {
        let trust = self.bundle.as_ref().map_or(ServerTrust::Anybody, |bundle| ServerTrust::Bundle(bundle));
        let address = PeerAddress::Service(self.service.clone(), Arc::clone(&self.find));
        self.peer = PeerClient::new(address, trust, Some(&self.identity)).ok();
        self
    }

    /// `https://metrics.kube-system.svc:443`; the certificate must be valid for this host.
    fn uri(&self, path: &str) -> Option<Uri> {
        format!("https://{}.{}.svc:{}{path}", self.service, self.namespace, self.port).parse().ok()
    }

    async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        path: &str,
    ) -> Result<Response<hyper::body::Incoming>, UpstreamError> {
        let peer = self.peer.as_ref().ok_or(UpstreamError::Certificates)?;
        *request.uri_mut() = self.uri(path).ok_or(UpstreamError::ServiceName)?;
        Ok(peer.send(request).await?)
    }

    /// Gets the server's `APIResourceList`.
    async fn list(&self) -> Result<Bytes, DiscoveryError> {
        let path = format!("/apis/{}", self.group_version);
        let address = format!("https://localhost:{}{path}", self.port);
        let mut request = Request::new(Full::default());
        identify(request.headers_mut(), &User::system());
        let get = async {
            let response = self.send(request, &path).await.map_err(DiscoveryReason::Send)?;
            match response.status() {
                StatusCode::OK => Ok(response.into_body().collect().await?.to_bytes()),
                code => Err(DiscoveryReason::Code(code.as_u16())),
            }
        };
        let found = tokio::time::timeout(DISCOVERY_TIMEOUT, get).await;
        found.unwrap_or(Err(DiscoveryReason::Late)).map_err(|reason| DiscoveryError { address, reason })
    }
}

/// Sets the front-proxy headers of a user; headers about the user that the client sent are removed.
fn identify(headers: &mut HeaderMap, user: &User) {
    const EXTRA: &str = "x-remote-extra-";
    let own = |name: &HeaderName| name.as_str().starts_with("x-remote-") || *name == AUTHORIZATION;
    let said: Vec<HeaderName> = headers.keys().filter(|name| own(name)).cloned().collect();
    for name in said {
        headers.remove(name);
    }
    let mut add = |name: &str, value: &str| {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    };
    add("x-remote-user", &user.name);
    if !user.uid.is_empty() {
        add("x-remote-uid", &user.uid);
    }
    for group in &user.groups {
        add("x-remote-group", group);
    }
    for (key, values) in &user.extra {
        let name = format!("{EXTRA}{}", escaped(key));
        for value in values {
            add(&name, value);
        }
    }
}

/// A key as part of a header name; other characters are percent-encoded.
fn escaped(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
    let one = |byte: u8| {
        if plain(byte) { char::from(byte.to_ascii_lowercase()).to_string() } else { format!("%{byte:02x}") }
    };
    key.bytes().map(one).collect()
}

/// Forwards a request and streams the response back.
pub(crate) async fn forward(
    upstream: Arc<Upstream>,
    parts: Parts,
    body: Bytes,
    user: &User,
) -> Result<Response<ResponseBody>, Status> {
    let path = parts.uri.path_and_query().map_or_else(|| parts.uri.path().to_owned(), ToString::to_string);
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = parts.method;
    *request.headers_mut() = parts.headers;
    let headers = request.headers_mut();
    for name in [HOST, CONNECTION, TRANSFER_ENCODING] {
        headers.remove(name);
    }
    identify(headers, user);
    headers.insert("x-forwarded-proto", HeaderValue::from_static("https"));
    if let Ok(uri) = HeaderValue::from_str(parts.uri.path()) {
        headers.insert("x-forwarded-uri", uri);
    }
    let Ok(answer) = upstream.send(request, &path).await else { return Ok(unavailable()) };
    let (mut parts, body) = answer.into_parts();
    // These headers describe the upstream connection.
    for name in [CONNECTION, TRANSFER_ENCODING] {
        parts.headers.remove(name);
    }
    parts.version = http::Version::default();
    Ok(Response::from_parts(parts, body.map_err(Into::into).boxed_unsync()))
}

/// The response of the real aggregator for an unreachable server.
fn unavailable() -> Response<ResponseBody> {
    respond(503, PLAIN_TEXT, "service unavailable\n")
}

/// The condition `Available` of an APIService, without its time.
pub(crate) async fn availability(upstream: Option<&Upstream>) -> Value {
    let (status, reason, message) = match upstream {
        None => ("True", "Local", "Local APIServices are always available".to_owned()),
        Some(upstream) if (upstream.find)().is_none() => {
            let Upstream { service, namespace, .. } = upstream;
            ("False", "ServiceNotFound", format!("service/{service} in {namespace:?} is not present"))
        }
        Some(upstream) => match upstream.list().await {
            Ok(_) => ("True", "Passed", "all checks passed".to_owned()),
            Err(error) => ("False", "FailedDiscoveryCheck", error.to_string()),
        },
    };
    json!({"type": "Available", "status": status, "reason": reason, "message": message})
}

/// The version of a group that this server serves.
pub(crate) async fn discover(
    upstream: &Upstream,
    group: String,
    version: String,
    group_priority: i64,
    version_priority: i64,
) -> AggregatedVersion {
    let resources = upstream.list().await.ok().and_then(|body| resources(&body));
    AggregatedVersion { group, version, group_priority, version_priority, resources }
}

fn resources(body: &[u8]) -> Option<Vec<ApiResource>> {
    let mut list: Value = serde_json::from_slice(body).ok()?;
    serde_json::from_value(list.get_mut("resources")?.take()).ok()
}
