//! The webhooks of KEDA's kinds and their ValidatingWebhookConfiguration (docs/spec/keda.md 8.1).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::registration::ServiceRef;

/// The name of the ValidatingWebhookConfiguration.
pub const NAME: &str = "keda-admission";

/// The name of KEDA's Service.
pub const SERVICE: &str = "keda-admission-webhooks";

/// One webhook: a kind and its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Its name in the configuration.
    pub name: &'static str,
    /// Path.
    pub path: &'static str,
    /// API group; the version is `v1alpha1`.
    pub group: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural name of the resource.
    pub resource: &'static str,
}

/// All webhooks.
pub const WEBHOOKS: [Webhook; 6] = [
    Webhook {
        name: "vscaledobject.kb.io",
        path: "/validate-keda-sh-v1alpha1-scaledobject",
        group: "keda.sh",
        kind: "ScaledObject",
        resource: "scaledobjects",
    },
    Webhook {
        name: "vscaledjob.kb.io",
        path: "/validate-keda-sh-v1alpha1-scaledjob",
        group: "keda.sh",
        kind: "ScaledJob",
        resource: "scaledjobs",
    },
    Webhook {
        name: "vstriggerauthentication.kb.io",
        path: "/validate-keda-sh-v1alpha1-triggerauthentication",
        group: "keda.sh",
        kind: "TriggerAuthentication",
        resource: "triggerauthentications",
    },
    Webhook {
        name: "vsclustertriggerauthentication.kb.io",
        path: "/validate-keda-sh-v1alpha1-clustertriggerauthentication",
        group: "keda.sh",
        kind: "ClusterTriggerAuthentication",
        resource: "clustertriggerauthentications",
    },
    Webhook {
        name: "vcloudeventsource.kb.io",
        path: "/validate-eventing-keda-sh-v1alpha1-cloudeventsource",
        group: "eventing.keda.sh",
        kind: "CloudEventSource",
        resource: "cloudeventsources",
    },
    Webhook {
        name: "vclustercloudeventsource.kb.io",
        path: "/validate-eventing-keda-sh-v1alpha1-clustercloudeventsource",
        group: "eventing.keda.sh",
        kind: "ClusterCloudEventSource",
        resource: "clustercloudeventsources",
    },
];

impl Webhook {
    /// Whether its objects have no namespace.
    pub(super) fn is_cluster_scoped(&self) -> bool {
        self.kind.starts_with("Cluster")
    }
}

/// The ValidatingWebhookConfiguration for a Service and the CA (PEM) that signs its certificate. Without a CA, the
/// `caBundle` is set later, see [`set_ca_bundle`].
pub fn webhook_configuration(place: &ServiceRef, authority: Option<&str>) -> Value {
    let webhook = |webhook: &Webhook| {
        json!({
            "name": webhook.name,
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {
                "namespace": place.namespace, "name": place.service, "port": place.port(), "path": webhook.path,
            }},
            "failurePolicy": "Ignore",
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "rules": [{
                "apiGroups": [webhook.group],
                "apiVersions": ["v1alpha1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": [webhook.resource],
                "scope": "*",
            }],
            "sideEffects": "None",
            "timeoutSeconds": 10,
        })
    };
    let mut configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": WEBHOOKS.iter().map(webhook).collect::<Vec<_>>(),
    });
    if let Some(authority) = authority {
        set_ca_bundle(&mut configuration, authority);
    }
    configuration
}

/// Sets the CA (PEM) as `caBundle` of every webhook of ours and leaves others alone. Returns whether anything changed, so
/// that the object is written only then.
pub fn set_ca_bundle(configuration: &mut Value, authority: &str) -> bool {
    let bundle = json!(STANDARD.encode(authority));
    let mut changed = false;
    let webhooks = configuration.get_mut("webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten() {
        let path = webhook.pointer("/clientConfig/service/path").and_then(Value::as_str).unwrap_or_default();
        if !WEBHOOKS.iter().any(|own| own.path == path) {
            continue;
        }
        let config = webhook.get_mut("clientConfig").and_then(Value::as_object_mut);
        if let Some(config) = config.filter(|config| config.get("caBundle") != Some(&bundle)) {
            config.insert("caBundle".to_owned(), bundle.clone());
            changed = true;
        }
    }
    changed
}
