//! Clients with the permissions of a service account.

use kube::Client;
use testbed::harness;
use testbed::proxy::{Proxy, ProxyCaller, ProxyOptions, Rules};

use crate::env::ControllerEnv;

/// A service account, and a proxy that logs its requests.
pub(crate) struct Account {
    pub(crate) client: Client,
    pub(crate) rules: Rules,
    _proxy: Proxy,
}

impl ControllerEnv {
    pub(crate) async fn account(&self, namespace: &str, name: &str) -> Account {
        let options = ProxyOptions { caller: ProxyCaller::Client, store_lists: false };
        let proxy = Proxy::start_with(&self.kubeconfig, options).await.unwrap();
        let token = self.token(namespace, name).await;
        let client = harness::connect(&proxy.kubeconfig_with(&token)).await.unwrap();
        Account { client, rules: proxy.rules(), _proxy: proxy }
    }
}
