//! The API servers ask our admission, and heed it.

use std::net::Ipv4Addr;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use http::Method;
use keda::admission::{
    self, AdmissionInput, AdmissionKind, AdmissionRules, ClusterSnapshot, Operation, Verdict,
};
use kube::Client;
use serde_json::{Value, json};
use serve::admission::{AdmissionHandler, AdmissionRequest, AdmissionResponse};
use serve::{App, Certificate, Server, ServerOptions, ServiceBackend, ServiceRef, Status};
use testbed::harness::{Failure, TestNamespace, on_both};

use crate::asking::{ask, define, place, until};

/// The rules, over what the API server says at that moment.
struct Guard(Client);

impl Guard {
    async fn surroundings(&self, request: &AdmissionInput<'_>) -> ClusterSnapshot {
        let mut objects = ClusterSnapshot::default();
        let Some(needs) = admission::needs(request) else { return objects };
        let namespace = &needs.namespace;
        let lists = [
            (format!("/apis/keda.sh/v1alpha1/namespaces/{namespace}/scaledobjects"), "ScaledObject"),
            (
                format!("/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"),
                "HorizontalPodAutoscaler",
            ),
        ];
        for (uri, kind) in lists {
            let said = ask(&self.0, Method::GET, &uri, None).await;
            for item in said.body["items"].as_array().cloned().unwrap_or_default() {
                let mut item = item;
                item["kind"] = json!(kind);
                objects.add(item).unwrap();
            }
        }
        if let Some((kind, name)) = needs.workload {
            let uri = format!("/apis/apps/v1/namespaces/{namespace}/{}/{name}", kind.plural());
            let said = ask(&self.0, Method::GET, &uri, None).await;
            if said.code == 200 {
                objects.add(said.body).unwrap();
            }
        }
        objects
    }
}

impl AdmissionHandler for Guard {
    fn admit(&self, review: AdmissionRequest) -> BoxFuture<'_, AdmissionResponse> {
        async move {
            let request = AdmissionInput {
                operation: Operation::parse(&review.operation).unwrap(),
                kind: AdmissionKind::parse(&review.kind).unwrap(),
                dry_run: review.dry_run,
                object: &review.object,
                old: review.old.as_ref(),
            };
            let around = self.surroundings(&request).await;
            match admission::review(&request, &around, &AdmissionRules::of(api::provider::Compat::Better)) {
                Verdict::Allowed(allowed) => AdmissionResponse::allow(allowed.warnings),
                Verdict::Denied(denial) => {
                    AdmissionResponse::refuse(Status::new(denial.code, denial.reason, denial.message, None))
                }
            }
        }
        .boxed()
    }
}

/// Serves admission for the namespace of a test, and waits until it is asked.
async fn serve(ns: &TestNamespace) -> Server {
    let place_of = |port| ServiceRef {
        namespace: ns.namespace.clone(),
        service: "keda-admission-webhooks".to_owned(),
        behind: ServiceBackend::ThisMachine(port),
    };
    let options = ServerOptions {
        address: (Ipv4Addr::LOCALHOST, 0).into(),
        certificate: Certificate::SelfMade(vec![place_of(0).server_name()]),
        open_paths: serve::admission::open_paths().collect(),
        ..ServerOptions::default()
    };
    let admit: Arc<dyn AdmissionHandler> = Arc::new(Guard(ns.client.clone()));
    let app = App {
        routes: serve::admission::routes(&admit, &serve::admission::Reviewers::default()),
        ..App::default()
    };
    let server = Server::start(options, ns.client.clone(), app).await.unwrap();
    let place_of = place_of(server.port());
    let service = place_of.objects(&[], server.ca_pem()).remove(0);
    let uri = format!("/api/v1/namespaces/{}/services", ns.namespace);
    let said = ask(&ns.client, Method::POST, &uri, Some(&service)).await;
    assert_eq!(said.code, 201, "{said:?}");

    let mut configuration = serve::admission::webhook_configuration(&place_of, server.ca_pem());
    // Other tests of this cluster are none of our business.
    configuration["metadata"]["name"] = json!(ns.namespace);
    for webhook in configuration["webhooks"].as_array_mut().unwrap() {
        webhook["failurePolicy"] = json!("Fail");
        webhook["namespaceSelector"] = json!({"matchLabels": {"kubernetes.io/metadata.name": ns.namespace}});
        // Objects outside of namespaces have none to be selected by.
        webhook["objectSelector"] = json!({"matchLabels": {"test": ns.namespace}});
    }
    let said = ask(&ns.client, Method::POST, CONFIGURATIONS, Some(&configuration)).await;
    assert_eq!(said.code, 201, "{said:?}");
    let broken = object(
        ns,
        "ScaledJob",
        "probe",
        json!({"jobTargetRef": {"template": {}},
        "triggers": [{"type": "cpu", "metadata": {}, "useCachedMetrics": true}]}),
    );
    until("admission", async || {
        let said = create(ns, &broken, true).await;
        if said.code == 403 { Ok(()) } else { Err(format!("{said:?}")) }
    })
    .await;
    server
}

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

#[allow(clippy::needless_pass_by_value, reason = "reads better where it is called")]
fn object(ns: &TestNamespace, kind: &str, name: &str, spec: Value) -> Value {
    let group = if kind.ends_with("CloudEventSource") { "eventing.keda.sh" } else { "keda.sh" };
    json!({"apiVersion": format!("{group}/v1alpha1"), "kind": kind,
        "metadata": {"name": format!("{}-{name}", ns.namespace), "labels": {"test": ns.namespace}}, "spec": spec})
}

async fn create(ns: &TestNamespace, object: &Value, dry: bool) -> crate::asking::ApiResponse {
    let dry = if dry { "&dryRun=All" } else { "" };
    let uri = format!("{}?fieldValidation=Strict{dry}", place(ns, object["kind"].as_str().unwrap()));
    ask(&ns.client, Method::POST, &uri, Some(object)).await
}

#[test]
fn webhook_decides_before_objects_are_stored() -> Result<(), Failure> {
    on_both(async |ns| {
        define(&ns).await;
        let server = serve(&ns).await;
        let triggers = json!([{"type": "prometheus", "metadata": {}}]);
        let spec = json!({"scaleTargetRef": {"name": "web"}, "triggers": triggers, "minReplicaCount": 1, "cooldownPeriod": 5});
        let said = create(&ns, &object(&ns, "ScaledObject", "one", spec.clone()), false).await;
        assert_eq!(said.code, 201, "{said:?}");
        let warnings = said.warnings();
        assert!(warnings.len() == 1 && warnings[0].contains("CooldownPeriod is configured"), "{warnings:?}");

        let said = create(&ns, &object(&ns, "ScaledObject", "two", spec), false).await;
        assert_eq!((said.code, &said.body["reason"]), (403, &json!("Forbidden")), "{said:?}");
        let words = format!(
            "admission webhook \"vscaledobject.kb.io\" denied the request: the workload 'web' of type \
             'apps/v1.Deployment' is already managed by the ScaledObject '{}-one'",
            ns.namespace
        );
        assert_eq!(said.message(), words);

        let missing = json!({"scaleTargetRef": {"name": "gone"}, "minReplicaCount": 1,
            "triggers": [{"type": "cpu", "metricType": "Utilization", "metadata": {"value": "50"}}]});
        let missing = object(&ns, "ScaledObject", "three", missing);
        let said = create(&ns, &missing, false).await;
        assert_eq!(said.code, 404, "{said:?}");
        assert!(said.message().ends_with("deployments.apps \"gone\" not found"), "{said:?}");
        // Who only asks what would happen need not have it yet.
        assert_eq!(create(&ns, &missing, true).await.code, 201);

        let url = json!({"oauth2": {"clientId": "c", "tokenUrl": "ftp://x"}});
        for kind in ["TriggerAuthentication", "ClusterTriggerAuthentication"] {
            let said = create(&ns, &object(&ns, kind, "ta", url.clone()), true).await;
            // On objects without a namespace a selector of namespaces has no hold.
            assert_eq!(said.code, 403, "{kind}: {said:?}");
            assert!(
                said.message().ends_with("oauth2.tokenUrl must be a valid http or https URL"),
                "{said:?}"
            );
        }
        let both = json!(["keda.scaledobject.ready.v1"]);
        let both = json!({"destination": {}, "eventSubscription": {"includedEventTypes": both, "excludedEventTypes": both}});
        for kind in ["CloudEventSource", "ClusterCloudEventSource"] {
            let said = create(&ns, &object(&ns, kind, "ces", both.clone()), true).await;
            assert_eq!(said.code, 403, "{kind}: {said:?}");
        }
        let uri = format!("{CONFIGURATIONS}/{}", ns.namespace);
        assert_eq!(ask(&ns.client, Method::DELETE, &uri, None).await.code, 200);
        server.stop().await;
    })
}
