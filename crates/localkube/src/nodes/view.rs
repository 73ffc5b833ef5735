//! Slim views of pods and nodes: only the fields that are needed, so that large clusters are cheap to read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;
use kube::core::{ClusterResourceScope, NamespaceResourceScope, ObjectMeta};
use quantity::Quantity;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A slim view of `v1.Pod`. Parts that cannot be read are absent, so that one odd object does not hide the others.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodView {
    #[serde(deserialize_with = "meta")]
    pub(crate) metadata: ObjectMeta,
    #[serde(deserialize_with = "lenient")]
    pub(crate) spec: Option<PodSpecView>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) status: Option<PodStatusView>,
}

/// A pod's spec.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSpecView {
    pub(crate) node_name: Option<String>,
    pub(crate) scheduler_name: Option<String>,
    pub(crate) scheduling_gates: Option<Vec<Value>>,
    pub(crate) restart_policy: Option<String>,
    pub(crate) host_network: Option<bool>,
    pub(crate) node_selector: Option<BTreeMap<String, String>>,
    pub(crate) tolerations: Option<Vec<Toleration>>,
    pub(crate) containers: Option<Vec<ContainerView>>,
    pub(crate) init_containers: Option<Vec<ContainerView>>,
    pub(crate) resources: Option<ResourcesView>,
    pub(crate) overhead: Option<BTreeMap<String, Quantity>>,
}

/// One container of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContainerView {
    pub(crate) name: Option<String>,
    pub(crate) image: Option<String>,
    pub(crate) restart_policy: Option<String>,
    pub(crate) resources: Option<ResourcesView>,
    pub(crate) readiness_probe: Option<ProbeView>,
}

/// Requests and limits.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ResourcesView {
    pub(crate) requests: Option<BTreeMap<String, Quantity>>,
    pub(crate) limits: Option<BTreeMap<String, Quantity>>,
}

/// The initial delay of a readiness probe.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ProbeView {
    pub(crate) initial_delay_seconds: Option<i64>,
}

/// A toleration.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default)]
pub(crate) struct Toleration {
    pub(crate) key: Option<String>,
    pub(crate) operator: Option<String>,
    pub(crate) value: Option<String>,
    pub(crate) effect: Option<String>,
}

/// A pod's status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodStatusView {
    pub(crate) phase: Option<String>,
    #[serde(rename = "podIP")]
    pub(crate) pod_ip: Option<String>,
    pub(crate) start_time: Option<Timestamp>,
    pub(crate) conditions: Option<Vec<ConditionView>>,
}

/// One condition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ConditionView {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) last_transition_time: Option<Timestamp>,
}

/// A slim view of `v1.Node`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeView {
    #[serde(deserialize_with = "meta")]
    pub(crate) metadata: ObjectMeta,
    #[serde(deserialize_with = "lenient")]
    pub(crate) spec: Option<NodeSpecView>,
}

/// A node's spec.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeSpecView {
    pub(crate) unschedulable: Option<bool>,
    pub(crate) taints: Option<Vec<Taint>>,
}

/// A taint of a node.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(crate) struct Taint {
    pub(crate) key: String,
    pub(crate) value: Option<String>,
    pub(crate) effect: Option<String>,
}

impl PodStatusView {
    /// The condition of this type.
    pub(crate) fn condition(&self, kind: &str) -> Option<&ConditionView> {
        self.conditions.iter().flatten().find(|condition| condition.kind.as_deref() == Some(kind))
    }
}

/// The metadata fields that are read; managed fields in particular are skipped.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct MetadataView {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    deletion_timestamp: Option<Timestamp>,
    deletion_grace_period_seconds: Option<i64>,
}

fn meta<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let meta = MetadataView::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: meta.name,
        namespace: meta.namespace,
        uid: meta.uid,
        resource_version: meta.resource_version,
        labels: meta.labels,
        annotations: meta.annotations,
        deletion_timestamp: meta.deletion_timestamp.map(Time),
        deletion_grace_period_seconds: meta.deletion_grace_period_seconds,
        ..ObjectMeta::default()
    })
}

fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

impl Resource for PodView {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Pod".into()
    }
    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }
    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        "pods".into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Resource for NodeView {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Node".into()
    }
    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }
    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        "nodes".into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undecodable_parts_are_absent() {
        let text = r#"{"metadata":{"name":"a","uid":"u","managedFields":[{}]},
            "spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"many"}}}]},
            "status":{"phase":"Running"}}"#;
        let pod: PodView = serde_json::from_str(text).unwrap();
        assert_eq!(pod.metadata.name.as_deref(), Some("a"));
        assert!(pod.spec.is_none());
        assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Running"));
        let pod: PodView =
            serde_json::from_str(r#"{"metadata":{"name":"a"},"spec":{"containers":7}}"#).unwrap();
        assert!(pod.spec.is_none() && pod.status.is_none());
    }
}
