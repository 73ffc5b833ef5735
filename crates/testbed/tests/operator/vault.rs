//! A secret that is in HashiCorp Vault.

use serde_json::{Value, json};
use testbed::backends::Vault;
use testbed::twin::Failure;

use crate::site::{ACCOUNT, Operator, Plot, SYSTEM, Says, deployment, metrics_api, on_both};

/// A TriggerAuthentication that has its token from Vault.
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
fn a_secret_of_vault_is_missed_by_name_and_noticed_when_it_comes() -> Result<(), Failure> {
    on_both(async |plot| {
        let vault = Vault::start(None).await.unwrap();
        let operator = Operator::start(&plot, &[]).await;
        let kubectl = plot.kubectl();
        kubectl.apply(&deployment("guarded", 2));
        let mut trigger = metrics_api(&plot, "guarded", "10");
        trigger["metadata"]["authMode"] = json!("bearer");
        trigger["authenticationRef"] = json!({"name": "doorkeeper"});
        let by_token = json!({"authentication": "token", "credential": {"token": vault.token()}});
        kubectl.apply(&doorkeeper(&vault, &by_token));
        plot.say("guarded", Says::Guarded(15, "first"));
        kubectl.apply(&plot.scaled_object("guarded", &json!({"triggers": [trigger]})));

        plot.until_object("guarded", "a secret that is missed", |found| {
            Plot::condition(found, "Ready").starts_with("False")
                && Plot::message(found, "Ready").contains("\"kv2/data/door\"")
        })
        .await;
        assert_eq!(plot.replicas("guarded").await, 2, "what is not known is not zero");
        // Nothing changes in the cluster: it must be looked for again.
        vault.write("kv2/data/door", json!({"data": {"token": "first"}})).await.unwrap();
        plot.until_condition("guarded", "Ready", "True ScaledObjectReady").await;
        plot.until_condition("guarded", "Active", "True ScalerActive").await;

        // Rotated at the source and in Vault: the old one fails, and the new one is fetched.
        vault.write("kv2/data/door", json!({"data": {"token": "second"}})).await.unwrap();
        plot.say("guarded", Says::Guarded(0, "second"));
        plot.until_condition("guarded", "Active", "False ScalerNotActive").await;
        assert!(!operator.log().contains(vault.token()), "the token of Vault is in the log");

        // The same by an account of the cluster, where there is a server that reviews tokens.
        if let Some(access) = plot.site.cluster.access {
            kubectl.say("create serviceaccount reviewer");
            kubectl.say("create serviceaccount reader");
            let namespace = &plot.namespace;
            kubectl.say(&format!(
                "create clusterrolebinding {namespace}-reviewer --clusterrole=system:auth-delegator \
                 --serviceaccount={namespace}:reviewer"
            ));
            vault.trust(access, kubectl.say("create token reviewer").trim()).await.unwrap();
            let by_account = json!({
                "authentication": "kubernetes", "mount": "kubernetes", "role": "shop",
                "credential": {"serviceAccountName": "reader"},
            });
            plot.say("guarded", Says::Guarded(15, "second"));
            kubectl.apply(&doorkeeper(&vault, &by_account));
            // Tokens of whom the operator may make is for whoever owns the namespace to say.
            plot.until_object("guarded", "a token that is forbidden", |found| {
                Plot::message(found, "Ready").contains("serviceaccounts \"reader\" is forbidden")
            })
            .await;
            kubectl.say("create role tokens --verb=create --resource=serviceaccounts/token");
            kubectl
                .say(&format!("create rolebinding tokens --role=tokens --serviceaccount={SYSTEM}:{ACCOUNT}"));
            plot.until_object("guarded", "a role that is missed", |found| {
                Plot::message(found, "Ready").contains("role")
            })
            .await;
            vault.allow("shop", namespace, "reader").await.unwrap();
            plot.until_condition("guarded", "Ready", "True ScaledObjectReady").await;
            plot.until_condition("guarded", "Active", "True ScalerActive").await;
        }
        operator.check();
    })
}
