//! Secrets of a real Vault: both logins, both stores, and all errors, including a sealed and a stopped server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::keda::AuthenticationRef;
use cluster::connect::{ConnectTarget, connect};
use controllers::operator::OperatorSettings;
use controllers::operator::auth::{
    ApiServerObjects, AuthObjects, AuthQuery, AuthResolver, AuthRules, Fetch, FetchError, ManifestObjects,
    VaultRules,
};
use controllers::operator::operator_identity::IdentityRules;
use controllers::operator::operator_identity::audiences::TokenAudiences;
use controllers::operator::operator_identity::outbound::OutboundFilter;
use serde_json::{Value, json};
use testbed::Access;
use testbed::backends::Vault;

use super::{assert_error_contains, certificates};

/// A reader of the test's TriggerAuthentication, and of service accounts and their tokens in the cluster.
struct VaultAuthentication {
    files: ManifestObjects,
    cluster: Option<ApiServerObjects>,
}

impl AuthObjects for VaultAuthentication {
    fn secret<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> Fetch<'a, std::collections::BTreeMap<String, Vec<u8>>> {
        self.files.secret(namespace, name)
    }

    fn config_map<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> Fetch<'a, std::collections::BTreeMap<String, String>> {
        self.files.config_map(namespace, name)
    }

    fn service_account<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> Fetch<'a, std::collections::BTreeMap<String, String>> {
        self.files.service_account(namespace, name)
    }

    fn authentication<'a>(
        &'a self,
        namespace: Option<&'a str>,
        name: &'a str,
    ) -> Fetch<'a, api::keda::TriggerAuthentication> {
        self.files.authentication(namespace, name)
    }

    fn token<'a>(
        &'a self,
        namespace: &'a str,
        account: &'a str,
        audience: Option<&'a str>,
        lasting: Duration,
    ) -> Fetch<'a, String> {
        match &self.cluster {
            Some(cluster) => cluster.token(namespace, account, audience, lasting),
            None => Box::pin(async { Err(FetchError::not_found("serviceaccounts", "any")) }),
        }
    }
}

/// The audience of the API server, which reviews the tokens.
const AUDIENCE: &str = "https://kubernetes.default.svc";

/// Rules of an administrator who lists this Vault, and approves tokens of accounts of a namespace.
fn identity(vault: &str, namespace: &str) -> IdentityRules {
    let filter = json!({"hashiCorpVault": {"mode": "enforce", "allowedEndpoints": [vault]}});
    let accounts = ["reader", "reviewer", "nobody"]
        .map(|name| json!({"audience": AUDIENCE, "namespace": namespace, "serviceAccountName": name}));
    IdentityRules {
        outbound: OutboundFilter::parse(&filter.to_string()).unwrap(),
        audiences: TokenAudiences::parse(&json!(accounts).to_string()).unwrap(),
        ..IdentityRules::default()
    }
}

/// Resolves a TriggerAuthentication with these settings of Vault: the values of its parameters, or the error.
async fn resolve(
    given: &Value,
    namespace: &str,
    cluster: Option<&ApiServerObjects>,
    rules: VaultRules,
    token_file: Option<PathBuf>,
) -> Result<Vec<String>, String> {
    let mut identity = identity(given["address"].as_str().unwrap(), namespace);
    identity.vault_token_file = token_file.unwrap_or(identity.vault_token_file);
    let object = json!({
        "kind": "TriggerAuthentication", "metadata": {"name": "doorkeeper", "namespace": namespace},
        "spec": {"hashiCorpVault": given},
    });
    let objects =
        VaultAuthentication { files: ManifestObjects::new(vec![object]), cluster: cluster.cloned() };
    let vault = VaultRules { dialer: scalers::dial::Dialer::allowing_loopback(), ..rules };
    let rules = AuthRules { vault, identity, ..AuthRules::from(&OperatorSettings::default()) };
    let auth = AuthResolver::new(Arc::new(objects), rules);
    let reference = AuthenticationRef { name: "doorkeeper".to_owned(), ..AuthenticationRef::default() };
    let query = AuthQuery { namespace, authentication: Some(&reference), template: None, container: "" };
    let resolved = auth.resolve(query).await.map_err(|error| error.to_string())?;
    Ok(resolved.parameters.into_values().collect())
}

fn secret(parameter: &str, path: &str, type_: &str) -> Value {
    json!({"parameter": parameter, "path": path, "key": "password", "type": type_})
}

async fn filled(vault: &Vault) {
    vault.write("kv1/db", json!({"password": "of the first"})).await.unwrap();
    vault.write("kv2/data/db", json!({"data": {"password": "of the second"}})).await.unwrap();
}

#[tokio::test]
async fn token_reads_both_stores_with_and_without_tls() {
    let (authority, identity) = certificates();
    let vault = Vault::start(Some(&identity)).await.unwrap();
    filled(&vault).await;
    let temp_folder = testbed::program::TempFolder::new().unwrap();
    let ca_file = Some(temp_folder.write("ca.crt", authority.certificate()).unwrap());
    let given = |address: &str, token: &str, secrets: Value| json!({"address": address, "authentication": "token", "credential": {"token": token}, "secrets": secrets});
    let both = json!([
        secret("a", "kv1/db", "secret"),
        secret("b", "kv2/data/db", "secretV2"),
        secret("c", "kv2/data/db", "")
    ]);
    let wanted = ["of the first", "of the second", "of the second"].map(str::to_owned).to_vec();
    let ask = async |given: Value, rules: VaultRules| resolve(&given, "ns", None, rules, None).await;
    for (address, rules) in [
        (vault.address(), VaultRules::default()),
        (vault.tls_address(), VaultRules { ca_file: ca_file.clone(), ..VaultRules::default() }),
        (vault.tls_address(), VaultRules { insecure: true, ..VaultRules::default() }),
    ] {
        assert_eq!(ask(given(&address, vault.token(), both.clone()), rules).await, Ok(wanted.clone()));
    }
    let none = VaultRules::default;
    assert_error_contains(
        &ask(given(&vault.tls_address(), vault.token(), both.clone()), none()).await.unwrap_err(),
        &["certificate"],
    );

    // Each error names its cause.
    let plain = vault.address();
    let one = |path: &str, type_: &str| json!([secret("a", path, type_)]);
    for (token, secrets, words) in [
        (vault.token(), one("kv1/none", ""), &["\"kv1/none\"", "does not exist"][..]),
        (vault.token(), one("nowhere/db", ""), &["\"nowhere/db\""]),
        (vault.token(), one("kv1/db", "secretV2"), &["\"kv1/db\"", "second version"]),
        (vault.token(), one("kv2/db", ""), &["\"kv2/db\""]),
        (vault.token(), json!([{"parameter": "a", "path": "kv1/db", "key": "user"}]), &["no key \"user\""]),
        ("hunter2", both.clone(), &["403", "permission denied"]),
        ("hunter2\nx", both.clone(), &["x-vault-token"]),
    ] {
        let error = ask(given(&plain, token, secrets), none()).await.unwrap_err();
        assert_error_contains(&error, words);
        assert!(error.contains("doorkeeper") && !error.contains(vault.token()), "{error}");
    }
    assert_error_contains(&ask(given(&plain, "", both.clone()), none()).await.unwrap_err(), &["VAULT_TOKEN"]);
    // The environment variable takes precedence over the object.
    let rules = VaultRules { token: Some(sources_secret(vault.token())), ..none() };
    assert_eq!(ask(given(&plain, "hunter2", both.clone()), rules).await, Ok(wanted.clone()));

    // A sealed Vault is an error; after it is unsealed it is used again.
    vault.seal().await.unwrap();
    assert_error_contains(
        &ask(given(&plain, vault.token(), both.clone()), none()).await.unwrap_err(),
        &["sealed"],
    );
    vault.unseal().await.unwrap();
    assert_eq!(ask(given(&plain, vault.token(), both.clone()), none()).await, Ok(wanted));
    // A stopped Vault is an error; secrets do not become empty.
    drop(vault);
    assert_error_contains(
        &ask(given(&plain, "hunter2", both), none()).await.unwrap_err(),
        &["connection refused"],
    );
}

fn sources_secret(text: &str) -> scalers::parameters::Secret {
    scalers::parameters::Secret::new(text)
}

/// The cluster, a namespace, and a Vault that verifies tokens with TokenReviews of this cluster.
async fn with_cluster() -> (&'static Access, String, ApiServerObjects, Vault) {
    let access = tokio::task::spawn_blocking(testbed::shared).await.unwrap().unwrap();
    let namespace = access.namespace("vault").unwrap();
    let kubectl = |words: &[&str]| access.run_kubectl(&[words, &["-n", &namespace]].concat()).unwrap();
    kubectl(&["create", "serviceaccount", "reviewer"]);
    kubectl(&["create", "serviceaccount", "reader"]);
    let binding = format!("{namespace}-reviewer");
    let account = format!("--serviceaccount={namespace}:reviewer");
    kubectl(&["create", "clusterrolebinding", &binding, "--clusterrole=system:auth-delegator", &account]);
    let reviewer = kubectl(&["create", "token", "reviewer"]);
    let vault = Vault::start(None).await.unwrap();
    filled(&vault).await;
    vault.trust(access, reviewer.trim()).await.unwrap();
    vault.allow("shop", &namespace, "reader").await.unwrap();
    let target = ConnectTarget { kubeconfig: Some(access.kubeconfig.clone()), context: None };
    let client = connect(&target).await.unwrap().client;
    (access, namespace, ApiServerObjects::new(client), vault)
}

#[tokio::test]
async fn only_the_bound_service_account_logs_in() {
    let (access, namespace, server, vault) = with_cluster().await;
    let given = |role: &str, mount: &str, credential: Value| {
        json!({
            "address": vault.address(), "authentication": "kubernetes", "mount": mount, "role": role,
            "credential": credential,
            "secrets": [secret("a", "kv1/db", "secret"), secret("b", "kv2/data/db", "secretV2")],
        })
    };
    let none = VaultRules::default;
    let ask = async |given: Value| resolve(&given, &namespace, Some(&server), none(), None).await;
    let wanted = ["of the first", "of the second"].map(str::to_owned).to_vec();
    let named = |name: &str| json!({"serviceAccountName": name});
    // The Vault is reached by its host name, with a token in a file.
    assert_eq!(ask(given("shop", "kubernetes", named("reader"))).await, Ok(wanted.clone()));
    let token = access.run_kubectl(&["create", "token", "reader", "-n", &namespace]).unwrap();
    let temp_folder = testbed::program::TempFolder::new().unwrap();
    let file: PathBuf = temp_folder.write("token", token.trim()).unwrap();
    let from_file = given("shop", "kubernetes", json!({"serviceAccount": file}));
    assert_error_contains(&ask(from_file.clone()).await.unwrap_err(), &["is not read", "serviceAccountName"]);
    let known = Some(file.clone());
    assert_eq!(resolve(&from_file, &namespace, Some(&server), none(), known).await, Ok(wanted.clone()));

    for (role, mount, account, words) in [
        ("other", "kubernetes", "reader", &["role", "other"][..]),
        ("shop", "elsewhere", "reader", &["403"]),
        ("shop", "kubernetes", "reviewer", &["service account name not authorized"]),
        ("shop", "kubernetes", "nobody", &["ServiceAccount", "nobody", "does not exist"]),
        ("", "kubernetes", "reader", &["k8s role not in config"]),
        ("shop", "", "reader", &["auth mount not in config"]),
    ] {
        let error = ask(given(role, mount, named(account))).await.unwrap_err();
        assert_error_contains(&error, words);
        assert!(error.contains("doorkeeper"), "{error}");
    }
    // A role that is created later is used by the next request.
    vault.allow("other", &namespace, "reader").await.unwrap();
    assert_eq!(ask(given("other", "kubernetes", named("reader"))).await, Ok(wanted));
}
