//! Autoscalers and targets, from files or from a cluster.

use std::collections::BTreeMap;
use std::path::PathBuf;

use api::autoscaling::{Defaults as _, FeatureGates, v2};
use api::convert;
use api::decisions::MODE_ANNOTATION;
use api::keda::ScaledObject;
use api::manifest::{self, Manifest};
use api::plimsoll::Autoscaler;
use api::pod::PodSpec;
use api::yaml::{self, Document, Node};
use cluster::AutoscalerKind;
use cluster::request::{with_query, within};
use engine::KubernetesVersion;
use quantity::Quantity;
use serde::Deserialize;
use serde_json::Value;

use super::rules::{LintAutoscaler, LintTarget};
use crate::failure::Failure;
use crate::files;
use crate::live::objects::{Object, ObjectFilter};
use crate::live::{ClusterClient, Scope};

/// The kinds whose pods are known.
const WORKLOADS: [(&str, &str); 3] =
    [("Deployment", "deployments"), ("StatefulSet", "statefulsets"), ("ReplicaSet", "replicasets")];

/// What is compared.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) autoscalers: Vec<LintAutoscaler>,
    pub(super) targets: Vec<LintTarget>,
}

/// Reads files. Documents that are invalid are a failure: `validate` shows all of them.
pub(super) fn from_files(paths: &[PathBuf], kubernetes: KubernetesVersion) -> Result<Gathered, Failure> {
    let gates = FeatureGates { scale_to_zero: true, ..FeatureGates::of(kubernetes) };
    let (mut found, mut idle) = (Gathered::default(), Vec::new());
    for source in files::read_all(paths)? {
        for document in yaml::parse(&source)?.into_iter().flat_map(Document::into_items) {
            let place = format!("{}:{}", source.name, document.root.span.line);
            match (word(&document, "kind"), Manifest::read(&document)?) {
                (_, Manifest::Hpa(hpa)) => {
                    found.autoscalers.push(of_hpa(&manifest::admit_hpa(&document, *hpa, gates)?, place));
                }
                (_, Manifest::Autoscaler(autoscaler)) => {
                    let autoscaler = manifest::admit_autoscaler(&document, *autoscaler)?;
                    found.autoscalers.push(of_autoscaler(&autoscaler, place));
                }
                (_, Manifest::Proposal(proposed)) => {
                    let autoscaler = manifest::admit_proposal(&document, *proposed)?;
                    found.autoscalers.push(of_autoscaler(&autoscaler, place));
                }
                ("ScaledObject", _) => {
                    let mut object: ScaledObject = document.decode()?;
                    if object.metadata.namespace.is_empty() {
                        object.metadata.namespace = "default".into();
                    }
                    found.autoscalers.push(of_scaled_object(&object, place));
                }
                ("Scenario", _) => idle.extend(idle_usage(&document)),
                (kind, _) if WORKLOADS.iter().any(|(known, _)| *known == kind) => {
                    found.targets.extend(target(kind, &document.decode_lenient()?));
                }
                _ => {}
            }
        }
    }
    for (name, container, resource, usage) in idle {
        for target in found.targets.iter_mut().filter(|target| target.name == name) {
            target.idle.insert((container.clone(), resource.clone()), usage.clone());
        }
    }
    Ok(found)
}

fn word<'a>(document: &'a Document, path: &str) -> &'a str {
    document.root.get(path).and_then(Node::as_str).unwrap_or_default()
}

/// Usage without work in the models of a scenario: workload, container, resource.
fn idle_usage(document: &Document) -> Vec<(String, String, String, Quantity)> {
    let scenario = document.root.to_json();
    let workloads = scenario.pointer("/spec/workloads").and_then(Value::as_array);
    let mut found = Vec::new();
    for workload in workloads.into_iter().flatten() {
        let text =
            |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let containers = workload.get("containers").and_then(Value::as_array);
        for container in containers.into_iter().flatten() {
            for resource in ["cpu", "memory"] {
                let idle = container.pointer(&format!("/{resource}/idle"));
                let idle = idle.and_then(|idle| Quantity::deserialize(idle).ok());
                if let (Some(name), Some(container), Some(idle)) =
                    (text(workload, "/target/name"), text(container, "/name"), idle)
                {
                    found.push((name, container, resource.to_owned(), idle));
                }
            }
        }
    }
    found
}

/// Reads the autoscalers of a cluster and their targets. What the user may not read is not known.
pub(super) async fn from_cluster(client: &ClusterClient, scope: Scope<'_>) -> Result<Gathered, Failure> {
    let filter = ObjectFilter { kinds: &AutoscalerKind::ALL, scope, labels: None, cached: true };
    let objects = client.objects(filter).await.map_err(|error| client.failure("list autoscalers", &error))?;
    let autoscalers: Vec<LintAutoscaler> = objects.iter().filter_map(of_object).collect();
    let mut targets = Vec::new();
    for (kind, plural) in WORKLOADS {
        let used = autoscalers.iter().any(|autoscaler| autoscaler.spec.target.kind == kind);
        if !used {
            continue;
        }
        let path = within(&format!("/apis/apps/v1/{plural}"), scope.namespace());
        let list: Result<Value, _> = client.get(&with_query(&path, [("resourceVersion", "0")])).await;
        let Ok(mut list) = list else { continue };
        let items = list.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take);
        targets.extend(items.into_iter().flatten().filter_map(|item| target(kind, &item)));
    }
    Ok(Gathered { autoscalers, targets })
}

fn of_object(object: &Object) -> Option<LintAutoscaler> {
    let raw = &object.raw;
    match object.kind {
        AutoscalerKind::Hpa => {
            let mut hpa = v2::HorizontalPodAutoscaler::deserialize(raw).ok()?;
            hpa.set_defaults();
            Some(of_hpa(&hpa, String::new()))
        }
        AutoscalerKind::Autoscaler => {
            let mut autoscaler = Autoscaler::deserialize(raw).ok()?;
            autoscaler.set_defaults();
            Some(of_autoscaler(&autoscaler, String::new()))
        }
        AutoscalerKind::ScaledObject => {
            Some(of_scaled_object(&ScaledObject::deserialize(raw).ok()?, String::new()))
        }
        // It has no target.
        AutoscalerKind::ScaledJob => None,
    }
}

fn of_hpa(hpa: &v2::HorizontalPodAutoscaler, place: String) -> LintAutoscaler {
    let meta = &hpa.metadata;
    LintAutoscaler {
        name: format!("hpa/{}", meta.name),
        namespace: meta.namespace.clone(),
        place,
        acts: writes(meta.annotations.get(MODE_ANNOTATION)),
        generated: meta.owner_references.iter().any(|owner| owner.kind == "ScaledObject"),
        spec: convert::spec_of_hpa(hpa),
    }
}

fn of_autoscaler(autoscaler: &Autoscaler, place: String) -> LintAutoscaler {
    let meta = &autoscaler.metadata;
    LintAutoscaler {
        name: format!("autoscaler/{}", meta.name),
        namespace: meta.namespace.clone(),
        place,
        acts: writes(meta.annotations.get(MODE_ANNOTATION)) && !autoscaler.spec.dry_run,
        generated: false,
        spec: convert::spec_of_autoscaler(autoscaler),
    }
}

/// A ScaledObject as an HPA with its behavior and the metrics of its `cpu` and `memory` triggers.
fn of_scaled_object(object: &ScaledObject, place: String) -> LintAutoscaler {
    let mut hpa = v2::HorizontalPodAutoscaler { metadata: object.metadata.clone(), ..Default::default() };
    hpa.spec.scale_target_ref = v2::CrossVersionObjectReference {
        kind: object.target_kind().to_owned(),
        name: object.spec.scale_target_ref.name.clone(),
        api_version: object.target_api_version().to_owned(),
    };
    // An idle object has its own count, below the minimum.
    let idle = object.spec.idle_replica_count.or(object.spec.min_replica_count);
    hpa.spec.min_replicas = Some(idle.unwrap_or(0));
    let config = object.spec.advanced.as_ref().and_then(|all| all.horizontal_pod_autoscaler_config.as_ref());
    hpa.spec.behavior = config.and_then(|config| config.behavior.clone());
    if let Some(behavior) = &mut hpa.spec.behavior {
        behavior.set_defaults();
    }
    hpa.spec.max_replicas = object.hpa_max();
    for trigger in object.spec.triggers.iter().filter(|trigger| trigger.is_resource()) {
        let utilization = trigger.metadata.get("value").and_then(|value| value.parse().ok());
        let utilization = utilization.filter(|_| trigger.metric_type == "Utilization");
        let target = v2::MetricTarget {
            type_: trigger.metric_type.clone(),
            average_utilization: utilization,
            ..Default::default()
        };
        let name = trigger.type_.clone();
        hpa.spec.metrics.push(match trigger.metadata.get("containerName") {
            Some(container) => v2::MetricSpec {
                type_: v2::CONTAINER_RESOURCE.into(),
                container_resource: Some(v2::ContainerResourceMetricSource {
                    name,
                    target,
                    container: container.clone(),
                }),
                ..Default::default()
            },
            None => v2::MetricSpec {
                type_: v2::RESOURCE.into(),
                resource: Some(v2::ResourceMetricSource { name, target }),
                ..Default::default()
            },
        });
    }
    let name = format!("so/{}", object.metadata.name);
    LintAutoscaler { name, acts: !object.is_paused(), generated: false, ..of_hpa(&hpa, place) }
}

fn writes(mode: Option<&String>) -> bool {
    mode.is_none_or(|mode| mode == "active")
}

fn target(kind: &str, object: &Value) -> Option<LintTarget> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let pod = PodSpec::deserialize(object.pointer("/spec/template/spec")?).ok()?;
    let namespace = Some(text("/metadata/namespace")).filter(|namespace| !namespace.is_empty());
    Some(LintTarget {
        kind: kind.to_owned(),
        namespace: namespace.unwrap_or_else(|| "default".to_owned()),
        name: text("/metadata/name"),
        pod,
        idle: BTreeMap::new(),
    })
}
