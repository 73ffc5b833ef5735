//! TLS configuration from certificate files, which may change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use rustls::client::{Resumption, WantsClientCert};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, SupportedProtocolVersion};

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

/// TLS sessions that a client keeps, at most: rustls remembers one server for up to eight.
const MAX_SESSIONS: usize = 8;

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

/// TLS configuration of all plain-text endpoints. It does not load the system roots and keeps no sessions, which would cost time and
/// memory.
static UNUSED: LazyLock<Result<ClientConfig, rustls::Error>> = LazyLock::new(|| {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?;
    let mut config = builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
});

/// TLS configuration for a plain-text endpoint.
pub(super) fn unused() -> Result<ClientConfig, HttpErrorCause> {
    UNUSED.clone().map_err(|error| HttpErrorCause::Tls(error.to_string()))
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
    let mut config = with_client_certificate(builder, endpoint)?;
    // A client has one server. The default keeps room for the sessions of 256.
    config.resumption = Resumption::in_memory_sessions(MAX_SESSIONS);
    Ok(config)
}

fn with_client_certificate(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    endpoint: &Endpoint,
) -> Result<ClientConfig, HttpErrorCause> {
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

/// The CA certificates of the system, read once for all clients: there is one for each server that triggers or their sources name. A
/// system without a CA bundle is not an error here: the handshake fails and reports an unknown authority.
static SYSTEM_ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let mut store = RootCertStore::empty();
    let pem = system_bundle().unwrap_or_default();
    store.add_parsable_certificates(CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok));
    Arc::new(store)
});

fn authorities(endpoint: &Endpoint) -> Result<Arc<RootCertStore>, HttpErrorCause> {
    let content;
    let (path, pem) = match (&endpoint.ca_file, &endpoint.ca_bundle) {
        (Some(path), _) => {
            content = read(path)?;
            (path.as_path(), &content)
        }
        (None, Some(pem)) => (Path::new("CA bundle"), pem),
        (None, None) => return Ok(system_roots()),
    };
    let mut store =
        if endpoint.system_roots_too { RootCertStore::clone(&SYSTEM_ROOTS) } else { RootCertStore::empty() };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| file(path, error.to_string()))?;
    if store.add_parsable_certificates(found).0 == 0 {
        return Err(file(path, "no certificate in PEM form".to_owned()));
    }
    Ok(Arc::new(store))
}

/// The CA certificates of the system, of which all clients share one copy.
pub fn system_roots() -> Arc<RootCertStore> {
    Arc::clone(&SYSTEM_ROOTS)
}

/// The CA bundle (PEM) of the system; none if it has none.
pub fn system_bundle() -> Option<Vec<u8>> {
    let own = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    own.into_iter().chain(SYSTEM_BUNDLES.iter().map(PathBuf::from)).find_map(|path| fs::read(path).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_share_the_certificates_of_the_system() {
        let of_system = || authorities(&Endpoint::default()).unwrap();
        assert!(Arc::ptr_eq(&of_system(), &of_system()));
        let missing = Endpoint { ca_bundle: Some(b"x".to_vec()), ..Endpoint::default() };
        assert!(authorities(&missing).is_err(), "a bundle without certificates is no reason to trust others");
    }
}
