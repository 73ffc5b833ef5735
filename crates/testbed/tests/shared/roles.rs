//! The rules of roles, against the requests that were made.

use std::collections::BTreeSet;

use http::Method;
use localkube::access::{AccessTarget, Attributes};
use localkube::request::{Query, RequestPath};
use serde_json::Value;
use testbed::proxy::Entry;

/// A permission: a verb on a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Permission {
    pub(crate) group: String,
    /// With its subresource, as in `deployments/scale`; `*` and `*/scale` stand for all of them.
    pub(crate) resource: String,
    pub(crate) verb: String,
}

/// All permissions of the roles with this name.
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

/// What the requests needed. What everybody may (discovery) and what another role grants (whom the cluster trusts) is
/// left out.
pub(crate) fn needed(log: &[Entry]) -> BTreeSet<Permission> {
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
    /// Whether this covers what was needed.
    pub(crate) fn covers(&self, needed: &Self) -> bool {
        let group = self.group == "*" || self.group == needed.group;
        let resource = match self.resource.strip_prefix('*') {
            Some(rest) => needed.resource.ends_with(rest),
            None => self.resource == needed.resource,
        };
        group && resource && self.verb == needed.verb
    }
}

/// None was refused, but for what other tests do: in a namespace that ends, nothing can be created, and webhooks refuse some objects.
pub(crate) fn check_answers(namespace: &str, log: &[Entry]) {
    let refused: BTreeSet<_> = log
        .iter()
        .filter(|entry| matches!(entry.status, Some(401 | 403)) && !is_beyond_roles(namespace, entry))
        .map(|entry| (entry.method.to_string(), &entry.path, &entry.refusal))
        .collect();
    assert!(refused.is_empty(), "refused: {refused:#?}");
}

/// Whether no role could help: somebody else's namespace ends, or an admission webhook refuses the object.
fn is_beyond_roles(ours: &str, entry: &Entry) -> bool {
    let says = |words: &str| entry.refusal.as_ref().is_some_and(|text| text.contains(words));
    let is_ours = entry.path.contains(&format!("/namespaces/{ours}/"));
    let is_ending = entry.method == Method::POST && says("because it is being terminated");
    says("admission webhook") && says("denied the request") || is_ending && !is_ours
}

/// Every request was covered by the role, and every permission was needed.
pub(crate) fn check(role: &[Permission], log: &[Entry]) {
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
    let entry = |method: Method, namespace: &str, refusal: &str| Entry {
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
