//! OpenAPI v3 as far as clients use it: schemas of the kinds, and for each request whether it validates fields and
//! which patches it accepts.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use api::autoscaling::KubernetesProfile;
use serde_json::{Map, Value, json};

use crate::catalog::{Catalog, ResourceOrigin, ServedResource};
use crate::custom::Definition;
use crate::schema;

/// Schemas by name.
type SchemaMap = Map<String, Value>;

/// `/openapi/v3`: the documents, each with a hash for client caches.
pub(crate) fn index(catalog: &Catalog, profile: &KubernetesProfile) -> Value {
    let mut hashes: BTreeMap<String, DefaultHasher> = BTreeMap::new();
    for served in catalog.all() {
        for version in &served.versions {
            let hasher = hashes.entry(path(&served.group, version)).or_default();
            (&served.kind, &served.plural, profile.version, env!("CARGO_PKG_VERSION")).hash(hasher);
            if let ResourceOrigin::Custom(definition) = &served.origin {
                definition.openapi(version).to_string().hash(hasher);
            }
        }
    }
    let place = |(path, hasher): (String, DefaultHasher)| {
        let url = format!("/openapi/v3/{path}?hash={:016X}", hasher.finish());
        (path, json!({"serverRelativeURL": url}))
    };
    json!({"paths": hashes.into_iter().map(place).collect::<Map<_, _>>()})
}

/// The document of a version of a group, if it is served.
pub(crate) fn document(
    catalog: &Catalog,
    profile: &KubernetesProfile,
    group: &str,
    version: &str,
) -> Option<Value> {
    let here =
        |served: &&Arc<ServedResource>| served.group == group && served.versions.iter().any(|v| v == version);
    let all: Vec<&Arc<ServedResource>> = catalog.all().filter(here).collect();
    let custom = all.first()?.row().is_none();
    let mut known = match schema::document(profile).pointer_mut("/components/schemas").map(Value::take) {
        Some(Value::Object(known)) => known,
        _ => SchemaMap::new(),
    };
    for served in &all {
        if let ResourceOrigin::Custom(definition) = &served.origin {
            add_custom(definition, version, &mut known);
        }
    }
    let kinds: BTreeSet<&str> = all.iter().flat_map(|served| [&*served.kind, &*served.list_kind]).collect();
    let ours = |schema: &Value| {
        let all = schema.get(GROUP_VERSION_KIND).and_then(Value::as_array).into_iter().flatten();
        let text = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut same = all.filter(|of| text(of, "group") == group && text(of, "version") == version);
        same.any(|of| kinds.contains(&*text(of, "kind")))
    };
    let wanted = known.iter().filter(|(_, schema)| ours(schema)).map(|(name, _)| name.clone()).collect();
    let (title, release) =
        if custom { ("Kubernetes CRD Swagger", "v0.1.0") } else { ("Kubernetes", profile.version.as_str()) };
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": title, "version": release},
        "paths": all.iter().flat_map(|served| paths(served, version)).collect::<Map<_, _>>(),
        "components": {"schemas": reachable(known, wanted)},
    }))
}

const GROUP_VERSION_KIND: &str = "x-kubernetes-group-version-kind";
const REFERENCE: &str = "#/components/schemas/";
const META_V1: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("{REFERENCE}{name}")})
}

/// The named schemas and all schemas that they refer to; requests refer to the one of patches.
fn reachable(mut known: SchemaMap, mut wanted: Vec<String>) -> SchemaMap {
    let mut found = BTreeMap::new();
    wanted.push(format!("{META_V1}.Patch"));
    while let Some(name) = wanted.pop() {
        if let Some(schema) = known.remove(&name) {
            references(&schema, &mut wanted);
            found.insert(name, schema);
        }
    }
    found.into_iter().collect()
}

fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str().filter(|_| key == "$ref").and_then(|name| name.strip_prefix(REFERENCE)) {
                    Some(name) => found.push(name.to_owned()),
                    None => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

/// Adds the schemas of a custom resource and of its list; names start with the reversed group.
fn add_custom(definition: &Definition, version: &str, known: &mut SchemaMap) {
    let reversed: Vec<&str> = definition.group.rsplit('.').collect();
    let name = |kind: &str| format!("{}.{version}.{kind}", reversed.join("."));
    let marked = |kind: &str| json!([{"group": definition.group, "kind": kind, "version": version}]);
    let meta = |kind: &str| json!({"allOf": [reference(&format!("{META_V1}.{kind}"))]});
    let mut schema = match definition.openapi(version) {
        Value::Object(schema) => schema,
        _ => SchemaMap::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    if let Some(fields) = schema.entry("properties").or_insert_with(|| json!({})).as_object_mut() {
        fields.insert("apiVersion".to_owned(), json!({"type": "string"}));
        fields.insert("kind".to_owned(), json!({"type": "string"}));
        fields.insert("metadata".to_owned(), meta("ObjectMeta"));
    }
    schema.insert(GROUP_VERSION_KIND.to_owned(), marked(&definition.kind));
    known.insert(name(&definition.kind), schema.into());
    let list = json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": reference(&name(&definition.kind))},
            "kind": {"type": "string"},
            "metadata": meta("ListMeta"),
        },
        GROUP_VERSION_KIND: marked(&definition.list_kind),
    });
    known.insert(name(&definition.list_kind), list);
}

/// The paths of a resource, with the request properties that clients use.
fn paths(served: &ServedResource, version: &str) -> Vec<(String, Value)> {
    let namespace = if served.namespaced { "namespaces/{namespace}/" } else { "" };
    let all = format!("/{}/{namespace}{}", path(&served.group, version), served.plural);
    let request = |action: &str, parameters: &[&str]| {
        let parameter = |name: &&str| {
            let kind = if *name == "force" { "boolean" } else { "string" };
            json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
        };
        json!({
            "parameters": parameters.iter().map(parameter).collect::<Vec<_>>(),
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": action,
            GROUP_VERSION_KIND: {"group": served.group, "version": version, "kind": served.kind},
        })
    };
    let write = ["dryRun", "fieldManager", "fieldValidation"];
    let post = request("post", &write);
    if served.row().is_some_and(|row| row.review) {
        return vec![(all, json!({"post": post}))];
    }
    let mut patch = request("patch", &["dryRun", "fieldManager", "fieldValidation", "force"]);
    if let Some(patch) = patch.as_object_mut() {
        let strategic = served.row().map(|_| "application/strategic-merge-patch+json");
        let usual =
            ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
        let body = json!({"schema": reference(&format!("{META_V1}.Patch"))});
        let content: Map<String, Value> =
            usual.into_iter().chain(strategic).map(|media| (media.to_owned(), body.clone())).collect();
        patch.insert("requestBody".to_owned(), json!({"content": content, "required": true}));
    }
    let one = format!("{all}/{{name}}");
    let about_one = json!({
        "get": request("get", &[]),
        "put": request("put", &write),
        "delete": request("delete", &["dryRun"]),
        "patch": patch,
    });
    vec![(all, json!({"get": request("list", &["limit", "continue"]), "post": post})), (one, about_one)]
}

#[cfg(test)]
mod tests;
