//! Invalid objects are refused when they are written, by the webhooks of `deploy/operator`, whose configuration
//! the operator completes itself.

use serde_json::{Value, json};
use testbed::harness::Failure;

use crate::env::{TestNamespace, deployment, metrics_api, on_both, scripted};

const CONFIGURATION: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/keda-admission";

/// The error text of kubectl for an object that a webhook denied.
fn refused(webhook: &str, why: &str) -> String {
    format!("admission webhook \"{webhook}\" denied the request: {why}")
}

impl TestNamespace {
    /// Two triggers with the same name.
    fn named_twice(&self, kind: &str) -> Value {
        let mut trigger = scripted(self, "x");
        trigger["name"] = json!("mails");
        let mut object = self.scaled_object("judged-twice", &json!({"triggers": [trigger, trigger]}));
        object["kind"] = json!(kind);
        if kind == "ScaledJob" {
            let pods = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
            object["spec"] = json!({"jobTargetRef": {"template": pods}, "triggers": [trigger, trigger]});
        }
        object
    }

    /// Waits until the API server calls the webhooks of the serving operator: their configurations reach it after a while, and until
    /// then every write is accepted. The writes are dry runs: the operator's own webhook would refuse its writes to a stored object.
    pub(crate) async fn until_judged(&self) {
        let (kubectl, object) = (self.kubectl(), self.named_twice("ScaledObject"));
        self.until("a refusal", async || {
            let (good, text) = kubectl.try_dry(&object);
            if good { Err((text, self.env.serving().await.operator.log_end())) } else { Ok(()) }
        })
        .await;
    }

    fn is_refused(&self, object: &Value, why: &str) {
        let (good, text) = self.kubectl().try_apply(object);
        assert!(!good, "{object} was taken: {text}");
        assert!(text.contains(why), "{text} does not say {why}");
    }
}

#[test]
fn invalid_objects_are_refused() -> Result<(), Failure> {
    on_both(async |ns| {
        let (ns, operator) = ns.serving().await;
        let kubectl = ns.kubectl();
        ns.until("an authority in the configuration", async || {
            let found = ns.get(CONFIGURATION).await.1;
            let known = |webhook: &Value| webhook["clientConfig"]["caBundle"].is_string();
            let all = found["webhooks"].as_array().is_some_and(|all| all.iter().all(known));
            if all { Ok(()) } else { Err(found) }
        })
        .await;
        ns.until_judged().await;
        let why = "triggerName \"mails\" is defined multiple times in the ScaledObject/ScaledJob, but it must be unique";
        ns.is_refused(&ns.named_twice("ScaledObject"), &refused("vscaledobject.kb.io", why));
        ns.is_refused(&ns.named_twice("ScaledJob"), &refused("vscaledjob.kb.io", why));

        kubectl.apply(&deployment("judged", 1));
        let mut good = ns.scaled_object("judged", &json!({}));
        kubectl.apply(&good);
        let mut second = good.clone();
        second["metadata"]["name"] = json!("judged-too");
        let why = "the workload 'judged' of type 'apps/v1.Deployment' is already managed by the ScaledObject 'judged'";
        ns.is_refused(&second, &refused("vscaledobject.kb.io", why));

        kubectl.apply(&deployment("judged-cpu", 1));
        let cpu = json!({"type": "cpu", "metricType": "Utilization", "metadata": {"value": "50"}});
        let object = ns.scaled_object("judged-cpu", &json!({"minReplicaCount": 1, "triggers": [cpu]}));
        let why =
            "the scaledobject has a cpu trigger but the container app doesn't have the cpu request defined";
        ns.is_refused(&object, &refused("vscaledobject.kb.io", why));
        let mut limited = deployment("judged-cpu", 1);
        limited["spec"]["template"]["spec"]["containers"][0]["resources"] =
            json!({"requests": {"cpu": "100m"}});
        kubectl.apply(&limited);
        kubectl.apply(&object);

        // An edit is reviewed like a creation.
        good["spec"]["minReplicaCount"] = json!(3);
        good["spec"]["idleReplicaCount"] = json!(5);
        let why = "IdleReplicaCount=5 must be less than MinReplicaCount=3";
        ns.is_refused(&good, &refused("vscaledobject.kb.io", why));
        let url = json!({
            "apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": {"name": "judged"},
            "spec": {"oauth2": {"clientId": "c", "tokenUrl": "ftp://x"}}
        });
        let why = "oauth2.tokenUrl must be a valid http or https URL";
        ns.is_refused(&url, &refused("vstriggerauthentication.kb.io", why));

        // An unknown name is accepted with a warning that names the nearest known one.
        let mut odd = metrics_api(&ns, "x", "1");
        odd["metadata"]["targetvalue"] = json!("1");
        kubectl.apply(&deployment("judged-odd", 0));
        let (good, text) = kubectl.try_apply(&ns.scaled_object("judged-odd", &json!({"triggers": [odd]})));
        assert!(good && text.contains("Warning:") && text.contains("did you mean \"targetValue\""), "{text}");
        for name in ["judged", "judged-cpu", "judged-odd"] {
            kubectl.run_ok(&format!("delete so {name}"));
        }
        operator.check();
    })
}
