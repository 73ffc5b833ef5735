//! Settings of the Prometheus client, from flags.

use std::path::{Path, PathBuf};

use api::provider::Compat;
use api::yaml::SourceFile;
use cluster::connect::{ConnectTarget, Connection, Credentials, Material, connect};
use controllers::metrics::rules::RuleSettings;
use sources::Clock;
use sources::http::{Auth, Endpoint, Secret};
use sources::prometheus::client::{PrometheusSettings, QueryMethod};
use sources::prometheus::config::AdapterConfig;
use sources::prometheus::discovery::DiscoverySettings;
use sources::prometheus::provider;

use super::options::Prometheus;
use crate::failure::Failure;
use crate::files;

/// The folder of a pod's service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Reads a file with rules, or reports all its errors.
pub(super) fn read(path: &Path) -> Result<(SourceFile, AdapterConfig), Failure> {
    let source = files::read(path)?;
    let config = AdapterConfig::read(&source).map_err(|error| match error.problems {
        problems if problems.is_empty() => Failure::input(format!("{}: {}", path.display(), error.message)),
        problems => Failure::Problems(problems),
    })?;
    Ok((source, config))
}

/// Settings of the rules.
pub(super) async fn settings(
    options: &Prometheus,
    compat: Compat,
    file: PathBuf,
    config: AdapterConfig,
    resource: bool,
) -> Result<RuleSettings, Failure> {
    let plan = DiscoverySettings {
        interval: options.relist,
        max_age: options.max_age,
        ..DiscoverySettings::default()
    };
    let provider = provider::ProviderSettings {
        compat,
        discovery: plan,
        query_timeout: options.timeout,
        ..provider::ProviderSettings::new(Clock::system())
    };
    Ok(RuleSettings {
        file,
        config,
        provider,
        endpoint: endpoint(options).await?,
        client_settings: client_settings(options, compat),
        discovery: options.discovery,
        resource,
    })
}

/// Settings of queries.
pub(super) fn client_settings(options: &Prometheus, compat: Compat) -> PrometheusSettings {
    let method = match (options.post, compat.is_strict()) {
        (true, _) => QueryMethod::Post,
        (false, true) => QueryMethod::Get,
        (false, false) => QueryMethod::Auto,
    };
    PrometheusSettings {
        method,
        timeout: options.timeout,
        cache_age: options.cache,
        ..PrometheusSettings::default()
    }
}

/// The endpoint and its credentials.
pub(super) async fn endpoint(options: &Prometheus) -> Result<Endpoint, Failure> {
    let mut endpoint =
        Endpoint { url: options.url.clone(), headers: options.headers.clone(), ..Endpoint::default() };
    if options.authority.is_some() {
        // As in prometheus-adapter, `--prometheus-ca-file` takes precedence over a kubeconfig.
        endpoint.ca_file.clone_from(&options.authority);
        endpoint.certificate_file.clone_from(&options.certificate);
        endpoint.key_file.clone_from(&options.key);
    } else if options.in_cluster {
        endpoint.ca_file = Some(Path::new(SERVICE_ACCOUNT).join("ca.crt"));
        endpoint.auth = Auth::TokenFile(Path::new(SERVICE_ACCOUNT).join("token"));
    } else if let Some(kubeconfig) = &options.kubeconfig {
        let target = ConnectTarget { kubeconfig: Some(kubeconfig.clone()), context: None };
        let Connection { credentials, .. } = connect(&target)
            .await
            .map_err(|error| Failure::Outside(format!("--prometheus-auth-config: {error}")))?;
        with(&mut endpoint, credentials)?;
    }
    if let Some(file) = &options.token {
        endpoint.auth = Auth::TokenFile(file.clone());
    }
    Ok(endpoint)
}

/// The credentials of a kubeconfig.
fn with(endpoint: &mut Endpoint, credentials: Credentials) -> Result<(), Failure> {
    let Credentials { authority, insecure, certificate, token } = credentials;
    endpoint.insecure = insecure;
    match authority {
        Some(Material::File(path)) => endpoint.ca_file = Some(path),
        Some(Material::Given(pem)) => endpoint.ca_bundle = Some(pem),
        None => {}
    }
    match certificate {
        Some((Material::File(certificate), Material::File(key))) => {
            endpoint.certificate_file = Some(certificate);
            endpoint.key_file = Some(key);
        }
        Some(_) => {
            return Err(Failure::input(
                "--prometheus-auth-config: a certificate within a kubeconfig is not supported\n  remedy: name files there with \
                 client-certificate and client-key",
            ));
        }
        None => {}
    }
    endpoint.auth = match token {
        Some(Material::File(path)) => Auth::TokenFile(path),
        Some(Material::Given(text)) => Auth::Token(Secret::new(String::from_utf8_lossy(&text).into_owned())),
        None => Auth::None,
    };
    Ok(())
}
