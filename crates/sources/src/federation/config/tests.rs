#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Duration;

use super::*;

fn own() -> OwnService {
    OwnService {
        namespace: "plimsoll".into(),
        service: "plimsoll-metrics".into(),
        id: "cluster/plimsoll".into(),
    }
}

fn read(text: &str) -> Result<FederationConfig, Vec<String>> {
    let problems = |found: Vec<Diagnostic>| found.iter().map(ToString::to_string).collect();
    FederationConfig::read(&SourceFile::new("upstreams.yaml", text), &own()).map_err(problems)
}

/// The only problem of an upstream with these lines.
fn problem(lines: &str) -> String {
    let text = format!("upstreams:\n- name: keda\n  group: external\n{lines}\n");
    let mut found = read(&text).unwrap_err();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn all_fields_are_decoded() {
    let config = read(
        "upstreams:
- name: keda
  group: external
  service: {namespace: keda, name: keda-operator-metrics-apiserver}
  tls:
    caFile: /etc/keda/ca.crt
    serverName: keda-operator-metrics-apiserver.keda.svc
  auth:
    tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
  metrics: ['s[0-9]*-*']
  timeout: 3s
- name: other
  group: both
  url: https://adapter.example.com:6443/prefix/
  tls: {insecure: true}
  auth: {clientCertificateFile: /c.crt, clientKeyFile: /c.key}
  namespaces: [team-*]
  priority: -5
",
    )
    .unwrap();
    let [keda, other] = config.upstreams.as_slice() else { panic!("{config:?}") };
    assert_eq!(keda.base_url(), "https://keda-operator-metrics-apiserver.keda.svc:443");
    assert_eq!((keda.timeout.0, keda.priority), (Duration::from_secs(3), 0));
    assert!(keda.metrics[0].matches("s0-kafka-orders") && !keda.group.custom() && keda.group.external());
    assert_eq!(other.base_url(), "https://adapter.example.com:6443/prefix");
    assert_eq!((other.timeout.0, other.priority), (Duration::from_secs(5), -5));
    assert!(other.group.custom() && other.group.external() && other.tls.insecure);
    assert_eq!(read("").unwrap(), FederationConfig::default());
    assert_eq!(read("upstreams: []").unwrap(), FederationConfig::default());
}

#[test]
fn errors_have_position_and_hint() {
    let source = SourceFile::new("u.yaml", "upstreams:\n- name: a\n  group: custom\n  servce: {}\n");
    let found = FederationConfig::read(&source, &own()).unwrap_err();
    assert_eq!((found[0].span.line, found[0].span.column), (4, 3), "{found:?}");
    assert!(found[0].render(false).contains("did you mean `service`?"), "{}", found[0].render(false));
    let source = SourceFile::new("u.yaml", "upstreams:\n- name: a\n  group: externl\n  url: https://a\n");
    let found = FederationConfig::read(&source, &own()).unwrap_err();
    assert!(found[0].render(false).contains("did you mean `external`?"), "{}", found[0].render(false));
    assert!(read("upstreams: [{}]").unwrap_err()[0].contains("name"));
    assert!(read("upstreams: []\n---\nupstreams: []").unwrap_err()[0].contains("one document is enough"));
}

#[test]
fn invalid_configurations_are_rejected() {
    for (lines, part) in [
        ("", "has no address"),
        ("  url: https://a\n  service: {namespace: a, name: b}", "exclude each other"),
        ("  url: ftp://a", "https://"),
        ("  url: a b", "not a URL"),
        ("  url: https://user:pw@a", "password"),
        ("  url: https://a?x=1", "no `?`"),
        ("  service: {namespace: A, name: b}", "not a valid Kubernetes name"),
        ("  service: {namespace: a, name: b, port: 0}", "between 1 and 65535"),
        ("  service: {namespace: a, name: b, port: 70000}", "65535"),
        ("  url: https://a\n  tls: {insecure: true, caFile: /x}", "no use"),
        ("  url: http://a\n  tls: {caFile: /x}", "no certificate"),
        ("  url: http://a\n  auth: {tokenFile: /x}", "must not be sent"),
        ("  url: https://a\n  auth: {clientKeyFile: /x}", "belong together"),
        (
            "  url: https://a\n  auth: {tokenFile: /t, clientCertificateFile: /c, clientKeyFile: /x}",
            "two kinds",
        ),
        ("  url: https://a\n  timeout: 31s", "between 10ms and 30s"),
        ("  url: https://a\n  timeout: 5", "expected"),
        ("  url: https://a\n  timeout: soon", "not a time"),
        ("  url: https://a\n  metrics: ['[']", "`[` needs"),
        ("  url: https://a\n  namespaces: ['']", "empty"),
        ("  url: https://a\n  priority: high", "expected"),
    ] {
        let found = problem(lines);
        assert!(found.contains(part), "{lines}: {found}");
        assert!(found.starts_with("upstreams.yaml:"), "{found}");
    }
    let twice = "upstreams:\n- {name: a, group: custom, url: 'https://a'}\n- {name: a, group: custom, url: 'https://b'}";
    assert!(read(twice).unwrap_err()[0].contains("already an upstream `a` in line 2"));
    let many = (0..65).map(|n| format!("- {{name: a{n}, group: custom, url: 'https://a'}}\n"));
    assert!(
        read(&format!("upstreams:\n{}", many.collect::<String>())).unwrap_err()[0].contains("more than 64")
    );
}

#[test]
fn own_service_is_rejected_as_upstream() {
    for place in [
        "service: {namespace: plimsoll, name: plimsoll-metrics}",
        "url: https://plimsoll-metrics.plimsoll.svc:443",
        "url: https://plimsoll-metrics.plimsoll.svc.cluster.local",
        "url: https://PLIMSOLL-metrics.plimsoll",
        "url: https://plimsoll-metrics.plimsoll.svc.cluster.local.:443/x",
        "url: https://plimsoll-metrics",
    ] {
        assert!(problem(&format!("  {place}")).contains("the Service of this server"), "{place}");
    }
    for other in [
        "plimsoll-metrics.other.svc",
        "plimsoll-metrics.plimsoll2.svc",
        "plimsoll-metrics.plimsoll.example.com",
    ] {
        read(&format!("upstreams: [{{name: a, group: custom, url: 'https://{other}'}}]")).unwrap();
    }
    assert!(!OwnService::default().is_at(""));
}
