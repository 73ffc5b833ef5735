//! The same with an API server in memory.

use cluster::request::{Request, send};
use http::Method;
use kube::Client;
use localkube::{Cluster, Options};

use super::*;
use crate::operator::operator_identity::audiences::TokenAudiences;

async fn create(client: &Client, uri: &str, object: &Value) {
    let mut request = Request::get(uri, "objects", Duration::from_secs(10));
    request.method = Method::POST;
    request.body = Some(("application/json", object.to_string().into_bytes()));
    send(client, request).await.unwrap();
}

#[tokio::test]
async fn objects_and_tokens_are_read_from_the_api_server() {
    let running = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
    let client = running.client();
    let core = |resource: &str| format!("/api/v1/namespaces/default/{resource}");
    let data = |kind: &str, data: Value| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, "data": data});
    create(&client, &core("secrets"), &data("Secret", json!({"key": "AP8="}))).await;
    create(&client, &core("configmaps"), &data("ConfigMap", json!({"key": "value"}))).await;
    let metadata = json!({"name": "me", "annotations": {"a": "b"}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    create(&client, &core("serviceaccounts"), &account).await;

    let server = ApiServerObjects::new(client);
    assert_eq!(server.secret("default", "x").await.unwrap()["key"], [0, 255]);
    assert_eq!(server.config_map("default", "x").await.unwrap()["key"], "value");
    assert_eq!(server.service_account("default", "me").await.unwrap()["a"], "b");
    let lasting = Duration::from_hours(1);
    assert_eq!(server.token("default", "me", None, lasting).await.unwrap().split('.').count(), 3);

    let gone = server.secret("default", "y").await.unwrap_err();
    assert!(gone.is_not_found());
    assert_eq!(gone.to_string(), "secrets \"y\" not found");
    assert!(server.token("default", "nobody", None, lasting).await.unwrap_err().is_not_found());
    assert!(server.authentication(None, "ta").await.unwrap_err().is_not_found());
    assert!(server.secret("default", "../configmaps/x").await.unwrap_err().is_not_found());
}

/// `ManifestObjects` whose service accounts have tokens.
struct WithTokens(ManifestObjects, ApiServerObjects);

impl AuthObjects for WithTokens {
    fn secret<'a>(&'a self, namespace: &'a str, name: &'a str) -> Fetch<'a, BTreeMap<String, Vec<u8>>> {
        self.0.secret(namespace, name)
    }

    fn config_map<'a>(&'a self, namespace: &'a str, name: &'a str) -> Fetch<'a, BTreeMap<String, String>> {
        self.0.config_map(namespace, name)
    }

    fn service_account<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> Fetch<'a, BTreeMap<String, String>> {
        self.0.service_account(namespace, name)
    }

    fn authentication<'a>(
        &'a self,
        namespace: Option<&'a str>,
        name: &'a str,
    ) -> Fetch<'a, api::keda::TriggerAuthentication> {
        self.0.authentication(namespace, name)
    }

    fn token<'a>(
        &'a self,
        namespace: &'a str,
        account: &'a str,
        audience: Option<&'a str>,
        lasting: Duration,
    ) -> Fetch<'a, String> {
        self.1.token(namespace, account, audience, lasting)
    }
}

#[tokio::test]
async fn tokens_of_service_accounts_are_parameters() {
    let running = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
    let client = running.client();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}});
    create(&client, "/api/v1/namespaces", &namespace).await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "me"}});
    create(&client, "/api/v1/namespaces/ns/serviceaccounts", &account).await;
    let server = ApiServerObjects::new(client);
    let with = |account: &str, audiences: &str, compat| {
        let spec =
            json!({"boundServiceAccountToken": [{"parameter": "token", "serviceAccountName": account}]});
        let objects = WithTokens(ManifestObjects::new(vec![authentication(&spec)]), server.clone());
        let audiences = TokenAudiences::parse(audiences).unwrap();
        let identity = IdentityRules { audiences, ..IdentityRules::default() };
        let time = running.clock();
        let clock = Clock::new(move || time.now());
        AuthResolver::new(Arc::new(objects), AuthRules { identity, ..rules(compat) }).with_clock(clock)
    };
    let approved = "[{audience: vault, namespace: ns, serviceAccountName: me}, \
        {audience: vault, namespace: ns, serviceAccountName: nobody}]";
    let resolved = resolve_as(&with("me", approved, Compat::Better), "").await.unwrap();
    assert!(resolved.parameters["token"].split('.').count() == 3);
    assert_eq!(seen(&resolved.seen), ["TriggerAuthentication ns/ta", "ServiceAccount ns/me"]);
    let error = resolve_as(&with("nobody", approved, Compat::Better), "").await.unwrap_err();
    assert_eq!(error.to_string(), "TriggerAuthentication ns/ta: ServiceAccount ns/nobody does not exist");
    assert_eq!(
        resolve_as(&with("nobody", approved, Compat::Strict), "").await.unwrap().parameters["token"],
        ""
    );
    // Since KEDA 2.21 a missing token is an error.
    let mut newer = with("nobody", approved, Compat::Strict);
    newer.rules = Arc::new(AuthRules { profile: KedaProfile::V2_21, ..(*newer.rules).clone() });
    let error = resolve_as(&newer, "").await.unwrap_err();
    assert_eq!(error.to_string(), "TriggerAuthentication ns/ta: ServiceAccount ns/nobody does not exist");
    // Without an approved audience no token is requested, in both modes.
    for other in ["[]", "[{audience: vault}]", "[{audience: vault, namespace: till, serviceAccountName: me}]"]
    {
        let error = resolve_as(&with("me", other, Compat::Better), "").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "TriggerAuthentication ns/ta: no configured token audience for service account ns/me in \
             KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES"
        );
        assert_eq!(resolve_as(&with("me", other, Compat::Strict), "").await.unwrap().parameters["token"], "");
    }
    let error = resolve_as(&with("", approved, Compat::Better), "").await.unwrap_err();
    assert!(error.to_string().contains("serviceAccountName is required"), "{error}");
}
