//! Which resource a word means.

use std::collections::HashMap;
use std::fmt;

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
    /// Name as somebody wrote it, or the plural one.
    pub resource: String,
}

impl GroupResource {
    /// Takes `resource.group` apart at the first dot.
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

/// Why no resource is meant, in the words of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoResource {
    /// There is none of that name.
    #[error("no matches for {group}/, Resource={resource}")]
    Unknown {
        /// Group as asked for.
        group: String,
        /// Name as asked for.
        resource: String,
    },
    /// Nothing was asked for.
    #[error("a resource must be present, got: {0}/, Resource=")]
    Unnamed(String),
}

/// Finds resources by what people write: `pod`, `pods`, `PODS`, `deployments`, `deployment.apps`.
#[derive(Clone, Debug, Default)]
pub struct Mapper {
    resources: Vec<KnownResource>,
    /// Places in `resources` by singular and plural name, ascending.
    names: HashMap<String, Vec<usize>>,
}

impl Mapper {
    /// From all resources of the API, groups in the order of discovery, without sub-resources.
    ///
    /// Kubernetes' own mapper also knows the list of every kind as a resource (`podlists`, and `lists` in every group);
    /// so does this one, behind the real ones of each group.
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
        let place = self.resources.len();
        for name in [resource.plural.to_lowercase(), resource.singular.to_lowercase()] {
            let places = self.names.entry(name).or_default();
            if places.last() != Some(&place) {
                places.push(place);
            }
        }
        self.resources.push(resource);
    }

    /// The resource with this name, singular or plural, in this group (which may be empty or a prefix).
    pub fn find(&self, group: &str, name: &str) -> Option<&KnownResource> {
        self.resolve(group, name).ok()
    }

    /// The same, saying why not.
    pub fn resolve(&self, group: &str, name: &str) -> Result<&KnownResource, NoResource> {
        if name.is_empty() {
            return Err(NoResource::Unnamed(group.to_owned()));
        }
        let group = group.to_lowercase();
        let places = self.names.get(&name.to_lowercase()).map(Vec::as_slice).unwrap_or_default();
        let mut found = places.iter().filter_map(|place| self.resources.get(*place));
        found
            .find(|resource| resource.group.starts_with(&group))
            .ok_or_else(|| NoResource::Unknown { group: group.clone(), resource: name.to_lowercase() })
    }

    /// The resource meant by `resource.group`.
    pub fn find_text(&self, text: &str) -> Option<&KnownResource> {
        let GroupResource { group, resource } = GroupResource::parse(text);
        self.find(&group, &resource)
    }

    /// All resources, groups in the order of discovery.
    pub fn resources(&self) -> &[KnownResource] {
        &self.resources
    }
}

/// The list of a kind, with the plural that Kubernetes guesses. There are no objects of it, so its scope means nothing.
fn list_of(resource: &KnownResource) -> KnownResource {
    let kind = format!("{}List", resource.kind);
    let singular = kind.to_lowercase();
    KnownResource { plural: format!("{singular}s"), singular, kind, namespaced: true, ..resource.clone() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn known(group: &str, plural: &str, singular: &str, kind: &str, namespaced: bool) -> KnownResource {
        let [group, plural, singular, kind] = [group, plural, singular, kind].map(str::to_owned);
        KnownResource { group, version: "v1".to_owned(), plural, singular, kind, namespaced }
    }

    fn mapper() -> Mapper {
        Mapper::new(vec![
            known("", "pods", "", "Pod", true),
            known("", "pods/log", "", "Pod", true),
            known("", "events", "event", "Event", true),
            known("apps", "deployments", "deployment", "Deployment", true),
            known("events.k8s.io", "events", "event", "Event", true),
            known("networking.k8s.io", "ingresses", "ingress", "Ingress", true),
        ])
    }

    #[test]
    fn finds_what_people_write() {
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
    fn says_why_nothing_is_meant() {
        let mapper = mapper();
        let why = |group: &str, name: &str| mapper.resolve(group, name).unwrap_err().to_string();
        assert_eq!(why("nope", "pods"), "no matches for nope/, Resource=pods");
        assert_eq!(why("apps", ""), "a resource must be present, got: apps/, Resource=");
    }
}
