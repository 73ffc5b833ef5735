//! The verb `create`.

use api::field::FieldError;
use api::meta::ObjectMeta;
use api::meta::validation;
use serde_json::{Map, Value, json};

use super::{ApiCall, CallBody, CallOutcome, WriteMode, admit, decode};
use crate::catalog::ResourceOrigin;
use crate::cluster::Cluster;
use crate::fields;
use crate::object::{set, string};
use crate::random;
use crate::status::Status;
use crate::store::ObjectKey;

/// The maximum number of generated names that are tried.
const MAX_GENERATED_NAMES: usize = 8;
/// The maximum length of a name prefix, so that names stay valid labels.
const MAX_PREFIX_CHARS: usize = 58;

/// Creates the object that a client sent.
pub(crate) async fn create(call: &ApiCall, value: Value) -> Result<CallOutcome, Status> {
    new(call, value, WriteMode::Whole).await
}

/// Creates an applied object.
pub(crate) async fn applied(call: &ApiCall, mut value: Value) -> Result<CallOutcome, Status> {
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("resourceVersion");
    }
    new(call, value, WriteMode::Applied).await
}

/// Creates an object; tries other names if a generated one exists.
async fn new(call: &ApiCall, mut value: Value, how: WriteMode) -> Result<CallOutcome, Status> {
    decode::shape(call, &mut value)?;
    let mut key = identify(call, &mut value)?;
    admit::namespace(call, &key)?;
    let prefix = string(&value, &["metadata", "generateName"]).to_owned();
    let generated = key.name.is_empty() && !prefix.is_empty();
    for _ in 0..if generated { MAX_GENERATED_NAMES } else { 1 } {
        let mut value = value.clone();
        if generated {
            // A prefix that is too long is truncated as on the real server.
            let head: String = prefix.chars().take(MAX_PREFIX_CHARS).collect();
            key.name = format!("{head}{}", random::suffix());
            set(&mut value, &["metadata", "name"], json!(key.name));
        }
        prepare(call, &mut value, how)?;
        admit::account(call, &key, &value)?;
        let faults = faults(call, &value);
        if !faults.is_empty() {
            return Err(call.invalid(&key.name, &faults));
        }
        admit::webhooks(call, "CREATE", Some(&value), None).await?;
        if call.dry_run() {
            if call.cluster.get(&call.served, &key).is_some() {
                return Err(taken(call, &key, &prefix));
            }
            return Ok(CallOutcome { code: 201, body: CallBody::Value(value) });
        }
        let mut kept = call.kept(value);
        if let Ok(stored) = call.cluster.put_new(&call.served, key.clone(), &mut kept) {
            if call.served.row().is_some_and(|row| row.kind == "Namespace") {
                Box::pin(populate(&call.cluster, &key.name)).await;
            }
            return Ok(CallOutcome::stored(201, stored));
        }
    }
    Err(taken(call, &key, &prefix))
}

/// The error for an existing name.
fn taken(call: &ApiCall, key: &ObjectKey, prefix: &str) -> Status {
    let about = call.served.about(&key.name);
    if !prefix.is_empty() {
        Status::no_name_left(about)
    } else if call.cluster.get(&call.served, key).is_some_and(|stored| stored.deleting) {
        Status::being_deleted(about)
    } else {
        Status::already_exists(about)
    }
}

/// The key of the new object; its namespace must be that of the path.
pub(crate) fn identify(call: &ApiCall, value: &mut Value) -> Result<ObjectKey, Status> {
    let map = value.as_object_mut().ok_or_else(|| Status::bad_request("the body is not an object"))?;
    let metadata = map.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    let given = string(metadata, &["namespace"]).to_owned();
    let name = string(metadata, &["name"]).to_owned();
    let namespace = call.namespace.clone().unwrap_or_default();
    if call.served.namespaced && !given.is_empty() && given != namespace {
        let text = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(text));
    }
    if let Some(metadata) = metadata.as_object_mut() {
        if call.served.namespaced {
            metadata.insert("namespace".to_owned(), json!(namespace));
        } else {
            metadata.shift_remove("namespace");
        }
    }
    Ok(ObjectKey::new(&namespace, &name))
}

/// Sets what only the server sets.
fn prepare(call: &ApiCall, value: &mut Value, how: WriteMode) -> Result<(), Status> {
    if !string(value, &["metadata", "resourceVersion"]).is_empty() {
        return Err(Status::internal("resourceVersion should not be set on objects to be created"));
    }
    if call.served.has_status(&call.version)
        && !call.served.row().is_some_and(|row| row.born_with_status)
        && let Some(map) = value.as_object_mut()
    {
        map.shift_remove("status");
    }
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            metadata.shift_remove(field);
        }
        metadata.insert("uid".to_owned(), json!(random::uid()));
        metadata.insert("creationTimestamp".to_owned(), json!(api::instant::format(call.now)));
        if call.counts_generation() {
            metadata.insert("generation".to_owned(), json!(1));
        }
    }
    // Ownership is recorded before the server adds its own values.
    if how != WriteMode::Applied
        && let Some(schema) = call.served.schema(&call.version)
    {
        call.writing(|who| fields::record_update(&schema, None, value, who));
    }
    if let ResourceOrigin::BuiltIn(kind) = &call.served.origin {
        (kind.rules.create)(value);
    }
    Ok(())
}

/// Validates a new object.
pub(crate) fn faults(call: &ApiCall, value: &Value) -> Vec<FieldError> {
    let meta = meta(value);
    let name = match &call.served.origin {
        ResourceOrigin::BuiltIn(kind) => kind.rules.name,
        ResourceOrigin::Custom(_) => api::names::subdomain_faults,
    };
    let gates = call.cluster.gates();
    let mut faults = validation::validate_create(&meta, name, gates.profile());
    if !call.served.namespaced {
        faults.retain(|fault| fault.field != "metadata.namespace");
    }
    if let ResourceOrigin::Custom(_) = &call.served.origin {
        faults.retain(|fault| !validation::is_of_built_in_kinds(fault));
    }
    faults.extend(match &call.served.origin {
        ResourceOrigin::BuiltIn(kind) => kind.rules.faults(value, gates),
        ResourceOrigin::Custom(definition) => definition.validate(&call.version, value, None),
    });
    faults
}

/// The metadata of an object; defaults if it cannot be decoded.
pub(crate) fn meta(value: &Value) -> ObjectMeta {
    let metadata = value.get("metadata").cloned().unwrap_or_default();
    serde_json::from_value(metadata).unwrap_or_default()
}

/// The service account of every namespace.
pub(crate) const DEFAULT_SERVICE_ACCOUNT: &str = "default";
/// The ConfigMap with the cluster's CA certificate, which every namespace has.
pub(crate) const ROOT_CA_CONFIG_MAP: &str = "kube-root-ca.crt";

/// Creates the default contents of a namespace.
pub(crate) async fn populate(cluster: &Cluster, namespace: &str) {
    let catalog = cluster.catalog();
    let account = json!({"metadata": {"name": DEFAULT_SERVICE_ACCOUNT}});
    let description = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints \
                       such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
                       distributions of Kubernetes clusters.";
    let authority = json!({
        "metadata": {"name": ROOT_CA_CONFIG_MAP, "annotations": {"kubernetes.io/description": description}},
        "data": {"ca.crt": cluster.0.access.pki.ca_pem()},
    });
    for (plural, value) in [("serviceaccounts", account), ("configmaps", authority)] {
        let Some(served) = catalog.resource("", plural) else { continue };
        let call = cluster.own_call(served, &ObjectKey::new(namespace, ""));
        // The object may exist already, or the namespace may be terminating.
        let _ = create(&call, value).await;
    }
}
