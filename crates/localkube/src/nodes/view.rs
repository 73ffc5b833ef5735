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

/// Declares views of which only these fields are decoded.
macro_rules! views {
    ($($(#[$attribute:meta])* struct $name:ident { $($(#[$on_field:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub(crate) struct $name { $($(#[$on_field])* pub(crate) $field: $type,)* }
    )*};
}

views! {
    /// A pod's spec.
    struct PodSpecView {
        node_name: Option<String>,
        scheduler_name: Option<String>,
        scheduling_gates: Option<Vec<Value>>,
        restart_policy: Option<String>,
        host_network: Option<bool>,
        node_selector: Option<BTreeMap<String, String>>,
        tolerations: Option<Vec<Toleration>>,
        containers: Option<Vec<ContainerView>>,
        init_containers: Option<Vec<ContainerView>>,
        resources: Option<ResourcesView>,
        overhead: Option<BTreeMap<String, Quantity>>,
    }
    /// One container of a pod.
    struct ContainerView {
        name: Option<String>,
        image: Option<String>,
        restart_policy: Option<String>,
        resources: Option<ResourcesView>,
        readiness_probe: Option<ProbeView>,
    }
    /// Requests and limits.
    struct ResourcesView {
        requests: Option<BTreeMap<String, Quantity>>,
        limits: Option<BTreeMap<String, Quantity>>,
    }
    /// The initial delay of a readiness probe.
    struct ProbeView {
        initial_delay_seconds: Option<i64>,
    }
    /// A toleration.
    #[derive(PartialEq, Eq, Hash)]
    struct Toleration {
        key: Option<String>,
        operator: Option<String>,
        value: Option<String>,
        effect: Option<String>,
    }
    /// A pod's status.
    struct PodStatusView {
        phase: Option<String>,
        #[serde(rename = "podIP")]
        pod_ip: Option<String>,
        start_time: Option<Timestamp>,
        conditions: Option<Vec<ConditionView>>,
    }
    /// One condition.
    struct ConditionView {
        r#type: Option<String>,
        status: Option<String>,
        message: Option<String>,
        last_transition_time: Option<Timestamp>,
    }
    /// A slim view of `v1.Node`.
    struct NodeView {
        #[serde(deserialize_with = "meta")]
        metadata: ObjectMeta,
        #[serde(deserialize_with = "lenient")]
        spec: Option<NodeSpecView>,
    }
    /// A node's spec.
    struct NodeSpecView {
        unschedulable: Option<bool>,
        taints: Option<Vec<Taint>>,
    }
    /// A taint of a node.
    #[derive(PartialEq, Eq)]
    struct Taint {
        key: String,
        value: Option<String>,
        effect: Option<String>,
    }
}

impl PodStatusView {
    /// The condition of this type.
    pub(crate) fn condition(&self, kind: &str) -> Option<&ConditionView> {
        self.conditions.iter().flatten().find(|condition| condition.r#type.as_deref() == Some(kind))
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

/// Implements `kube::Resource` for a view of a core kind.
macro_rules! core_resource {
    ($view:ident, $scope:ty, $kind:literal, $plural:literal) => {
        impl Resource for $view {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> Cow<'_, str> {
                $kind.into()
            }
            fn group((): &()) -> Cow<'_, str> {
                "".into()
            }
            fn version((): &()) -> Cow<'_, str> {
                "v1".into()
            }
            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

core_resource!(PodView, NamespaceResourceScope, "Pod", "pods");
core_resource!(NodeView, ClusterResourceScope, "Node", "nodes");

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
