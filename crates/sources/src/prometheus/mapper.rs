//! Which resource a word means.

/// A resource of the main API, in its preferred version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KnownResource {
    /// API group; empty for the core one.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural name in paths.
    pub plural: String,
    /// Singular name; empty if the server published none.
    pub singular: String,
    /// Kind.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// Finds resources by what people write: `pod`, `pods`, `PODS`, `deployments`, `deployment.apps`.
#[derive(Clone, Debug, Default)]
pub struct Mapper(Vec<KnownResource>);

impl Mapper {
    /// From all resources of the API, groups in the order of discovery, without sub-resources.
    pub fn new(resources: Vec<KnownResource>) -> Self {
        Self(resources)
    }

    /// The resource with this name, singular or plural, in this group (which may be empty or a prefix).
    pub fn find(&self, _group: &str, _name: &str) -> Option<&KnownResource> {
        todo!()
    }
}
