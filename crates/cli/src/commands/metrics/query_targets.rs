//! The optional cluster and Prometheus of `lint` and `explain`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cluster::connect::{ConnectTarget, connect};
use cluster::discovery::Discovery;
use sources::http::{Auth, Endpoint, HttpClient};
use sources::prometheus::client::{PrometheusClient, PrometheusSettings};
use sources::prometheus::config::AdapterConfig;
use sources::prometheus::lint::assumed_mapper;
use sources::prometheus::mapper::{KnownResource, RestMapper};

use crate::failure::Failure;

/// The cluster and Prometheus to query; none if nothing is given.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct QueryTargets {
    /// Query this Prometheus for series.
    #[arg(long, value_name = "URL")]
    pub(super) prometheus_url: Option<String>,
    /// CA of its certificate.
    #[arg(long, value_name = "FILE", requires = "prometheus_url")]
    prometheus_ca_file: Option<PathBuf>,
    /// Bearer token for it.
    #[arg(long, value_name = "FILE", requires = "prometheus_url")]
    prometheus_token_file: Option<PathBuf>,
    /// KEY=VALUE, a header of every request to it.
    #[arg(long, value_name = "KEY=VALUE", requires = "prometheus_url")]
    prometheus_header: Vec<String>,
    /// Discover the kinds of this cluster; without it, the usual kinds are assumed.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; without it, the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl QueryTargets {
    /// The kinds of the cluster, if one is given.
    pub(super) async fn mapper(&self) -> Result<Option<RestMapper>, Failure> {
        if self.kubeconfig.is_none() && self.context.is_none() {
            return Ok(None);
        }
        let target = ConnectTarget { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() };
        let connection = connect(&target).await.map_err(|error| Failure::Outside(error.to_string()))?;
        let listed = Discovery::new(connection.client.clone()).resources_within(Duration::ZERO).await;
        let listed = listed.map_err(|error| {
            Failure::Outside(format!("failed to ask {} which kinds it has: {error}", connection.server))
        })?;
        let known = listed.into_iter().map(|resource| KnownResource {
            group: resource.group,
            version: resource.version,
            plural: resource.plural,
            singular: resource.singular,
            kind: resource.kind,
            namespaced: resource.namespaced,
        });
        Ok(Some(RestMapper::new(known.collect())))
    }

    /// The kinds of the cluster, or those that the rules name.
    pub(super) async fn some_mapper(&self, config: &AdapterConfig) -> Result<RestMapper, Failure> {
        Ok(self.mapper().await?.unwrap_or_else(|| assumed_mapper(config)))
    }

    /// The Prometheus, if one is given.
    pub(super) fn prometheus(&self) -> Result<Option<PrometheusClient>, Failure> {
        let Some(url) = &self.prometheus_url else { return Ok(None) };
        let header = |text: &String| {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            (name.to_owned(), value.to_owned())
        };
        let endpoint = Endpoint {
            ca_file: self.prometheus_ca_file.clone(),
            auth: self.prometheus_token_file.clone().map_or(Auth::None, Auth::TokenFile),
            headers: self.prometheus_header.iter().map(header).collect(),
            ..Endpoint::at(url)
        };
        let client = HttpClient::new(endpoint)
            .map_err(|error| Failure::input(format!("{error}\n  remedy: {}", error.remedy())))?;
        Ok(Some(PrometheusClient::new(Arc::new(client), PrometheusSettings::default())))
    }
}
