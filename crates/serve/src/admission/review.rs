//! Decodes AdmissionReviews.

use std::fmt;

use api::names;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::Value;

use super::Webhook;
use crate::status::Status;

pub(super) const KIND: &str = "AdmissionReview";
pub(super) const VERSION: &str = "admission.k8s.io/v1";

/// Maximum number of values in a review. Objects that people write have some hundreds; a tree of many small values needs many times the
/// memory of the body.
const MAX_REVIEW_VALUES: usize = 100_000;

/// The write that admission decides about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdmissionRequest {
    /// UID of the request.
    pub uid: String,
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub operation: String,
    /// Kind of the object.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name; empty if the server generates it.
    pub name: String,
    /// Subresource; empty for the object itself.
    pub subresource: String,
    /// Whether it is a dry run.
    pub dry_run: bool,
    /// The new object; null for `DELETE`.
    pub object: Value,
    /// The stored object, if any.
    pub old: Option<Value>,
}

/// The fields of the wire object that are used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an AdmissionReview")]
struct Wire {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<WireRequest>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "the request of an AdmissionReview")]
struct WireRequest {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    kind: WireKind,
    #[serde(default)]
    sub_resource: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    object: Value,
    #[serde(default)]
    old_object: Value,
    #[serde(default)]
    dry_run: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(expecting = "group, version and kind")]
struct WireKind {
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    kind: String,
}

/// Memory of an item of an array, or of the value of a field, whose container has grown to twice the memory of its values.
const ITEM_BYTES: usize = 160;

/// Memory of the name of a field with its place in the index, and of the first values of an array or object.
const CONTAINER_BYTES: usize = 320;

/// Maximum length of the name of an object, in bytes.
const MAX_NAME_BYTES: usize = 253;

/// The memory that the tree of a body can need in addition to its texts, in bytes; an error if it may have too many values. Marks in
/// texts count, too.
pub(super) fn tree_bytes(body: &[u8]) -> Result<usize, Status> {
    let (mut values, mut bytes) = (0, 0);
    for byte in body {
        bytes += match byte {
            b',' => ITEM_BYTES,
            b':' | b'[' | b'{' => CONTAINER_BYTES,
            _ => continue,
        };
        values += 1;
    }
    if values <= MAX_REVIEW_VALUES {
        return Ok(bytes);
    }
    let text = format!("the AdmissionReview has more than {MAX_REVIEW_VALUES} values");
    Err(Status::new(413, "RequestEntityTooLarge", text, None))
}

/// An error unless the content type is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> Result<(), Status> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = given.split(';').next().unwrap_or_default().trim();
    if media.eq_ignore_ascii_case(crate::response::JSON) {
        return Ok(());
    }
    let given = api::gotext::quote(given);
    let text = format!("the AdmissionReview must be sent as application/json, not as {given}");
    Err(Status::new(415, "UnsupportedMediaType", text, None))
}

/// An object that is not the one that its request names.
#[derive(Debug)]
struct ObjectMismatch {
    field: &'static str,
    of_object: String,
    of_request: String,
}

impl fmt::Display for ObjectMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (of_object, of_request) =
            (api::gotext::quote(&self.of_object), api::gotext::quote(&self.of_request));
        write!(f, "metadata.{0} is {of_object}, but request.{0} is {of_request}", self.field)
    }
}

/// An error unless the object is the one that the request names: rules read the namespace of the object, and a reviewer must
/// not be led to another one. An object without a namespace has that of the request; without a name in the request, the server
/// generates it.
fn belongs(object: &mut Value, namespace: &str, name: &str) -> Result<(), ObjectMismatch> {
    let mismatch = |field, of_object, of_request: &str| ObjectMismatch {
        field,
        of_object,
        of_request: of_request.to_owned(),
    };
    let Some(fields) = object.as_object_mut() else { return Ok(()) };
    let metadata = fields.entry("metadata").or_insert_with(|| serde_json::json!({}));
    let Some(metadata) = metadata.as_object_mut() else {
        return Err(mismatch("namespace", String::new(), namespace));
    };
    let text = |field| metadata.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (own_namespace, own_name) = (text("namespace"), text("name"));
    if own_namespace.is_empty() && !namespace.is_empty() {
        metadata.insert("namespace".to_owned(), namespace.into());
    } else if own_namespace != namespace {
        return Err(mismatch("namespace", own_namespace, namespace));
    }
    if !name.is_empty() && !own_name.is_empty() && own_name != name {
        return Err(mismatch("name", own_name, name));
    }
    Ok(())
}

impl AdmissionRequest {
    /// Decodes and validates a review that was sent to a webhook's path.
    pub(super) fn read(body: &[u8], webhook: &Webhook) -> Result<Self, Status> {
        let bad =
            |text: String| Status::bad_request(format!("the AdmissionReview cannot be answered: {text}"));
        let wire: Wire = serde_json::from_slice(body).map_err(|error| bad(error.to_string()))?;
        if wire.kind != KIND || wire.api_version != VERSION {
            let (kind, version) = (api::gotext::quote(&wire.kind), api::gotext::quote(&wire.api_version));
            return Err(bad(format!("it is of kind {kind} in version {version}, not {KIND} in {VERSION}")));
        }
        let request = wire.request.ok_or_else(|| bad("it has no request".to_owned()))?;
        if request.uid.is_empty() {
            return Err(bad("request.uid is empty".to_owned()));
        }
        let WireKind { group, version, kind } = &request.kind;
        if (group.as_str(), version.as_str(), kind.as_str()) != (webhook.group, "v1alpha1", webhook.kind) {
            let text = format!(
                "{} is for {} in {}/v1alpha1, not for kind {} in {}",
                webhook.path,
                webhook.kind,
                webhook.group,
                api::gotext::quote(kind),
                api::gotext::quote(&format!("{group}/{version}"))
            );
            return Err(bad(text));
        }
        if !matches!(request.operation.as_str(), "CREATE" | "UPDATE" | "DELETE") {
            let operation = api::gotext::quote(&request.operation);
            return Err(bad(format!("request.operation is {operation}, not CREATE, UPDATE or DELETE")));
        }
        if request.operation != "DELETE" && !request.object.is_object() {
            return Err(bad("request.object is no object".to_owned()));
        }
        let namespace = request.namespace.unwrap_or_default();
        let name = request.name.unwrap_or_default();
        if namespace.is_empty() && !webhook.is_cluster_scoped() {
            return Err(bad("request.namespace is empty".to_owned()));
        }
        // Names of any length would be kept as labels, in logs and in requests to the API server. The server itself sends valid ones.
        if !namespace.is_empty() && !names::dns_label_faults(&namespace).is_empty() {
            return Err(bad("request.namespace is no DNS label".to_owned()));
        }
        let (mut object, mut old) = (request.object, request.old_object);
        let own_name =
            |object: &Value| object.pointer("/metadata/name").and_then(Value::as_str).map(str::len);
        let lengths = [Some(name.len()), own_name(&object), own_name(&old)];
        if lengths.into_iter().flatten().any(|length| length > MAX_NAME_BYTES) {
            return Err(bad(format!("a name has more than {MAX_NAME_BYTES} bytes")));
        }
        for (field, object) in [("object", &mut object), ("oldObject", &mut old)] {
            belongs(object, &namespace, &name)
                .map_err(|mismatch| bad(format!("request.{field}.{mismatch}")))?;
        }
        Ok(Self {
            uid: request.uid,
            operation: request.operation,
            kind: request.kind.kind,
            namespace,
            name,
            subresource: request.sub_resource.unwrap_or_default(),
            dry_run: request.dry_run.unwrap_or_default(),
            object,
            old: Some(old).filter(Value::is_object),
        })
    }
}
