//! Custom resource definitions, and defaulting and validation of their objects.
//!
//! ```text
//! rules       defaulting and validation of definitions; structural: of their schemas
//! names       acceptance of names
//! node        a parsed schema
//! defaults    defaulting of objects
//! validate    validation of objects; extra: beyond OpenAPI; formats, faults: texts
//! ```

mod defaults;
mod extra;
mod faults;
mod formats;
mod names;
mod node;
mod rules;
mod structural;
mod validate;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::sync::Arc;

use api::field::FieldError;
use serde_json::Value;

pub use self::names::accepted;
pub use self::rules::RULES;

use self::node::SchemaNode;
use crate::json::{self, list, strings};
use crate::schema::Schema;

/// A custom resource definition.
#[derive(Debug)]
pub struct Definition {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Kind of lists.
    pub list_kind: String,
    /// Plural name in paths.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Short names.
    pub short: Vec<String>,
    /// Categories such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    versions: Vec<DefinedVersion>,
}

/// The paths of the scale subresource's values in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// Path of the desired replicas, such as `spec.replicas`.
    pub spec: Vec<String>,
    /// Path of the current replicas.
    pub status: Vec<String>,
    /// Path of the pod selector, which is text in custom resources.
    pub selector: Option<Vec<String>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// Type of the cells: `string`, `integer`, `number`, `boolean` or `date`.
    pub type_: String,
    /// Format of the cells; `name` marks the name column.
    pub format: String,
    /// The message.
    pub description: String,
    /// Zero for columns that are shown by default.
    pub priority: i32,
    /// Path of the value in custom resources.
    pub json_path: String,
}

/// One served version.
#[derive(Debug)]
struct DefinedVersion {
    name: String,
    openapi: Value,
    schema: Arc<Schema>,
    node: SchemaNode,
    status: bool,
    scale: Option<ScalePaths>,
    columns: Vec<Column>,
    warning: Option<String>,
}

/// End of the default deprecation warning.
const DEPRECATED_SUFFIX: &str = " is deprecated";

/// Adds to deprecation warnings which version to use: the best one that is not deprecated.
fn advise(versions: &mut [DefinedVersion], group: &str, kind: &str) {
    let Some(best) = versions.iter().position(|version| version.warning.is_none()) else { return };
    let instead = versions.get(best).map(|version| version.name.clone()).unwrap_or_default();
    for version in versions.iter_mut().skip(best + 1) {
        if let Some(warning) = version.warning.as_mut().filter(|warning| warning.ends_with(DEPRECATED_SUFFIX))
        {
            warning.push_str(&format!("; use {group}/{instead} {kind}"));
        }
    }
}

impl Definition {
    /// Parses a definition; `None` if its names were not accepted. A definition without any status counts as accepted.
    pub fn read(crd: &Value) -> Option<Self> {
        let spec = crd.get("spec")?;
        let names = match crd.get("status").filter(|status| !status.is_null()) {
            None => spec.get("names")?,
            Some(status) => status.get("acceptedNames").filter(|_| is_established(crd))?,
        };
        let group = text(spec, "group");
        let kind = text(names, "kind");
        let mut versions: Vec<DefinedVersion> = list(spec, "versions")
            .iter()
            .filter(|version| version.get("served") == Some(&Value::Bool(true)))
            .map(|version| {
                DefinedVersion::read(version, &format!("{group}/{}", text(version, "name")), &kind)
            })
            .collect();
        versions.sort_by_cached_key(|version| VersionOrder::of(&version.name));
        advise(&mut versions, &group, &kind);
        Some(Self {
            kind,
            list_kind: text(names, "listKind"),
            plural: text(names, "plural"),
            singular: text(names, "singular"),
            short: strings(names, "shortNames"),
            categories: strings(names, "categories"),
            namespaced: text(spec, "scope") == "Namespaced",
            group,
            versions,
        })
    }

    fn version(&self, name: &str) -> Option<&DefinedVersion> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The served versions, the preferred one first.
    pub fn served_versions(&self) -> Vec<String> {
        self.versions.iter().map(|version| version.name.clone()).collect()
    }

    /// The deprecation warning of a version.
    pub fn warning(&self, version: &str) -> Option<&str> {
        self.version(version)?.warning.as_deref()
    }

    /// The schema of a version.
    pub fn schema(&self, version: &str) -> Option<Arc<Schema>> {
        self.version(version).map(|version| Arc::clone(&version.schema))
    }

    /// Whether the version has a status subresource.
    pub fn has_status(&self, version: &str) -> bool {
        self.version(version).is_some_and(|version| version.status)
    }

    /// The paths of the scale subresource, if there is one.
    pub fn scale(&self, version: &str) -> Option<ScalePaths> {
        self.version(version)?.scale.clone()
    }

    /// The printer columns of a version.
    pub fn columns(&self, version: &str) -> &[Column] {
        self.version(version).map(|version| version.columns.as_slice()).unwrap_or_default()
    }

    /// The `openAPIV3Schema` of a version as written.
    pub fn openapi(&self, version: &str) -> Value {
        self.version(version).map(|version| version.openapi.clone()).unwrap_or_default()
    }

    /// Applies the defaults of a version, and drops nulls that are not allowed.
    pub fn default(&self, version: &str, object: &mut Value) {
        if let Some(version) = self.version(version) {
            defaults::apply(&version.node, object);
        }
    }

    /// Validates an object. Parts that are unchanged from `old` are not validated again.
    pub fn validate(&self, version: &str, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let Some(version) = self.version(version) else { return Vec::new() };
        let mut faults = Vec::new();
        validate::check(&version.node, object, old, "", &mut faults);
        extra::embedded(&version.node, object, "", &mut faults);
        // Existing duplicates may stay.
        if old.is_none_or(|old| !extra::has_duplicates(&version.node, old)) {
            extra::lists(&version.node, object, "", &mut faults);
        }
        if let Some(paths) = &version.scale {
            faults.extend(extra::scale(paths, object));
        }
        faults
    }
}

impl DefinedVersion {
    fn read(version: &Value, api_version: &str, kind: &str) -> Self {
        let openapi = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default();
        let subresources = version.get("subresources");
        let warning = (version.get("deprecated") == Some(&Value::Bool(true))).then(|| {
            let given = version.get("deprecationWarning").and_then(Value::as_str);
            given.map_or_else(|| format!("{api_version} {kind}{DEPRECATED_SUFFIX}"), str::to_owned)
        });
        Self {
            name: text(version, "name"),
            schema: Schema::of_custom(&openapi),
            node: SchemaNode::read(&openapi),
            openapi,
            status: subresources.and_then(|all| all.get("status")).is_some_and(Value::is_object),
            scale: subresources.and_then(|all| all.get("scale")).and_then(scale_paths),
            columns: list(version, "additionalPrinterColumns").iter().map(column).collect(),
            warning,
        }
    }
}

/// Whether the condition `Established` is true.
fn is_established(crd: &Value) -> bool {
    let conditions = list(crd, "status.conditions").iter();
    let is = |condition: &Value, field: &str, word: &str| json::text(condition, field) == word;
    conditions
        .into_iter()
        .any(|condition| is(condition, "type", "Established") && is(condition, "status", "True"))
}

fn text(value: &Value, name: &str) -> String {
    json::text(value, name).to_owned()
}

fn scale_paths(scale: &Value) -> Option<ScalePaths> {
    let path = |name: &str| -> Option<Vec<String>> {
        let path = scale.get(name)?.as_str()?.strip_prefix('.')?;
        Some(path.split('.').map(str::to_owned).collect())
    };
    Some(ScalePaths {
        spec: path("specReplicasPath")?,
        status: path("statusReplicasPath")?,
        selector: path("labelSelectorPath"),
    })
}

fn column(column: &Value) -> Column {
    Column {
        name: text(column, "name"),
        type_: text(column, "type"),
        format: text(column, "format"),
        description: text(column, "description"),
        priority: column.get("priority").and_then(Value::as_i64).unwrap_or_default() as i32,
        json_path: text(column, "jsonPath"),
    }
}

/// The order of versions: stable before beta before alpha, newer first, then others by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum VersionOrder {
    Known(Reverse<VersionStage>, Reverse<u32>, Reverse<u32>),
    Other(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum VersionStage {
    Alpha,
    Beta,
    Stable,
}

impl VersionOrder {
    pub(crate) fn of(version: &str) -> Self {
        Self::known(version).unwrap_or_else(|| Self::Other(version.to_owned()))
    }

    fn known(version: &str) -> Option<Self> {
        let number = |digits: &str| digits.parse::<u32>().ok().filter(|_| !digits.starts_with(['0', '+']));
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (major, rest) = rest.split_at_checked(digits)?;
        let (stage, minor) = match rest {
            "" => (VersionStage::Stable, 0),
            rest => match (rest.strip_prefix("alpha"), rest.strip_prefix("beta")) {
                (Some(minor), _) => (VersionStage::Alpha, number(minor)?),
                (_, Some(minor)) => (VersionStage::Beta, number(minor)?),
                _ => return None,
            },
        };
        Some(Self::Known(Reverse(stage), Reverse(number(major)?), Reverse(minor)))
    }
}

impl ScalePaths {
    /// The paths of built-in workloads.
    pub(crate) fn usual() -> Self {
        let path = |text: &str| text.split('.').map(str::to_owned).collect();
        Self {
            spec: path("spec.replicas"),
            status: path("status.replicas"),
            selector: Some(path("spec.selector")),
        }
    }
}
