//! The server works with the roles of `deploy/metrics`, is never refused, and uses every permission. localkube has no roles:
//! there, the test only checks that the requests are granted.

use std::time::Duration;

use serde_json::Value;
use testbed::harness::Failure;
use testbed::program::{Program, TempFolder};
use testbed::proxy::{Proxy, ProxyCaller, ProxyOptions};

use crate::env::tested_server::{metrics_arguments, started};
use crate::env::{Caller, direct, free_port, on_both, peers, program, until};
use crate::faults::admin;
use crate::shared::manifests::{apply, folder, is_quiet};
use crate::shared::roles::{check_answers, granted, needed};
use crate::shared::token;

const SYSTEM_NAMESPACE: &str = "plimsoll-system";
const ACCOUNT: &str = "plimsoll-metrics";

/// A resource of the role that no request of this test needs: real kubelets send reviews of their clients.
const RESOURCE_NOT_NEEDED_HERE: &str = "nodes/metrics";

#[test]
fn server_works_with_its_roles_and_uses_every_permission() -> Result<(), Failure> {
    if peers() {
        return Ok(());
    }
    on_both(async |ns| {
        let objects: Vec<Value> =
            ["deploy", "deploy/metrics", "deploy/metrics/prometheus"].into_iter().flat_map(folder).collect();
        apply(&ns.client, ns.env.cluster.name, &objects, is_quiet).await;
        let token = token(&ns.client, SYSTEM_NAMESPACE, ACCOUNT).await;
        ns.pod("busy", "web", "web-0", &[("app", 100, 64 << 20)]).await;
        ns.serve("web-0", 10.0).await;

        let options = ProxyOptions { caller: ProxyCaller::Client, store_lists: false };
        let proxy = Proxy::start_with(&ns.env.cluster.kubeconfig, options).await.unwrap();
        let (temp_folder, port) = (TempFolder::new().unwrap(), free_port());
        let (kubeconfig, prometheus) = (proxy.kubeconfig_with(&token), ns.env.prometheus_proxy.url());
        let arguments = metrics_arguments(&temp_folder, &kubeconfig, port, &ns.env.kubelets, &prometheus);
        let mut server = started("plimsoll", program(), &arguments, temp_folder, port).await.unwrap();

        let namespace = &ns.namespace;
        let pages = [
            format!("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods/web-0"),
            format!("/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/pods/*/http_requests"),
            format!(
                "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/pods/*/http_requests?labelSelector=app%3Dweb"
            ),
            format!("/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/queue_depth"),
        ];
        for page in &pages {
            answered(port, &admin(&ns), page, 200, &server).await;
        }
        if ns.access().is_some() {
            // It sends a TokenReview and a SubjectAccessReview.
            answered(port, &Caller::token(&token), &pages[0], 403, &server).await;
        }
        assert_eq!(server.ended(), None, "{}", server.log());
        let log = proxy.rules().log();
        check_answers(namespace, &log);
        let mut role = granted(&objects, ACCOUNT);
        role.extend(granted(&objects, "plimsoll-metrics-described"));
        let needed = needed(&log);
        // Reviews and `extension-apiserver-authentication` are granted by roles of Kubernetes.
        let own = |group: &str| !matches!(group, "authentication.k8s.io" | "authorization.k8s.io");
        let missing: Vec<_> = needed
            .iter()
            .filter(|need| own(&need.group) && !role.iter().any(|held| held.covers(need)))
            .collect();
        assert!(missing.is_empty(), "asked for, but not granted: {missing:#?}");
        let idle: Vec<_> = granted(&objects, ACCOUNT)
            .into_iter()
            .filter(|held| held.resource != RESOURCE_NOT_NEEDED_HERE)
            .filter(|held| !needed.iter().any(|need| held.covers(need)))
            .collect();
        assert!(idle.is_empty(), "granted, but never needed: {idle:#?}");
    })
}

async fn answered(port: u16, caller: &Caller, page: &str, code: u16, server: &Program) {
    until(page, async || {
        let response = direct(port, caller, page).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        match response {
            Some(response) if response.code == code => Ok(()),
            other => Err((other.map(|response| (response.code, response.text())), server.log())),
        }
    })
    .await;
}
