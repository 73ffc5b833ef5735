//! Authorization. There are no roles: every authenticated user may do everything, unless a test denies it.

use http::Method;

use super::pki::MASTERS;
use super::user::{AUTHENTICATED, User};
use crate::request::{Query, RequestPath, ResourcePath};
use crate::status::{About, Status};

/// An action that a user wants to perform.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// `get`, `list`, `create`, …; for non-resource paths the HTTP method in lower case.
    pub verb: String,
    /// The target of the action.
    pub target: AccessTarget,
}

/// The target of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessTarget {
    /// Objects of a resource.
    Resource(ResourcePath),
    /// A non-resource path.
    Path(String),
}

impl Default for AccessTarget {
    fn default() -> Self {
        Self::Path(String::new())
    }
}

/// A rule that denies an action, for tests; an empty field matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DenyRule {
    /// Name of the user, such as `system:serviceaccount:team:bob`.
    pub user: String,
    /// Verb.
    pub verb: String,
    /// Plural name of a resource.
    pub resource: String,
    /// Namespace.
    pub namespace: String,
}

/// The paths that anonymous users may get.
const ANONYMOUS_PATHS: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];

impl Attributes {
    /// The action that a request performs.
    pub fn of(method: &Method, path: &RequestPath, raw: &str, query: &Query) -> Self {
        let RequestPath::Resource(resource) = path else {
            return Self { verb: method.as_str().to_lowercase(), target: AccessTarget::Path(raw.to_owned()) };
        };
        let verb = match (method.as_str(), resource.name.is_some()) {
            ("GET" | "HEAD", false) if query.is_set("watch") => "watch",
            ("GET" | "HEAD", false) => "list",
            ("GET" | "HEAD", true) => "get",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", false) => "deletecollection",
            ("DELETE", true) => "delete",
            _ => "",
        };
        let mut resource = resource.clone();
        // A namespace object counts as being in the namespace of its own name.
        if resource.group.is_empty() && resource.resource == "namespaces" {
            resource.namespace = resource.namespace.or(resource.name.clone());
        }
        Self { verb: verb.to_owned(), target: AccessTarget::Resource(resource) }
    }

    /// Whether the user may perform this action.
    pub fn allowed(&self, user: &User, denied: &[DenyRule]) -> bool {
        if denied.iter().any(|rule| rule.covers(user, self)) {
            return false;
        }
        let public =
            matches!(&self.target, AccessTarget::Path(path) if ANONYMOUS_PATHS.contains(&path.as_str()));
        user.is_in(MASTERS) || user.is_in(AUTHENTICATED) || public && self.verb == "get"
    }

    /// The `Forbidden` response to this action.
    pub fn refusal(&self, user: &User) -> Status {
        let (verb, user) = (&self.verb, api::gotext::quote(&user.name));
        let (message, about) = match &self.target {
            AccessTarget::Path(path) => (
                format!("forbidden: User {user} cannot {verb} path {}", api::gotext::quote(path)),
                About::default(),
            ),
            AccessTarget::Resource(path) => {
                let about = About::new(&path.group, &path.resource, path.name.as_deref().unwrap_or_default());
                let dot = if path.group.is_empty() { "" } else { "." };
                let name = path
                    .name
                    .as_ref()
                    .map(|name| format!(" {}", api::gotext::quote(name)))
                    .unwrap_or_default();
                let slash = path.subresource.as_ref().map(|sub| format!("/{sub}")).unwrap_or_default();
                let place = match &path.namespace {
                    Some(namespace) => format!("in the namespace {}", api::gotext::quote(namespace)),
                    None => "at the cluster scope".to_owned(),
                };
                let ResourcePath { group, resource, .. } = path;
                let message = format!(
                    "{resource}{dot}{group}{name} is forbidden: User {user} cannot {verb} resource \
                     \"{resource}{slash}\" in API group \"{group}\" {place}"
                );
                (message, about)
            }
        };
        Status {
            code: 403,
            reason: "Forbidden",
            message,
            about: Some(Box::new(about)),
            causes: Vec::new(),
            retry_after: None,
        }
    }
}

impl DenyRule {
    /// A rule that denies all actions of a user.
    pub fn everything(user: &str) -> Self {
        Self { user: user.to_owned(), ..Self::default() }
    }

    fn covers(&self, user: &User, wanted: &Attributes) -> bool {
        let fits = |rule: &str, actual: &str| rule.is_empty() || rule == actual;
        let (resource, namespace) = match &wanted.target {
            AccessTarget::Resource(path) => {
                (path.resource.as_str(), path.namespace.as_deref().unwrap_or_default())
            }
            AccessTarget::Path(_) => ("", ""),
        };
        fits(&self.user, &user.name)
            && fits(&self.verb, &wanted.verb)
            && fits(&self.resource, resource)
            && fits(&self.namespace, namespace)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn attributes(method: &str, uri: &str) -> Attributes {
        let (raw, query) = uri.split_once('?').unwrap_or((uri, ""));
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        Attributes::of(&method, &RequestPath::parse(raw).unwrap(), raw, &Query::parse(query).unwrap())
    }

    #[test]
    fn forbidden_messages_match_the_real_server() {
        let user = User::anonymous();
        for (method, uri, expected) in [
            ("GET", "/api", "forbidden: User \"system:anonymous\" cannot get path \"/api\""),
            ("POST", "/healthz", "forbidden: User \"system:anonymous\" cannot post path \"/healthz\""),
            ("GET", "/livez/ping", "forbidden: User \"system:anonymous\" cannot get path \"/livez/ping\""),
            (
                "GET",
                "/api/v1/pods",
                "pods is forbidden: User \"system:anonymous\" cannot list resource \"pods\" in API group \"\" at the cluster scope",
            ),
            (
                "GET",
                "/api/v1/namespaces/x/pods?watch=1",
                "pods is forbidden: User \"system:anonymous\" cannot watch resource \"pods\" in API group \"\" in the namespace \"x\"",
            ),
            (
                "DELETE",
                "/api/v1/namespaces/x/pods",
                "pods is forbidden: User \"system:anonymous\" cannot deletecollection resource \"pods\" in API group \"\" in the namespace \"x\"",
            ),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/x/deployments/a/status",
                "deployments.apps \"a\" is forbidden: User \"system:anonymous\" cannot patch resource \"deployments/status\" in API group \"apps\" in the namespace \"x\"",
            ),
            (
                "GET",
                "/api/v1/namespaces/x",
                "namespaces \"x\" is forbidden: User \"system:anonymous\" cannot get resource \"namespaces\" in API group \"\" in the namespace \"x\"",
            ),
        ] {
            let wanted = attributes(method, uri);
            assert!(!wanted.allowed(&user, &[]), "{uri}");
            assert_eq!(wanted.refusal(&user).message, expected);
        }
        for path in ["/healthz", "/livez", "/readyz", "/version"] {
            assert!(attributes("GET", path).allowed(&user, &[]), "{path}");
        }
    }

    #[test]
    fn authenticated_users_may_do_what_is_not_denied() {
        let bob = User::service_account("team", "bob");
        let wanted = attributes("GET", "/api/v1/namespaces/x/pods");
        assert!(wanted.allowed(&bob, &[]) && wanted.allowed(&User::admin(), &[]));
        let denied = |verb: &str, resource: &str| {
            let rule =
                DenyRule { verb: verb.into(), resource: resource.into(), ..DenyRule::everything(&bob.name) };
            !wanted.allowed(&bob, &[rule])
        };
        assert!(denied("", "") && denied("list", "pods") && denied("", "pods"));
        assert!(!denied("get", "pods") && !denied("list", "nodes"));
        assert!(wanted.allowed(&User::admin(), &[DenyRule::everything(&bob.name)]));
    }
}
