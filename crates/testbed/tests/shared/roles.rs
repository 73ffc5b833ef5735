//! Compares the rules of roles with logged requests.

use std::collections::BTreeSet;

use http::Method;
use localkube::access::{AccessTarget, Attributes};
use localkube::request::{Query, RequestPath};
use serde_json::Value;
use testbed::proxy::LogEntry;

/// A permission: a verb on a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Permission {
    pub(crate) group: String,
    /// The resource with its subresource, as in `deployments/scale`; `*` and `*/scale` match all resources.
    pub(crate) resource: String,
    pub(crate) verb: String,
}

/// All permissions of the Roles and ClusterRoles with this name.
pub(crate) fn granted(objects: &[Value], name: &str) -> Vec<Permission> {
    // A rule about paths (`nonResourceURLs`) has neither groups nor resources.
    let texts = |rule: &Value, field: &str| -> Vec<String> {
        let all = rule[field].as_array().into_iter().flatten();
        all.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let is_role = |object: &&Value| {
        matches!(object["kind"].as_str(), Some("Role" | "ClusterRole")) && object["metadata"]["name"] == name
    };
    let mut all = Vec::new();
    for rule in objects.iter().filter(is_role).flat_map(|role| role["rules"].as_array().unwrap()) {
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                for verb in texts(rule, "verbs") {
                    all.push(Permission { group: group.clone(), resource: resource.clone(), verb });
                }
            }
        }
    }
    assert!(!all.is_empty(), "no role is called {name}");
    all
}

/// The permissions that the requests needed, without those that every user has (discovery) or that another role grants
/// (`extension-apiserver-authentication`).
pub(crate) fn needed(log: &[LogEntry]) -> BTreeSet<Permission> {
    let needed = log.iter().filter_map(|entry| {
        let (path, query) = entry.path.split_once('?').unwrap_or((&entry.path, ""));
        let wanted = Attributes::of(&entry.method, &RequestPath::parse(path)?, path, &Query::parse(query)?);
        let AccessTarget::Resource(target) = wanted.target else { return None };
        let sub = target.subresource.map(|sub| format!("/{sub}")).unwrap_or_default();
        Some(Permission { group: target.group, resource: target.resource + &sub, verb: wanted.verb })
    });
    needed.filter(|permission| permission.resource != "configmaps").collect()
}

impl Permission {
    /// Whether this permission covers a needed one.
    pub(crate) fn covers(&self, needed: &Self) -> bool {
        let group = self.group == "*" || self.group == needed.group;
        let resource = match self.resource.strip_prefix('*') {
            Some(rest) => needed.resource.ends_with(rest),
            None => self.resource == needed.resource,
        };
        group && resource && self.verb == needed.verb
    }
}

/// Asserts that no request was refused, except for effects of other tests: no object can be created in a namespace that is being deleted,
/// and webhooks deny some objects.
pub(crate) fn check_answers(namespace: &str, log: &[LogEntry]) {
    let refused: BTreeSet<_> = log
        .iter()
        .filter(|entry| matches!(entry.status, Some(401 | 403)) && !is_beyond_roles(namespace, entry))
        .map(|entry| (entry.method.to_string(), &entry.path, &entry.refusal))
        .collect();
    assert!(refused.is_empty(), "refused: {refused:#?}");
}

/// Whether no role could have allowed the request: the namespace of another test is being deleted, or an admission webhook denies the object.
fn is_beyond_roles(ours: &str, entry: &LogEntry) -> bool {
    let says = |words: &str| entry.refusal.as_ref().is_some_and(|text| text.contains(words));
    let is_ours = entry.path.contains(&format!("/namespaces/{ours}/"));
    let is_ending = entry.method == Method::POST && says("because it is being terminated");
    says("admission webhook") && says("denied the request") || is_ending && !is_ours
}

/// Asserts that the role covers every request, and that a request needed each of its permissions.
pub(crate) fn check(role: &[Permission], log: &[LogEntry]) {
    let needed = needed(log);
    let missing: Vec<_> = needed.iter().filter(|need| !role.iter().any(|held| held.covers(need))).collect();
    assert!(missing.is_empty(), "asked for, but not granted: {missing:#?}");
    let idle: Vec<_> = role.iter().filter(|held| !needed.iter().any(|need| held.covers(need))).collect();
    assert!(idle.is_empty(), "granted, but never needed: {idle:#?}");
}

#[test]
fn role_rules_cover_their_resources() {
    let permission = |group: &str, resource: &str, verb: &str| Permission {
        group: group.into(),
        resource: resource.into(),
        verb: verb.into(),
    };
    let scale = permission("*", "*/scale", "update");
    assert!(scale.covers(&permission("apps", "deployments/scale", "update")));
    assert!(!scale.covers(&permission("apps", "deployments", "update")));
    assert!(!scale.covers(&permission("apps", "deployments/scale", "get")));
    assert!(permission("g", "*", "get").covers(&permission("g", "pods/rps", "get")));
    assert!(!permission("", "pods", "list").covers(&permission("metrics.k8s.io", "pods", "list")));
}

#[test]
fn only_what_no_role_could_allow_may_be_refused() {
    let entry = |method: Method, namespace: &str, refusal: &str| LogEntry {
        at: std::time::SystemTime::UNIX_EPOCH,
        method,
        path: format!("/api/v1/namespaces/{namespace}/events"),
        status: Some(403),
        refusal: Some(refusal.to_owned()),
        user_agent: String::new(),
    };
    let ends = "events \"x\" is forbidden: unable to create new content in namespace other because it is being terminated";
    let role = "events is forbidden: User \"x\" cannot create resource \"events\" in API group \"\" in the namespace \"other\"";
    assert!(is_beyond_roles("own", &entry(Method::POST, "other", ends)));
    assert!(!is_beyond_roles("own", &entry(Method::POST, "own", ends)), "nobody ends our own");
    assert!(
        !is_beyond_roles("own", &entry(Method::PATCH, "other", ends)),
        "only what is new is refused there"
    );
    assert!(!is_beyond_roles("own", &entry(Method::POST, "other", role)));
    let webhook =
        "admission webhook \"vscaledobject.kb.io\" denied the request: the workload is already managed";
    assert!(is_beyond_roles("own", &entry(Method::PATCH, "other", webhook)));
    assert!(!is_beyond_roles("own", &entry(Method::PATCH, "own", role)));
}
