//! Settings of the kubelet scraper, from flags and credentials.

use std::time::Duration;

use api::provider::Compat;
use cluster::connect::{Credentials, Material};
use controllers::metrics::kubelets::{KubeletSettings, NodeSharding};
use sources::Clock;
use sources::http::{Auth, Endpoint, Secret};
use sources::kubelet::trust::{self, BearerToken, Pem, TrustedAuthority};
use sources::kubelet::{address, client, scraper};
use sources::sharding;

use super::options::{Kubelets, ShardingOptions};
use crate::failure::Failure;

/// Scraper settings: our credentials for the API server, unless flags name others.
pub(super) fn settings(
    options: &Kubelets,
    compat: Compat,
    ours: &Credentials,
    clock: &Clock,
) -> Result<KubeletSettings, Failure> {
    let scraper = scraper::ScraperSettings {
        resolution: options.resolution,
        parallel: options.at_once,
        compat,
        address: address::AddressRules {
            types: options.address_types.clone(),
            port: options.port,
            status_port: options.status_port,
            plain: options.plain,
        },
        client: client::KubeletClientSettings {
            timeout: options.timeout,
            ..client::KubeletClientSettings::default()
        },
        trust: trust(options, compat, ours)?,
        clock: clock.clone(),
    };
    Ok(KubeletSettings { scraper, keep: options.keep, nodes: options.nodes.clone(), sharding: None })
}

/// Settings of sharding nodes between replicas.
pub(super) fn division(sharding: &ShardingOptions, resolution: Duration) -> NodeSharding {
    let endpoint = Endpoint {
        ca_file: sharding.authority.clone(),
        insecure: sharding.authority.is_none(),
        server_name: Some(format!("{}.{}.svc", sharding.service, sharding.namespace)),
        auth: sharding.token.clone().filter(|file| file.exists()).map_or(Auth::None, Auth::TokenFile),
        ..Endpoint::default()
    };
    // A pod in the network of its node has the node's host name.
    let pod_name = std::env::var("POD_NAME").ok().filter(|name| !name.is_empty());
    let id = pod_name.unwrap_or_else(crate::instance::hostname);
    let settings = sharding::ShardingSettings { id, resolution, endpoint, clock: Clock::system() };
    NodeSharding { namespace: sharding.namespace.clone(), service: sharding.service.clone(), settings }
}

fn trust(options: &Kubelets, compat: Compat, ours: &Credentials) -> Result<trust::TrustSettings, Failure> {
    let by_node = options.by_node.unwrap_or(!compat.is_strict());
    let compat = if by_node { Compat::Better } else { Compat::Strict };
    if options.plain {
        return Ok(trust::TrustSettings {
            authority: TrustedAuthority::Any,
            certificate: None,
            token: None,
            compat,
        });
    }
    let authority = match (&options.authority, &ours.authority) {
        _ if options.insecure => TrustedAuthority::Any,
        (Some(file), _) => TrustedAuthority::Ca(Pem::File(file.clone())),
        (None, Some(known)) => TrustedAuthority::Ca(pem(known)),
        (None, None) if ours.insecure => TrustedAuthority::Any,
        (None, None) => {
            return Err(Failure::input(
                "the CA of kubelets' certificates is not known: the kubeconfig names no CA\n  remedy: name it \
                 with --kubelet-certificate-authority, or take any certificate with --kubelet-insecure-tls (for tests)",
            ));
        }
    };
    let certificate = match (&options.certificate, &options.key) {
        (Some(certificate), Some(key)) => Some((Pem::File(certificate.clone()), Pem::File(key.clone()))),
        _ => ours.certificate.as_ref().map(|(certificate, key)| (pem(certificate), pem(key))),
    };
    let token = ours.token.as_ref().map(|token| match token {
        Material::File(path) => BearerToken::File(path.clone()),
        Material::Given(text) => BearerToken::Inline(Secret::new(String::from_utf8_lossy(text).into_owned())),
    });
    Ok(trust::TrustSettings { authority, certificate, token, compat })
}

fn pem(material: &Material) -> Pem {
    match material {
        Material::File(path) => Pem::File(path.clone()),
        Material::Given(text) => Pem::Inline(text.clone()),
    }
}
