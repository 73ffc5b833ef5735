//! Resources that are assumed to exist when there is no cluster.

use crate::prometheus::config::{AdapterConfig, ResourceMapping};
use crate::prometheus::mapper::{KnownResource, RestMapper};

/// Resources of every cluster: group, plural, kind, whether namespaced.
const COMMON_RESOURCES: [(&str, &str, &str, bool); 14] = [
    ("", "namespaces", "Namespace", false),
    ("", "nodes", "Node", false),
    ("", "persistentvolumes", "PersistentVolume", false),
    ("", "persistentvolumeclaims", "PersistentVolumeClaim", true),
    ("", "pods", "Pod", true),
    ("", "services", "Service", true),
    ("", "endpoints", "Endpoints", true),
    ("apps", "daemonsets", "DaemonSet", true),
    ("apps", "deployments", "Deployment", true),
    ("apps", "replicasets", "ReplicaSet", true),
    ("apps", "statefulsets", "StatefulSet", true),
    ("batch", "cronjobs", "CronJob", true),
    ("batch", "jobs", "Job", true),
    ("networking.k8s.io", "ingresses", "Ingress", true),
];

/// Mapper of the common resources and of those named by overrides of the file.
pub fn assumed_mapper(config: &AdapterConfig) -> RestMapper {
    let mut known: Vec<KnownResource> = COMMON_RESOURCES
        .iter()
        .map(|(group, plural, kind, namespaced)| KnownResource {
            group: (*group).to_owned(),
            version: "v1".to_owned(),
            plural: (*plural).to_owned(),
            singular: kind.to_lowercase(),
            kind: (*kind).to_owned(),
            namespaced: *namespaced,
        })
        .collect();
    let rules = config.rules.iter().chain(&config.external_rules).map(|rule| &rule.resources);
    let resources =
        config.resource_rules.iter().flat_map(|rules| [&rules.cpu.resources, &rules.memory.resources]);
    let mapper = RestMapper::new(known.clone());
    for (_, written) in rules.chain(resources).flat_map(|ResourceMapping { overrides, .. }| overrides) {
        if written.resource.is_empty() || mapper.find(&written.group, &written.resource).is_some() {
            continue;
        }
        let name = written.resource.to_lowercase();
        let singular = name.strip_suffix('s').unwrap_or(&name).to_owned();
        known.push(KnownResource {
            group: written.group.to_lowercase(),
            version: "v1".to_owned(),
            plural: format!("{singular}s"),
            kind: singular.clone(),
            singular,
            namespaced: true,
        });
    }
    RestMapper::new(known)
}
