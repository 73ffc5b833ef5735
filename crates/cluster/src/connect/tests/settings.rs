use std::path::PathBuf;

use super::Scratch;
use crate::connect::settings::{ProcessEnvironment, load};
use crate::connect::{ConnectTarget, connect, kubeconfig};

const GOOD: &str = "apiVersion: v1
kind: Config
current-context: prod
clusters:
- {name: prod, cluster: {server: 'https://10.1.2.3:6443'}}
- {name: dev, cluster: {server: 'http://127.0.0.1:8001/prefix'}}
- {name: bare, cluster: {}}
- {name: proxied, cluster: {server: 'https://10.1.2.3:6443', proxy-url: 'http://proxy:3128'}}
users:
- {name: me, user: {token: secret-token}}
contexts:
- {name: prod, context: {cluster: prod, user: me, namespace: shop}}
- {name: dev, context: {cluster: dev, user: me}}
- {name: lost, context: {cluster: nowhere, user: me}}
- {name: bare, context: {cluster: bare, user: me}}
- {name: proxied, context: {cluster: proxied, user: me}}
";

fn target(kubeconfig: Option<PathBuf>, context: Option<&str>) -> ConnectTarget {
    ConnectTarget { kubeconfig, context: context.map(str::to_owned) }
}

async fn error(target: &ConnectTarget, around: &ProcessEnvironment) -> String {
    load(target, around).await.unwrap_err().to_string()
}

#[tokio::test]
async fn the_current_or_the_named_context_is_used() {
    let scratch = Scratch::new("contexts");
    let path = scratch.file(".kube/config", GOOD);
    let around = ProcessEnvironment {
        home: Some(scratch.path().to_owned()),
        in_pod: true,
        ..ProcessEnvironment::default()
    };
    let found = load(&target(None, None), &around).await.unwrap();
    assert_eq!(found.origin, "~/.kube/config, context prod");
    assert_eq!(found.config.cluster_url, "https://10.1.2.3:6443");
    assert_eq!(found.config.default_namespace, "shop");

    let named = connect(&target(Some(path.clone()), Some("dev"))).await.unwrap();
    assert_eq!(named.server, "http://127.0.0.1:8001/prefix");
    assert_eq!(named.namespace, "default");
    assert!(named.origin.ends_with(".kube/config, context dev"), "{}", named.origin);
}

#[tokio::test]
async fn files_of_kubeconfig_variable_are_merged_and_may_be_missing() {
    let scratch = Scratch::new("merged");
    let first = scratch.file("first", "current-context: dev\n");
    let second = scratch.file("second", GOOD);
    let missing = scratch.path().join("missing");
    let list = std::env::join_paths([&missing, &first, &second]).unwrap();
    let around = ProcessEnvironment { kubeconfig: Some(list), ..ProcessEnvironment::default() };
    let found = load(&target(None, None), &around).await.unwrap();
    assert!(found.origin.ends_with("second, context dev"), "{}", found.origin);

    let around = ProcessEnvironment { kubeconfig: Some(missing.into()), ..ProcessEnvironment::default() };
    let text = error(&target(None, None), &around).await;
    assert!(
        text.contains("does not exist\n  kubeconfig: named by the environment variable KUBECONFIG\n"),
        "{text}"
    );
}

#[tokio::test]
async fn a_missing_kubeconfig_is_explained() {
    let scratch = Scratch::new("none");
    let around =
        ProcessEnvironment { home: Some(scratch.path().to_owned()), ..ProcessEnvironment::default() };
    assert_eq!(
        error(&target(None, None), &around).await,
        "cannot find a cluster: there is no kubeconfig
  looked at: KUBECONFIG (not set), ~/.kube/config (not there), service account (not in a pod)
  remedy: name a file with --kubeconfig or KUBECONFIG; `plimsoll up` starts a local cluster"
    );
    let pod = ProcessEnvironment { in_pod: true, ..around };
    let text = error(&target(None, Some("prod")), &pod).await;
    assert!(text.starts_with("cannot choose a context: there is no kubeconfig"), "{text}");
}

#[tokio::test]
async fn an_unknown_context_is_explained() {
    let scratch = Scratch::new("unknown");
    let path = scratch.file("config", GOOD);
    let around =
        ProcessEnvironment { home: Some(scratch.path().to_owned()), ..ProcessEnvironment::default() };
    assert_eq!(
        error(&target(Some(path), Some("prdo")), &around).await,
        "there is no context `prdo`; did you mean `prod`?
  kubeconfig: ~/config
  contexts: prod, dev, lost, bare, proxied
  remedy: choose one of them with --context"
    );
    let many: Vec<String> = (0..12).map(|n| format!("{{name: c{n}, context: {{cluster: x}}}}")).collect();
    let path = scratch.file("many", &format!("contexts: [{}]", many.join(", ")));
    let text = error(&target(Some(path), None), &around).await;
    assert!(text.starts_with("the kubeconfig has no current context\n"), "{text}");
    assert!(text.contains("contexts: c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 2 more\n"), "{text}");
    let path = scratch.file("empty", "");
    let text = error(&target(Some(path), None), &around).await;
    assert!(text.contains("contexts: none\n"), "{text}");
}

#[tokio::test]
async fn contexts_without_cluster_or_user_are_explained() {
    let scratch = Scratch::new("nowhere");
    let path = scratch.file("config", GOOD);
    for (context, what) in [
        ("lost", "context `lost` names cluster `nowhere`, which is not there\n"),
        ("bare", "cluster `bare` has no server\n"),
        ("proxied", "cannot reach cluster `proxied`: proxies (proxy-url) are not supported\n"),
    ] {
        let text = error(&target(Some(path.clone()), Some(context)), &ProcessEnvironment::default()).await;
        assert!(text.starts_with(what) && text.contains("\n  remedy: "), "{text}");
    }
}

#[tokio::test]
async fn unreadable_files_are_explained() {
    let scratch = Scratch::new("unreadable");
    let around =
        ProcessEnvironment { home: Some(scratch.path().to_owned()), ..ProcessEnvironment::default() };
    let missing = target(Some(scratch.path().join("missing")), None);
    assert_eq!(
        error(&missing, &around).await,
        "cannot read kubeconfig ~/missing: it does not exist
  remedy: check the path, or leave it out to use ~/.kube/config"
    );
    let directory = error(&target(Some(scratch.path().to_owned()), None), &around).await;
    assert!(directory.starts_with("cannot read kubeconfig ~/: is a directory"), "{directory}");
}

#[tokio::test]
async fn invalid_yaml_is_reported_by_position_only() {
    let scratch = Scratch::new("yaml");
    let around =
        ProcessEnvironment { home: Some(scratch.path().to_owned()), ..ProcessEnvironment::default() };
    for text in [
        "users:\n- name: me\n  user: {token: [secret-token\n",
        "contexts: secret-token\n",
        "users:\n- {name: me, user: {token: 1, password: secret}}\n",
        "- secret-token",
        "\u{0}",
    ] {
        let path = scratch.file("bad", text);
        let text = error(&target(Some(path), None), &around).await;
        assert!(
            text.starts_with("~/bad:") && text.contains(": this is not a kubeconfig\n  remedy: "),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn an_invalid_entry_is_reported_by_its_line() {
    let scratch = Scratch::new("entry");
    let around =
        ProcessEnvironment { home: Some(scratch.path().to_owned()), ..ProcessEnvironment::default() };
    let path = scratch.file("bad", "kind: Config\nusers:\n- {name: you}\n- {name: me, user: {token: 12}}\n");
    let text = error(&target(Some(path), None), &around).await;
    assert!(text.starts_with("~/bad:4:"), "{text}");
}

#[test]
fn relative_paths_belong_to_the_folder_of_the_kubeconfig() {
    let scratch = Scratch::new("relative");
    let text = "clusters:
- {name: c, cluster: {certificate-authority: pki/ca.pem}}
---
users:
- {name: a, user: {tokenFile: token, exec: {command: bin/login}}}
- {name: b, user: {client-key: /key.pem, exec: {command: login}}}
";
    let read = kubeconfig::read(&scratch.file("kubeconfig", text)).unwrap();
    let whole = |name: &str| Some(scratch.path().join(name).to_str().unwrap().to_owned());
    assert_eq!(read.clusters[0].cluster.as_ref().unwrap().certificate_authority, whole("pki/ca.pem"));
    let user = |index: usize| read.auth_infos[index].auth_info.clone().unwrap();
    let command = |index: usize| user(index).exec.unwrap().command;
    assert_eq!((user(0).token_file, command(0)), (whole("token"), whole("bin/login")));
    assert_eq!((user(1).client_key, command(1)), (Some("/key.pem".to_owned()), Some("login".to_owned())));
}

#[test]
fn null_in_a_kubeconfig_is_a_field_that_is_not_set() {
    let scratch = Scratch::new("null");
    let text = "users:
- name: me
  user:
    auth-provider: {name: oidc, config: null}
    exec: {command: login, args: null, provideClusterInfo: null}
";
    let read = kubeconfig::read(&scratch.file("kubeconfig", text)).unwrap();
    let user = read.auth_infos[0].auth_info.clone().unwrap();
    assert!(user.auth_provider.unwrap().config.is_empty());
    assert!(!user.exec.unwrap().provide_cluster_info);
}
