//! The catalog of all resources that are served now: the built-in kinds and those of custom resource definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::custom::{Definition, ScalePaths};
use crate::kinds::{BuiltInKind, KINDS};
use crate::schema::{self, Schema};
use crate::status::About;
use crate::store::ResourceId;

/// A resource that is served.
#[derive(Debug)]
pub struct ServedResource {
    /// Its id in the store.
    pub id: ResourceId,
    /// API group; empty for the core one.
    pub group: String,
    /// Versions, the preferred one first.
    pub versions: Vec<String>,
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
    /// Whether `metadata.generation` counts changes.
    pub generation: bool,
    /// Built-in or custom.
    pub origin: ResourceOrigin,
    /// The schemas of a built-in kind by version, loaded on first use.
    schemas: Vec<OnceLock<Option<Arc<Schema>>>>,
}

/// Whether a resource is built-in or custom.
#[derive(Clone, Debug)]
pub enum ResourceOrigin {
    /// Built in: a row of the table of kinds.
    BuiltIn(&'static BuiltInKind),
    /// A custom resource definition.
    Custom(Arc<Definition>),
}

/// All resources that are served.
#[derive(Debug, Default)]
pub struct Catalog {
    /// By group and plural name.
    by_path: BTreeMap<String, BTreeMap<String, Arc<ServedResource>>>,
}

impl Catalog {
    /// The built-in kinds and those of the given definitions.
    pub fn new(definitions: impl IntoIterator<Item = (ResourceId, Arc<Definition>)>) -> Self {
        let built_in =
            KINDS.iter().zip(0..).map(|(kind, number)| ServedResource::built_in(ResourceId(number), kind));
        let custom = definitions.into_iter().map(|(id, definition)| ServedResource::custom(id, definition));
        let mut by_path = BTreeMap::<String, BTreeMap<String, Arc<ServedResource>>>::new();
        for served in built_in.chain(custom) {
            let group = by_path.entry(served.group.clone()).or_default();
            group.insert(served.plural.clone(), Arc::new(served));
        }
        Self { by_path }
    }

    /// The resource of a group, version and plural name.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<ServedResource>> {
        let served = self.resource(group, plural)?;
        served.versions.iter().any(|v| v == version).then_some(served)
    }

    /// The resource of a group and plural name, in any version.
    pub fn resource(&self, group: &str, plural: &str) -> Option<&Arc<ServedResource>> {
        self.by_path.get(group)?.get(plural)
    }

    /// Whether any resource is served in this version of the group.
    pub fn has_version(&self, group: &str, version: &str) -> bool {
        self.all().any(|served| served.group == group && served.versions.iter().any(|v| v == version))
    }

    /// Whether the group has built-in kinds.
    pub fn is_built_in(&self, group: &str) -> bool {
        KINDS.iter().any(|kind| kind.group == group)
    }

    /// All groups with their versions.
    pub fn versions(&self) -> BTreeSet<(String, String)> {
        let pairs = |served: &Arc<ServedResource>| {
            let group = served.group.clone();
            served.versions.clone().into_iter().map(move |version| (group.clone(), version))
        };
        self.all().flat_map(pairs).collect()
    }

    /// All resources, by group and plural name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<ServedResource>> {
        self.by_path.values().flat_map(BTreeMap::values)
    }
}

impl ServedResource {
    fn built_in(id: ResourceId, kind: &'static BuiltInKind) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Self {
            id,
            group: kind.group.to_owned(),
            versions: owned(kind.versions),
            kind: kind.kind.to_owned(),
            list_kind: format!("{}List", kind.kind),
            plural: kind.plural.to_owned(),
            singular: kind.kind.to_lowercase(),
            short: owned(kind.short),
            categories: owned(kind.categories),
            namespaced: kind.namespaced,
            generation: kind.generation,
            origin: ResourceOrigin::BuiltIn(kind),
            schemas: kind.versions.iter().map(|_| OnceLock::new()).collect(),
        }
    }

    fn custom(id: ResourceId, definition: Arc<Definition>) -> Self {
        Self {
            id,
            group: definition.group.clone(),
            versions: definition.served_versions(),
            kind: definition.kind.clone(),
            list_kind: definition.list_kind.clone(),
            plural: definition.plural.clone(),
            singular: definition.singular.clone(),
            short: definition.short.clone(),
            categories: definition.categories.clone(),
            namespaced: definition.namespaced,
            generation: true,
            origin: ResourceOrigin::Custom(definition),
            schemas: Vec::new(),
        }
    }

    /// The row of a built-in kind.
    pub fn row(&self) -> Option<&'static BuiltInKind> {
        match &self.origin {
            ResourceOrigin::BuiltIn(kind) => Some(kind),
            ResourceOrigin::Custom(_) => None,
        }
    }

    /// `apps/v1`, or `v1` in the core group.
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    /// `deployments.apps`, as in error texts.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Identifies an object in most errors.
    pub fn about(&self, name: &str) -> About {
        About::new(&self.group, &self.plural, name)
    }

    /// Identifies an object in validation errors.
    pub fn about_kind(&self, name: &str) -> About {
        About::new(&self.group, &self.kind, name)
    }

    /// The schema of a version.
    pub fn schema(&self, version: &str) -> Option<Arc<Schema>> {
        match &self.origin {
            ResourceOrigin::BuiltIn(kind) => {
                let found =
                    self.versions.iter().position(|v| v == version).and_then(|at| self.schemas.get(at))?;
                found.get_or_init(|| schema::built_in(kind.group, version, kind.kind)).clone()
            }
            ResourceOrigin::Custom(definition) => definition.schema(version),
        }
    }

    /// Whether the version has a status subresource.
    pub fn has_status(&self, version: &str) -> bool {
        match &self.origin {
            ResourceOrigin::BuiltIn(kind) => kind.status,
            ResourceOrigin::Custom(definition) => definition.has_status(version),
        }
    }

    /// The paths of the scale subresource, if there is one.
    pub fn scale(&self, version: &str) -> Option<ScalePaths> {
        match &self.origin {
            ResourceOrigin::BuiltIn(kind) if kind.scale => Some(ScalePaths::usual()),
            ResourceOrigin::BuiltIn(_) => None,
            ResourceOrigin::Custom(definition) => definition.scale(version),
        }
    }

    /// The values of the selectable fields, in the order of the table of kinds.
    pub fn selected_fields(&self, object: &Value) -> Box<[Box<str>]> {
        let fields = self.row().map_or(&[][..], |row| row.fields);
        let text = |found: Option<&Value>| match found {
            Some(Value::String(text)) => Some(text.clone()),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => Some(value.to_string()),
            _ => None,
        };
        let value = |path: &str| path.split('.').try_fold(object, |at, step| at.get(step));
        fields.iter().map(|f| text(value(f.path)).unwrap_or_else(|| f.absent.to_owned()).into()).collect()
    }
}
