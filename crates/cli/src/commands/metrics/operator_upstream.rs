//! Our operator as an upstream of external metrics, without a file: its CA is that of its own APIService.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::request::{ApiError, Request, send};
use kube::Client;
use serde_json::Value;
use sources::federation::{ApiGroups, GlobPattern, Port, Router, ServiceReference, UpstreamConfig};

use crate::failure::Failure;

/// The APIService that only our operator has; it writes its CA there.
const API_SERVICE: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.operator.plimsoll.dev";
/// How often its CA is read.
const READ_PERIOD: Duration = Duration::from_secs(30);
/// How often it is read until it is known.
const RETRY_PERIOD: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The names of the operator's metrics: of triggers, and of formulas.
const METRICS: [&str; 2] = ["s[0-9]*-*", api::keda::COMPOSITE_METRIC];
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Why the operator cannot be asked yet.
#[derive(Debug, thiserror::Error)]
enum UnknownOperator {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("its APIService cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("its APIService names {found}, and --operator {wanted}")]
    OtherService { found: String, wanted: String },
    #[error("it has not written its CA into its APIService yet")]
    NoCa,
}

/// The Service of `--operator`: `NAMESPACE/SERVICE`.
pub(super) fn parse(text: &str) -> Result<Option<ServiceReference>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || Failure::input(format!("--operator={text}: write NAMESPACE/SERVICE"));
    let (namespace, name) = text.split_once('/').ok_or_else(wrong)?;
    if [namespace, name].iter().any(|part| part.is_empty() || part.contains('/')) {
        return Err(wrong());
    }
    Ok(Some(ServiceReference { namespace: namespace.into(), name: name.into(), port: Port::default() }))
}

/// Keeps the upstream up to date for the lifetime of the process.
pub(super) async fn keep(client: Client, router: Router, service: ServiceReference) {
    let (mut known, mut logged) = (None, None);
    loop {
        match read(&client, &service).await.map_err(|problem| problem.to_string()) {
            Ok(upstream) => {
                if known.as_ref() != Some(&upstream) {
                    tracing::info!(url = upstream.base_url(), "asking our operator for external metrics");
                    router.set_built_in(vec![upstream.clone()]);
                    known = Some(upstream);
                }
                logged = None;
            }
            // A known upstream stays: a failure to read its APIService is none of its own.
            Err(problem) if logged.as_ref() != Some(&problem) => {
                tracing::warn!(problem, "the CA of our operator is not known");
                logged = Some(problem);
            }
            Err(_) => {}
        }
        tokio::time::sleep(if known.is_some() { READ_PERIOD } else { RETRY_PERIOD }).await;
    }
}

async fn read(client: &Client, service: &ServiceReference) -> Result<UpstreamConfig, UnknownOperator> {
    let body = send(client, Request::get(API_SERVICE, "apiservices", REQUEST_TIMEOUT)).await?;
    upstream(&serde_json::from_slice(&body)?, service)
}

/// The upstream with the CA of the operator's APIService.
fn upstream(api_service: &Value, service: &ServiceReference) -> Result<UpstreamConfig, UnknownOperator> {
    let text = |pointer: &str| api_service.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/spec/service/namespace"), text("/spec/service/name"));
    if (namespace, name) != (&service.namespace, &service.name) {
        let wanted = format!("{}/{}", service.namespace, service.name);
        return Err(UnknownOperator::OtherService { found: format!("{namespace}/{name}"), wanted });
    }
    let bundle = STANDARD.decode(text("/spec/caBundle")).ok().filter(|bundle| !bundle.is_empty());
    let bundle = bundle.ok_or(UnknownOperator::NoCa)?;
    let port = api_service.pointer("/spec/service/port").and_then(Value::as_u64);
    let port = port.and_then(|port| u16::try_from(port).ok()).map_or_else(Port::default, Port);
    let service = ServiceReference { port, ..service.clone() };
    let mut upstream = UpstreamConfig::of_service("plimsoll-operator", ApiGroups::External, service);
    upstream.tls.ca_bundle = Some(bundle);
    upstream.auth.token_file = Some(PathBuf::from(TOKEN));
    upstream.metrics = METRICS.iter().filter_map(|pattern| GlobPattern::parse(pattern).ok()).collect();
    Ok(upstream)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operator_is_named_by_its_service() {
        assert_eq!(parse("").unwrap(), None);
        let service = parse("plimsoll-system/plimsoll-operator").unwrap().unwrap();
        assert_eq!(
            (service.namespace.as_str(), service.name.as_str()),
            ("plimsoll-system", "plimsoll-operator")
        );
        for text in ["plimsoll-operator", "/a", "a/", "a/b/c"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn upstream_has_the_ca_of_the_operator_s_own_api_service() {
        let service = parse("sys/op").unwrap().unwrap();
        let api_service = |name: &str, bundle: &str| json!({"spec": {"caBundle": bundle, "service": {"namespace": "sys", "name": name, "port": 6443}}});
        let found = upstream(&api_service("op", "Y2E="), &service).unwrap();
        assert_eq!(found.base_url(), "https://op.sys.svc:6443");
        assert_eq!(found.tls.ca_bundle.as_deref(), Some(&b"ca"[..]));
        let owns = |name: &str| found.metrics.iter().any(|pattern| pattern.matches(name));
        assert!(owns("s0-prometheus") && owns("s12-rabbitmq-orders") && owns("composite-metric"));
        assert!(!owns("http_requests") && !owns("sql-length"));
        assert!(
            upstream(&api_service("op", ""), &service)
                .unwrap_err()
                .to_string()
                .contains("has not written its CA")
        );
        assert!(
            upstream(&api_service("other", "Y2E="), &service)
                .unwrap_err()
                .to_string()
                .contains("names sys/other")
        );
    }
}
