//! Secrets in HashiCorp Vault.

use serde_json::{Value, json};
use testbed::backends::Vault;
use testbed::harness::Failure;

use crate::env::{
    ACCOUNT, Operator, SYSTEM_NAMESPACE, SourceResponse, TestNamespace, deployment, metrics_api, on_both,
};

/// A TriggerAuthentication whose token is in Vault.
fn doorkeeper(vault: &Vault, login: &Value) -> Value {
    let mut given = json!({
        "address": vault.address(),
        "secrets": [{"parameter": "token", "path": "kv2/data/door", "key": "token", "type": "secretV2"}],
    });
    given.as_object_mut().unwrap().extend(login.as_object().unwrap().clone());
    json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": {"name": "doorkeeper"},
        "spec": {"hashiCorpVault": given}
    })
}

#[test]
fn missing_vault_secret_is_named_and_noticed_when_written() -> Result<(), Failure> {
    on_both(async |ns| {
        let vault = Vault::start(None).await.unwrap();
        // An administrator lists this Vault, which has no TLS, and approves tokens of one account for it.
        let filter = json!({"hashiCorpVault": {"mode": "enforce", "allowedEndpoints": [vault.address()]}});
        let account = json!([
            {"audience": "https://kubernetes.default.svc", "namespace": ns.namespace, "serviceAccountName": "reader"},
        ]);
        let (filter, account) = (filter.to_string(), account.to_string());
        let variables =
            [("KEDA_OUTBOUND_FILTER", &*filter), ("KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES", &*account)];
        let operator = Operator::start_with(&ns, &[], &variables).await;
        let kubectl = ns.kubectl();
        kubectl.apply(&deployment("guarded", 2));
        let mut trigger = metrics_api(&ns, "guarded", "10");
        trigger["metadata"]["authMode"] = json!("bearer");
        trigger["authenticationRef"] = json!({"name": "doorkeeper"});
        let by_token = json!({"authentication": "token", "credential": {"token": vault.token()}});
        kubectl.apply(&doorkeeper(&vault, &by_token));
        ns.set_response("guarded", SourceResponse::Guarded(15, "first"));
        kubectl.apply(&ns.scaled_object("guarded", &json!({"triggers": [trigger]})));

        ns.until_object("guarded", "a secret that is missed", |found| {
            TestNamespace::condition(found, "Ready").starts_with("False")
                && TestNamespace::message(found, "Ready").contains("\"kv2/data/door\"")
        })
        .await;
        assert_eq!(ns.replicas("guarded").await, 2, "what is not known is not zero");
        // Nothing changes in the cluster, so the operator must query Vault again.
        vault.write("kv2/data/door", json!({"data": {"token": "first"}})).await.unwrap();
        ns.until_condition("guarded", "Ready", "True ScaledObjectReady").await;
        ns.until_condition("guarded", "Active", "True ScalerActive").await;

        // The token is rotated at the source and in Vault: the old one fails, and the new one is read.
        vault.write("kv2/data/door", json!({"data": {"token": "second"}})).await.unwrap();
        ns.set_response("guarded", SourceResponse::Guarded(0, "second"));
        ns.until_condition("guarded", "Active", "False ScalerNotActive").await;
        assert!(!operator.log().contains(vault.token()), "the token of Vault is in the log");

        // The same with the Kubernetes login, on a cluster that reviews tokens.
        if let Some(access) = ns.env.cluster.access {
            kubectl.run_ok("create serviceaccount reviewer");
            kubectl.run_ok("create serviceaccount reader");
            let namespace = &ns.namespace;
            kubectl.run_ok(&format!(
                "create clusterrolebinding {namespace}-reviewer --clusterrole=system:auth-delegator \
                 --serviceaccount={namespace}:reviewer"
            ));
            vault.trust(access, kubectl.run_ok("create token reviewer").trim()).await.unwrap();
            let by_account = json!({
                "authentication": "kubernetes", "mount": "kubernetes", "role": "shop",
                "credential": {"serviceAccountName": "reader"},
            });
            ns.set_response("guarded", SourceResponse::Guarded(15, "second"));
            kubectl.apply(&doorkeeper(&vault, &by_account));
            // The owner of the namespace decides which tokens the operator may request.
            ns.until_object("guarded", "a token that is forbidden", |found| {
                TestNamespace::message(found, "Ready").contains("serviceaccounts \"reader\" is forbidden")
            })
            .await;
            kubectl.run_ok("create role tokens --verb=create --resource=serviceaccounts/token");
            kubectl.run_ok(&format!(
                "create rolebinding tokens --role=tokens --serviceaccount={SYSTEM_NAMESPACE}:{ACCOUNT}"
            ));
            ns.until_object("guarded", "a role that is missed", |found| {
                TestNamespace::message(found, "Ready").contains("role")
            })
            .await;
            vault.allow("shop", namespace, "reader").await.unwrap();
            ns.until_condition("guarded", "Ready", "True ScaledObjectReady").await;
            ns.until_condition("guarded", "Active", "True ScalerActive").await;
        }
        operator.check();
    })
}
