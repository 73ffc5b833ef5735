//! The verbs of resource requests, one file each.

mod admit;
pub(crate) mod create;
pub(crate) mod decode;
pub(crate) mod delete;
pub(crate) mod internal;
pub(crate) mod options;
pub(crate) mod patch;
pub(crate) mod present;
pub(crate) mod read;
pub(crate) mod scale;
pub(crate) mod special;
pub(crate) mod update;
pub(crate) mod watch;

use std::sync::{Arc, Mutex};

use api::autoscaling::{Version, Versioned};
use jiff::Timestamp;
use locks::MutexExt as _;
use serde_json::Value;

use crate::access::User;
use crate::catalog::{ResourceOrigin, ServedResource};
use crate::cluster::Cluster;
use crate::fields::{self, FieldWriter};
use crate::object;
use crate::request::Query;
use crate::status::{About, Cause, Status};
use crate::store::{ObjectKey, StoredObject};

/// A resource request.
pub(crate) struct ApiCall {
    pub(crate) cluster: Cluster,
    pub(crate) served: Arc<ServedResource>,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    pub(crate) query: Query,
    pub(crate) user: User,
    /// The field manager.
    pub(crate) manager: String,
    pub(crate) now: Timestamp,
    /// Whether the server itself writes; the rules of the kind do not apply then.
    pub(crate) by_server: bool,
    /// Texts of the `Warning` response headers.
    pub(crate) warnings: Mutex<Vec<String>>,
}

/// The result of a request.
#[derive(Debug)]
pub(crate) struct CallOutcome {
    pub(crate) code: u16,
    pub(crate) body: CallBody,
}

/// The body of a result.
#[derive(Debug)]
pub(crate) enum CallBody {
    /// An object from the store.
    Stored(Arc<StoredObject>),
    /// An object in the version of the request.
    Value(Value),
    /// A list.
    List(read::ObjectList),
    /// An object of another kind, such as a `Status` or a `Scale`.
    Other(Value),
}

impl CallOutcome {
    pub(crate) fn stored(code: u16, object: Arc<StoredObject>) -> Self {
        Self { code, body: CallBody::Stored(object) }
    }

    pub(crate) fn other(code: u16, value: Value) -> Self {
        Self { code, body: CallBody::Other(value) }
    }
}

impl ApiCall {
    /// The key of the object in the path.
    pub(crate) fn key(&self) -> Result<ObjectKey, Status> {
        let name = self.name.as_deref().ok_or_else(Status::no_path)?;
        Ok(ObjectKey::new(self.namespace.as_deref().unwrap_or_default(), name))
    }

    /// Whether `metadata.generation` counts changes of objects of this kind.
    pub(crate) fn counts_generation(&self) -> bool {
        let gated = self.served.row().and_then(|row| row.rules.gated);
        self.served.generation || gated.is_some_and(|gated| (gated.counts_generation)(self.cluster.gates()))
    }

    pub(crate) fn not_found(&self, name: &str) -> Status {
        Status::not_found(self.served.about(name))
    }

    pub(crate) fn warn(&self, text: impl Into<String>) {
        self.warnings.locked().push(text.into());
    }

    /// Whether the request is a dry run.
    pub(crate) fn dry_run(&self) -> bool {
        self.query.get("dryRun").is_some_and(|value| !value.is_empty())
    }

    /// Calls a function with the writer of this request, for managed fields.
    pub(crate) fn writing<R>(&self, with: impl FnOnce(&FieldWriter<'_>) -> R) -> R {
        let subresource = self.subresource.as_deref();
        let served = &self.served;
        let convert = |value: &Value, api_version: &str| {
            let version = api_version.rsplit('/').next().unwrap_or_default();
            Some(in_version(served, value.clone(), version))
        };
        with(&FieldWriter {
            manager: &self.manager,
            api_version: &served.api_version(&self.version),
            subresource,
            now: &api::instant::format(self.now),
            resets: if served.has_status(&self.version) {
                fields::resets(&served.kind, served.row().is_none(), subresource)
            } else {
                &[]
            },
            convert: (served.kind == api::autoscaling::KIND && served.row().is_some()).then_some(&convert),
        })
    }

    pub(crate) fn invalid(&self, name: &str, faults: &[api::field::FieldError]) -> Status {
        let mut causes: Vec<Cause> = Vec::new();
        // Definitions and aggregated APIs have a registry of their own, as custom resources have.
        let by_rules = self
            .served
            .row()
            .is_some_and(|row| !matches!(row.kind, "CustomResourceDefinition" | "APIService"));
        let once = by_rules && !self.cluster.behavior().repeats_causes;
        for cause in faults.iter().map(cause) {
            if !(once && causes.contains(&cause)) {
                causes.push(cause);
            }
        }
        Status::invalid(self.served.about_kind(name), causes)
    }

    /// 422: the options of a request are invalid.
    pub(crate) fn invalid_options(kind: &str, faults: &[api::field::FieldError]) -> Status {
        Status::invalid(About::new("meta.k8s.io", kind, ""), faults.iter().map(cause).collect())
    }

    /// A stored object in the version of the request.
    pub(crate) fn shown(&self, stored: &StoredObject) -> Value {
        let mut value = in_version(&self.served, object::unpack(stored), &self.version);
        if let ResourceOrigin::Custom(definition) = &self.served.origin {
            definition.default(&self.version, &mut value);
        }
        value
    }

    /// An object of the request in the storage version.
    pub(crate) fn kept(&self, value: Value) -> Value {
        in_version(&self.served, value, self.served.versions.first().map_or("", String::as_str))
    }
}

pub(crate) fn cause(fault: &api::field::FieldError) -> Cause {
    Cause { reason: fault.kind.reason().to_owned(), message: fault.message(), field: fault.field.clone() }
}

/// How an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteMode {
    /// Replaced as a whole.
    Whole,
    /// Changed in part, based on the stored object.
    Part,
    /// Applied; ownership is already recorded.
    Applied,
}

/// Refuses an object whose namespace differs from the path.
pub(crate) fn expect_namespace(call: &ApiCall, key: &ObjectKey, value: &Value) -> Result<(), Status> {
    let namespace = object::string(value, &["metadata", "namespace"]);
    if call.served.namespaced && !namespace.is_empty() && namespace != key.namespace {
        let text = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(text));
    }
    Ok(())
}

/// Refuses an object whose name differs from the path.
pub(crate) fn expect_name(expected: &str, object: &Value) -> Result<(), Status> {
    match object::string(object, &["metadata", "name"]) {
        "" => Err(Status::bad_request(format!(
            "the name of the object ({expected} based on URL) was undeterminable: name must be provided"
        ))),
        name if name != expected => Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({expected})"
        ))),
        _ => Ok(()),
    }
}

/// Converts an object to another version of its resource.
pub(crate) fn in_version(served: &ServedResource, mut value: Value, version: &str) -> Value {
    let api_version = served.api_version(version);
    if object::string(&value, &["apiVersion"]) == api_version {
        return value;
    }
    if let ResourceOrigin::BuiltIn(kind) = &served.origin
        && kind.kind == api::autoscaling::KIND
        && let Some(version) = Version::from_api_version(&api_version)
        && let Ok(given) = Versioned::decode(&value)
        && let Ok(hub) = given.into_v2()
        && let Ok(converted) = serde_json::to_value(Versioned::from_v2(hub, version))
    {
        return converted;
    }
    if let Some(map) = value.as_object_mut() {
        map.insert("apiVersion".to_owned(), api_version.into());
    }
    value
}
