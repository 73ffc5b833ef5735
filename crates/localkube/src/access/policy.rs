//! Who may do what. There are no roles here: whoever said who he is may do everything, unless a test denies it.

use http::Method;

use super::pki::MASTERS;
use super::user::{AUTHENTICATED, User};
use crate::request::{Path, Query, ResourcePath};
use crate::status::{About, Status};

/// What somebody wants to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// `get`, `list`, `create`, …; the method in lower case for paths.
    pub verb: String,
    /// What it is done to.
    pub target: Target,
}

/// What something is done to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Objects of a resource.
    Resource(ResourcePath),
    /// A path that is about no objects.
    Path(String),
}

impl Default for Target {
    fn default() -> Self {
        Self::Path(String::new())
    }
}

/// Something a user may not do, for tests; what is empty means any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Denied {
    /// Name of the user, such as `system:serviceaccount:team:bob`.
    pub user: String,
    /// Verb.
    pub verb: String,
    /// Plural name of a resource.
    pub resource: String,
    /// Namespace.
    pub namespace: String,
}

/// The paths that everybody may get.
const PUBLIC: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];

impl Attributes {
    /// What a request wants to do.
    pub fn of(method: &Method, path: &Path, raw: &str, query: &Query) -> Self {
        let Path::Resource(resource) = path else {
            return Self { verb: method.as_str().to_lowercase(), target: Target::Path(raw.to_owned()) };
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
        // A namespace is in itself.
        if resource.group.is_empty() && resource.resource == "namespaces" {
            resource.namespace = resource.namespace.or(resource.name.clone());
        }
        Self { verb: verb.to_owned(), target: Target::Resource(resource) }
    }

    /// Whether somebody may do this.
    pub fn allowed(&self, user: &User, denied: &[Denied]) -> bool {
        if denied.iter().any(|rule| rule.covers(user, self)) {
            return false;
        }
        let public = matches!(&self.target, Target::Path(path) if PUBLIC.contains(&path.as_str()));
        user.is_in(MASTERS) || user.is_in(AUTHENTICATED) || public && self.verb == "get"
    }

    /// The answer to somebody who may not.
    pub fn refusal(&self, user: &User) -> Status {
        let (verb, user) = (&self.verb, api::gotext::quote(&user.name));
        let (message, about) = match &self.target {
            Target::Path(path) => (
                format!("forbidden: User {user} cannot {verb} path {}", api::gotext::quote(path)),
                About::default(),
            ),
            Target::Resource(path) => {
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

impl Denied {
    /// A rule that denies a user everything.
    pub fn everything(user: &str) -> Self {
        Self { user: user.to_owned(), ..Self::default() }
    }

    fn covers(&self, user: &User, wanted: &Attributes) -> bool {
        let fits = |rule: &str, actual: &str| rule.is_empty() || rule == actual;
        let (resource, namespace) = match &wanted.target {
            Target::Resource(path) => (path.resource.as_str(), path.namespace.as_deref().unwrap_or_default()),
            Target::Path(_) => ("", ""),
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
        Attributes::of(&method, &Path::parse(raw).unwrap(), raw, &Query::parse(query).unwrap())
    }

    #[test]
    fn anonymous_users_are_refused_in_the_words_of_the_real_server() {
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
    fn everybody_else_may_do_what_is_not_denied() {
        let bob = User::service_account("team", "bob");
        let wanted = attributes("GET", "/api/v1/namespaces/x/pods");
        assert!(wanted.allowed(&bob, &[]) && wanted.allowed(&User::admin(), &[]));
        let denied = |verb: &str, resource: &str| {
            let rule =
                Denied { verb: verb.into(), resource: resource.into(), ..Denied::everything(&bob.name) };
            !wanted.allowed(&bob, &[rule])
        };
        assert!(denied("", "") && denied("list", "pods") && denied("", "pods"));
        assert!(!denied("get", "pods") && !denied("list", "nodes"));
        assert!(wanted.allowed(&User::admin(), &[Denied::everything(&bob.name)]));
    }
}
