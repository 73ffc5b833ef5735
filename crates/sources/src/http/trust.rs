//! TLS configuration from certificate files, which may change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

use super::endpoint::Endpoint;
use super::error::HttpErrorCause;
use super::verifier::{AcceptAnyCertificate, CertVerifier};

/// Paths of the system CA bundle on common distributions.
const SYSTEM_BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

const ONLY_TLS13: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// Modification time and size of a file, to detect changes without reading it; `None` if the file is missing.
pub(super) type FileStamp = Option<(SystemTime, u64)>;

/// Current stamp of a file. Symlinks are followed, so that a replaced link target is detected.
pub(super) fn stamp(path: &Path) -> FileStamp {
    let file = fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len()))
}

/// Stamps of all TLS files of an endpoint.
pub(super) fn stamps(endpoint: &Endpoint) -> [FileStamp; 3] {
    [&endpoint.ca_file, &endpoint.certificate_file, &endpoint.key_file]
        .map(|path| path.as_deref().and_then(stamp))
}

/// Reads a small file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, HttpErrorCause> {
    fs::read(path).map_err(|error| file(path, error.to_string()))
}

fn file(path: &Path, reason: String) -> HttpErrorCause {
    HttpErrorCause::File { path: path.display().to_string(), reason }
}

/// TLS configuration for a plain-text endpoint. It does not load the system roots, which would cost time and memory
/// per server.
pub(super) fn unused() -> Result<ClientConfig, HttpErrorCause> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| HttpErrorCause::Tls(error.to_string()))?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// TLS configuration of an endpoint.
pub(super) fn config(endpoint: &Endpoint) -> Result<ClientConfig, HttpErrorCause> {
    let tls = |error: rustls::Error| HttpErrorCause::Tls(error.to_string());
    let provider = Arc::new(aws_lc_rs::default_provider());
    let versions = if endpoint.only_tls13 { ONLY_TLS13 } else { rustls::DEFAULT_VERSIONS };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(tls)?;
    let builder = if endpoint.insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(CertVerifier::new(&provider, AcceptAnyCertificate)))
    } else {
        builder.with_root_certificates(authorities(endpoint)?)
    };
    match (&endpoint.certificate_file, &endpoint.key_file) {
        (None, None) => match (&endpoint.certificate, &endpoint.key) {
            (Some(certificate), Some(key)) => {
                let bad = |reason: &str| file(Path::new("client certificate"), reason.to_owned());
                let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
                let chain = chain.map_err(|error| bad(&error.to_string()))?;
                let own = PrivateKeyDer::from_pem_slice(key.reveal().as_bytes())
                    .map_err(|_| bad("its key is not a private key in PEM form"))?;
                builder.with_client_auth_cert(chain, own).map_err(|error| bad(&error.to_string()))
            }
            _ => Ok(builder.with_no_client_auth()),
        },
        (Some(certificate), Some(key)) => {
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(certificate)?).collect();
            let chain = chain.map_err(|error| file(certificate, error.to_string()))?;
            // The content of a wrong key file is not repeated, because it may be another secret.
            let own = PrivateKeyDer::from_pem_slice(&read(key)?)
                .map_err(|_| file(key, "no private key in PEM form".into()))?;
            builder.with_client_auth_cert(chain, own).map_err(|error| file(certificate, error.to_string()))
        }
        (Some(only), None) => Err(file(only, "a client certificate needs its key file, too".into())),
        (None, Some(only)) => Err(file(only, "a client key needs its certificate file, too".into())),
    }
}

fn authorities(endpoint: &Endpoint) -> Result<RootCertStore, HttpErrorCause> {
    let mut store = RootCertStore::empty();
    let mut add = |pem: &[u8]| {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let found = found.map_err(|error| error.to_string())?;
        match store.add_parsable_certificates(found) {
            (0, _) => Err("no certificate in PEM form".to_owned()),
            _ => Ok(()),
        }
    };
    let own = endpoint.ca_file.is_some() || endpoint.ca_bundle.is_some();
    if let Some(path) = &endpoint.ca_file {
        add(&read(path)?).map_err(|reason| file(path, reason))?;
    } else if let Some(pem) = &endpoint.ca_bundle {
        add(pem).map_err(|reason| file(Path::new("CA bundle"), reason))?;
    }
    if !own || endpoint.system_roots_too {
        // A system without a CA bundle is not an error here: the handshake fails and reports an unknown authority.
        if let Some(pem) = system_bundle() {
            let _ = add(&pem);
        }
    }
    Ok(store)
}

/// The CA bundle (PEM) of the system; none if it has none.
pub fn system_bundle() -> Option<Vec<u8>> {
    let own = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    own.into_iter().chain(SYSTEM_BUNDLES.iter().map(PathBuf::from)).find_map(|path| fs::read(path).ok())
}
