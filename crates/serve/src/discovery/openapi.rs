//! Minimal OpenAPI schemas, enough for `kubectl explain` and the aggregation layer.

use serde_json::{Map, Value, json};

use crate::api_group::{ApiGroupVersion, ApiResource};

/// `dev.plimsoll.decisions.v1alpha1.Decision`.
fn name(group: &ApiGroupVersion, kind: &str) -> String {
    let mut parts: Vec<&str> = group.name.split('.').rev().collect();
    parts.extend([group.version.as_str(), kind]);
    parts.join(".")
}

fn identity(group: &ApiGroupVersion, kind: &str) -> Value {
    json!({"group": group.name, "version": group.version, "kind": kind})
}

/// The definitions of an API: each kind and its list.
fn definitions(group: &ApiGroupVersion, prefix: &str) -> Map<String, Value> {
    let text = |description: &str| json!({"type": "string", "description": description});
    let mut all = Map::new();
    for of in &group.resources {
        let mut properties = json!({
            "apiVersion": text("Group and version."),
            "kind": text("Kind."),
            "metadata": {"type": "object", "description": "Whose it is.", "properties": {
                "name": text("Name."), "namespace": text("Namespace."),
            }},
        });
        if let (Some(properties), Value::Object(own)) = (properties.as_object_mut(), of.properties.clone()) {
            properties.extend(own);
        }
        let schema = json!({
            "type": "object",
            "description": of.description,
            "properties": properties,
            "x-kubernetes-group-version-kind": [identity(group, &of.kind)],
        });
        let item = format!("{prefix}{}", name(group, &of.kind));
        let list = json!({
            "type": "object",
            "description": format!("A list of {}.", of.kind),
            "required": ["items"],
            "properties": {
                "apiVersion": text("Group and version."),
                "kind": text("Kind."),
                "metadata": {"type": "object", "description": "About the list."},
                "items": {"type": "array", "description": "The objects.", "items": {"$ref": item}},
            },
            "x-kubernetes-group-version-kind": [identity(group, &format!("{}List", of.kind))],
        });
        all.insert(name(group, &of.kind), schema);
        if group.listing.is_some() {
            // The placeholder of all metrics is a list already.
            continue;
        }
        all.insert(name(group, &format!("{}List", of.kind)), list);
    }
    all
}

/// The paths of an API; `answer` makes a response from the name of a definition.
fn paths(
    group: &ApiGroupVersion,
    answer: &dyn Fn(&str) -> Value,
    parameter: &dyn Fn(&str) -> Value,
) -> Map<String, Value> {
    let mut all = Map::new();
    // Metrics that change at run time have no fixed paths.
    for of in group.resources.iter().filter(|_| group.listing.is_none()) {
        let base = format!("/apis/{}", group.group_version());
        let mut add = |path: String, action: &str, scope: &str, kind: &str, parameters: &[&str]| {
            let id = format!("{action}{}{}{scope}{}", camel(&group.name), camel(&group.version), of.kind);
            let operation = json!({
                "description": of.description,
                "operationId": id,
                "responses": {"200": answer(&name(group, kind)), "401": {"description": "Unauthorized"}},
                "x-kubernetes-action": action,
                "x-kubernetes-group-version-kind": identity(group, &of.kind),
            });
            let parameters: Vec<Value> = parameters.iter().map(|name| parameter(name)).collect();
            all.insert(path, json!({"get": operation, "parameters": parameters}));
        };
        let has = |verb: &str| of.verbs.iter().any(|own| own == verb);
        let (list, ApiResource { name, kind, .. }) = (format!("{}List", of.kind), of);
        if has("list") {
            add(format!("{base}/{name}"), "list", "All", &list, &[]);
            if of.namespaced {
                add(
                    format!("{base}/namespaces/{{namespace}}/{name}"),
                    "list",
                    "Namespaced",
                    &list,
                    &["namespace"],
                );
            }
        }
        if has("get") {
            let (place, scope, parameters): (&str, &str, &[&str]) = if of.namespaced {
                ("/namespaces/{namespace}", "Namespaced", &["name", "namespace"])
            } else {
                ("", "", &["name"])
            };
            add(format!("{base}{place}/{name}/{{name}}"), "get", scope, kind, parameters);
        }
    }
    all
}

/// `decisions.plimsoll.dev` becomes `DecisionsPlimsollDev`.
fn camel(text: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_uppercase().chain(letters).collect::<String>())
            .unwrap_or_default()
    };
    text.split(['.', '-']).map(capital).collect()
}

/// All APIs in one Swagger 2.0 document.
pub(super) fn v2(groups: &[ApiGroupVersion], version: &str) -> Value {
    const PREFIX: &str = "#/definitions/";
    let answer = |name: &str| json!({"description": "OK", "schema": {"$ref": format!("{PREFIX}{name}")}});
    let parameter = |name: &str| json!({"name": name, "in": "path", "required": true, "type": "string", "uniqueItems": true});
    let all: Map<String, Value> = groups.iter().flat_map(|group| paths(group, &answer, &parameter)).collect();
    let definitions: Map<String, Value> =
        groups.iter().flat_map(|group| definitions(group, PREFIX)).collect();
    json!({"swagger": "2.0", "info": info(version), "paths": all, "definitions": definitions})
}

/// One API in an OpenAPI 3 document.
pub(super) fn v3(group: &ApiGroupVersion, version: &str) -> Value {
    const PREFIX: &str = "#/components/schemas/";
    let answer = |name: &str| {
        let schema = json!({"$ref": format!("{PREFIX}{name}")});
        json!({"description": "OK", "content": {"application/json": {"schema": schema}}})
    };
    let parameter =
        |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    let all = paths(group, &answer, &parameter);
    let schemas = definitions(group, PREFIX);
    json!({"openapi": "3.0.0", "info": info(version), "paths": all, "components": {"schemas": schemas}})
}

fn info(version: &str) -> Value {
    json!({"title": "Plimsoll", "version": if version.is_empty() { "unversioned" } else { version }})
}

/// The index of all documents.
pub(super) fn index<'a>(tags: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let paths: Map<String, Value> = tags
        .map(|(path, tag)| {
            let url = format!("/openapi/v3/{path}?hash={tag}");
            (path.to_owned(), json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}
