//! `plimsoll migrate` on a cluster with KEDA's objects: what would break, and the commands that stop and start KEDA.

use serde_json::{Value, json};
use testbed::harness::Failure;

use crate::env::{deployment, on_both};
use crate::shared::program::json_of;

#[test]
fn broken_objects_are_named_and_the_plan_stops_and_starts_keda() -> Result<(), Failure> {
    on_both(async |ns| {
        let kubectl = ns.kubectl();
        let cron = json!({"type": "cron", "metadata":
            {"timezone": "UTC", "start": "0 8 * * *", "end": "0 18 * * *", "desiredReplicas": "3"}});
        for (name, trigger) in
            [("good", &cron), ("misspelt", &json!({"type": "corn", "metadata": {"a": "b"}}))]
        {
            // Without a target that exists, no operator acts on it.
            let mut object = ns.scaled_object(name, &json!({}));
            object["spec"]["triggers"] = json!([trigger]);
            kubectl.apply(&object);
        }
        let mut keda = deployment("keda-operator", 2);
        let container = &mut keda["spec"]["template"]["spec"]["containers"][0];
        container["image"] = json!("ghcr.io/kedacore/keda:2.20.2");
        container["args"] = json!(["--leader-elect", "--no-such-flag", "--zap-log-level=debug"]);
        kubectl.apply(&keda);

        let (code, report) = json_of(&ns.env.cluster.kubeconfig, &["migrate", "check", "--from", "keda"]);
        assert_eq!(code, Some(3), "{report}");
        let problems = report["problems"].as_array().unwrap();
        let of = |object: &str| -> Vec<&Value> {
            problems
                .iter()
                .filter(|problem| problem["object"] == object)
                .map(|problem| &problem["field"])
                .collect()
        };
        let namespace = &ns.namespace;
        let misspelt = of(&format!("ScaledObject {namespace}/misspelt"));
        assert!(misspelt.contains(&&json!("spec.triggers[0].type")), "{report}");
        assert_eq!(of(&format!("ScaledObject {namespace}/good")), [""; 0], "{report}");
        assert_eq!(of(&format!("{namespace}/keda-operator")), ["--no-such-flag"], "{report}");

        // The plan is for one installation of KEDA; each concurrent test has its own.
        let (code, plans) = json_of(&ns.env.cluster.kubeconfig, &["migrate", "plan", "--from", "keda"]);
        assert_eq!(code, Some(0), "{plans}");
        let steps = plans[0]["steps"].as_array().unwrap();
        let stop = steps
            .iter()
            .find(|step| step["title"].as_str().unwrap().starts_with("Stop KEDA's operator"))
            .unwrap();
        let command = stop["commands"][0].as_str().unwrap();
        assert_eq!(command, format!("kubectl -n {namespace} scale deployment keda-operator --replicas=0"));
        let run = |line: &Value| {
            let line = line.as_str().unwrap().strip_prefix("kubectl -n ").unwrap();
            kubectl.run_ok(line.strip_prefix(namespace.as_str()).unwrap().trim());
        };
        run(&stop["commands"][0]);
        ns.until_replicas("keda-operator", 0).await;
        run(&stop["back"][0]);
        ns.until_replicas("keda-operator", 2).await;
        let deletes = |step: &Value| step["commands"].to_string().contains("helm uninstall");
        assert!(!steps.iter().any(deletes), "nothing deletes KEDA's definitions: {plans}");
        kubectl.run_ok("delete deployment keda-operator");
    })
}
