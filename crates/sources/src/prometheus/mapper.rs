//! REST mapper: resolves resource names.

use std::collections::HashMap;
use std::fmt;

/// A resource of the API server, in its preferred version.
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
    /// Whether its objects are namespaced.
    pub namespaced: bool,
}

impl KnownResource {
    /// Group and plural name.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group.clone(), resource: self.plural.clone() }
    }
}

/// A resource without its version, printed `resource.group`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// API group; empty for the core one.
    pub group: String,
    /// Name as written, or the plural one.
    pub resource: String,
}

impl GroupResource {
    /// Splits `resource.group` at the first dot.
    pub fn parse(text: &str) -> Self {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        Self { group: group.to_owned(), resource: resource.to_owned() }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// Why a name does not resolve, in the words of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResourceNotFound {
    /// There is no such resource.
    #[error("no matches for {group}/, Resource={resource}")]
    Unknown {
        /// Requested group.
        group: String,
        /// Requested name.
        resource: String,
    },
    /// The name is empty.
    #[error("a resource must be present, got: {0}/, Resource=")]
    Unnamed(String),
}

/// Resolves names such as `pod`, `pods`, `PODS`, `deployments`, `deployment.apps`.
#[derive(Clone, Debug, Default)]
pub struct RestMapper {
    resources: Vec<KnownResource>,
    /// Indices of `resources` by singular and plural name, ascending.
    names: HashMap<String, Vec<usize>>,
}

impl RestMapper {
    /// Creates a mapper from all resources in discovery order, subresources excluded.
    ///
    /// Like the RESTMapper of Kubernetes it also knows the list kind of every resource (`podlists`, and `lists` in
    /// every group), after the real ones of each group.
    pub fn new(resources: Vec<KnownResource>) -> Self {
        let mut mapper = Self::default();
        let mut rest = resources.into_iter().filter(|resource| !resource.plural.contains('/')).peekable();
        while let Some(first) = rest.next() {
            let group = first.group.clone();
            let mut members = vec![first];
            while let Some(next) = rest.next_if(|next| next.group == group) {
                members.push(next);
            }
            let any = members.first().map(|first| KnownResource { kind: String::new(), ..first.clone() });
            let lists: Vec<KnownResource> = members.iter().chain(&any).map(list_of).collect();
            for resource in members.into_iter().chain(lists) {
                mapper.add(resource);
            }
        }
        mapper
    }

    fn add(&mut self, mut resource: KnownResource) {
        if resource.singular.is_empty() {
            resource.singular = resource.kind.to_lowercase();
        }
        let index = self.resources.len();
        for name in [resource.plural.to_lowercase(), resource.singular.to_lowercase()] {
            let indices = self.names.entry(name).or_default();
            if indices.last() != Some(&index) {
                indices.push(index);
            }
        }
        self.resources.push(resource);
    }

    /// Resolves a singular or plural name in a group, which may be empty or a prefix.
    pub fn find(&self, group: &str, name: &str) -> Option<&KnownResource> {
        self.resolve(group, name).ok()
    }

    /// Like [`RestMapper::find`], with the reason of a failure.
    pub fn resolve(&self, group: &str, name: &str) -> Result<&KnownResource, ResourceNotFound> {
        if name.is_empty() {
            return Err(ResourceNotFound::Unnamed(group.to_owned()));
        }
        let group = group.to_lowercase();
        let indices = self.names.get(&name.to_lowercase()).map(Vec::as_slice).unwrap_or_default();
        let mut found = indices.iter().filter_map(|index| self.resources.get(*index));
        found
            .find(|resource| resource.group.starts_with(&group))
            .ok_or_else(|| ResourceNotFound::Unknown { group: group.clone(), resource: name.to_lowercase() })
    }

    /// Resolves `resource.group`.
    pub fn find_text(&self, text: &str) -> Option<&KnownResource> {
        let GroupResource { group, resource } = GroupResource::parse(text);
        self.find(&group, &resource)
    }

    /// All resources, groups in discovery order.
    pub fn resources(&self) -> &[KnownResource] {
        &self.resources
    }
}

/// List kind of a resource, with the plural that Kubernetes derives. It has no objects, so its scope has no meaning.
fn list_of(resource: &KnownResource) -> KnownResource {
    let kind = format!("{}List", resource.kind);
    let singular = kind.to_lowercase();
    KnownResource { plural: format!("{singular}s"), singular, kind, namespaced: true, ..resource.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(group: &str, plural: &str, singular: &str, kind: &str, namespaced: bool) -> KnownResource {
        let [group, plural, singular, kind] = [group, plural, singular, kind].map(str::to_owned);
        KnownResource { group, version: "v1".to_owned(), plural, singular, kind, namespaced }
    }

    fn mapper() -> RestMapper {
        RestMapper::new(vec![
            known("", "pods", "", "Pod", true),
            known("", "pods/log", "", "Pod", true),
            known("", "events", "event", "Event", true),
            known("apps", "deployments", "deployment", "Deployment", true),
            known("events.k8s.io", "events", "event", "Event", true),
            known("networking.k8s.io", "ingresses", "ingress", "Ingress", true),
        ])
    }

    #[test]
    fn resolves_names_as_written() {
        let mapper = mapper();
        for (text, expected) in [
            ("pod", "pods"),
            ("PODS", "pods"),
            ("Pod", "pods"),
            ("deployment", "deployments.apps"),
            ("deployments.apps", "deployments.apps"),
            ("events", "events"),
            ("event.events", "events.events.k8s.io"),
            ("ingress.networking", "ingresses.networking.k8s.io"),
            ("podlist", "podlists"),
            ("list", "lists"),
            ("lists.apps", "lists.apps"),
        ] {
            let found = mapper.find_text(text).unwrap().group_resource().to_string();
            assert_eq!(found, expected, "{text}");
        }
        for text in ["", "po", "pods/log", "pods.apps", "deployments.k8s.io"] {
            assert!(mapper.find_text(text).is_none(), "{text}");
        }
    }

    #[test]
    fn unresolved_names_have_a_reason() {
        let mapper = mapper();
        let why = |group: &str, name: &str| mapper.resolve(group, name).unwrap_err().to_string();
        assert_eq!(why("nope", "pods"), "no matches for nope/, Resource=pods");
        assert_eq!(why("apps", ""), "a resource must be present, got: apps/, Resource=");
    }
}
