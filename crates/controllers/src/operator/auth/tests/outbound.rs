//! Addresses of Vault that are refused.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sources::dial::Dialer;
use sources::http::ProxyRules;

use super::super::{AuthResolver, ManifestObjects, VaultRules};
use super::{authentication, resolve_as, rules};

#[tokio::test]
async fn refused_address_of_vault_gets_no_request() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let spec = json!({"hashiCorpVault": {
        "address": format!("http://{}", listener.local_addr().unwrap()),
        "authentication": "token", "credential": {"token": "t"},
        "secrets": [{"parameter": "p", "path": "kv/a", "key": "k"}],
    }});
    let mut rules = rules(api::provider::Compat::Better);
    rules.vault = VaultRules { dialer: Dialer::default(), ..rules.vault };
    let auth = AuthResolver::new(Arc::new(ManifestObjects::new(vec![authentication(&spec)])), rules);
    let error = resolve_as(&auth, "").await.unwrap_err().to_string();
    assert!(error.contains("--allow-source-cidr"), "{error}");
    assert!(futures::FutureExt::now_or_never(listener.accept()).is_none());
}

#[tokio::test]
async fn vault_is_requested_through_the_proxy() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let request = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let answer = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        String::from_utf8(head).unwrap()
    });
    // Nothing is sent to this address but to the proxy.
    let spec = json!({"hashiCorpVault": {
        "address": "http://10.9.8.7:8200",
        "authentication": "token", "credential": {"token": "t"},
        "secrets": [{"parameter": "p", "path": "kv/a", "key": "k"}],
    }});
    let mut rules = rules(api::provider::Compat::Better);
    rules.vault.proxies = ProxyRules::from_environment(|name| (name == "HTTP_PROXY").then(|| proxy.clone()));
    let auth = AuthResolver::new(Arc::new(ManifestObjects::new(vec![authentication(&spec)])), rules);
    assert!(resolve_as(&auth, "").await.is_err());
    let head = tokio::time::timeout(Duration::from_secs(30), request).await.unwrap().unwrap();
    assert!(head.contains(" http://10.9.8.7:8200/v1/"), "{head}");
}
