//! An HTTP API that returns one number in several formats, with several authentication schemes: `/{scheme}/{format}`.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use localkube::access::{roots, server_config};
use localkube::listen;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use crate::components::local;
use crate::error::Error;
use crate::kubelets::locked;
use crate::pki::{Authority, Identity};
use crate::simulated::SimulatedServer;

/// The authentication scheme of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthScheme {
    /// Clients do not authenticate.
    Open,
    /// Basic authentication of the user `ada` with the password.
    Basic,
    /// A bearer token, which is the password.
    Bearer,
    /// The password in the header `X-API-KEY`.
    Key,
    /// The password in the query parameter `api_key`.
    Query,
    /// A client certificate.
    Certificate,
}

/// A running API; it ends when it is dropped.
pub struct HttpApi {
    plain: SimulatedServer,
    secure: SimulatedServer,
    number: Arc<Mutex<String>>,
}

const PASSWORD: &str = "hunter2";

impl AuthScheme {
    fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Basic => "basic",
            Self::Bearer => "bearer",
            Self::Key => "key",
            Self::Query => "query",
            Self::Certificate => "certificate",
        }
    }

    fn accepts(name: &str, headers: &HeaderMap, query: &str, certified: bool) -> bool {
        let says = |header: &str, wanted: &str| headers.get(header).is_some_and(|value| value == wanted);
        match name {
            "open" => true,
            "basic" => {
                says("authorization", &format!("Basic {}", STANDARD.encode(format!("ada:{PASSWORD}"))))
            }
            "bearer" => says("authorization", &format!("Bearer {PASSWORD}")),
            "key" => says("x-api-key", PASSWORD),
            "query" => query.split('&').any(|pair| pair == format!("api_key={PASSWORD}")),
            "certificate" => certified,
            _ => false,
        }
    }
}

impl HttpApi {
    /// Starts an API, with and without TLS. Client certificates must be signed by this authority.
    pub fn start(identity: &Identity, clients: &Authority) -> Result<Self, Error> {
        let mut config = server_config(identity, Some(roots(clients.certificate().as_bytes())?))?;
        config.alpn_protocols.clear();
        let tls = TlsAcceptor::from(Arc::new(config));
        let number = Arc::new(Mutex::new("0".to_owned()));
        let state = Arc::clone(&number);
        let plain =
            SimulatedServer::start("an HTTP API", move |stream| serve(stream, false, Arc::clone(&state)))?;
        let state = Arc::clone(&number);
        let secure = SimulatedServer::start("an HTTPS API", move |stream| {
            let (tls, state) = (tls.clone(), Arc::clone(&state));
            async move {
                let Some(stream) = listen::handshake(&tls, stream).await else { return };
                let certified = listen::has_certificate(&stream);
                serve(stream, certified, state).await;
            }
        })?;
        Ok(Self { plain, secure, number })
    }

    /// The URL of the number in a format: `json`, `yaml`, `xml` or `prometheus`.
    pub fn url(&self, scheme: AuthScheme, format: &str) -> String {
        format!("{}/{}/{format}", local("http", self.plain.port), scheme.name())
    }

    /// The URL of the number with TLS.
    pub fn tls_url(&self, scheme: AuthScheme, format: &str) -> String {
        format!("{}/{}/{format}", local("https", self.secure.port), scheme.name())
    }

    /// The password of all schemes.
    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// Sets the number that the API returns.
    pub fn set_number(&self, number: &str) {
        number.clone_into(&mut locked(&self.number));
    }
}

async fn serve<S>(stream: S, certified: bool, number: Arc<Mutex<String>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    listen::serve_http(stream, move |request| {
        std::future::ready(answer(&request, certified, &locked(&number)))
    })
    .await;
}

fn answer(request: &Request<Incoming>, certified: bool, number: &str) -> Response<Full<Bytes>> {
    let mut parts = request.uri().path().trim_start_matches('/').splitn(2, '/');
    let (scheme, format) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let query = request.uri().query().unwrap_or_default();
    if !AuthScheme::accepts(scheme, request.headers(), query, certified) {
        return with(401, "who are you?");
    }
    match format {
        "json" => with(200, &format!("{{\"tasks\": {{\"waiting\": [7, {number}]}}}}")),
        "yaml" => with(200, &format!("tasks:\n  waiting:\n  - 7\n  - {number}\n")),
        "xml" => with(200, &format!("<tasks kind=\"all\"><waiting>{number}</waiting></tasks>")),
        "prometheus" => with(
            200,
            &format!(
                "# TYPE waiting gauge\nwaiting{{queue=\"mail\"}} {number}\nwaiting{{queue=\"other\"}} 7\n"
            ),
        ),
        _ => with(404, "there is no such page"),
    }
}

fn with(status: u16, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text.to_owned())));
    if let Ok(status) = status.try_into() {
        *response.status_mut() = status;
    }
    response
}
