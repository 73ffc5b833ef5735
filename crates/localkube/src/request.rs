//! Parsing of request paths and queries.

use api::url_escape::{path_unescaped, query_unescaped};

/// The target of a request path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestPath {
    /// Objects of a resource.
    Resource(ResourcePath),
    /// `/api`, `/apis`, `/api/v1`, `/apis/{group}` or `/apis/{group}/{version}`.
    Discovery {
        /// Group; `None` for the list of groups.
        group: Option<String>,
        /// Version; `None` for the list of versions.
        version: Option<String>,
    },
    /// Anything else: `/healthz`, `/version`, `/openapi/v3`, …
    Other,
}

/// A resource path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath {
    /// API group; empty for the core one.
    pub group: String,
    /// Version.
    pub version: String,
    /// Namespace; `None` for all namespaces or cluster-scoped resources.
    pub namespace: Option<String>,
    /// Plural name of the resource.
    pub resource: String,
    /// Name; `None` for the collection.
    pub name: Option<String>,
    /// Subresource, such as `status` or `scale`.
    pub subresource: Option<String>,
    /// Whether this is a watch in the deprecated path form `/watch/…`.
    pub watch: bool,
}

/// Decoded query parameters, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl RequestPath {
    /// Parses a path; `None` if it is not properly encoded.
    pub fn parse(path: &str) -> Option<Self> {
        let decoded = path_unescaped(path)?;
        let segments: Vec<&str> = decoded.trim_matches('/').split('/').collect();
        Some(match segments.as_slice() {
            ["api" | "apis"] => Self::Discovery { group: None, version: None },
            ["api", "v1"] => Self::discovery("", Some("v1")),
            ["apis", group] => Self::discovery(group, None),
            ["apis", group, version] => Self::discovery(group, Some(version)),
            ["api", version, rest @ ..] => resource("", version, rest).map_or(Self::Other, Self::Resource),
            ["apis", group, version, rest @ ..] => {
                resource(group, version, rest).map_or(Self::Other, Self::Resource)
            }
            _ => Self::Other,
        })
    }

    fn discovery(group: &str, version: Option<&str>) -> Self {
        Self::Discovery { group: Some(group.to_owned()), version: version.map(str::to_owned) }
    }
}

/// Parses the path after group and version.
fn resource(group: &str, version: &str, rest: &[&str]) -> Option<ResourcePath> {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        _ => (false, rest),
    };
    let (namespace, rest) = match rest {
        // A namespace and its subresources are not inside a namespace.
        ["namespaces"] | ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
        ["namespaces", namespace, rest @ ..] => (Some((*namespace).to_owned()), rest),
        _ => (None, rest),
    };
    let (resource, name, subresource) = match rest {
        [resource] => (resource, None, None),
        [resource, name] => (resource, Some(name), None),
        [resource, name, subresource] => (resource, Some(name), Some(subresource)),
        _ => return None,
    };
    if rest.iter().any(|segment| segment.is_empty()) || namespace.as_deref() == Some("") {
        return None;
    }
    let owned = |text: Option<&&str>| text.map(|text| (*text).to_owned());
    Some(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace,
        resource: (*resource).to_owned(),
        name: owned(name),
        subresource: owned(subresource),
        watch,
    })
}

impl Query {
    /// Parses a query; `None` if it is not properly encoded.
    pub fn parse(text: &str) -> Option<Self> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((query_unescaped(name)?, query_unescaped(value)?))
        });
        pairs.collect::<Option<_>>().map(Self)
    }

    /// The first value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether a parameter is true in Go's sense: `watch`, `watch=1`, `watch=true`.
    pub fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| matches!(value, "" | "1" | "t" | "T" | "true" | "TRUE" | "True"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(path: &str) -> String {
        match RequestPath::parse(path) {
            Some(RequestPath::Resource(p)) => {
                let part = |text: Option<String>| text.unwrap_or_else(|| "-".into());
                let group = if p.group.is_empty() { "core".into() } else { p.group };
                let (name, sub) = (part(p.name), part(p.subresource));
                format!("{group} {} {} {} {name} {sub}", p.version, part(p.namespace), p.resource)
            }
            Some(RequestPath::Discovery { group, version }) => format!("discovery {group:?} {version:?}"),
            Some(RequestPath::Other) => "other".into(),
            None => "broken".into(),
        }
    }

    #[test]
    fn paths_are_parsed() {
        for (path, expected) in [
            ("/api/v1/pods", "core v1 - pods - -"),
            ("/api/v1/namespaces", "core v1 - namespaces - -"),
            ("/api/v1/namespaces/shop", "core v1 - namespaces shop -"),
            ("/api/v1/namespaces/shop/status", "core v1 - namespaces shop status"),
            ("/api/v1/namespaces/shop/finalize", "core v1 - namespaces shop finalize"),
            ("/api/v1/namespaces/shop/pods", "core v1 shop pods - -"),
            ("/apis/apps/v1/namespaces/shop/deployments/web/scale", "apps v1 shop deployments web scale"),
            ("/apis/apps/v1/deployments", "apps v1 - deployments - -"),
            ("/api/v1/nodes/n%31", "core v1 - nodes n1 -"),
            ("/api/v1/namespaces/shop/pods/a%2Fb", "core v1 shop pods a b"),
            ("/api/v1/watch/namespaces/shop/pods", "core v1 shop pods - -"),
            ("/api", "discovery None None"),
            ("/apis/", "discovery None None"),
            ("/api/v1", "discovery Some(\"\") Some(\"v1\")"),
            ("/apis/apps/v1", "discovery Some(\"apps\") Some(\"v1\")"),
            ("/healthz", "other"),
            ("/", "other"),
            ("/api/v1/a/b/c/d/e", "other"),
            ("/api/v1/namespaces//pods", "other"),
            ("/api/v1/pods/%zz", "broken"),
            ("/api/v1/pods/%ff", "broken"),
        ] {
            assert_eq!(shown(path), expected, "{path}");
        }
    }

    #[test]
    fn queries_are_decoded() {
        let query = Query::parse("labelSelector=app%3Dweb%2Ctier+in+%28a%29&watch=1&limit=5&empty").unwrap();
        assert_eq!(query.get("labelSelector"), Some("app=web,tier in (a)"));
        assert!(query.is_set("watch") && query.is_set("empty"));
        assert!(!query.is_set("limit") && !query.is_set("absent"));
        assert_eq!(Query::parse("a=%"), None);
        assert_eq!(Query::parse(""), Some(Query::default()));
    }

    proptest! {
        #[test]
        fn no_input_panics(text in ".{0,60}") {
            let _ = (RequestPath::parse(&text), Query::parse(&text));
        }
    }
}
