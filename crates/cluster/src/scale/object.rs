//! Scale objects of all ages, seen as `autoscaling/v1`.

use std::collections::BTreeMap;

use api::scale::normalize_selector;
use engine::Scale;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::ScaleObject;
use crate::discovery::Resource;
use crate::request::{Answer, ApiError, Expected, Kind, Shape, decode};

/// Kinds that are scales.
const KINDS: &[(&str, &str)] = &[
    ("autoscaling/v1", "Scale"),
    ("extensions/v1beta1", "Scale"),
    ("apps/v1beta1", "Scale"),
    ("apps/v1beta2", "Scale"),
];

const INT32: Kind = Kind::Int("int32", i32::MIN as i64, i32::MAX as i64);

/// Go's view of a scale.
static SCALE: Shape = Shape {
    name: "v1.Scale",
    fields: &[
        ("metadata", Kind::Struct(&METADATA)),
        ("spec", Kind::Struct(&SPEC)),
        ("status", Kind::Struct(&STATUS)),
    ],
};
static METADATA: Shape = Shape {
    name: "v1.ObjectMeta",
    fields: &[
        ("name", Kind::Text),
        ("namespace", Kind::Text),
        ("resourceVersion", Kind::Text),
        ("labels", Kind::Texts),
    ],
};
static SPEC: Shape = Shape { name: "v1.ScaleSpec", fields: &[("replicas", INT32)] };
static STATUS: Shape =
    Shape { name: "v1.ScaleStatus", fields: &[("replicas", INT32), ("selector", Kind::Text)] };

/// Go's view of a scale as it was before `autoscaling/v1`.
static OLD_SCALE: Shape = Shape {
    name: "v1beta1.Scale",
    fields: &[
        ("metadata", Kind::Struct(&METADATA)),
        ("spec", Kind::Struct(&SPEC)),
        ("status", Kind::Struct(&OLD_STATUS)),
    ],
};
static OLD_STATUS: Shape = Shape {
    name: "v1beta1.ScaleStatus",
    fields: &[("replicas", INT32), ("selector", Kind::Texts), ("targetSelector", Kind::Text)],
};

#[derive(Deserialize)]
#[serde(bound = "S: Default + Deserialize<'de>")]
struct Wire<S> {
    #[serde(default, deserialize_with = "nullable")]
    metadata: serde_json::Map<String, Value>,
    #[serde(default, deserialize_with = "nullable")]
    spec: Spec,
    #[serde(default, deserialize_with = "nullable")]
    status: S,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    /// Left out when it is zero.
    #[serde(deserialize_with = "nullable")]
    replicas: i32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "nullable")]
    replicas: i32,
    #[serde(deserialize_with = "nullable")]
    selector: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OldStatus {
    #[serde(deserialize_with = "nullable")]
    replicas: i32,
    #[serde(deserialize_with = "nullable")]
    selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    target_selector: String,
}

#[derive(Deserialize)]
struct Version {
    #[serde(default, rename = "apiVersion")]
    api_version: Value,
}

/// Reads an answer as a scale.
pub(super) fn read(answer: &Answer, resource: Resource) -> Result<ScaleObject, ApiError> {
    // What it is must be known before it can be read; whoever cannot be read at all is refused below.
    let version = serde_json::from_slice::<Version>(&answer.body).ok();
    let old = version.is_some_and(|v| v.api_version.as_str().is_some_and(|v| v != "autoscaling/v1"));
    let (metadata, spec_replicas, status_replicas, selector) = if old {
        let wire: Wire<OldStatus> = decode(answer, &Expected::universal(KINDS, &OLD_SCALE))?;
        (wire.metadata, wire.spec.replicas, wire.status.replicas, wire.status.text())
    } else {
        let wire: Wire<Status> = decode(answer, &Expected::universal(KINDS, &SCALE))?;
        (wire.metadata, wire.spec.replicas, wire.status.replicas, wire.status.selector)
    };
    let selector = normalize_selector(&selector).map_err(ApiError::unanswered)?;
    let version = metadata.get("resourceVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(ScaleObject {
        scale: Scale { spec_replicas, status_replicas, selector },
        resource,
        resource_version: version,
        metadata: Value::Object(metadata),
    })
}

/// The scale with another count, as it is sent.
pub(super) fn body(held: &ScaleObject, replicas: i32) -> Vec<u8> {
    let Scale { status_replicas, selector, .. } = &held.scale;
    let mut status = json!({ "replicas": status_replicas });
    if let (false, Some(status)) = (selector.is_empty(), status.as_object_mut()) {
        status.insert("selector".to_owned(), Value::String(selector.clone()));
    }
    let scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": held.metadata,
        "spec": { "replicas": replicas },
        "status": status,
    });
    scale.to_string().into_bytes()
}

impl OldStatus {
    /// The full selector if it is told, else the simple one in the order of its keys.
    fn text(self) -> String {
        if !self.target_selector.is_empty() {
            return self.target_selector;
        }
        let pairs: Vec<String> = self.selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        pairs.join(",")
    }
}

/// Reads `null` as the empty value, as Go does.
fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
