//! The metrics server starts with the arguments of metrics-server and prometheus-adapter, so that only the image must change.

use std::time::Duration;

use testbed::harness::Failure;
use testbed::program::{Program, TempFolder};

use crate::env::tested_server::{kubelet_flags, serving_flags, started};
use crate::env::{Caller, TestNamespace, direct, free_port, on_both, peers, program, rules, until};
use crate::faults::admin;

/// Arguments of metrics-server's manifests, except folders, ports and the kubelets' CA.
const METRICS_SERVER: [&str; 3] = [
    "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
    "--kubelet-use-node-status-port",
    "--metric-resolution=15s",
];

/// Arguments that users often add.
const FREQUENT_ARGUMENTS: [&str; 6] = [
    "--v=2",
    "--logging-format=text",
    "--profiling=false",
    "--tls-min-version=VersionTLS12",
    "--requestheader-username-headers=X-Remote-User",
    "--authorization-always-allow-paths=/livez,/readyz,/healthz",
];

/// Arguments of the adapter's manifests, except folders, ports and the address of Prometheus.
const ADAPTER: [&str; 4] = [
    "--metrics-relist-interval=1m",
    "--logtostderr=true",
    "--v=4",
    "--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_128_GCM_SHA256",
];

/// Starts the server under the program name of a replaced server, as images do.
async fn start(name: &str, temp_folder: TempFolder, arguments: &[String], port: u16) -> Program {
    let link = temp_folder.path(name);
    std::os::unix::fs::symlink(program(), &link).unwrap();
    started("plimsoll", &link, arguments, temp_folder, port).await.unwrap()
}

async fn until_ok(ns: &TestNamespace, port: u16, path: &str) {
    let caller = admin(ns);
    until(path, async || {
        let response = direct(port, &caller, path).await;
        match response {
            Some(response) if response.code == 200 => Ok(()),
            other => Err(other.map(|response| (response.code, response.text()))),
        }
    })
    .await;
}

fn flags(given: &[&str]) -> Vec<String> {
    given.iter().map(|flag| (*flag).to_owned()).collect()
}

#[test]
fn server_starts_with_the_arguments_of_metrics_server() -> Result<(), Failure> {
    if peers() {
        return Ok(());
    }
    on_both(async |ns| {
        futures::join!(as_metrics_server(&ns, &[]), as_metrics_server(&ns, &FREQUENT_ARGUMENTS));
    })
}

async fn as_metrics_server(ns: &TestNamespace, more: &[&str]) {
    let (temp_folder, port) = (TempFolder::new().unwrap(), free_port());
    let mut arguments = serving_flags(&temp_folder, &ns.env.cluster.kubeconfig, port);
    arguments.push(format!("--kubeconfig={}", temp_folder.path("kubeconfig").display()));
    arguments.push(kubelet_flags(&temp_folder, &ns.env.kubelets).pop().unwrap());
    arguments.extend(flags(&METRICS_SERVER));
    arguments.extend(flags(more));
    let server = start("metrics-server", temp_folder, &arguments, port).await;
    until_ok(ns, port, "/apis/metrics.k8s.io/v1beta1/nodes/busy").await;
    // It serves only the APIs of the replaced server.
    let other = direct(port, &admin(ns), "/apis/custom.metrics.k8s.io/v1beta1").await.unwrap();
    assert_eq!(other.code, 404, "{}", other.text());
    ends(server).await;
}

#[test]
fn server_starts_with_the_arguments_of_prometheus_adapter() -> Result<(), Failure> {
    if peers() {
        return Ok(());
    }
    on_both(async |ns| {
        let (temp_folder, port) = (TempFolder::new().unwrap(), free_port());
        let mut arguments = serving_flags(&temp_folder, &ns.env.cluster.kubeconfig, port);
        arguments.push(format!("--lister-kubeconfig={}", temp_folder.path("kubeconfig").display()));
        arguments.push(format!("--config={}", temp_folder.write("config.yaml", rules()).unwrap().display()));
        arguments.push(format!("--prometheus-url={}/", ns.env.prometheus_proxy.url()));
        arguments.extend(flags(&ADAPTER));
        let server = start("adapter", temp_folder, &arguments, port).await;
        let path = format!("/apis/external.metrics.k8s.io/v1beta1/namespaces/{}/queue_depth", ns.namespace);
        until_ok(&ns, port, &path).await;
        let other = direct(port, &admin(&ns), "/apis/metrics.k8s.io/v1beta1/nodes").await.unwrap();
        assert_eq!(other.code, 404, "{}", other.text());
        ends(server).await;
    })
}

/// Asserts that SIGTERM ends the server gracefully.
async fn ends(mut server: Program) {
    server.terminate();
    let mut code = None;
    until("its end", async || {
        code = server.ended();
        if code.is_some() { Ok(()) } else { Err(server.log()) }
    })
    .await;
    assert_eq!(code, Some(0), "{}", server.log());
}

#[test]
fn invalid_arguments_have_the_usual_messages() {
    if peers() {
        return;
    }
    let cases = [
        (
            "--metric-resolution=5s",
            "metric-resolution should be a time duration at least 10s, but value 5s provided",
        ),
        (
            "--metric-resolution=10s",
            "metric-resolution should be larger than kubelet-request-timeout, but metric-resolution value 10s kubelet-request-timeout value 10s provided",
        ),
        ("--kubelet-client-key=key", "need both --kubelet-client-key and --kubelet-client-certificate"),
        ("--no-such-flag", "no-such-flag"),
    ];
    for (flag, words) in cases {
        let output = std::process::Command::new(program()).args(["metrics", flag]).output().unwrap();
        let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && output_text.contains(words), "{flag}: {output_text}");
    }
}

/// /livez is served without authentication before the first scrape.
#[test]
fn server_is_alive_before_it_is_ready() -> Result<(), Failure> {
    if peers() {
        return Ok(());
    }
    on_both(async |ns| {
        let (temp_folder, port) = (TempFolder::new().unwrap(), free_port());
        let mut arguments = vec!["metrics".to_owned()];
        arguments.extend(serving_flags(&temp_folder, &ns.env.cluster.kubeconfig, port));
        arguments.push(format!("--kubeconfig={}", temp_folder.path("kubeconfig").display()));
        // No kubelet is trusted, so that there are no samples.
        let unknown_authority = localkube::access::Authority::new("nobody").unwrap();
        let trusted = temp_folder.write("nobody.crt", unknown_authority.certificate()).unwrap();
        arguments.push(format!("--kubelet-certificate-authority={}", trusted.display()));
        arguments.extend(flags(&METRICS_SERVER));
        let mut server = Program::start("plimsoll", program(), &arguments, temp_folder).unwrap();
        let lives = async || {
            direct(port, &Caller::anonymous(), "/livez").await.is_some_and(|response| response.code == 200)
        };
        server.until(Duration::from_mins(1), lives).await.unwrap();
        until("the reason", async || {
            let ready = direct(port, &Caller::anonymous(), "/readyz?verbose").await.unwrap();
            let because = ready.text();
            if ready.code == 500 && because.contains("[-]metric-storage-ready failed") {
                Ok(())
            } else {
                Err(because)
            }
        })
        .await;
    })
}
