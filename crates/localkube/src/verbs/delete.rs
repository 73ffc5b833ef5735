//! The verbs `delete` and `deletecollection`.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::admit;
use super::options;
use super::read::{ObjectFilter, ObjectList};
use super::{ApiCall, CallBody, CallOutcome, decode};
use crate::object::{set, string};
use crate::protobuf;
use crate::status::{About, Status};
use crate::store::{ObjectKey, StoredObject, WriteError};
use crate::syntax;

/// The finalizer that keeps a definition until its objects are gone.
pub(crate) const DEFINITION_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The options of a deletion.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    grace: Option<i64>,
    propagation: Option<String>,
    uid: Option<String>,
    revision: Option<String>,
    dry_run: bool,
}

impl DeleteOptions {
    /// Reads the options from the body and the query; the body takes precedence.
    pub(crate) fn of(call: &ApiCall, content_type: &str, body: &[u8]) -> Result<Self, Status> {
        let given = if body.is_empty() { Value::Null } else { given(content_type, body)? };
        let text = |path: &[&str]| Some(string(&given, path).to_owned()).filter(|text| !text.is_empty());
        let query = |name: &str| call.query.get(name).filter(|text| !text.is_empty()).map(str::to_owned);
        let (kind, api_version) = (string(&given, &["kind"]), string(&given, &["apiVersion"]));
        if !kind.is_empty() && kind != "DeleteOptions" {
            return Err(Status::bad_request(format!(
                "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
            )));
        }
        let grace = given.get("gracePeriodSeconds").and_then(Value::as_i64);
        let orphan = given.get("orphanDependents").and_then(Value::as_bool);
        let dry_run =
            given.get("dryRun").and_then(Value::as_array).and_then(|all| all.first()).and_then(Value::as_str);
        let dry_run = dry_run.or(call.query.get("dryRun")).unwrap_or_default();
        if let Some(fault) = options::dry_run(dry_run) {
            return Err(ApiCall::invalid_options("DeleteOptions", &[fault]));
        }
        if let Some(policy) = text(&["propagationPolicy"]).filter(|_| orphan.is_some()) {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            let fault = api::field::FieldError::invalid("propagationPolicy", policy.as_str(), detail);
            return Err(ApiCall::invalid_options("DeleteOptions", &[fault]));
        }
        let orphan = orphan.map(|orphan| if orphan { "Orphan" } else { "Background" }.to_owned());
        let propagation = text(&["propagationPolicy"]).or_else(|| query("propagationPolicy")).or(orphan);
        if let Some(policy) = &propagation
            && !matches!(policy.as_str(), "Orphan" | "Background" | "Foreground")
        {
            let known = ["Foreground", "Background", "Orphan", "nil"];
            let fault = api::field::FieldError::not_supported("propagationPolicy", policy.as_str(), &known);
            return Err(ApiCall::invalid_options("DeleteOptions", &[fault]));
        }
        Ok(Self {
            grace: grace.or_else(|| query("gracePeriodSeconds").and_then(|text| text.parse().ok())),
            propagation,
            uid: text(&["preconditions", "uid"]),
            revision: text(&["preconditions", "resourceVersion"]),
            dry_run: !dry_run.is_empty(),
        })
    }

    /// Background deletion by the server.
    pub(crate) fn background() -> Self {
        Self { propagation: Some("Background".to_owned()), ..Self::default() }
    }

    /// Foreground deletion by the server.
    pub(crate) fn foreground() -> Self {
        Self { propagation: Some("Foreground".to_owned()), ..Self::default() }
    }
}

/// Decodes the options in a body.
fn given(content_type: &str, body: &[u8]) -> Result<Value, Status> {
    match content_type.split(';').next().unwrap_or_default().trim() {
        "" | "application/json" => serde_json::from_slice(body).map_err(|_| {
            let why = syntax::explain(body);
            Status::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
        }),
        "application/yaml" => decode::yaml(body)
            .map_err(|why| Status::bad_request(format!("error converting YAML to JSON: {why}"))),
        protobuf::MEDIA_TYPE => {
            protobuf::read(body, "v1", "DeleteOptions").map_err(|why| Status::bad_request(why.to_string()))
        }
        _ => Err(Status::unsupported_media_type()),
    }
}

/// Deletes one object.
pub(crate) async fn delete(call: &ApiCall, options: &DeleteOptions) -> Result<CallOutcome, Status> {
    let key = call.key()?;
    let stored = call.cluster.get(&call.served, &key).ok_or_else(|| call.not_found(&key.name))?;
    let old = call.shown(&stored);
    admit::webhooks(call, "DELETE", None, Some(&old)).await?;
    if options.propagation.is_none() && call.served.row().is_some_and(|row| row.kind == "Job") {
        call.warn(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them \
             or set propagationPolicy=Orphan to suppress this warning",
        );
    }
    let end = begin(call, &key, options)?;
    Ok(match end {
        DeletionState::Waiting(object) => CallOutcome { code: 200, body: object },
        DeletionState::Gone(object) if call.served.row().is_some_and(|row| row.returns_deleted) => {
            CallOutcome { code: 200, body: object }
        }
        DeletionState::Gone(_) => CallOutcome::other(200, success(call, &key, &stored)),
    })
}

/// Deletes all selected objects.
pub(crate) async fn delete_collection(
    call: &ApiCall,
    options: &DeleteOptions,
) -> Result<CallOutcome, Status> {
    let choice = ObjectFilter::of(call)?;
    let mut objects = Vec::new();
    let all = call.cluster.objects(&call.served, call.namespace.as_deref());
    for (key, object) in all.into_iter().filter(|(key, object)| choice.includes(key, object)) {
        admit::webhooks(call, "DELETE", None, Some(&call.shown(&object))).await?;
        match begin(call, &key, options) {
            // The response contains the objects before the deletion.
            Ok(_) => objects.push(object),
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
        }
    }
    let revision = call.cluster.store().revision();
    Ok(CallOutcome {
        code: 200,
        body: CallBody::List(ObjectList { objects, revision, next: None, remaining: None }),
    })
}

/// The state of a deletion.
pub(crate) enum DeletionState {
    /// Marked; the object is removed when nothing holds it any more.
    Waiting(CallBody),
    /// Removes the pod.
    Gone(CallBody),
}

/// Removes an object, or marks it if finalizers or a grace period hold it.
pub(crate) fn begin(
    call: &ApiCall,
    key: &ObjectKey,
    options: &DeleteOptions,
) -> Result<DeletionState, Status> {
    loop {
        let stored = call.cluster.get(&call.served, key).ok_or_else(|| call.not_found(&key.name))?;
        let mut value = crate::object::unpack(&stored);
        preconditions(call, key, options, &stored)?;
        let marked = mark(call, &mut value, options);
        if options.dry_run {
            let shown = call.shown(&stored);
            return Ok(if marked.held {
                DeletionState::Waiting(CallBody::Value(shown))
            } else {
                DeletionState::Gone(CallBody::Value(shown))
            });
        }
        if marked.held && !marked.changed {
            return Ok(DeletionState::Waiting(CallBody::Stored(stored)));
        }
        let done = if marked.held {
            call.cluster.put(&call.served, key.clone(), stored.revision, &mut value)
        } else {
            call.cluster.remove(&call.served, key, stored.revision, &mut value)
        };
        match done {
            Ok(object) if marked.held => return Ok(DeletionState::Waiting(CallBody::Stored(object))),
            Ok(object) => return Ok(DeletionState::Gone(CallBody::Stored(object))),
            Err(WriteError::Stale) => {}
            Err(_) => return Err(call.not_found(&key.name)),
        }
    }
}

fn preconditions(
    call: &ApiCall,
    key: &ObjectKey,
    options: &DeleteOptions,
    stored: &StoredObject,
) -> Result<(), Status> {
    let revision = stored.revision.to_string();
    let checks = [
        ("UID", &options.uid, &*stored.uid, "deleted and then recreated"),
        ("ResourceVersion", &options.revision, &revision, "modified"),
    ];
    for (what, wanted, found, fate) in checks {
        if let Some(wanted) = wanted.as_ref().filter(|wanted| *wanted != found) {
            let text = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). The object might \
                 have been {fate}"
            );
            let about = About::new(&call.served.group, &call.served.kind, &key.name);
            return Err(Status::conflict_because(about, &text));
        }
    }
    Ok(())
}

struct DeletionMark {
    held: bool,
    changed: bool,
}

/// Marks an object as being deleted, with the finalizers of its propagation policy.
fn mark(call: &ApiCall, value: &mut Value, options: &DeleteOptions) -> DeletionMark {
    let kind = call.served.row().map_or("", |row| row.kind);
    let grace = if kind == "Pod" { pod_grace(value, options) } else { 0 };
    let before = value.clone();
    let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) else {
        return DeletionMark { held: false, changed: false };
    };
    let mut finalizers: Vec<Value> =
        metadata.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    let policy =
        options.propagation.as_deref().unwrap_or(if kind == "Job" { "Orphan" } else { "Background" });
    for (finalizer, wanted) in [("foregroundDeletion", "Foreground"), ("orphan", "Orphan")] {
        let is = |other: &Value| other == finalizer;
        if policy == wanted && !finalizers.iter().any(is) {
            finalizers.push(json!(finalizer));
        } else if policy != wanted && options.propagation.is_some() {
            finalizers.retain(|other| !is(other));
        }
    }
    let namespace_held =
        kind == "Namespace" && before.pointer("/spec/finalizers").is_some_and(|list| *list != json!([]));
    let first = metadata.get("deletionTimestamp").is_none_or(Value::is_null);
    if kind == "CustomResourceDefinition" && first {
        finalizers.push(json!(DEFINITION_FINALIZER));
    }
    let held = !finalizers.is_empty() || grace > 0 || namespace_held;
    if finalizers.is_empty() {
        metadata.shift_remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), Value::Array(finalizers));
    }
    // An object that is removed immediately is not marked, except pods, which always have a deletion timestamp.
    if !held && kind != "Pod" {
        return DeletionMark { held, changed: true };
    }
    let earlier = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64);
    if first || earlier.is_some_and(|earlier| grace < earlier) {
        let end = call.now.checked_add(SignedDuration::from_secs(grace)).unwrap_or(call.now);
        metadata.insert("deletionTimestamp".to_owned(), json!(api::instant::format(end)));
        if !matches!(kind, "Namespace" | "CustomResourceDefinition") {
            metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(grace));
        }
    }
    if first
        && kind != "CustomResourceDefinition"
        && let Some(generation) = metadata.get("generation").and_then(Value::as_i64)
    {
        metadata.insert("generation".to_owned(), json!(generation + 1));
    }
    match kind {
        "Namespace" => set(value, &["status", "phase"], json!("Terminating")),
        "CustomResourceDefinition" if first => terminating(value, &api::instant::format(call.now)),
        _ => {}
    }
    DeletionMark { held, changed: *value != before }
}

/// Sets the condition `Terminating` of a definition.
fn terminating(value: &mut Value, now: &str) {
    let condition = json!({
        "type": "Terminating",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    match value.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        Some(conditions) => conditions.push(condition),
        None => set(value, &["status", "conditions"], json!([condition])),
    }
}

/// The grace period of a pod.
fn pod_grace(pod: &Value, options: &DeleteOptions) -> i64 {
    let unplaced = string(pod, &["spec", "nodeName"]).is_empty();
    let over = matches!(string(pod, &["status", "phase"]), "Succeeded" | "Failed");
    let usual = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(30);
    match options.grace {
        // A negative grace period counts as one second, as on the real server.
        Some(given) if given < 0 => 1,
        _ if unplaced || over => 0,
        Some(given) => given,
        None => usual,
    }
}

/// The response to a completed deletion.
fn success(call: &ApiCall, key: &ObjectKey, stored: &StoredObject) -> Value {
    let mut details = json!({"name": key.name});
    if !call.served.group.is_empty() {
        set(&mut details, &["group"], json!(call.served.group));
    }
    set(&mut details, &["kind"], json!(call.served.plural));
    set(&mut details, &["uid"], json!(&*stored.uid));
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
