//! `plimsoll migrate check` and `plan` on a cluster with metrics-server.

use http::Method;
use serde_json::{Value, json};

use crate::setting::Setting;

async fn install(setting: &Setting, args: &[&str]) {
    let labels = json!({"k8s-app": "metrics-server"});
    let container =
        json!({"name": "c", "image": "registry.k8s.io/metrics-server/metrics-server:v0.8.0", "args": args});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "metrics-server"},
        "spec": {"selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}});
    setting.send(Method::POST, "/apis/apps/v1/namespaces/default/deployments", &deployment).await;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics-server"},
        "spec": {"selector": labels, "ports": [{"port": 443}]}});
    setting.send(Method::POST, "/api/v1/namespaces/default/services", &service).await;
    let api = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1beta1.metrics.k8s.io"},
        "spec": {"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": true, "service": {"name": "metrics-server", "namespace": "default", "port": 443}}});
    setting.send(Method::POST, "/apis/apiregistration.k8s.io/v1/apiservices", &api).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn check_names_what_is_installed_and_plan_its_commands() {
    let setting = Setting::new().await;
    install(&setting, &["--metric-resolution=30s"]).await;
    let ended = setting.run(&["migrate", "check"]).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.out.contains("\nmetrics-server "), "{ended:?}");
    assert!(ended.out.ends_with("nothing would break; the commands: plimsoll migrate plan\n"), "{ended:?}");
    let ended = setting.run(&["migrate", "check", "-o", "json"]).await;
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(report["apis"][0]["owner"], "metrics-server");
    let ended = setting.run(&["migrate", "plan", "--from", "metrics-server"]).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.out.contains("\nkubectl patch apiservice v1beta1.metrics.k8s.io "), "{ended:?}");
    assert!(ended.out.contains("\ncontroller:\n  enabled: false\n"), "{ended:?}");
    let ended = setting.run(&["migrate", "plan", "--from", "keda"]).await;
    let text = "error: KEDA is not installed here; `plimsoll migrate check` shows what is\n";
    assert_eq!((ended.code, ended.err.as_str()), (2, text), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_exits_with_3_if_something_would_break() {
    let setting = Setting::new().await;
    install(&setting, &["--no-such-flag"]).await;
    let ended = setting.run(&["migrate", "check"]).await;
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(
        ended.out.contains(
            "✗ metrics-server: default/metrics-server: --no-such-flag: Plimsoll has no such flag\n"
        ),
        "{ended:?}"
    );
    assert_eq!(setting.run(&["migrate", "check", "--from", "keda"]).await.code, 0);
}
