//! HTTP client with TLS, reloaded tokens, and a time and size limit on every request.
//!
//! ```text
//! endpoint   URL, TLS material and credentials of a server
//! trust      certificates and CA bundles, from files that may change
//! verifier   verification of server certificates
//! proxy      which requests are sent through a proxy
//! client     sends a request within a time and a size limit
//! message    requests and responses
//! budget     one budget of bytes for all responses under way
//! error      why a request failed, and the remedy
//! ```
//!
//! Redirects are not followed, so credentials only reach the configured server, or the proxy that an administrator has chosen.
//! Connections are made by [`crate::dial::Dialer`].

mod budget;
mod client;
mod endpoint;
mod error;
mod message;
mod proxy;
#[cfg(test)]
pub(crate) mod tests;
mod trust;
mod verifier;

pub use api::url_escape::path_unescaped;
pub use budget::{ByteBudget, ByteShare, UNCOUNTED_BYTES};
pub use client::HttpClient;
pub use endpoint::{Auth, Endpoint, Secret, without_user};
pub use error::{HttpError, HttpErrorCause};
pub use message::{HttpRequest, HttpResponse, StreamedResponse};
pub use proxy::ProxyRules;
pub use trust::{system_bundle, system_roots};
pub use verifier::{AcceptAnyCertificate, CertVerifier, CertificateCheck};
