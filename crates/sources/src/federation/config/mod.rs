//! Which upstreams there are: the file behind `--upstreams`.

mod check;
#[cfg(test)]
mod tests;
mod values;

use std::path::PathBuf;

use api::text::{self, Problem, Source};
use serde::Deserialize;

pub use values::{Period, Port};

use super::Own;
use super::pattern::Pattern;

/// Upstreams in one file at most.
const MOST: usize = 64;

/// The file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Other metrics API servers, in the order in which they are asked.
    pub upstreams: Vec<UpstreamConfig>,
}

/// Another metrics API server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamConfig {
    /// What it is called in reports, logs and metrics.
    pub name: String,
    /// Which of the two APIs it serves.
    pub group: Groups,
    /// Where it is, as a URL; or [`service`](Self::service).
    #[serde(default)]
    pub url: Option<String>,
    /// Where it is, as a Service of the cluster.
    #[serde(default)]
    pub service: Option<ServiceReference>,
    /// How its certificate is checked.
    #[serde(default)]
    pub tls: TlsConfig,
    /// Who we are to it; nobody, if this is not given.
    #[serde(default)]
    pub auth: AuthConfig,
    /// Only metrics with such names, and those nowhere else.
    #[serde(default)]
    pub metrics: Vec<Pattern>,
    /// Only questions in such namespaces, and those nowhere else.
    #[serde(default)]
    pub namespaces: Vec<Pattern>,
    /// How long an answer may take.
    #[serde(default = "values::five_seconds")]
    pub timeout: Period,
    /// Those with a higher one are asked first; our own providers have 0.
    #[serde(default)]
    pub priority: i32,
}

/// Which of the two APIs an upstream serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Groups {
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

/// How a certificate is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsConfig {
    /// Certificates of those who may sign it, in PEM; read again when the file changes.
    pub ca_file: Option<PathBuf>,
    /// Anybody's certificate will do. Whoever sits between reads the token and makes up numbers.
    pub insecure: bool,
    /// The name the certificate must carry; that of the URL, if this is not given.
    pub server_name: Option<String>,
}

/// Who we are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthConfig {
    /// A file with a token; read again when it changes.
    pub token_file: Option<PathBuf>,
    /// A file with a certificate, in PEM.
    pub client_certificate_file: Option<PathBuf>,
    /// A file with its key, in PEM.
    pub client_key_file: Option<PathBuf>,
}

impl Groups {
    /// Whether `custom.metrics.k8s.io` is among them.
    pub fn custom(self) -> bool {
        self != Self::External
    }

    /// Whether `external.metrics.k8s.io` is among them.
    pub fn external(self) -> bool {
        self != Self::Custom
    }
}

impl Config {
    /// Reads a file, or says everything that is wrong with it. `own` is refused as an upstream.
    pub fn read(source: &Source, own: &Own) -> Result<Self, Vec<Problem>> {
        let documents = text::parse(source).map_err(|problem| vec![problem])?;
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
    /// Where it is: scheme, host and port, and the beginning of paths, without a slash at the end.
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
