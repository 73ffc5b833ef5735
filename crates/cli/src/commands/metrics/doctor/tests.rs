#![allow(clippy::unwrap_used)]

use api::reports::{MetricsReport, ResourceReport, ServerReport};

use super::finding::{ApiService, GroupServer, Reference, findings};
use super::*;
use crate::live::RequestError;

const PAGE: Page = Page { width: None, colour: false };

fn api(group: &str, version: &str, service: &str) -> ApiService {
    ApiService {
        group: group.into(),
        version: version.into(),
        service: Some(Reference { namespace: "plimsoll-system".into(), name: service.into() }),
        available: true,
        reason: "Passed".into(),
        message: "all checks passed".into(),
    }
}

fn report() -> ServerReport {
    let text = r#"{
        "resource": {"source": "kubelets", "nodes": 415, "freshNodes": 412, "pods": 9000, "servedPods": 8998,
            "nodeProblems": [
                {"grade": "error", "reason": "CertificateName", "count": 2, "names": ["ip-10-0-3-17", "ip-10-0-3-18"],
                 "cause": "certificate has no address 10.0.3.x",
                 "remedy": "serverTLSBootstrap: true in the kubelet configuration, or --kubelet-preferred-address-types=Hostname"},
                {"grade": "error", "reason": "Timeout", "count": 1, "names": ["ip-10-0-9-2"], "cause": "timed out after 10 s",
                 "times": 12, "lastGood": "2026-05-01T11:46:00Z", "remedy": "look at the node: kubectl describe node"}],
            "podProblems": [{"grade": "warning", "reason": "NoSample", "count": 2, "names": ["a/b", "a/c"],
                 "cause": "the kubelet has no cpu sample for a container", "remedy": "wait for one minute"}]},
        "custom": {"metrics": 188, "rules": 3, "ruleProblems": [{"grade": "warning", "reason": "MatchesNothing", "count": 1,
            "names": ["rules[2]"], "cause": "matches no series", "remedy": "plimsoll metrics explain --rule 2 shows what it looks for"}]},
        "prometheus": [{"address": "http://prometheus:9090/", "healthy": true}]
    }"#;
    serde_json::from_str(text).unwrap()
}

fn now() -> Timestamp {
    "2026-05-01T12:00:00Z".parse().unwrap()
}

#[test]
fn problems_are_printed_below_their_api_group() {
    let services = vec![
        api("metrics.k8s.io", "v1beta1", "plimsoll-metrics"),
        api("custom.metrics.k8s.io", "v1beta1", "plimsoll-metrics"),
        api("external.metrics.k8s.io", "v1beta1", "keda-metrics-apiserver"),
        api(finding::OWN, "v1alpha1", "plimsoll-metrics"),
    ];
    let mut found = findings(&services, Some(Ok(report())));
    found.ready_replicas = Some(3);
    assert_eq!(found.grade(), Some(ProblemSeverity::Error));
    assert_eq!(
        page::text(&found, PAGE, now()),
        "\
metrics.k8s.io           served by plimsoll (3 replicas), 412 of 415 nodes fresh, 8998 of 9000 running pods have metrics
  ✗ 2 nodes   ip-10-0-3-17, ip-10-0-3-18   certificate has no address 10.0.3.x
              remedy: serverTLSBootstrap: true in the kubelet configuration, or --kubelet-preferred-address-types=Hostname
  ✗ 1 node    ip-10-0-9-2   timed out after 10 s (12 times in a row); last good 14m ago
              remedy: look at the node: kubectl describe node
  ! 2 pods    a/b, a/c   the kubelet has no cpu sample for a container
              remedy: wait for one minute
custom.metrics.k8s.io    served by plimsoll (3 replicas) from prometheus:9090, 188 metrics
  ! 1 rule    rules[2]   matches no series
              remedy: plimsoll metrics explain --rule 2 shows what it looks for
external.metrics.k8s.io  served by plimsoll-system/keda-metrics-apiserver
  · add it as an upstream to have both (docs/federation.md)
"
    );
}

#[test]
fn unreachable_api_is_reported_with_remedy() {
    for (reason, message, expected) in [
        (
            "FailedDiscoveryCheck",
            "Get \"https://10.0.0.1:10250/apis\": context deadline exceeded",
            "open their port for the control plane",
        ),
        ("FailedDiscoveryCheck", "x509: certificate signed by unknown authority", "correct spec.caBundle"),
        (
            "FailedDiscoveryCheck",
            "bad status from https://10.0.0.1: 403",
            "extension-apiserver-authentication-reader",
        ),
        ("MissingEndpoints", "endpoints for service have no addresses", "no pod behind the Service is ready"),
        ("ServiceNotFound", "service/metrics-server in \"kube-system\" is not present", "create the Service"),
    ] {
        let mut service = api("metrics.k8s.io", "v1beta1", "metrics-server");
        (service.available, service.reason, service.message) = (false, reason.into(), message.into());
        let found = findings(&[service], None);
        assert_eq!(found.grade(), Some(ProblemSeverity::Error));
        let text = page::text(&found, PAGE, now());
        assert!(text.contains(expected), "{text}");
        assert!(text.contains(&format!("v1beta1 is not available ({reason}): {message}")), "{text}");
    }
}

#[test]
fn missing_custom_and_external_metrics_are_no_problem() {
    let found = findings(&[api("metrics.k8s.io", "v1beta1", "metrics-server")], None);
    assert_eq!((found.grade(), found.groups.first().unwrap().served_by), (None, GroupServer::Other));
    let none = findings(&[], None);
    assert_eq!(none.grade(), Some(ProblemSeverity::Error));
    let text = page::text(&none, PAGE, now());
    assert!(text.starts_with("metrics.k8s.io           not served\n  ✗ it is not served"), "{text}");
}

#[test]
fn group_served_by_two_servers_is_a_problem() {
    let services = vec![
        api("custom.metrics.k8s.io", "v1beta1", "adapter"),
        api("custom.metrics.k8s.io", "v1beta2", "plimsoll-metrics"),
        api("metrics.k8s.io", "v1beta1", "a"),
    ];
    let found = findings(&services, None);
    assert_eq!(found.grade(), Some(ProblemSeverity::Error));
    assert!(
        page::text(&found, PAGE, now())
            .contains("v1beta2 leads to another server than plimsoll-system/adapter")
    );
}

#[test]
fn unreadable_objects_are_reported_as_unknown() {
    let services = || {
        vec![
            api("metrics.k8s.io", "v1beta1", "plimsoll-metrics"),
            api(finding::OWN, "v1alpha1", "plimsoll-metrics"),
        ]
    };
    let refused = RequestError::Refused { code: 403, message: "forbidden".into() };
    let found = findings(&services(), Some(Err(refused)));
    assert_eq!((found.grade(), found.unknown.len()), (None, 1));
    assert!(page::text(&found, PAGE, now()).contains("ask for `get` on reports.metrics.plimsoll.dev"));
    // A server that is registered for what it does not serve.
    let silent =
        ServerReport { resource: None, custom: Some(MetricsReport::default()), ..ServerReport::default() };
    let found = findings(&services(), Some(Ok(silent)));
    assert!(page::text(&found, PAGE, now()).contains("served by plimsoll, which does not serve it"));
    let _ = ResourceReport::default();
}

#[test]
fn our_operator_is_not_advised_as_an_upstream() {
    let services = vec![
        api("metrics.k8s.io", "v1beta1", "plimsoll-metrics"),
        api("external.metrics.k8s.io", "v1beta1", "plimsoll-operator"),
        api(finding::OWN, "v1alpha1", "plimsoll-metrics"),
        api(finding::OPERATOR, "v1alpha1", "plimsoll-operator"),
    ];
    let found = findings(&services, Some(Ok(report())));
    assert_eq!(found.groups[2].served_by, GroupServer::Operator);
    let text = page::text(&found, PAGE, now());
    let (_, external) = text.split_once("external.metrics.k8s.io").unwrap();
    assert!(external.starts_with("  served by plimsoll's operator, for ScaledObjects\n"), "{text}");
    assert!(external.contains("--operator plimsoll-system/plimsoll-operator"), "{text}");
    assert!(!external.contains("add it as an upstream"), "{text}");
}
