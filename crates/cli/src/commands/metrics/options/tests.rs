#![allow(clippy::unwrap_used)]

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use super::*;

#[derive(Parser)]
struct MetricsCommandLine {
    #[command(flatten)]
    flags: MetricsFlags,
}

fn options(words: &[&str]) -> Result<MetricsOptions, String> {
    let words = std::iter::once("metrics").chain(words.iter().copied());
    let matches =
        MetricsCommandLine::command().disable_version_flag(true).try_get_matches_from(words).unwrap();
    MetricsOptions::of(&MetricsCommandLine::from_arg_matches(&matches).unwrap().flags)
        .map_err(|failure| failure.to_string())
}

/// The arguments of the shipped manifests of both servers.
#[test]
fn flags_of_published_manifests_are_accepted() {
    let server = options(&[
        "--cert-dir=/tmp",
        "--secure-port=10250",
        "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
        "--kubelet-use-node-status-port",
        "--metric-resolution=15s",
    ])
    .unwrap();
    assert_eq!(server.kubelets.resolution, Duration::from_secs(15));
    assert_eq!(server.kubelets.address_types, ["InternalIP", "ExternalIP", "Hostname"]);
    assert!(server.kubelets.status_port);
    assert_eq!((server.serving.port, server.origin(false).unwrap()), (10250, Origin::Kubelets));
    assert_eq!(server.idle, ["cert-dir"]);
    let adapter = options(&[
        "--cert-dir=/var/run/serving-cert",
        "--config=/etc/adapter/config.yaml",
        "--metrics-relist-interval=1m",
        "--prometheus-url=http://prometheus-k8s.monitoring.svc:9090/",
        "--secure-port=6443",
        "--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "--v=4",
        "--logtostderr=true",
    ])
    .unwrap();
    assert_eq!(adapter.prometheus.max_age, Duration::from_mins(1));
    assert_eq!(adapter.logs.log_level, "debug");
    assert_eq!(adapter.origin(false).unwrap(), Origin::Nowhere);
    assert_eq!(adapter.origin(true).unwrap(), Origin::Prometheus);
}

#[test]
fn probes_and_rotation_need_a_flag() {
    let serving = |words: &[&str]| options(words).unwrap().serving;
    let plain = serving(&[]);
    assert_eq!((plain.probes, plain.shared), (None, Shared::Nothing));
    let probes = serving(&["--health-probe-bind-address=:8081"]).probes.unwrap();
    assert_eq!((probes.address.to_string().as_str(), probes.wanted), ("0.0.0.0:8081", true));
    assert!(options(&["--health-probe-bind-address=8081"]).is_err());
    let name = "plimsoll-metrics-certs".to_owned();
    let secret = Shared::Secret { namespace: own_namespace(), name };
    assert_eq!(serving(&["--enable-cert-rotation"]).shared, secret);
    let files = ["--enable-cert-rotation", "--tls-cert-file=a", "--tls-private-key-file=b"];
    assert_eq!(serving(&files).shared, Shared::Nothing);
}

#[test]
fn flags_select_the_source_of_resource_metrics() {
    for (words, rules, expected) in [
        (&[][..], false, Ok(Origin::Kubelets)),
        (&["--config=x"], false, Ok(Origin::Nowhere)),
        (&["--config=x"], true, Ok(Origin::Prometheus)),
        (&["--config=x", "--metric-resolution=15s"], false, Ok(Origin::Kubelets)),
        (&["--config=x", "--metric-resolution=15s"], true, Ok(Origin::Prometheus)),
        (&["--config=x", "--kubeconfig=y"], false, Ok(Origin::Nowhere)),
        (&["--config=x", "--resource-metrics=kubelets"], true, Ok(Origin::Kubelets)),
        (&["--resource-metrics=none"], false, Ok(Origin::Nowhere)),
        (&["--config=x", "--resource-metrics=prometheus"], false, Err(())),
    ] {
        let found = options(words).unwrap().origin(rules).map_err(|_| ());
        assert_eq!(found, expected, "{words:?} {rules}");
    }
}

#[test]
fn invalid_flags_have_the_messages_of_the_replaced_servers() {
    for (words, expected) in [
        (
            &["--metric-resolution=5s"][..],
            "metric-resolution should be a time duration at least 10s, but value 5s provided",
        ),
        (
            &["--metric-resolution=10s"],
            "metric-resolution should be larger than kubelet-request-timeout, but metric-resolution value 10s \
             kubelet-request-timeout value 10s provided",
        ),
        (&["--kubelet-request-timeout=0"], "kubelet-request-timeout should be positive"),
        (&["--kubelet-request-timeout=-1s"], "kubelet-request-timeout should be positive"),
        (
            &["--kubelet-certificate-authority=a", "--kubelet-insecure-tls"],
            "cannot use both --kubelet-certificate-authority and --kubelet-insecure-tls",
        ),
        (&["--kubelet-client-key=a"], "need both --kubelet-client-key and --kubelet-client-certificate"),
        (
            &["--kubelet-client-certificate=a"],
            "need both --kubelet-client-key and --kubelet-client-certificate",
        ),
        (
            &["--kubelet-insecure-tls", "--deprecated-kubelet-completely-insecure"],
            "cannot use both --kubelet-insecure-tls and --deprecated-kubelet-completely-insecure",
        ),
        (&["--metrics-max-age=1m"], "max age must not be less than relist interval"),
        (
            &["--prometheus-auth-incluster", "--prometheus-auth-config=a"],
            "cannot use both --prometheus-auth-incluster and --prometheus-auth-config",
        ),
        (&["--secure-port=70000"], "--secure-port=70000: write a port, 0 to 65535"),
        (&["--shares=x"], "--shares=x: write NAMESPACE/SERVICE, such as plimsoll-system/plimsoll-metrics"),
        (&["--keep=-1s"], "--keep must not be negative"),
        (&["--bind-address=here"], "--bind-address=here: write an IP address"),
        (&["--scrape-concurrency=0"], "--scrape-concurrency must be at least 1"),
    ] {
        assert_eq!(options(words).map(|_| ()).unwrap_err(), expected);
    }
    // 90 % of 10 s is enough for 9 s.
    assert!(options(&["--metric-resolution=10s", "--kubelet-request-timeout=9s"]).is_ok());
    assert!(options(&["--node-selector=a in ("]).unwrap_err().starts_with("--node-selector a in (: "));
}

#[test]
fn headers_are_split_at_the_first_equals_sign() {
    let given = options(&["--prometheus-header=A=b=c", "--prometheus-header=D"]).unwrap().prometheus.headers;
    assert_eq!(given, [("A".into(), "b=c".into()), ("D".into(), String::new())]);
}
