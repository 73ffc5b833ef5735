//! Custom resources: their definitions, and what the server does to objects of theirs.
//!
//! ```text
//! rules       what a definition must be; structural: the same for its schemas
//! names       which definition has which name
//! node        a schema, read
//! defaults    what it fills in
//! validate    what it refuses; extra: beyond OpenAPI; formats, faults: the words for it
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

use self::node::{Node, list, texts};
use crate::catalog::ScalePaths;
use crate::schema::Schema;
use crate::tables::Column;

/// A custom resource definition that is served.
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
    /// Singular name for people.
    pub singular: String,
    /// Short names for people.
    pub short: Vec<String>,
    /// Names under which several kinds are listed together.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    versions: Vec<Version>,
}

/// One version that is served.
#[derive(Debug)]
struct Version {
    name: String,
    storage: bool,
    openapi: Value,
    schema: Arc<Schema>,
    node: Node,
    status: bool,
    scale: Option<ScalePaths>,
    columns: Vec<Column>,
    warning: Option<String>,
}

/// How the warning about a deprecated version ends, unless the definition words it.
const DEPRECATED: &str = " is deprecated";

/// Says in warnings which version to use instead: the best one that is not deprecated itself.
fn advise(versions: &mut [Version], group: &str, kind: &str) {
    let Some(best) = versions.iter().position(|version| version.warning.is_none()) else { return };
    let instead = versions.get(best).map(|version| version.name.clone()).unwrap_or_default();
    for version in versions.iter_mut().skip(best + 1) {
        if let Some(warning) = version.warning.as_mut().filter(|warning| warning.ends_with(DEPRECATED)) {
            warning.push_str(&format!("; use {group}/{instead} {kind}"));
        }
    }
}

impl Definition {
    /// Reads a definition; none if its names were not accepted. One that has no status at all is taken as it is.
    pub fn read(crd: &Value) -> Option<Self> {
        let spec = crd.get("spec")?;
        let names = match crd.get("status").filter(|status| !status.is_null()) {
            None => spec.get("names")?,
            Some(status) => status.get("acceptedNames").filter(|_| is_established(crd))?,
        };
        let group = text(spec, "group");
        let kind = text(names, "kind");
        let mut versions: Vec<Version> = list(spec, "versions")
            .iter()
            .filter(|version| version.get("served") == Some(&Value::Bool(true)))
            .map(|version| Version::read(version, &format!("{group}/{}", text(version, "name")), &kind))
            .collect();
        versions.sort_by_cached_key(|version| Priority::of(&version.name));
        advise(&mut versions, &group, &kind);
        Some(Self {
            kind,
            list_kind: text(names, "listKind"),
            plural: text(names, "plural"),
            singular: text(names, "singular"),
            short: texts(names, "shortNames"),
            categories: texts(names, "categories"),
            namespaced: text(spec, "scope") == "Namespaced",
            group,
            versions,
        })
    }

    fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The versions that are served, the preferred one first.
    pub fn served_versions(&self) -> Vec<String> {
        self.versions.iter().map(|version| version.name.clone()).collect()
    }

    /// The version objects are stored in, if it is served.
    pub fn storage_version(&self) -> Option<&str> {
        self.versions.iter().find(|version| version.storage).map(|version| version.name.as_str())
    }

    /// What clients of a version are warned of.
    pub fn warning(&self, version: &str) -> Option<&str> {
        self.version(version)?.warning.as_deref()
    }

    /// What objects look like in a version.
    pub fn schema(&self, version: &str) -> Option<Arc<Schema>> {
        self.version(version).map(|version| Arc::clone(&version.schema))
    }

    /// Whether objects have a status of their own in a version.
    pub fn has_status(&self, version: &str) -> bool {
        self.version(version).is_some_and(|version| version.status)
    }

    /// Where the scale subresource finds its values, if there is one.
    pub fn scale(&self, version: &str) -> Option<ScalePaths> {
        self.version(version)?.scale.clone()
    }

    /// The columns of tables; none if the definition names none.
    pub fn columns(&self, version: &str) -> &[Column] {
        self.version(version).map(|version| version.columns.as_slice()).unwrap_or_default()
    }

    /// The `openAPIV3Schema` of a version as it was given.
    pub fn openapi(&self, version: &str) -> Value {
        self.version(version).map(|version| version.openapi.clone()).unwrap_or_default()
    }

    /// Fills in the defaults of a version, and drops nulls where none may be.
    pub fn default(&self, version: &str, object: &mut Value) {
        if let Some(version) = self.version(version) {
            defaults::apply(&version.node, object);
        }
    }

    /// What is wrong with an object. Parts that are as they were in `old` are not looked at again.
    pub fn validate(&self, version: &str, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let Some(version) = self.version(version) else { return Vec::new() };
        let mut faults = Vec::new();
        validate::check(&version.node, object, old, "", &mut faults);
        extra::embedded(&version.node, object, "", &mut faults);
        // What was there twice before may stay so.
        if old.is_none_or(|old| !extra::has_duplicates(&version.node, old)) {
            extra::lists(&version.node, object, "", &mut faults);
        }
        if let Some(paths) = &version.scale {
            faults.extend(extra::scale(paths, object));
        }
        faults
    }
}

impl Version {
    fn read(version: &Value, api_version: &str, kind: &str) -> Self {
        let openapi = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default();
        let subresources = version.get("subresources");
        let warning = (version.get("deprecated") == Some(&Value::Bool(true))).then(|| {
            let given = version.get("deprecationWarning").and_then(Value::as_str);
            given.map_or_else(|| format!("{api_version} {kind}{DEPRECATED}"), str::to_owned)
        });
        Self {
            name: text(version, "name"),
            storage: version.get("storage") == Some(&Value::Bool(true)),
            schema: Schema::of_custom(&openapi),
            node: Node::read(&openapi),
            openapi,
            status: subresources.and_then(|all| all.get("status")).is_some_and(Value::is_object),
            scale: subresources.and_then(|all| all.get("scale")).and_then(scale_paths),
            columns: list(version, "additionalPrinterColumns").iter().map(column).collect(),
            warning,
        }
    }
}

/// An object in another version; without a conversion of its own only the version itself changes.
pub fn convert(object: &mut Value, api_version: &str) {
    if let Some(version) = object.get_mut("apiVersion") {
        *version = Value::from(api_version);
    }
}

/// Whether a definition's names were accepted once.
fn is_established(crd: &Value) -> bool {
    let conditions = crd.get("status").map(|status| list(status, "conditions")).unwrap_or_default();
    let is = |condition: &Value, field: &str, word: &str| {
        condition.get(field).and_then(Value::as_str) == Some(word)
    };
    conditions.iter().any(|condition| is(condition, "type", "Established") && is(condition, "status", "True"))
}

fn text(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
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

/// The order of versions: stable ones before beta before alpha, later ones first, then all others by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    Known(Reverse<Stage>, Reverse<u32>, Reverse<u32>),
    Other(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Alpha,
    Beta,
    Stable,
}

impl Priority {
    fn of(version: &str) -> Self {
        Self::known(version).unwrap_or_else(|| Self::Other(version.to_owned()))
    }

    fn known(version: &str) -> Option<Self> {
        let number = |digits: &str| digits.parse::<u32>().ok().filter(|_| !digits.starts_with(['0', '+']));
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (major, rest) = rest.split_at_checked(digits)?;
        let (stage, minor) = match rest {
            "" => (Stage::Stable, 0),
            rest => match (rest.strip_prefix("alpha"), rest.strip_prefix("beta")) {
                (Some(minor), _) => (Stage::Alpha, number(minor)?),
                (_, Some(minor)) => (Stage::Beta, number(minor)?),
                _ => return None,
            },
        };
        Some(Self::Known(Reverse(stage), Reverse(number(major)?), Reverse(minor)))
    }
}
