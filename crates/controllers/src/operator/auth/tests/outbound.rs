//! Addresses of Vault that are refused.

use std::sync::Arc;

use serde_json::json;
use sources::dial::Dialer;

use super::super::{AuthResolver, ManifestObjects, VaultRules};
use super::{authentication, resolve_as, rules};

#[tokio::test]
async fn refused_address_of_vault_is_not_asked() {
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
