//! Resolves scale targets and reads their selectors as client-go does (docs/spec/hpa.md 3.2, Appendix C.1).

use engine::ScaleReadError;

use crate::autoscaling::v2::CrossVersionObjectReference;
use crate::gotext;
use crate::selector::Selector;

/// Why a target or a selector cannot be resolved. The texts are those of client-go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScaleTargetError {
    /// No resource has this kind.
    #[error("no matches for kind \"{kind}\" in group \"{group}\"")]
    UnknownKind {
        /// Kind.
        kind: String,
        /// API group.
        group: String,
    },
    /// The object of an Object metric has an unknown kind.
    #[error("unable to map kind {kind} to resource: {source}")]
    UnknownObject {
        /// `kind.group`.
        kind: String,
        /// Cause.
        source: Box<ScaleTargetError>,
    },
    /// The `apiVersion` is not a group and version.
    #[error("unexpected GroupVersion string: {0}")]
    InvalidApiVersion(String),
    /// The selector of a scale has no structured form.
    #[error(
        "received an object from a /scale endpoint which was not convertible to autoscaling Scale: failed to parse \
         target selector: {0}"
    )]
    InvalidSelector(String),
}

/// A resource that the API server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceKind {
    /// API group; empty for the core one.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Plural name in paths.
    pub resource: String,
}

impl ResourceKind {
    /// `resource.group`, or just the resource in the core group.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }
}

/// The resource of a group and kind. The kind may be in lower case (T27).
fn find_kind<'a>(
    known: &'a [ResourceKind],
    group: &str,
    kind: &str,
) -> Result<&'a ResourceKind, ScaleTargetError> {
    known
        .iter()
        .find(|k| k.group == group && (k.kind == kind || k.kind.to_lowercase() == kind))
        .ok_or_else(|| ScaleTargetError::UnknownKind { kind: kind.to_owned(), group: group.to_owned() })
}

/// The group of an `apiVersion`; its version does not matter.
pub fn group_of(api_version: &str) -> Result<&str, ScaleTargetError> {
    match api_version.split('/').collect::<Vec<_>>().as_slice() {
        [_version] => Ok(""),
        [group, _version] => Ok(group),
        _ => Err(ScaleTargetError::InvalidApiVersion(api_version.to_owned())),
    }
}

/// The resource of a scale target reference.
pub fn resolve<'a>(
    known: &'a [ResourceKind],
    target: &CrossVersionObjectReference,
) -> Result<&'a ResourceKind, ScaleReadError> {
    let group =
        group_of(&target.api_version).map_err(|e| ScaleReadError::InvalidApiVersion(e.to_string()))?;
    find_kind(known, group, &target.kind).map_err(|e| ScaleReadError::UnknownKind(e.to_string()))
}

/// The resource that an Object metric describes. An invalid `apiVersion` counts as the core group.
pub fn resolve_described<'a>(
    known: &'a [ResourceKind],
    api_version: Option<&str>,
    kind: &str,
) -> Result<&'a ResourceKind, ScaleTargetError> {
    let group = api_version.map_or("", |v| group_of(v).unwrap_or_default());
    find_kind(known, group, kind).map_err(|error| {
        let dot = if group.is_empty() { "" } else { "." };
        ScaleTargetError::UnknownObject { kind: format!("{kind}{dot}{group}"), source: Box::new(error) }
    })
}

/// The selector of a scale in canonical text. client-go converts it to a structured selector and back, so a selector
/// without a structured form is an error (T44).
pub fn normalize_selector(text: &str) -> Result<String, ScaleTargetError> {
    let invalid = ScaleTargetError::InvalidSelector;
    let parsed = Selector::parse(text)
        .map_err(|e| invalid(format!("couldn't parse the selector string {}: {e}", gotext::quote(text))))?;
    let object = parsed.to_label_selector().map_err(|e| invalid(e.to_string()))?;
    Ok(object.to_selector().map_err(|e| invalid(e.to_string()))?.to_string())
}
