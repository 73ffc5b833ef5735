//! Request attributes for authorization, derived from method and path as Kubernetes derives them.

use api::gotext::quote;
use api::selector::{FieldSelector, Operator};
use http::Method;

use crate::identity::User;
use crate::query::Query;
use crate::status::{Status, StatusDetails};

/// Verb and target of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestAttributes {
    /// `get`, `list`, `watch`, `create`, …; the method in lower case for paths.
    pub verb: String,
    /// The target.
    pub target: RequestTarget,
}

/// The target of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestTarget {
    /// Objects of a resource.
    Resource(RequestedResource),
    /// A non-resource path.
    Path(String),
}

/// The requested resource; fields that do not apply are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RequestedResource {
    /// API group; empty for the core one.
    pub group: String,
    /// Version.
    pub version: String,
    /// Namespace.
    pub namespace: String,
    /// Plural name of the resource.
    pub resource: String,
    /// Name of one object.
    pub name: String,
    /// Subresource.
    pub subresource: String,
    /// Requirements of the label selector.
    pub labels: Vec<SelectorRequirement>,
    /// Requirements of the field selector. An exact `metadata.name` also sets `name`.
    pub fields: Vec<SelectorRequirement>,
}

/// One requirement of a selector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SelectorRequirement {
    /// Key of the label or field.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: &'static str,
    /// Values to compare with.
    pub values: Vec<String>,
}

/// Requirements of the label selector. Operators that a SubjectAccessReview lacks are left out, which requires a broader permission.
fn labels(query: &Query) -> Vec<SelectorRequirement> {
    let Ok(selector) = query.labels() else { return Vec::new() };
    let each = selector.requirements().iter().filter_map(|own| {
        let operator = match own.operator() {
            Operator::Equals | Operator::DoubleEquals | Operator::In => "In",
            Operator::NotEquals | Operator::NotIn => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
            Operator::GreaterThan | Operator::LessThan => return None,
        };
        let values = own.values().into_iter().map(str::to_owned).collect();
        Some(SelectorRequirement { key: own.key().to_owned(), operator, values })
    });
    each.collect()
}

fn fields(selector: &FieldSelector) -> Vec<SelectorRequirement> {
    let each = selector.terms().iter().map(|term| SelectorRequirement {
        key: term.field.clone(),
        operator: if term.differs { "NotIn" } else { "In" },
        values: vec![term.value.clone()],
    });
    each.collect()
}

impl RequestAttributes {
    /// The attributes of a request with this method, decoded path and query.
    pub fn of(method: &Method, path: &str, query: &Query) -> Self {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
            _ => {
                let verb = method.as_str().to_lowercase();
                return Self { verb, target: RequestTarget::Path(path.to_owned()) };
            }
        };
        let (prefix, rest) = match rest {
            [prefix @ ("watch" | "proxy"), rest @ ..] if !rest.is_empty() => (Some(*prefix), rest),
            _ => (None, rest),
        };
        let (namespace, rest) = match rest {
            // `status` and `finalize` are subresources of the namespace itself.
            ["namespaces", name, "status" | "finalize", ..] | ["namespaces", name] => (*name, rest),
            ["namespaces", name, rest @ ..] => (*name, rest),
            _ => ("", rest),
        };
        let part = |index: usize| rest.get(index).map(|text| (*text).to_owned()).unwrap_or_default();
        let mut resource = RequestedResource {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            resource: part(0),
            name: part(1),
            subresource: part(2),
            ..RequestedResource::default()
        };
        let many = resource.name.is_empty();
        let verb = match (prefix, method.as_str()) {
            (Some(prefix), _) => prefix,
            (None, "GET" | "HEAD") if many && query.is_set("watch") => "watch",
            (None, "GET" | "HEAD") if many => "list",
            (None, "GET" | "HEAD") => "get",
            (None, "POST") => "create",
            (None, "PUT") => "update",
            (None, "PATCH") => "patch",
            (None, "DELETE") if many => "deletecollection",
            (None, "DELETE") => "delete",
            _ => "",
        };
        if many && matches!(verb, "list" | "watch" | "deletecollection") {
            resource.labels = labels(query);
            let selector = query.get("fieldSelector").and_then(|text| FieldSelector::parse(text).ok());
            if let Some(name) = selector.as_ref().and_then(|selector| selector.exact("metadata.name")) {
                name.clone_into(&mut resource.name);
            }
            resource.fields = selector.as_ref().map(fields).unwrap_or_default();
        }
        Self { verb: verb.to_owned(), target: RequestTarget::Resource(resource) }
    }

    /// The error for a user who is not allowed, with the text of Kubernetes.
    pub fn refusal(&self, user: &User, why: &str) -> Status {
        let (verb, user) = (&self.verb, quote(&user.name));
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        match &self.target {
            RequestTarget::Path(path) => Status::forbidden(
                format!("forbidden: User {user} cannot {verb} path {}{why}", quote(path)),
                StatusDetails::default(),
            ),
            RequestTarget::Resource(of) => {
                let about = StatusDetails::new(&of.group, &of.resource, &of.name);
                let slash = if of.subresource.is_empty() { "" } else { "/" };
                let resource = quote(&format!("{}{slash}{}", of.resource, of.subresource));
                let place = match of.namespace.as_str() {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {}", quote(namespace)),
                };
                let message = format!(
                    "{} is forbidden: User {user} cannot {verb} resource {resource} in API group {} {place}{why}",
                    about.words(),
                    quote(&of.group)
                );
                Status::forbidden(message, about)
            }
        }
    }

    /// The same request without selectors; none if it has no selector.
    pub(super) fn broader(&self) -> Option<Self> {
        let RequestTarget::Resource(of) = &self.target else { return None };
        if of.labels.is_empty() && of.fields.is_empty() {
            return None;
        }
        let pinned = of.fields.iter().any(|field| {
            field.key == "metadata.name" && field.operator == "In" && field.values.contains(&of.name)
        });
        let name = if pinned { String::new() } else { of.name.clone() };
        let target = RequestedResource { name, labels: Vec::new(), fields: Vec::new(), ..of.clone() };
        Some(Self { verb: self.verb.clone(), target: RequestTarget::Resource(target) })
    }

    /// The length of all texts.
    pub(super) fn length(&self) -> usize {
        let target = match &self.target {
            RequestTarget::Path(path) => path.len(),
            RequestTarget::Resource(of) => {
                [&of.group, &of.version, &of.namespace, &of.resource, &of.name, &of.subresource]
                    .iter()
                    .map(|text| text.len())
                    .chain(of.labels.iter().chain(&of.fields).map(SelectorRequirement::length))
                    .sum()
            }
        };
        self.verb.len() + target
    }
}

impl SelectorRequirement {
    fn length(&self) -> usize {
        self.key.len() + self.values.iter().map(String::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, uri: &str) -> RequestAttributes {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        RequestAttributes::of(&method.parse().unwrap(), path, &Query::parse(query))
    }

    /// `verb group/version namespace resource name subresource`, with `-` for what is empty.
    fn short(method: &str, uri: &str) -> String {
        let RequestAttributes { verb, target } = of(method, uri);
        match target {
            RequestTarget::Path(path) => format!("{verb} {path}"),
            RequestTarget::Resource(r) => {
                let parts = [r.group, r.version, r.namespace, r.resource, r.name, r.subresource];
                let parts = parts.map(|part| if part.is_empty() { "-".to_owned() } else { part });
                format!("{verb} {}", parts.join(" "))
            }
        }
    }

    #[test]
    fn requests_are_read_as_kubernetes_reads_them() {
        let cases = [
            ("GET", "/", "get /"),
            ("POST", "/metrics", "post /metrics"),
            ("GET", "/apis", "get /apis"),
            ("GET", "/apis/g/v", "get /apis/g/v"),
            ("GET", "/apis/g/v/", "get /apis/g/v/"),
            ("GET", "/api/v1", "get /api/v1"),
            ("GET", "/apis/g/v/nodes/a", "get g v - nodes a -"),
            ("HEAD", "/apis/g/v/nodes/", "list g v - nodes - -"),
            ("GET", "/apis/g/v/namespaces/d/pods?labelSelector=a%3Db", "list g v d pods - -"),
            ("GET", "/apis/g/v/namespaces/d/pods?watch=true", "watch g v d pods - -"),
            ("GET", "/apis/g/v/namespaces/d/pods/x?watch=true", "get g v d pods x -"),
            (
                "GET",
                "/apis/g/v/namespaces/d/pods?watch=1&fieldSelector=metadata.name%3Dhpa.web",
                "watch g v d pods hpa.web -",
            ),
            ("GET", "/apis/c/v/namespaces/d/pods/*/qps", "get c v d pods * qps"),
            ("GET", "/apis/c/v/namespaces/d/metrics/qps", "get c v d metrics qps -"),
            ("GET", "/apis/e/v/namespaces/d/queue_depth", "list e v d queue_depth - -"),
            ("GET", "/api/v1/namespaces", "list - v1 - namespaces - -"),
            ("GET", "/api/v1/namespaces/d", "get - v1 d namespaces d -"),
            ("PUT", "/api/v1/namespaces/d/finalize", "update - v1 d namespaces d finalize"),
            ("GET", "/api/v1/watch/namespaces/d/pods", "watch - v1 d pods - -"),
            ("POST", "/apis/g/v/namespaces/d/pods", "create g v d pods - -"),
            ("DELETE", "/apis/g/v/namespaces/d/pods", "deletecollection g v d pods - -"),
            ("DELETE", "/apis/g/v/namespaces/d/pods/x", "delete g v d pods x -"),
            ("PATCH", "/apis/g/v/pods/x/status", "patch g v - pods x status"),
        ];
        for (method, uri, expected) in cases {
            assert_eq!(short(method, uri), expected, "{method} {uri}");
        }
    }

    #[test]
    fn broader_attributes_have_no_selectors() {
        let wanted =
            of("GET", "/apis/g/v/pods?labelSelector=a%3Db,c!%3Dd,!e,f%3E1&fieldSelector=metadata.name%3Dx");
        let RequestTarget::Resource(narrow) = &wanted.target else { panic!() };
        let shown: Vec<String> =
            narrow.labels.iter().map(|r| format!("{} {} {:?}", r.key, r.operator, r.values)).collect();
        assert_eq!(shown, ["a In [\"b\"]", "c NotIn [\"d\"]", "e DoesNotExist []"]);
        assert_eq!((narrow.name.as_str(), narrow.fields.len()), ("x", 1));
        let broad = wanted.broader().unwrap();
        assert_eq!(broad, of("GET", "/apis/g/v/pods"));
        assert!(broad.broader().is_none() && of("GET", "/apis").broader().is_none());
        // A request for one object has no broader form.
        assert!(of("GET", "/apis/g/v/pods/x?fieldSelector=metadata.name%3Dx").broader().is_none());
    }

    #[test]
    fn refusals_have_the_texts_of_kubernetes() {
        let user = User { name: "x".into(), ..User::default() };
        let list = of("GET", "/apis/decisions.plimsoll.dev/v1alpha1/namespaces/ns/decisions");
        assert_eq!(
            list.refusal(&user, "").message,
            "decisions.decisions.plimsoll.dev is forbidden: User \"x\" cannot list resource \"decisions\" in API \
             group \"decisions.plimsoll.dev\" in the namespace \"ns\""
        );
        let get = of("GET", "/apis/metrics.k8s.io/v1beta1/nodes/node-a");
        assert_eq!(
            get.refusal(&user, "no").message,
            "nodes.metrics.k8s.io \"node-a\" is forbidden: User \"x\" cannot get resource \"nodes\" in API group \
             \"metrics.k8s.io\" at the cluster scope: no"
        );
        let path = of("GET", "/apis").refusal(&user, "");
        assert_eq!(path.message, "forbidden: User \"x\" cannot get path \"/apis\"");
        assert_eq!(path.to_json()["details"], serde_json::json!({}));
    }
}
