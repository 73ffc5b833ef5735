//! Everything that is served at the moment: the built-in kinds, and those of custom resource definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::custom::Definition;
use crate::kinds::{KINDS, Kind};
use crate::schema::{self, Schema};
use crate::status::About;
use crate::store::Resource;

/// A resource that is served.
#[derive(Debug)]
pub struct Served {
    /// Its number in the store.
    pub id: Resource,
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
    /// Singular name for people.
    pub singular: String,
    /// Short names for people.
    pub short: Vec<String>,
    /// Names under which several kinds are listed together.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether changes are counted in `metadata.generation`.
    pub generation: bool,
    /// Where it comes from.
    pub origin: Origin,
    /// What objects of built-in kinds look like in each version, found when it is first needed.
    schemas: Vec<OnceLock<Option<Arc<Schema>>>>,
}

/// Where a resource comes from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// The table of kinds.
    BuiltIn(&'static Kind),
    /// A custom resource definition.
    Custom(Arc<Definition>),
}

/// Where the scale subresource finds its values in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The replicas asked for, such as `spec.replicas`.
    pub spec: Vec<String>,
    /// The replicas there are.
    pub status: Vec<String>,
    /// The selector of the pods; as text in custom resources.
    pub selector: Option<Vec<String>>,
}

/// All that is served.
#[derive(Debug, Default)]
pub struct Catalog {
    /// By group and plural name.
    by_path: BTreeMap<String, BTreeMap<String, Arc<Served>>>,
}

impl Catalog {
    /// The built-in kinds and those of the given definitions.
    pub fn new(definitions: impl IntoIterator<Item = (Resource, Arc<Definition>)>) -> Self {
        let built_in = KINDS.iter().zip(0..).map(|(kind, number)| Served::built_in(Resource(number), kind));
        let custom = definitions.into_iter().map(|(id, definition)| Served::custom(id, definition));
        let mut by_path = BTreeMap::<String, BTreeMap<String, Arc<Served>>>::new();
        for served in built_in.chain(custom) {
            let group = by_path.entry(served.group.clone()).or_default();
            group.insert(served.plural.clone(), Arc::new(served));
        }
        Self { by_path }
    }

    /// The resource behind a path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Served>> {
        let served = self.resource(group, plural)?;
        served.versions.iter().any(|v| v == version).then_some(served)
    }

    /// A resource, whatever its versions.
    pub fn resource(&self, group: &str, plural: &str) -> Option<&Arc<Served>> {
        self.by_path.get(group)?.get(plural)
    }

    /// Whether anything is served in a version of a group.
    pub fn has_version(&self, group: &str, version: &str) -> bool {
        self.all().any(|served| served.group == group && served.versions.iter().any(|v| v == version))
    }

    /// Whether a group is one of the table.
    pub fn is_built_in(&self, group: &str) -> bool {
        KINDS.iter().any(|kind| kind.group == group)
    }

    /// Every group with each of its versions.
    pub fn versions(&self) -> BTreeSet<(String, String)> {
        let pairs = |served: &Arc<Served>| {
            let group = served.group.clone();
            served.versions.clone().into_iter().map(move |version| (group.clone(), version))
        };
        self.all().flat_map(pairs).collect()
    }

    /// Every resource, by group and plural name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Served>> {
        self.by_path.values().flat_map(BTreeMap::values)
    }
}

impl Served {
    fn built_in(id: Resource, kind: &'static Kind) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Self {
            id,
            group: kind.group.to_owned(),
            versions: owned(kind.versions),
            kind: kind.kind.to_owned(),
            list_kind: format!("{}List", kind.kind),
            plural: kind.plural.to_owned(),
            singular: kind.singular.to_owned(),
            short: owned(kind.short),
            categories: owned(kind.categories),
            namespaced: kind.namespaced,
            generation: kind.generation,
            origin: Origin::BuiltIn(kind),
            schemas: kind.versions.iter().map(|_| OnceLock::new()).collect(),
        }
    }

    fn custom(id: Resource, definition: Arc<Definition>) -> Self {
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
            origin: Origin::Custom(definition),
            schemas: Vec::new(),
        }
    }

    /// The row of the table, if it is built in.
    pub fn row(&self) -> Option<&'static Kind> {
        match &self.origin {
            Origin::BuiltIn(kind) => Some(kind),
            Origin::Custom(_) => None,
        }
    }

    /// `apps/v1`, or `v1` in the core group.
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    /// `deployments.apps`, as errors name it.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// An object, as most errors name it.
    pub fn about(&self, name: &str) -> About {
        About::new(&self.group, &self.plural, name)
    }

    /// An object, as errors of validation name it.
    pub fn about_kind(&self, name: &str) -> About {
        About::new(&self.group, &self.kind, name)
    }

    /// What objects look like in a version.
    pub fn schema(&self, version: &str) -> Option<Arc<Schema>> {
        match &self.origin {
            Origin::BuiltIn(kind) => {
                let found =
                    self.versions.iter().position(|v| v == version).and_then(|at| self.schemas.get(at))?;
                found.get_or_init(|| schema::built_in(kind.group, version, kind.kind)).clone()
            }
            Origin::Custom(definition) => definition.schema(version),
        }
    }

    /// Whether objects have a status of their own in a version.
    pub fn has_status(&self, version: &str) -> bool {
        match &self.origin {
            Origin::BuiltIn(kind) => kind.status,
            Origin::Custom(definition) => definition.has_status(version),
        }
    }

    /// Where the scale subresource finds its values, if there is one.
    pub fn scale(&self, version: &str) -> Option<ScalePaths> {
        match &self.origin {
            Origin::BuiltIn(kind) if kind.scale => Some(ScalePaths::usual()),
            Origin::BuiltIn(_) => None,
            Origin::Custom(definition) => definition.scale(version),
        }
    }

    /// The values of the fields objects can be selected by, in the order of the table.
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

impl ScalePaths {
    fn usual() -> Self {
        let path = |text: &str| text.split('.').map(str::to_owned).collect();
        Self {
            spec: path("spec.replicas"),
            status: path("status.replicas"),
            selector: Some(path("spec.selector")),
        }
    }
}
