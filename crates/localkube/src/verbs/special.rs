//! Special subresources: `pods/binding`, `pods/eviction`, `namespaces/finalize`, `serviceaccounts/token`.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::delete::{self, DeleteOptions};
use super::{ApiCall, CallBody, CallOutcome, WriteMode, update};
use crate::access;
use crate::object::{set, string};
use crate::status::{About, Status};

/// Responds to a POST to a special subresource.
pub(crate) async fn post(call: &ApiCall, value: Value) -> Result<CallOutcome, Status> {
    match call.subresource.as_deref() {
        Some("binding") => bind(call, &value).await,
        Some("eviction") => evict(call, &value).await,
        Some("token") => token(call, value),
        _ => Err(Status::no_path()),
    }
}

/// Binds a pod to a node.
async fn bind(call: &ApiCall, binding: &Value) -> Result<CallOutcome, Status> {
    let key = call.key()?;
    let node = string(binding, &["target", "name"]).to_owned();
    if node.is_empty() {
        let fault = api::field::FieldError::required("target.name", "");
        return Err(Status::internal(fault.to_string()));
    }
    let conflict = |why: &str| Status::conflict_because(About::new("", "pods/binding", &key.name), why);
    let placed = json!({
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": null,
        "lastTransitionTime": api::instant::format(call.now),
    });
    update::change(&call.as_object(), &key, WriteMode::Applied, |old| {
        let taken = string(old, &["spec", "nodeName"]);
        if !taken.is_empty() {
            return Err(conflict(&format!("pod {} is already assigned to node {taken:?}", key.name)));
        }
        let (wanted, found) = (string(binding, &["metadata", "uid"]), string(old, &["metadata", "uid"]));
        if !wanted.is_empty() && wanted != found {
            let why =
                format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}");
            return Err(conflict(&why));
        }
        let mut new = old.clone();
        set(&mut new, &["spec", "nodeName"], json!(node));
        let known = new.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        let others = known.into_iter().filter(|condition| condition.get("type") != placed.get("type"));
        set(&mut new, &["status", "conditions"], others.chain([placed.clone()]).collect());
        Ok(new)
    })
    .await?;
    Ok(done())
}

/// The response without an object.
fn done() -> CallOutcome {
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    CallOutcome::other(201, status)
}

/// Evicts a pod; there are no disruption budgets.
async fn evict(call: &ApiCall, eviction: &Value) -> Result<CallOutcome, Status> {
    let object = call.as_object();
    let options = match eviction.get("deleteOptions").filter(|options| options.is_object()) {
        Some(given) => DeleteOptions::of(&object, "", given.to_string().as_bytes())?,
        None => DeleteOptions::default(),
    };
    delete::delete(&object, &options).await?;
    Ok(done())
}

/// Issues a token for a service account.
fn token(call: &ApiCall, request: Value) -> Result<CallOutcome, Status> {
    let key = call.key()?;
    let stored = call.cluster.get(&call.served, &key).ok_or_else(|| call.not_found(&key.name))?;
    let answer = access::token_request(
        &call.cluster.0.access,
        &key.namespace,
        &key.name,
        &stored.uid,
        request,
        call.now,
    )?;
    Ok(CallOutcome { code: 201, body: CallBody::Other(answer) })
}

/// Sets the finalizers of a namespace's spec.
pub(crate) async fn finalize(call: &ApiCall, value: Value) -> Result<CallOutcome, Status> {
    let key = call.key()?;
    update::change(&call.as_object(), &key, WriteMode::Part, |old| {
        let mut new = old.clone();
        set(
            &mut new,
            &["spec", "finalizers"],
            value.pointer("/spec/finalizers").cloned().unwrap_or(json!([])),
        );
        Ok(new)
    })
    .await
}

impl ApiCall {
    /// The same request for the object itself.
    fn as_object(&self) -> Self {
        Self {
            cluster: self.cluster.clone(),
            served: self.served.clone(),
            version: self.version.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            subresource: self.subresource.clone().filter(|name| name == "finalize"),
            query: self.query.clone(),
            user: self.user.clone(),
            manager: self.manager.clone(),
            now: self.now,
            by_server: true,
            warnings: Mutex::default(),
        }
    }
}
