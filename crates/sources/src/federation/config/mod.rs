//! Configuration of upstreams: the file behind `--upstreams`.

mod check;
#[cfg(test)]
mod tests;
mod values;

use std::path::PathBuf;

use api::yaml::{self, Diagnostic, SourceFile};
use serde::Deserialize;

pub use values::{GoDuration, Port};

use super::OwnService;
use super::glob::GlobPattern;

/// Maximum number of upstreams.
const MAX_UPSTREAMS: usize = 64;

/// The configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FederationConfig {
    /// Upstreams in query order.
    pub upstreams: Vec<UpstreamConfig>,
}

/// One upstream.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamConfig {
    /// Name in reports, logs and metrics.
    pub name: String,
    /// APIs that the upstream serves.
    pub group: ApiGroups,
    /// URL; or [`service`](Self::service).
    #[serde(default)]
    pub url: Option<String>,
    /// Service of the cluster.
    #[serde(default)]
    pub service: Option<ServiceReference>,
    /// Verification of its certificate.
    #[serde(default)]
    pub tls: TlsConfig,
    /// Credentials; none by default.
    #[serde(default)]
    pub auth: AuthConfig,
    /// Metrics owned by this upstream.
    #[serde(default)]
    pub metrics: Vec<GlobPattern>,
    /// Namespaces owned by this upstream.
    #[serde(default)]
    pub namespaces: Vec<GlobPattern>,
    /// Timeout of a query.
    #[serde(default = "values::five_seconds")]
    pub timeout: GoDuration,
    /// Upstreams with a higher priority are queried first; local providers have 0.
    #[serde(default)]
    pub priority: i32,
}

/// APIs that an upstream serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ApiGroups {
    /// `custom.metrics.k8s.io`.
    Custom,
    /// `external.metrics.k8s.io`.
    External,
    /// Both.
    Both,
}

/// A Service of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its port.
    #[serde(default)]
    pub port: Port,
}

/// Verification of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsConfig {
    /// CA bundle (PEM); reloaded when the file changes.
    pub ca_file: Option<PathBuf>,
    /// CA bundle (PEM) of a built-in upstream, which has no file.
    #[serde(skip)]
    pub ca_bundle: Option<Vec<u8>>,
    /// Disables verification. An attacker in between can read the token and forge values.
    pub insecure: bool,
    /// Expected name in the certificate; the host of the URL by default.
    pub server_name: Option<String>,
}

/// Credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthConfig {
    /// Token file; reloaded when it changes.
    pub token_file: Option<PathBuf>,
    /// Client certificate file (PEM).
    pub client_certificate_file: Option<PathBuf>,
    /// Client key file (PEM).
    pub client_key_file: Option<PathBuf>,
}

impl ApiGroups {
    /// Whether `custom.metrics.k8s.io` is among them.
    pub fn custom(self) -> bool {
        self != Self::External
    }

    /// Whether `external.metrics.k8s.io` is among them.
    pub fn external(self) -> bool {
        self != Self::Custom
    }
}

impl FederationConfig {
    /// Parses and validates a file; returns all problems. `own` is refused as an upstream.
    pub fn read(source: &SourceFile, own: &OwnService) -> Result<Self, Vec<Diagnostic>> {
        let documents = yaml::parse(source).map_err(|problem| vec![problem])?;
        let document = match documents.as_slice() {
            [] => return Ok(Self::default()),
            [only] => only,
            [_, second, ..] => return Err(vec![second.problem("", "one document is enough")]),
        };
        let config: Self = document.decode()?;
        let problems = check::problems(&config, document, own);
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }
}

impl UpstreamConfig {
    /// An upstream at a Service, with defaults for everything else.
    pub fn of_service(name: &str, group: ApiGroups, service: ServiceReference) -> Self {
        Self {
            name: name.to_owned(),
            group,
            url: None,
            service: Some(service),
            tls: TlsConfig::default(),
            auth: AuthConfig::default(),
            metrics: Vec::new(),
            namespaces: Vec::new(),
            timeout: values::five_seconds(),
            priority: 0,
        }
    }

    /// Base URL without a trailing slash.
    pub fn base_url(&self) -> String {
        match (&self.url, &self.service) {
            (Some(url), _) => url.trim_end_matches('/').to_owned(),
            (None, Some(service)) => {
                format!("https://{}.{}.svc:{}", service.name, service.namespace, service.port.0)
            }
            (None, None) => String::new(),
        }
    }
}
