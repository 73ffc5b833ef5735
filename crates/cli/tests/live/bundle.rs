//! `plimsoll support-bundle`: the files of the archive, which contain no secrets.

use std::io::Read as _;

use http::Method;
use serde_json::json;

use crate::setting::Setting;

/// A secret that must not be found.
const CANARY: &str = "c4n4ry-of-the-bundle";

#[tokio::test(flavor = "multi_thread")]
async fn bundle_has_no_secrets() {
    let setting = Setting::new().await;
    setting.hpa("shop", "web").await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"token": CANARY}});
    setting.send(Method::POST, "/api/v1/namespaces/shop/secrets", &secret).await;
    let labels = json!({"app.kubernetes.io/part-of": "plimsoll", "app": "operator"});
    let container = json!({"name": "operator", "image": "plimsoll", "args": [format!("--prometheus-header=Authorization=Bearer {CANARY}")],
        "env": [{"name": "VAULT_TOKEN", "value": CANARY}]});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "plimsoll-operator", "labels": labels, "annotations": {"note": CANARY}},
        "spec": {"selector": {"matchLabels": {"app": "operator"}},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}});
    setting.send(Method::POST, "/apis/apps/v1/namespaces/default/deployments", &deployment).await;

    let ended = setting.run(&["support-bundle", "--file", "bundle.tar.gz"]).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.out.starts_with("bundle.tar.gz: "), "{ended:?}");
    let packed = std::fs::File::open(setting.folder.join("bundle.tar.gz")).unwrap();
    let text = unpacked(packed);
    assert!(!text.contains(CANARY), "{text}");
    for name in [
        "version.json\0",
        "objects/horizontalpodautoscalers.json\0",
        "events/autoscalers.json\0",
        "roles/deployments.json\0",
        "roles/default/events.json\0",
    ] {
        assert!(text.contains(name), "{name:?} is not in {text}");
    }
    assert!(text.contains("\"VAULT_TOKEN\"") && text.contains("\"web\""), "{text}");

    let piped = setting.command(&["support-bundle", "--file", "-"]).output().await.unwrap();
    assert!(piped.status.success(), "{piped:?}");
    assert!(unpacked(&*piped.stdout).contains("version.json\0"));
    assert!(String::from_utf8(piped.stderr).unwrap().contains("look into it before you publish it"));
    assert!(!setting.folder.join("-").exists());
}

fn unpacked(packed: impl std::io::Read) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn bundle_of_an_unreachable_cluster_is_not_written() {
    let setting = Setting::nowhere();
    let ended = setting.run(&["support-bundle", "--file", "bundle.tar.gz"]).await;
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(!setting.folder.join("bundle.tar.gz").exists());
}
