use std::sync::Arc;

use api::autoscaling::KubernetesVersion;

use super::*;
use crate::store::ResourceId;

const RELEASE: KubernetesVersion = KubernetesVersion::V1_36;

fn catalog() -> Catalog {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": "A widget",
                    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                }},
            }],
        },
        "status": {
            "acceptedNames": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "conditions": [
                {"type": "NamesAccepted", "status": "True"},
                {"type": "Established", "status": "True"},
            ],
        },
    });
    Catalog::new([(ResourceId(100), Arc::new(Definition::read(&definition).unwrap()))])
}

fn schemas(document: &Value) -> &Map<String, Value> {
    document["components"]["schemas"].as_object().unwrap()
}

#[test]
fn every_version_has_a_document_and_every_reference_a_schema() {
    let catalog = catalog();
    let index = index(&catalog, RELEASE.profile());
    let paths = index["paths"].as_object().unwrap();
    assert!(paths.contains_key("api/v1") && paths.contains_key("apis/autoscaling/v2"));
    for served in catalog.all() {
        for version in &served.versions {
            let place = path(&served.group, version);
            let url = paths[&place]["serverRelativeURL"].as_str().unwrap();
            assert!(url.starts_with(&format!("/openapi/v3/{place}?hash=")), "{url}");
            let document = document(&catalog, RELEASE.profile(), &served.group, version).unwrap();
            let mut used = Vec::new();
            references(&document, &mut used);
            let missing: Vec<_> =
                used.iter().filter(|name| !schemas(&document).contains_key(*name)).collect();
            assert!(missing.is_empty(), "{place}: {missing:?}");
            let marked = json!({"group": served.group, "version": version, "kind": served.kind});
            let marks = |schema: &&Value| {
                schema[GROUP_VERSION_KIND].as_array().is_some_and(|all| all.contains(&marked))
            };
            assert_eq!(schemas(&document).values().filter(marks).count(), 1, "{marked}");
        }
    }
    assert!(document(&catalog, RELEASE.profile(), "nothing.io", "v1").is_none());
    assert!(document(&catalog, RELEASE.profile(), "apps", "v2").is_none());
}

/// kubectl reads these before it requests strict validation, and before it sends a strategic merge patch.
#[test]
fn patch_requests_list_their_media_types() {
    let catalog = catalog();
    let patch = |group, version, path: &str| {
        document(&catalog, RELEASE.profile(), group, version).unwrap()["paths"][path]["patch"].take()
    };
    let deployment = patch("apps", "v1", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
    let widget = patch("example.org", "v1", "/apis/example.org/v1/namespaces/{namespace}/widgets/{name}");
    for (patch, strategic) in [(&deployment, true), (&widget, false)] {
        let parameters = patch["parameters"].as_array().unwrap();
        assert!(parameters.iter().any(|parameter| parameter["name"] == "fieldValidation"));
        let content = patch["requestBody"]["content"].as_object().unwrap();
        assert_eq!(content.contains_key("application/strategic-merge-patch+json"), strategic);
    }
    assert_eq!(
        deployment[GROUP_VERSION_KIND],
        json!({"group": "apps", "version": "v1", "kind": "Deployment"})
    );
    assert!(!patch("", "v1", "/api/v1/nodes/{name}").is_null());
}

#[test]
fn custom_resource_schemas_include_the_common_fields() {
    let document = document(&catalog(), RELEASE.profile(), "example.org", "v1").unwrap();
    let schemas = schemas(&document);
    let widget = &schemas["org.example.v1.Widget"];
    let names: Vec<&String> = widget["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["spec", "apiVersion", "kind", "metadata"]);
    assert_eq!(widget["description"], "A widget");
    assert_eq!(
        widget[GROUP_VERSION_KIND],
        json!([{"group": "example.org", "kind": "Widget", "version": "v1"}])
    );
    assert!(
        schemas.contains_key("org.example.v1.WidgetList")
            && schemas.contains_key(&format!("{META_V1}.ObjectMeta"))
    );
}

#[test]
fn conditions_of_autoscalers_have_a_generation_since_1_37() {
    let field = |version: KubernetesVersion| {
        let document = document(&catalog(), version.profile(), "autoscaling", "v2").unwrap();
        assert_eq!(document["info"]["version"], version.as_str());
        let name = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerCondition";
        document["components"]["schemas"][name]["properties"].get("observedGeneration").cloned()
    };
    assert_eq!(field(KubernetesVersion::V1_36), None);
    assert_eq!(field(KubernetesVersion::V1_37), Some(json!({"type": "integer", "format": "int64"})));
}
