//! The API servers call our admission webhook, and enforce its verdicts.

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

use crate::requests::{define, place, send_request, until};

/// The admission rules, applied to the current objects of the API server.
struct AdmissionRulesHandler(Client);

impl AdmissionRulesHandler {
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
            let response = send_request(&self.0, Method::GET, &uri, None).await;
            for item in response.body["items"].as_array().cloned().unwrap_or_default() {
                let mut item = item;
                item["kind"] = json!(kind);
                objects.add(item).unwrap();
            }
        }
        if let Some((kind, name)) = needs.workload {
            let uri = format!("/apis/apps/v1/namespaces/{namespace}/{}/{name}", kind.plural());
            let response = send_request(&self.0, Method::GET, &uri, None).await;
            if response.code == 200 {
                objects.add(response.body).unwrap();
            }
        }
        objects
    }
}

impl AdmissionHandler for AdmissionRulesHandler {
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

/// Serves the webhook for the namespace of a test, and waits until the API server calls it.
async fn serve(ns: &TestNamespace) -> Server {
    let place_of = |port| ServiceRef {
        namespace: ns.namespace.clone(),
        service: "keda-admission-webhooks".to_owned(),
        behind: ServiceBackend::ThisMachine(port),
    };
    let options = ServerOptions {
        address: (Ipv4Addr::LOCALHOST, 0).into(),
        certificate: Certificate::SelfSigned(vec![place_of(0).server_name()]),
        open_paths: serve::admission::open_paths().collect(),
        ..ServerOptions::default()
    };
    let admit: Arc<dyn AdmissionHandler> = Arc::new(AdmissionRulesHandler(ns.client.clone()));
    let app = App {
        routes: serve::admission::routes(&admit, &serve::admission::Reviewers::default()),
        ..App::default()
    };
    let server = Server::start(options, ns.client.clone(), app).await.unwrap();
    let place_of = place_of(server.port());
    let service = place_of.objects(&[], server.ca_pem()).remove(0);
    let uri = format!("/api/v1/namespaces/{}/services", ns.namespace);
    let response = send_request(&ns.client, Method::POST, &uri, Some(&service)).await;
    assert_eq!(response.code, 201, "{response:?}");

    let mut configuration = serve::admission::webhook_configuration(&place_of, server.ca_pem());
    // The webhook must not affect other tests of this cluster.
    configuration["metadata"]["name"] = json!(ns.namespace);
    for webhook in configuration["webhooks"].as_array_mut().unwrap() {
        webhook["failurePolicy"] = json!("Fail");
        webhook["namespaceSelector"] = json!({"matchLabels": {"kubernetes.io/metadata.name": ns.namespace}});
        // Cluster-scoped objects cannot be selected by namespace.
        webhook["objectSelector"] = json!({"matchLabels": {"test": ns.namespace}});
    }
    let response = send_request(&ns.client, Method::POST, CONFIGURATIONS, Some(&configuration)).await;
    assert_eq!(response.code, 201, "{response:?}");
    let broken = object(
        ns,
        "ScaledJob",
        "probe",
        json!({"jobTargetRef": {"template": {}},
        "triggers": [{"type": "cpu", "metadata": {}, "useCachedMetrics": true}]}),
    );
    until("admission", async || {
        let response = create(ns, &broken, true).await;
        if response.code == 403 { Ok(()) } else { Err(format!("{response:?}")) }
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

async fn create(ns: &TestNamespace, object: &Value, dry: bool) -> crate::requests::ApiResponse {
    let dry = if dry { "&dryRun=All" } else { "" };
    let uri = format!("{}?fieldValidation=Strict{dry}", place(ns, object["kind"].as_str().unwrap()));
    send_request(&ns.client, Method::POST, &uri, Some(object)).await
}

#[test]
fn webhook_decides_before_objects_are_stored() -> Result<(), Failure> {
    on_both(async |ns| {
        define(&ns).await;
        let server = serve(&ns).await;
        let triggers = json!([{"type": "prometheus", "metadata": {}}]);
        let spec = json!({"scaleTargetRef": {"name": "web"}, "triggers": triggers, "minReplicaCount": 1, "cooldownPeriod": 5});
        let response = create(&ns, &object(&ns, "ScaledObject", "one", spec.clone()), false).await;
        assert_eq!(response.code, 201, "{response:?}");
        let warnings = response.warnings();
        assert!(warnings.len() == 1 && warnings[0].contains("CooldownPeriod is configured"), "{warnings:?}");

        let response = create(&ns, &object(&ns, "ScaledObject", "two", spec), false).await;
        assert_eq!((response.code, &response.body["reason"]), (403, &json!("Forbidden")), "{response:?}");
        let words = format!(
            "admission webhook \"vscaledobject.kb.io\" denied the request: the workload 'web' of type \
             'apps/v1.Deployment' is already managed by the ScaledObject '{}-one'",
            ns.namespace
        );
        assert_eq!(response.message(), words);

        let missing = json!({"scaleTargetRef": {"name": "gone"}, "minReplicaCount": 1,
            "triggers": [{"type": "cpu", "metricType": "Utilization", "metadata": {"value": "50"}}]});
        let missing = object(&ns, "ScaledObject", "three", missing);
        let response = create(&ns, &missing, false).await;
        assert_eq!(response.code, 404, "{response:?}");
        assert!(response.message().ends_with("deployments.apps \"gone\" not found"), "{response:?}");
        // A dry run may refer to objects that do not exist yet.
        assert_eq!(create(&ns, &missing, true).await.code, 201);

        let url = json!({"oauth2": {"clientId": "c", "tokenUrl": "ftp://x"}});
        for kind in ["TriggerAuthentication", "ClusterTriggerAuthentication"] {
            let response = create(&ns, &object(&ns, kind, "ta", url.clone()), true).await;
            // A namespace selector does not apply to cluster-scoped objects.
            assert_eq!(response.code, 403, "{kind}: {response:?}");
            assert!(
                response.message().ends_with("oauth2.tokenUrl must be a valid http or https URL"),
                "{response:?}"
            );
        }
        let both = json!(["keda.scaledobject.ready.v1"]);
        let both = json!({"destination": {}, "eventSubscription": {"includedEventTypes": both, "excludedEventTypes": both}});
        for kind in ["CloudEventSource", "ClusterCloudEventSource"] {
            let response = create(&ns, &object(&ns, kind, "ces", both.clone()), true).await;
            assert_eq!(response.code, 403, "{kind}: {response:?}");
        }
        let uri = format!("{CONFIGURATIONS}/{}", ns.namespace);
        assert_eq!(send_request(&ns.client, Method::DELETE, &uri, None).await.code, 200);
        server.stop().await;
    })
}
