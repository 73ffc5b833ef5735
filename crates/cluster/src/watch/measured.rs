//! Slim views of nodes and running pods for the metrics server: no images, annotations or owners.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::View;

/// The fields of a node that the scraper needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredNode {
    /// Name.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Type and address, in the order of the status.
    pub addresses: Vec<(String, String)>,
    /// Port of its kubelet; 0 if the status has none.
    pub port: u16,
    /// Whether its condition `Ready` is `True`.
    pub ready: bool,
    /// The path of its kubelet's metrics, if it is not the default.
    pub path: String,
}

/// The fields of a pod that lists of metrics need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredPod {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
}

impl View for MeasuredNode {
    fn key(&self) -> (&str, &str) {
        ("", &self.name)
    }
}

impl View for MeasuredPod {
    fn key(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodMetadata {
    name: String,
    namespace: String,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WirePodView {
    metadata: PodMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeMetadata {
    name: String,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<Annotations>,
}

/// The annotation that is used.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "metrics.k8s.io/resource-metrics-path")]
    path: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireNode {
    metadata: NodeMetadata,
    status: Option<NodeStatus>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NodeStatus {
    addresses: Option<Vec<NodeAddress>>,
    conditions: Option<Vec<NodeCondition>>,
    daemon_endpoints: Option<DaemonEndpoints>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeAddress {
    r#type: String,
    address: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeCondition {
    r#type: String,
    status: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DaemonEndpoints {
    kubelet_endpoint: DaemonEndpoint,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DaemonEndpoint {
    #[serde(rename = "Port")]
    port: i64,
}

impl<'de> Deserialize<'de> for MeasuredPod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PodMetadata { name, namespace, labels } = WirePodView::deserialize(deserializer)?.metadata;
        Ok(Self { namespace, name, labels: labels.unwrap_or_default() })
    }
}

impl<'de> Deserialize<'de> for MeasuredNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let WireNode { metadata, status } = WireNode::deserialize(deserializer)?;
        let status = status.unwrap_or_default();
        let addresses = status.addresses.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let port = status.daemon_endpoints.unwrap_or_default().kubelet_endpoint.port;
        Ok(Self {
            name: metadata.name,
            labels: metadata.labels.unwrap_or_default(),
            addresses: addresses.into_iter().map(|found| (found.r#type, found.address)).collect(),
            port: u16::try_from(port).unwrap_or_default(),
            ready: conditions.iter().any(|found| found.r#type == "Ready" && found.status == "True"),
            path: metadata.annotations.unwrap_or_default().path,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_view_has_only_the_needed_fields() {
        let node = json!({
            "metadata": {"name": "a", "labels": {"os": "linux"}, "annotations": {"metrics.k8s.io/resource-metrics-path": "/x", "b": "c"}},
            "spec": {"podCIDR": "10.0.0.0/24"},
            "status": {
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "a"}],
                "conditions": [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "True"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
                "images": [{"names": ["x"]}],
            },
        });
        let node: MeasuredNode = serde_json::from_value(node).unwrap();
        assert_eq!(node.key(), ("", "a"));
        assert_eq!(node.labels["os"], "linux");
        assert_eq!(
            node.addresses,
            [("InternalIP".into(), "10.0.0.1".into()), ("Hostname".into(), "a".into())]
        );
        assert_eq!((node.port, node.ready, node.path.as_str()), (10250, true, "/x"));
    }

    #[test]
    fn an_empty_node_is_decoded() {
        for text in
            [r#"{"metadata":{"name":"a"}}"#, r#"{"metadata":{"name":"a","labels":null},"status":null}"#]
        {
            let node: MeasuredNode = serde_json::from_str(text).unwrap();
            assert_eq!(node, MeasuredNode { name: "a".into(), ..MeasuredNode::default() }, "{text}");
        }
        let odd =
            r#"{"metadata":{"name":"a"},"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":99999999}}}}"#;
        assert_eq!(serde_json::from_str::<MeasuredNode>(odd).unwrap().port, 0);
    }

    #[test]
    fn whole_pods_and_partial_metadata_decode_equally() {
        for text in [
            r#"{"metadata":{"name":"p","namespace":"n","labels":{"a":"b"},"annotations":{"c":"d"}}}"#,
            r#"{"kind":"Pod","metadata":{"name":"p","namespace":"n","labels":{"a":"b"}},"spec":{"containers":[]}}"#,
        ] {
            let pod: MeasuredPod = serde_json::from_str(text).unwrap();
            assert_eq!(pod.key(), ("n", "p"));
            assert_eq!(pod.labels["a"], "b");
        }
    }
}
