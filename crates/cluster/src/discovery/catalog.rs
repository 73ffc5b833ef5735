//! What is known of the server's kinds, and what can be asked of it.

use std::collections::HashSet;
use std::sync::Arc;

use super::Resource;

/// All groups of a server, in its order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    /// What `/api` said.
    pub(super) core: Part,
    /// What `/apis` said.
    pub(super) groups: Part,
}

/// One of the two documents.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// Its version, where the server tells.
    pub(super) etag: Option<String>,
    pub(super) groups: Arc<[Group]>,
}

/// An API group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) name: String,
    /// The preferred one first.
    pub(super) versions: Vec<Version>,
}

/// A version of a group. One whose server cannot be reached has no resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) name: String,
    pub(super) resources: Vec<Entry>,
}

/// A resource of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) kind: String,
    pub(super) namespaced: bool,
    /// `apiVersion` of its scale, where it has one.
    pub(super) scale: Option<String>,
}

impl Catalog {
    pub(crate) fn mappings(&self, group: &str, kind: &str) -> Vec<Resource> {
        let Some(group) = self.group(group) else { return Vec::new() };
        // A version gives at most one resource for a kind: Kubernetes keeps the last.
        let found = |version: &'_ Version| {
            let named = |entry: &&Entry| entry.kind == kind || entry.kind.to_lowercase() == kind;
            version.resources.iter().rfind(named).map(|entry| entry.plural.clone())
        };
        group.versions.iter().filter_map(found).filter_map(|plural| group.preferred(&plural)).collect()
    }

    /// The resource of a kind in exactly this version.
    pub(crate) fn mapping(&self, group: &str, version: &str, kind: &str) -> Option<Resource> {
        let version = self.group(group)?.versions.iter().find(|own| own.name == version)?;
        let entry = version.resources.iter().rfind(|entry| entry.kind == kind)?;
        Some(Resource {
            group: group.to_owned(),
            version: version.name.clone(),
            plural: entry.plural.clone(),
            singular: entry.singular.clone(),
            kind: entry.kind.clone(),
            namespaced: entry.namespaced,
        })
    }

    pub(crate) fn versions(&self, group: &str) -> Vec<String> {
        let versions = self.group(group).map(|group| group.versions.iter().map(|v| v.name.clone()));
        versions.map(Iterator::collect).unwrap_or_default()
    }

    /// Everything, once per group.
    pub(crate) fn resources(&self) -> Vec<Resource> {
        let groups = self.core.groups.iter().chain(self.groups.groups.iter());
        groups.flat_map(Group::resources).collect()
    }

    pub(crate) fn scale_kind(&self, resource: &Resource) -> Option<String> {
        let version = self.group(&resource.group)?.versions.iter().find(|v| v.name == resource.version)?;
        version.resources.iter().find(|entry| entry.plural == resource.plural)?.scale.clone()
    }

    fn group(&self, name: &str) -> Option<&Group> {
        let part = if name.is_empty() { &self.core } else { &self.groups };
        part.groups.iter().find(|group| group.name == name)
    }
}

impl Group {
    /// Each resource in the first version that has it.
    fn resources(&self) -> Vec<Resource> {
        let mut seen = HashSet::new();
        let entries = self.versions.iter().flat_map(|version| &version.resources);
        let names = entries.map(|entry| entry.plural.as_str()).filter(|plural| seen.insert(*plural));
        names.filter_map(|plural| self.preferred(plural)).collect()
    }

    /// A resource in the first version that has it.
    fn preferred(&self, plural: &str) -> Option<Resource> {
        self.versions.iter().find_map(|version| {
            let entry = version.resources.iter().find(|entry| entry.plural == plural)?;
            Some(Resource {
                group: self.name.clone(),
                version: version.name.clone(),
                plural: entry.plural.clone(),
                singular: entry.singular.clone(),
                kind: entry.kind.clone(),
                namespaced: entry.namespaced,
            })
        })
    }
}
