//! Admission: the namespace, the service account and the webhooks may refuse a valid object.

use serde_json::Value;

use super::ApiCall;
use crate::admission::{self, AdmissionRequest};
use crate::object::{self, string};
use crate::status::Status;
use crate::store::ObjectKey;

/// Refuses to create objects in a namespace that does not exist or is being deleted.
pub(crate) fn namespace(call: &ApiCall, key: &ObjectKey) -> Result<(), Status> {
    if !call.served.namespaced {
        return Ok(());
    }
    let catalog = call.cluster.catalog();
    let Some(namespaces) = catalog.resource("", "namespaces") else { return Ok(()) };
    let name = &key.namespace;
    let Some(found) = call.cluster.get(namespaces, &ObjectKey::new("", name)) else {
        return Err(Status::not_found(namespaces.about(name)));
    };
    if found.fields.first().is_some_and(|phase| &**phase == "Terminating") {
        return Err(Status::terminating(call.served.about(&key.name), name));
    }
    Ok(())
}

/// Refuses pods whose service account does not exist.
pub(crate) fn account(call: &ApiCall, key: &ObjectKey, value: &Value) -> Result<(), Status> {
    if call.served.row().is_none_or(|row| row.kind != "Pod") {
        return Ok(());
    }
    let name = string(value, &["spec", "serviceAccountName"]);
    let catalog = call.cluster.catalog();
    let accounts = catalog.resource("", "serviceaccounts");
    if accounts
        .is_none_or(|accounts| call.cluster.get(accounts, &ObjectKey::new(&key.namespace, name)).is_some())
    {
        return Ok(());
    }
    let namespace = &key.namespace;
    let text =
        format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found");
    Err(Status::forbidden(call.served.about(&key.name), &text))
}

/// Calls the validating webhooks that match this write.
pub(crate) async fn webhooks(
    call: &ApiCall,
    operation: &'static str,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<(), Status> {
    let catalog = call.cluster.catalog();
    let path = ("admissionregistration.k8s.io", "validatingwebhookconfigurations");
    let Some(configurations) = catalog.resource(path.0, path.1) else { return Ok(()) };
    if call.cluster.store().count(configurations.id) == 0 || call.served.group == path.0 {
        return Ok(());
    }
    let stored: Vec<Value> = {
        let store = call.cluster.store();
        store.list(configurations.id, None, None).map(|(_, found)| object::unpack(found)).collect()
    };
    let shown = object.or(old);
    let review = AdmissionRequest {
        uid: crate::random::uid(),
        group: call.served.group.clone(),
        version: call.version.clone(),
        kind: call.served.kind.clone(),
        resource: call.served.plural.clone(),
        subresource: call.subresource.clone().unwrap_or_default(),
        name: shown.map(|shown| string(shown, &["metadata", "name"]).to_owned()).unwrap_or_default(),
        namespace: call.namespace.clone().unwrap_or_default(),
        namespaced: call.served.namespaced,
        namespace_labels: namespace_labels(call),
        operation,
        user: call.user.clone(),
        object: object.cloned(),
        old_object: old.cloned(),
        dry_run: call.dry_run(),
    };
    let resolve = |namespace: &str, name: &str, port: u16| call.cluster.resolve(namespace, name, port);
    let warnings = admission::ask(&stored, &review, &resolve).await?;
    for warning in warnings {
        call.warn(warning);
    }
    Ok(())
}

fn namespace_labels(call: &ApiCall) -> Value {
    let catalog = call.cluster.catalog();
    let name = match &call.namespace {
        Some(namespace) => namespace.clone(),
        None if call.served.kind == "Namespace" => call.name.clone().unwrap_or_default(),
        None => return Value::Null,
    };
    let found =
        catalog.resource("", "namespaces").and_then(|all| call.cluster.get(all, &ObjectKey::new("", &name)));
    found
        .map(|found| object::unpack(&found).pointer("/metadata/labels").cloned().unwrap_or_default())
        .unwrap_or_default()
}
