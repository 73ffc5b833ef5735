//! The kinds that a server serves, and lookups in them.

use std::collections::HashSet;
use std::sync::Arc;

use super::Resource;

/// All groups of a server, in its order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    /// The groups of `/api`.
    pub(super) core: CatalogPart,
    /// The groups of `/apis`.
    pub(super) groups: CatalogPart,
}

/// The groups of one of the two documents.
#[derive(Clone, Debug, Default)]
pub(super) struct CatalogPart {
    /// The `ETag` of the document.
    pub(super) etag: Option<String>,
    pub(super) groups: Arc<[ApiGroup]>,
}

/// An API group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiGroup {
    pub(super) name: String,
    /// The preferred version comes first.
    pub(super) versions: Vec<ApiVersion>,
}

/// A version of a group. A version whose server is unreachable has no resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiVersion {
    pub(super) name: String,
    pub(super) resources: Vec<CatalogEntry>,
}

/// A resource of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CatalogEntry {
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) kind: String,
    pub(super) namespaced: bool,
    /// The `apiVersion` of its scale subresource, if it has one.
    pub(super) scale: Option<String>,
}

impl Catalog {
    pub(crate) fn mappings(&self, group: &str, kind: &str) -> Vec<Resource> {
        let Some(group) = self.group(group) else { return Vec::new() };
        // A version has at most one resource of a kind: Kubernetes keeps the last.
        let found = |version: &'_ ApiVersion| {
            let named = |entry: &&CatalogEntry| entry.kind == kind || entry.kind.to_lowercase() == kind;
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

    /// All resources, each once per group.
    pub(crate) fn resources(&self) -> Vec<Resource> {
        let groups = self.core.groups.iter().chain(self.groups.groups.iter());
        groups.flat_map(ApiGroup::resources).collect()
    }

    pub(crate) fn scale_kind(&self, resource: &Resource) -> Option<String> {
        let version = self.group(&resource.group)?.versions.iter().find(|v| v.name == resource.version)?;
        version.resources.iter().find(|entry| entry.plural == resource.plural)?.scale.clone()
    }

    fn group(&self, name: &str) -> Option<&ApiGroup> {
        let part = if name.is_empty() { &self.core } else { &self.groups };
        part.groups.iter().find(|group| group.name == name)
    }
}

impl ApiGroup {
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
