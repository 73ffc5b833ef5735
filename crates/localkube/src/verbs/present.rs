//! Representations of objects: whole, as a table, or metadata only.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};

use super::read::ObjectList;
use super::{ApiCall, CallBody, CallOutcome};
use crate::object::{self, set};
use crate::schema;
use crate::status::Status;
use crate::store::StoredObject;
use crate::tables::{self, Include};

/// The representation that an `Accept` header requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    /// Whole objects.
    Whole,
    /// A table.
    Table {
        /// Version of `meta.k8s.io`.
        version: String,
        /// What rows include of their objects.
        include: Include,
    },
    /// Metadata only.
    Partial {
        /// Version of `meta.k8s.io`.
        version: String,
        /// Whether a list was requested.
        list: bool,
    },
}

impl Representation {
    /// The first supported representation of the header; whole objects if there is no header.
    pub(crate) fn accepted(header: &str, include: Option<&str>, list: bool) -> Result<Self, Status> {
        if header.trim().is_empty() {
            return Ok(Self::Whole);
        }
        let known = header.split(',').find_map(|range| Self::of(range, include));
        known.unwrap_or_else(|| {
            let json = header.split(',').any(|range| range.trim().starts_with("application/json"));
            Err(if json { Status::unknown_form() } else { Status::not_acceptable(list) })
        })
    }

    fn of(range: &str, include: Option<&str>) -> Option<Result<Self, Status>> {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next()?;
        if !matches!(media, "application/json" | "*/*") {
            return None;
        }
        let parameter = |name: &str| {
            let mut all = range.split(';').map(str::trim).filter_map(|part| part.split_once('='));
            all.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        };
        let (form, version) = (parameter("as"), parameter("v").unwrap_or_default());
        let meta = parameter("g").as_deref() == Some("meta.k8s.io") && matches!(&*version, "v1" | "v1beta1");
        match form.as_deref() {
            None => Some(Ok(Self::Whole)),
            Some("Table") if meta => {
                Some(Include::parse(include).map(|include| Self::Table { version, include }))
            }
            Some(word @ ("PartialObjectMetadata" | "PartialObjectMetadataList")) if meta => {
                Some(Ok(Self::Partial { version, list: word.ends_with("List") }))
            }
            Some(_) => None,
        }
    }

    /// Whether objects are shown exactly as stored.
    pub(crate) fn is_stored(&self, call: &ApiCall) -> bool {
        // The defaults of custom resources may have changed since an object was stored.
        *self == Self::Whole
            && call.served.row().is_some()
            && call.served.versions.first() == Some(&call.version)
    }

    /// Refuses the representation of a single object for a list, and the other way round.
    pub(crate) fn fits(&self, call: &ApiCall, watch: bool) -> Result<(), Status> {
        let is_list = call.name.is_none() && !watch;
        match self {
            Self::Partial { list, .. } if *list != is_list => {
                let served = &call.served;
                let package = match (served.row(), served.group.split('.').next().unwrap_or_default()) {
                    (None, _) => "unstructured",
                    (Some(_), "") => "core",
                    (Some(_), group) => group,
                };
                let kind = match (served.row(), is_list) {
                    (None, true) => "UnstructuredList",
                    (None, false) => "Unstructured",
                    (Some(_), true) => &served.list_kind,
                    (Some(_), false) => &served.kind,
                };
                Err(Status::wrong_form(is_list, &format!("*{package}.{kind}")))
            }
            _ => Ok(()),
        }
    }

    /// The object of a watch event; only the first event includes the columns of a table.
    pub(crate) fn event(&self, call: &ApiCall, object: &StoredObject, first: bool) -> Value {
        let mut shown = self.one(call, self.seen(call, object));
        if matches!(self, Self::Table { .. }) && !first {
            tables::follow_up(&mut shown);
        }
        shown
    }

    /// The object that is represented: tables and metadata use the stored version.
    fn seen(&self, call: &ApiCall, object: &StoredObject) -> Value {
        match self {
            Self::Whole | Self::Table { include: Include::Object, .. } => call.shown(object),
            Self::Table { .. } | Self::Partial { .. } => object::unpack(object),
        }
    }

    /// The object of a bookmark.
    pub(crate) fn bookmark(&self, call: &ApiCall, metadata: &Value) -> Value {
        let mut empty = json!({
            "kind": call.served.kind,
            "apiVersion": call.served.api_version(&call.version),
            "metadata": metadata,
        });
        if call.served.row().is_some()
            && let Some(schema) = call.served.schema(&call.version)
        {
            schema::normalize(&schema, &mut empty);
        }
        self.one(call, empty)
    }

    fn one(&self, call: &ApiCall, object: Value) -> Value {
        match self {
            Self::Whole => object,
            Self::Table { version, include } => {
                let revision = object::string(&object, &["metadata", "resourceVersion"]);
                let meta = json!({"resourceVersion": revision});
                let mut table = tables::table(
                    &call.served,
                    &call.version,
                    &[object],
                    *include,
                    meta,
                    call.cluster.0.clock.now(),
                    call.cluster.behavior(),
                );
                tables::stamp(&mut table, version);
                table
            }
            Self::Partial { version, .. } => {
                let mut partial = tables::partial(&object);
                tables::stamp(&mut partial, version);
                partial
            }
        }
    }

    /// The body of a response.
    pub(crate) fn body(&self, call: &ApiCall, outcome: CallOutcome) -> Bytes {
        match outcome.body {
            CallBody::Stored(object) if self.is_stored(call) => object.text.clone(),
            CallBody::Stored(object) => self.one(call, self.seen(call, &object)).to_string().into(),
            CallBody::Value(value) => self.one(call, value).to_string().into(),
            CallBody::List(list) => self.list(call, &list),
            CallBody::Other(value) => value.to_string().into(),
        }
    }

    fn list(&self, call: &ApiCall, list: &ObjectList) -> Bytes {
        let mut metadata = json!({"resourceVersion": list.revision.to_string()});
        match &list.next {
            Some(next) => set(&mut metadata, &["continue"], json!(next)),
            // Lists of custom resources always have a `continue` field.
            None if call.served.row().is_none() && *self == Self::Whole => {
                set(&mut metadata, &["continue"], json!(""));
            }
            None => {}
        }
        if let Some(remaining) = list.remaining {
            set(&mut metadata, &["remainingItemCount"], json!(remaining));
        }
        let objects = || list.objects.iter().map(|object| self.seen(call, object));
        match self {
            Self::Whole => whole_list(call, list, &metadata),
            Self::Table { version, include } => {
                let all: Vec<Value> = objects().collect();
                let now = call.cluster.0.clock.now();
                let mut table = tables::table(
                    &call.served,
                    &call.version,
                    &all,
                    *include,
                    metadata,
                    now,
                    call.cluster.behavior(),
                );
                tables::stamp(&mut table, version);
                table.to_string().into()
            }
            Self::Partial { version, .. } => {
                let all: Vec<Value> = objects().collect();
                let mut list = tables::partial_list(&all, metadata);
                tables::stamp(&mut list, version);
                list.to_string().into()
            }
        }
    }
}

/// Concatenates the texts of the objects without parsing them.
fn whole_list(call: &ApiCall, list: &ObjectList, metadata: &Value) -> Bytes {
    let api_version = call.served.api_version(&call.version);
    let head = object::prefix(&api_version, &call.served.list_kind);
    let size: usize = list.objects.iter().map(|object| object.text.len() + 1).sum();
    let mut text = BytesMut::with_capacity(size + 200);
    text.put_slice(head.as_bytes());
    text.put_slice(format!("\"metadata\":{metadata},\"items\":[").as_bytes());
    // List items of built-in kinds omit kind and version; those of custom resources do not.
    let prefix = call.served.row().map(|row| object::prefix(&api_version, row.kind)).unwrap_or_default();
    let stored = Representation::Whole.is_stored(call);
    for (index, object) in list.objects.iter().enumerate() {
        if index > 0 {
            text.put_u8(b',');
        }
        let converted;
        let item = if stored {
            &object.text[..]
        } else {
            converted = plain_order(call.shown(object)).to_string();
            converted.as_bytes()
        };
        match item.strip_prefix(prefix.as_bytes()).filter(|_| !prefix.is_empty()) {
            Some(rest) => {
                text.put_u8(b'{');
                text.put_slice(rest);
            }
            None => text.put_slice(item),
        }
    }
    text.put_slice(b"]}");
    text.freeze()
}

/// The object with kind and version first.
fn plain_order(mut object: Value) -> Value {
    let Some(map) = object.as_object_mut() else { return object };
    let mut ordered = serde_json::Map::new();
    for key in ["kind", "apiVersion"] {
        if let Some(value) = map.shift_remove(key) {
            ordered.insert(key.to_owned(), value);
        }
    }
    ordered.append(map);
    Value::Object(ordered)
}
