//! Finding the object to scale, and reading its scale as client-go does (docs/spec/hpa.md 3.2, C.1).

use engine::ScaleReadError;

use crate::autoscaling::v2::CrossVersionObjectReference;
use crate::gotext;
use crate::selector::Selector;

/// A resource the API server knows.
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

/// The resource behind a group and kind. The kind may be in lower case (T27).
pub fn find_kind<'a>(known: &'a [ResourceKind], group: &str, kind: &str) -> Result<&'a ResourceKind, String> {
    known
        .iter()
        .find(|k| k.group == group && (k.kind == kind || k.kind.to_lowercase() == kind))
        .ok_or_else(|| format!("no matches for kind \"{kind}\" in group \"{group}\""))
}

/// The group of an `apiVersion`; its version does not matter.
pub fn group_of(api_version: &str) -> Result<&str, String> {
    match api_version.split('/').collect::<Vec<_>>().as_slice() {
        [_version] => Ok(""),
        [group, _version] => Ok(group),
        _ => Err(format!("unexpected GroupVersion string: {api_version}")),
    }
}

/// The resource whose scale a target reference means.
pub fn resolve<'a>(
    known: &'a [ResourceKind],
    target: &CrossVersionObjectReference,
) -> Result<&'a ResourceKind, ScaleReadError> {
    let group = group_of(&target.api_version).map_err(ScaleReadError::InvalidApiVersion)?;
    find_kind(known, group, &target.kind).map_err(ScaleReadError::UnknownKind)
}

/// The resource an object metric describes: an `apiVersion` that cannot be read counts as the core group.
pub fn resolve_described<'a>(
    known: &'a [ResourceKind],
    api_version: Option<&str>,
    kind: &str,
) -> Result<&'a ResourceKind, String> {
    let group = api_version.map_or("", |v| group_of(v).unwrap_or_default());
    find_kind(known, group, kind).map_err(|error| {
        let dot = if group.is_empty() { "" } else { "." };
        format!("unable to map kind {kind}{dot}{group} to resource: {error}")
    })
}

/// The selector of a scale after the trip through client-go, which knows it only as a structured object: in canonical
/// text, or the error with which reading the scale fails (T44).
pub fn normalize_selector(text: &str) -> Result<String, String> {
    let canonical = || -> Result<String, String> {
        let parsed = Selector::parse(text)
            .map_err(|e| format!("couldn't parse the selector string {}: {e}", gotext::quote(text)))?;
        let object = parsed.to_label_selector().map_err(|e| e.to_string())?;
        Ok(object.to_selector().map_err(|e| e.to_string())?.to_string())
    };
    canonical().map_err(|error| {
        format!(
            "received an object from a /scale endpoint which was not convertible to autoscaling Scale: failed to \
             parse target selector: {error}"
        )
    })
}
