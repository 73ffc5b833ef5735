//! Reads what a switch concerns: APIServices, Deployments, rules, KEDA's objects, the webhook and the HPA controller.

use cluster::request::{below, with_query, within};
use serde_json::Value;

use super::installed::{InstalledProgram, Program, text};
use crate::failure::Failure;
use crate::live::ClusterClient;

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const CONTROLLER_MANAGER_PODS: &str = "/api/v1/namespaces/kube-system/pods";
/// Kinds and paths of KEDA's objects.
const KEDA_KINDS: [(&str, &str); 6] = [
    ("ScaledObject", "/apis/keda.sh/v1alpha1/scaledobjects"),
    ("ScaledJob", "/apis/keda.sh/v1alpha1/scaledjobs"),
    ("TriggerAuthentication", "/apis/keda.sh/v1alpha1/triggerauthentications"),
    ("ClusterTriggerAuthentication", "/apis/keda.sh/v1alpha1/clustertriggerauthentications"),
    ("CloudEventSource", "/apis/eventing.keda.sh/v1alpha1/cloudeventsources"),
    ("ClusterCloudEventSource", "/apis/eventing.keda.sh/v1alpha1/clustercloudeventsources"),
];
/// The groups whose APIServices are read.
pub(super) const GROUPS: [&str; 3] = ["metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"];
/// The webhook configuration of KEDA.
pub(super) const WEBHOOK: &str = "keda-admission";
/// Objects per request, as in kubectl.
const LIST_PAGE_SIZE: &str = "500";

/// What was read.
#[derive(Debug, Default)]
pub(super) struct ClusterState {
    /// The APIServices of the metrics groups.
    pub(super) api_services: Vec<Value>,
    /// The Services that they lead to.
    pub(super) services: Vec<Value>,
    pub(super) installed: Vec<InstalledProgram>,
    /// The rules of each prometheus-adapter, by `namespace/name` of its Deployment.
    pub(super) rules: Vec<(String, AdapterRules)>,
    /// KEDA's objects, with `kind`.
    pub(super) keda_objects: Vec<Value>,
    pub(super) webhook: Option<Value>,
    /// The service accounts of the KEDA operators that are visible: tenants may run copies of the operator.
    pub(super) keda_accounts: Vec<Value>,
    /// The number of HPAs; none if they cannot be listed.
    pub(super) hpas: Option<usize>,
    /// The holder of the lease of kube-controller-manager, if it is visible.
    pub(super) manager_lease: Option<String>,
    /// What could not be read, and why.
    pub(super) unread: Vec<String>,
}

/// The rules of a prometheus-adapter.
#[derive(Debug)]
pub(super) struct AdapterRules {
    pub(super) config_map: String,
    pub(super) key: String,
    pub(super) text: String,
}

/// A cluster, and what could not be read of it.
struct Reader<'a> {
    client: &'a ClusterClient,
    unread: Vec<String>,
}

/// Reads everything. Resources that cannot be read are listed in the result; without APIServices it is an error.
pub(super) async fn cluster_state(client: &ClusterClient) -> Result<ClusterState, Failure> {
    let mut reader = Reader { client, unread: Vec::new() };
    let all: Value =
        client.get(API_SERVICES).await.map_err(|error| client.failure("list APIServices", &error))?;
    let items = all.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    let of_metrics = |item: &Value| GROUPS.contains(&text(item, "/spec/group"));
    let mut state = ClusterState {
        api_services: items.into_iter().filter(of_metrics).collect(),
        ..ClusterState::default()
    };
    for api in &state.api_services {
        let (namespace, name) = (text(api, "/spec/service/namespace"), text(api, "/spec/service/name"));
        if name.is_empty() || state.services.iter().any(|known| is_named(known, namespace, name)) {
            continue;
        }
        let path = below(&within("/api/v1/services", namespace), [name]);
        state.services.extend(reader.get("Services", &path).await);
    }
    let deployments = reader.list("Deployments", "/apis/apps/v1/deployments").await.unwrap_or_default();
    // A kube-controller-manager in a Deployment belongs to another cluster, whose control plane runs here.
    let is_of_this_cluster = |found: &InstalledProgram| found.program != Program::ControllerManager;
    let found = deployments.iter().filter_map(InstalledProgram::of_deployment);
    state.installed = found.filter(is_of_this_cluster).collect();
    // Only self-managed control planes show it.
    let query = [("labelSelector", "component=kube-controller-manager")];
    let pods: Option<Value> = client.get(&with_query(CONTROLLER_MANAGER_PODS, query)).await.ok();
    let pods = pods.as_ref().and_then(|pods| pods.get("items")?.as_array());
    state.installed.extend(pods.into_iter().flatten().find_map(InstalledProgram::of_pod));
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager";
    let lease: Option<Value> = client.get(lease).await.ok();
    state.manager_lease = lease.map(|lease| text(&lease, "/spec/holderIdentity").to_owned());
    let operators = state.installed.iter().filter(|found| found.program == Program::KedaOperator);
    let accounts: Vec<String> = operators.filter_map(service_account).collect();
    for path in accounts {
        state.keda_accounts.extend(reader.get("ServiceAccounts", &path).await);
    }
    for adapter in state.installed.iter().filter(|found| found.program == Program::PrometheusAdapter) {
        if let Some(rules) = reader.rules(adapter).await {
            state.rules.push((adapter.shown(), rules));
        }
    }
    for (kind, path) in KEDA_KINDS {
        let objects = reader.list(&format!("{kind}s"), path).await.unwrap_or_default();
        state.keda_objects.extend(objects.into_iter().map(|mut object| {
            if let Some(fields) = object.as_object_mut() {
                // Objects of a list have neither.
                let group = if kind.contains("CloudEvent") { "eventing.keda.sh" } else { "keda.sh" };
                fields.insert("kind".to_owned(), kind.into());
                fields.insert("apiVersion".to_owned(), format!("{group}/v1alpha1").into());
            }
            object
        }));
    }
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    state.webhook = reader.get("ValidatingWebhookConfigurations", &below(path, [WEBHOOK])).await;
    let hpas = reader.list("HorizontalPodAutoscalers", "/apis/autoscaling/v2/horizontalpodautoscalers").await;
    state.hpas = hpas.map(|hpas| hpas.len());
    state.unread = reader.unread;
    Ok(state)
}

impl Reader<'_> {
    /// An object; none if it does not exist or cannot be read.
    async fn get(&mut self, what: &str, path: &str) -> Option<Value> {
        match self.client.get(path).await {
            Ok(found) => Some(found),
            Err(error) if error.code() == Some(404) => None,
            Err(error) => {
                self.unread.push(format!("{what}: {error}"));
                None
            }
        }
    }

    /// All objects of a kind, page by page; none if they cannot be read. A kind that is not served has none.
    async fn list(&mut self, what: &str, path: &str) -> Option<Vec<Value>> {
        let (mut objects, mut rest) = (Vec::new(), String::new());
        loop {
            let query = [("limit", LIST_PAGE_SIZE), ("continue", rest.as_str())];
            let parameters = query.into_iter().filter(|(_, value)| !value.is_empty());
            let page: Value = match self.client.get(&with_query(path, parameters)).await {
                Ok(page) => page,
                Err(error) if error.code() == Some(404) => return Some(objects),
                Err(error) => {
                    self.unread.push(format!("{what}: {error}"));
                    return None;
                }
            };
            objects.extend(page.get("items").and_then(Value::as_array).into_iter().flatten().cloned());
            text(&page, "/metadata/continue").clone_into(&mut rest);
            if rest.is_empty() {
                return Some(objects);
            }
        }
    }

    /// The rules in the ConfigMap that an adapter mounts.
    async fn rules(&mut self, adapter: &InstalledProgram) -> Option<AdapterRules> {
        let file = adapter.flag("config")?;
        let Some((config_map, key)) = adapter.config_map_of(file) else {
            self.unread.push(format!(
                "the rules of {}: {file} is not in a ConfigMap; check the file with plimsoll metrics lint",
                adapter.shown()
            ));
            return None;
        };
        let path = below(&within("/api/v1/configmaps", &adapter.namespace), [config_map]);
        let found = self.get("ConfigMaps", &path).await?;
        let data = found.get("data").and_then(|data| data.get(&key)).and_then(Value::as_str);
        match data {
            Some(rules) => {
                let (config_map, text) = (config_map.to_owned(), rules.to_owned());
                Some(AdapterRules { config_map, key, text })
            }
            None => {
                self.unread
                    .push(format!("the rules of {}: ConfigMap {config_map} has no {key}", adapter.shown()));
                None
            }
        }
    }
}

/// The path of the service account of a program's pods; none if they have that of their namespace.
fn service_account(program: &InstalledProgram) -> Option<String> {
    let name = text(&program.raw, "/spec/template/spec/serviceAccountName");
    (!name.is_empty()).then(|| below(&within("/api/v1/serviceaccounts", &program.namespace), [name]))
}

/// Whether an object has this name.
pub(super) fn is_named(object: &Value, namespace: &str, name: &str) -> bool {
    (text(object, "/metadata/namespace"), text(object, "/metadata/name")) == (namespace, name)
}
