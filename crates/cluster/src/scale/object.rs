//! Scale objects of all API versions, converted to `autoscaling/v1`.

use std::collections::BTreeMap;

use api::scale::normalize_selector;
use api::wire::nullable;
use engine::Scale;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ScaleObject;
use crate::discovery::Resource;
use crate::request::{Answer, ApiError, Expected, GoStruct, GoType, decode};

/// The versions and kinds of scales.
const KINDS: &[(&str, &str)] = &[
    ("autoscaling/v1", "Scale"),
    ("extensions/v1beta1", "Scale"),
    ("apps/v1beta1", "Scale"),
    ("apps/v1beta2", "Scale"),
];

const INT32: GoType = GoType::Int("int32", i32::MIN as i64, i32::MAX as i64);

/// The Go type of a scale.
static SCALE: GoStruct = GoStruct {
    name: "v1.Scale",
    fields: &[
        ("metadata", GoType::Struct(&METADATA)),
        ("spec", GoType::Struct(&SPEC)),
        ("status", GoType::Struct(&STATUS)),
    ],
};
static METADATA: GoStruct = GoStruct {
    name: "v1.ObjectMeta",
    fields: &[
        ("name", GoType::Text),
        ("namespace", GoType::Text),
        ("resourceVersion", GoType::Text),
        ("labels", GoType::Texts),
    ],
};
static SPEC: GoStruct = GoStruct { name: "v1.ScaleSpec", fields: &[("replicas", INT32)] };
static STATUS: GoStruct =
    GoStruct { name: "v1.ScaleStatus", fields: &[("replicas", INT32), ("selector", GoType::Text)] };

/// The Go type of a scale before `autoscaling/v1`.
static OLD_SCALE: GoStruct = GoStruct {
    name: "v1beta1.Scale",
    fields: &[
        ("metadata", GoType::Struct(&METADATA)),
        ("spec", GoType::Struct(&SPEC)),
        ("status", GoType::Struct(&OLD_STATUS)),
    ],
};
static OLD_STATUS: GoStruct = GoStruct {
    name: "v1beta1.ScaleStatus",
    fields: &[("replicas", INT32), ("selector", GoType::Texts), ("targetSelector", GoType::Text)],
};

#[derive(Deserialize)]
#[serde(bound = "S: Default + Deserialize<'de>")]
struct WireScale<S> {
    #[serde(default, deserialize_with = "nullable")]
    metadata: serde_json::Map<String, Value>,
    #[serde(default, deserialize_with = "nullable")]
    spec: WireScaleSpec,
    #[serde(default, deserialize_with = "nullable")]
    status: S,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireScaleSpec {
    /// Omitted when it is zero.
    #[serde(deserialize_with = "nullable")]
    replicas: i32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireScaleStatus {
    #[serde(deserialize_with = "nullable")]
    replicas: i32,
    #[serde(deserialize_with = "nullable")]
    selector: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OldScaleStatus {
    #[serde(deserialize_with = "nullable")]
    replicas: i32,
    #[serde(deserialize_with = "nullable")]
    selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    target_selector: String,
}

#[derive(Deserialize)]
struct ScaleVersion {
    #[serde(default, rename = "apiVersion")]
    api_version: Value,
}

/// Decodes a response as a scale.
pub(super) fn read(answer: &Answer, resource: Resource) -> Result<ScaleObject, ApiError> {
    // The version decides the type. A body that is not JSON is refused by `decode` below.
    let version = serde_json::from_slice::<ScaleVersion>(&answer.body).ok();
    let old = version.is_some_and(|v| v.api_version.as_str().is_some_and(|v| v != "autoscaling/v1"));
    let (metadata, spec_replicas, status_replicas, selector) = if old {
        let wire: WireScale<OldScaleStatus> = decode(answer, &Expected::universal(KINDS, &OLD_SCALE))?;
        (wire.metadata, wire.spec.replicas, wire.status.replicas, wire.status.text())
    } else {
        let wire: WireScale<WireScaleStatus> = decode(answer, &Expected::universal(KINDS, &SCALE))?;
        (wire.metadata, wire.spec.replicas, wire.status.replicas, wire.status.selector)
    };
    let selector = normalize_selector(&selector).map_err(|error| ApiError::unanswered(error.to_string()))?;
    let version = metadata.get("resourceVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(ScaleObject {
        scale: Scale {
            spec_replicas: spec_replicas.into(),
            status_replicas: status_replicas.into(),
            selector,
        },
        resource,
        resource_version: version,
        metadata: Value::Object(metadata),
    })
}

/// The request body with another replica count.
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

impl OldScaleStatus {
    /// `targetSelector` if it is set, else the labels of `selector` in the order of their keys.
    fn text(self) -> String {
        if !self.target_selector.is_empty() {
            return self.target_selector;
        }
        let pairs: Vec<String> = self.selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        pairs.join(",")
    }
}
