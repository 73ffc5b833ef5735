//! Objects from files, and from the cluster what the files do not have.

use std::collections::BTreeMap;
use std::time::Duration;

use api::keda::TriggerAuthentication;
use controllers::operator::auth::{ApiServerObjects, AuthObjects, Fetch, FetchError, ManifestObjects};

/// Files first, then the cluster.
pub(super) struct CombinedAuthObjects {
    pub(super) files: ManifestObjects,
    pub(super) cluster: ApiServerObjects,
}

/// The second result, if the first found nothing.
async fn or<T>(first: Fetch<'_, T>, second: Fetch<'_, T>) -> Result<T, FetchError> {
    match first.await {
        Err(error) if error.is_not_found() => second.await,
        found => found,
    }
}

impl AuthObjects for CombinedAuthObjects {
    fn secret<'a>(&'a self, namespace: &'a str, name: &'a str) -> Fetch<'a, BTreeMap<String, Vec<u8>>> {
        Box::pin(or(self.files.secret(namespace, name), self.cluster.secret(namespace, name)))
    }

    fn config_map<'a>(&'a self, namespace: &'a str, name: &'a str) -> Fetch<'a, BTreeMap<String, String>> {
        Box::pin(or(self.files.config_map(namespace, name), self.cluster.config_map(namespace, name)))
    }

    fn service_account<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> Fetch<'a, BTreeMap<String, String>> {
        Box::pin(or(
            self.files.service_account(namespace, name),
            self.cluster.service_account(namespace, name),
        ))
    }

    fn authentication<'a>(
        &'a self,
        namespace: Option<&'a str>,
        name: &'a str,
    ) -> Fetch<'a, TriggerAuthentication> {
        Box::pin(or(self.files.authentication(namespace, name), self.cluster.authentication(namespace, name)))
    }

    fn token<'a>(
        &'a self,
        namespace: &'a str,
        account: &'a str,
        audience: Option<&'a str>,
        lasting: Duration,
    ) -> Fetch<'a, String> {
        self.cluster.token(namespace, account, audience, lasting)
    }
}
