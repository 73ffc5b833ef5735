//! The spec of a `batch/v1` Job as a structural schema, from the OpenAPI schemas of an API server.

use anyhow::Context;
use serde_json::{Map, Value, json};

use crate::generate::schema::ANY_QUANTITY;

const JOB_SPEC: &str = "io.k8s.api.batch.v1.JobSpec";
/// The prefix of references to schemas.
const REFERENCE_PREFIX: &str = "#/components/schemas/";
/// Keys that mean the same in a structural schema, which has no patch strategies and no unions. `enum` is left out on
/// purpose: the API server that creates the Job validates the values.
const COPIED_KEYS: &[&str] = &[
    "type",
    "format",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];
/// Fields of pods that only older API servers have; KEDA's definition keeps them.
const OLDER_POD_FIELDS: &[&str] = &["workloadRef"];
/// Schemas of Kubernetes are less deep; only a schema that contains itself would be deeper.
const MAX_SCHEMA_DEPTH: usize = 40;

/// The OpenAPI schemas of an API server, by name.
struct KubernetesSchemas(Map<String, Value>);

/// The spec of a Job.
pub(super) fn spec() -> anyhow::Result<Map<String, Value>> {
    let mut document = localkube::schema::document(localkube::KubernetesVersion::V1_36.profile());
    let Some(Value::Object(all)) = document.pointer_mut("/components/schemas").map(Value::take) else {
        anyhow::bail!("localkube has no schemas of Kubernetes");
    };
    let mut body = Map::new();
    body.insert("description".to_owned(), json!("The spec of the batch/v1 Jobs that are created."));
    body.extend(KubernetesSchemas(all).named(JOB_SPEC, 0)?);
    let mut body = Value::Object(body);
    let pod = body.pointer_mut("/properties/template/properties/spec/properties");
    let pod = pod.and_then(Value::as_object_mut).context("a Job has no pods")?;
    for field in OLDER_POD_FIELDS {
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        pod.entry(*field).or_insert(any);
    }
    match body {
        Value::Object(body) => Ok(body),
        _ => anyhow::bail!("the spec of a Job is no object"),
    }
}

impl KubernetesSchemas {
    fn named(&self, name: &str, depth: usize) -> anyhow::Result<Map<String, Value>> {
        let object = |value: Value| match value {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        Ok(match name.rsplit('.').next().unwrap_or_default() {
            // The server would drop every field of an embedded object that is not declared.
            "ObjectMeta" => object(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
            "Quantity" => {
                object(json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": ANY_QUANTITY,
                "x-kubernetes-int-or-string": true}))
            }
            "IntOrString" => object(json!({"anyOf": [{"type": "integer"}, {"type": "string"}],
                "x-kubernetes-int-or-string": true})),
            _ => {
                let found = self.0.get(name).with_context(|| format!("no schema is named {name}"))?;
                self.structural(found, depth + 1)?
            }
        })
    }

    fn structural(&self, schema: &Value, depth: usize) -> anyhow::Result<Map<String, Value>> {
        anyhow::ensure!(depth < MAX_SCHEMA_DEPTH, "a schema contains itself");
        let elsewhere =
            schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref")).and_then(Value::as_str);
        if let Some(name) = elsewhere {
            return self.named(name.trim_start_matches(REFERENCE_PREFIX), depth);
        }
        let mut made = Map::new();
        for key in COPIED_KEYS {
            if let Some(value) = schema.get(key) {
                made.insert((*key).to_owned(), value.clone());
            }
        }
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            let mut inner = Map::new();
            for (name, property) in properties {
                inner.insert(name.clone(), self.structural(property, depth + 1)?.into());
            }
            made.insert("properties".to_owned(), inner.into());
        }
        if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
            made.insert("additionalProperties".to_owned(), self.structural(values, depth + 1)?.into());
        }
        if let Some(items) = schema.get("items") {
            let mut made_items = self.structural(items, depth + 1)?;
            self.identify(schema, items, &mut made_items)?;
            made.insert("items".to_owned(), made_items.into());
        }
        Ok(made)
    }

    /// Keys of a list map must be required or have a default, as in Kubernetes itself.
    fn identify(&self, list: &Value, items: &Value, made: &mut Map<String, Value>) -> anyhow::Result<()> {
        let keys = list.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
        let is_required = |made: &Map<String, Value>, key: &Value| {
            made.get("required").and_then(Value::as_array).is_some_and(|all| all.contains(key))
        };
        for key in
            keys.into_iter().flatten().filter(|key| !is_required(made, key)).cloned().collect::<Vec<_>>()
        {
            let name = key.as_str().unwrap_or_default();
            let elsewhere =
                items.get("$ref").or_else(|| items.pointer("/allOf/0/$ref")).and_then(Value::as_str);
            let elsewhere = elsewhere.map(|reference| reference.trim_start_matches(REFERENCE_PREFIX));
            let declared = elsewhere.and_then(|of| self.0.get(of)).unwrap_or(items);
            let default = declared.pointer(&format!("/properties/{name}/default")).cloned();
            let default = default.with_context(|| format!("items of a list may have no {name}"))?;
            let field = made.get_mut("properties").and_then(|all| all.get_mut(name)?.as_object_mut());
            field
                .with_context(|| format!("items of a list have no {name}"))?
                .insert("default".to_owned(), default);
        }
        Ok(())
    }
}
