//! Discovery compared with recorded responses of a real API server that had the same custom resources and APIServices.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::custom::Definition;

/// The recording omits kinds that localkube does not serve, and hashes; custom resources of the same version are
/// sorted.
#[derive(Deserialize)]
struct RecordedDiscovery {
    definitions: Vec<Value>,
    /// By path; paths with a plus are aggregated documents.
    answers: BTreeMap<String, Value>,
}

const ONE_DOCUMENT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
     application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

fn away(group: &str, version: &str, group_priority: i64) -> AggregatedVersion {
    let (group, version) = (group.to_owned(), version.to_owned());
    AggregatedVersion { group, version, group_priority, version_priority: 15, resources: None }
}

#[test]
fn discovery_matches_the_real_server() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/localkube/discovery.json.zst");
    let text = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
    let RecordedDiscovery { definitions, answers } = serde_json::from_slice(&text).unwrap();
    let definitions = definitions.iter().map(|d| Arc::new(Definition::read(d).unwrap()));
    let catalog = Catalog::new((100..).map(crate::store::ResourceId).zip(definitions));
    let others = [away("mm.h3.io", "v1", 100), away("nn.h3.io", "v1", 18_000), away("zz.h3.io", "v7", 10)];
    assert!(answers.len() > 30);
    for (path, recorded) in answers {
        let (path, accept) = match path.strip_suffix(" +") {
            Some(path) => (path, ONE_DOCUMENT),
            None => (path.as_str(), "*/*"),
        };
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (core, group, version) = match segments.as_slice() {
            ["api"] => (true, None, None),
            ["api", version] => (true, Some(""), Some(*version)),
            [_] => (false, None, None),
            [_, group] => (false, Some(*group), None),
            [_, group, version, ..] => (false, Some(*group), Some(*version)),
            [] => unreachable!(),
        };
        let (content_type, found) = answer(&catalog, &others, core, group, version, accept).expect(path);
        assert_eq!(content_type.contains("as="), accept == ONE_DOCUMENT);
        assert_eq!(found.to_string(), recorded.to_string(), "{path}");
    }
    for (group, version) in [("nothing.io", None), ("apps", Some("v2")), ("mm.h3.io", Some("v1"))] {
        assert!(answer(&catalog, &others, false, Some(group), version, "").is_none());
    }
}

#[test]
fn subresources_of_unserved_resources_get_a_parent() {
    let resources = json!([
        {"name": "pods/rate", "singularName": "", "namespaced": true, "kind": "MetricValueList", "verbs": ["get"]},
        {"name": "nodes", "singularName": "", "namespaced": false, "kind": "NodeMetrics", "verbs": ["get"], "shortNames": null},
        {"name": "nodes/x", "group": "g.io", "version": "v3", "kind": "NodeMetrics", "verbs": ["get"]},
    ]);
    let resources: Vec<ApiResource> = serde_json::from_value(resources).unwrap();
    let others = [AggregatedVersion { resources: Some(resources), ..away("metrics.io", "v1", 100) }];
    let found = answer(&Catalog::new([]), &others, false, None, None, ONE_DOCUMENT).unwrap().1;
    let last = found["items"].as_array().unwrap().last().unwrap();
    let expected = json!([
        {
            "resource": "nodes",
            "responseKind": {"group": "", "version": "", "kind": "NodeMetrics"},
            "scope": "Cluster",
            "singularResource": "",
            "verbs": ["get"],
            "subresources": [{
                "subresource": "x",
                "responseKind": {"group": "g.io", "version": "v3", "kind": "NodeMetrics"},
                "verbs": ["get"],
            }],
        },
        {
            "resource": "pods",
            "responseKind": {"group": "", "version": "", "kind": ""},
            "scope": "Namespaced",
            "singularResource": "",
            "verbs": null,
            "subresources": [{
                "subresource": "rate",
                "responseKind": {"group": "", "version": "", "kind": "MetricValueList"},
                "verbs": ["get"],
            }],
        },
    ]);
    assert_eq!(last["metadata"]["name"], "metrics.io");
    assert_eq!(last["versions"], json!([{"version": "v1", "resources": expected, "freshness": "Current"}]));
}
