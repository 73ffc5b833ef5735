//! Groups, versions and resources, in the old form and in the aggregated one.

use serde_json::{Value, json};

use crate::app::{ApiGroupVersion, ApiResource};
use crate::encode::{Object, protobuf};

/// `APIGroupList`; it says no version of its own, as aggregated servers do.
pub(super) struct GroupList {
    groups: Vec<ApiGroup>,
    address: String,
}

/// `APIGroup`.
pub(super) struct ApiGroup {
    name: String,
    versions: Vec<String>,
}

/// `APIResourceList`.
pub(super) struct ApiResourceList<'a> {
    pub(super) group_version: &'a str,
    pub(super) resources: &'a [ApiResource],
}

/// All groups that are made known, each with its versions.
pub(super) fn all(groups: &[ApiGroupVersion], address: &str) -> GroupList {
    let mut found: Vec<ApiGroup> = Vec::new();
    for group in groups.iter().filter(|group| group.known.listed) {
        match found.iter_mut().find(|it| it.name == group.name) {
            Some(known) => known.versions.push(group.version.clone()),
            None => found.push(ApiGroup { name: group.name.clone(), versions: vec![group.version.clone()] }),
        }
    }
    GroupList { groups: found, address: address.to_owned() }
}

impl GroupList {
    /// Each group with its name.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, &ApiGroup)> {
        self.groups.iter().map(|group| (group.name.as_str(), group))
    }
}

impl ApiGroup {
    fn fields(&self) -> Value {
        let version = |version: &String| json!({"groupVersion": format!("{}/{version}", self.name), "version": version});
        let versions: Vec<Value> = self.versions.iter().map(version).collect();
        json!({"name": self.name, "versions": versions, "preferredVersion": versions.first()})
    }

    fn message(&self, out: &mut Vec<u8>, address: Option<&str>) {
        protobuf::text(out, 1, &self.name);
        let version = |out: &mut Vec<u8>, version: &str| {
            protobuf::text(out, 1, &format!("{}/{version}", self.name));
            protobuf::text(out, 2, version);
        };
        for each in &self.versions {
            protobuf::message(out, 2, |out| version(out, each));
        }
        protobuf::message(out, 3, |out| version(out, self.versions.first().map_or("", String::as_str)));
        if let Some(address) = address {
            protobuf::message(out, 4, |out| {
                protobuf::text(out, 1, "0.0.0.0/0");
                protobuf::text(out, 2, address);
            });
        }
    }
}

fn put(out: &mut Vec<u8>, value: &Value) {
    if let Ok(text) = api::gotext::json(value) {
        out.extend_from_slice(text.as_bytes());
    }
}

impl Object for GroupList {
    fn kind(&self) -> (String, String) {
        (String::new(), "APIGroupList".to_owned())
    }

    fn json(&self, out: &mut Vec<u8>) {
        let address = json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": self.address}]);
        let each = self.groups.iter().map(|group| {
            let mut fields = group.fields();
            if let Some(fields) = fields.as_object_mut() {
                fields.insert("serverAddressByClientCIDRs".to_owned(), address.clone());
            }
            fields
        });
        put(out, &json!({"kind": "APIGroupList", "groups": each.collect::<Vec<_>>()}));
    }

    fn protobuf(&self, out: &mut Vec<u8>) {
        for group in &self.groups {
            protobuf::message(out, 1, |out| group.message(out, Some(&self.address)));
        }
    }
}

impl Object for ApiGroup {
    fn kind(&self) -> (String, String) {
        ("v1".to_owned(), "APIGroup".to_owned())
    }

    fn json(&self, out: &mut Vec<u8>) {
        let mut group = json!({"kind": "APIGroup", "apiVersion": "v1"});
        if let (Some(group), Value::Object(fields)) = (group.as_object_mut(), self.fields()) {
            group.extend(fields);
        }
        put(out, &group);
    }

    fn protobuf(&self, out: &mut Vec<u8>) {
        self.message(out, None);
    }
}

impl Object for ApiResourceList<'_> {
    fn kind(&self) -> (String, String) {
        ("v1".to_owned(), "APIResourceList".to_owned())
    }

    fn json(&self, out: &mut Vec<u8>) {
        let each: Vec<Value> = self.resources.iter().map(resource).collect();
        let version = self.group_version;
        put(
            out,
            &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": each}),
        );
    }

    fn protobuf(&self, out: &mut Vec<u8>) {
        protobuf::text(out, 1, self.group_version);
        for of in self.resources {
            protobuf::message(out, 2, |out| {
                protobuf::text(out, 1, &of.name);
                protobuf::number(out, 2, of.namespaced.into());
                protobuf::text(out, 3, &of.kind);
                protobuf::message(out, 4, |out| {
                    of.verbs.iter().for_each(|verb| protobuf::text(out, 1, verb));
                });
                of.short_names.iter().for_each(|name| protobuf::text(out, 5, name));
                protobuf::text(out, 6, &of.singular);
                of.categories.iter().for_each(|name| protobuf::text(out, 7, name));
                // Group, version and hash, which are not said.
                (8..=10).for_each(|field| protobuf::text(out, field, ""));
            });
        }
    }
}

fn resource(of: &ApiResource) -> Value {
    let mut value = json!({
        "name": of.name, "singularName": of.singular, "namespaced": of.namespaced, "kind": of.kind, "verbs": of.verbs,
    });
    named(&mut value, of);
    value
}

/// Adds what only some have.
fn named(value: &mut Value, of: &ApiResource) {
    let Some(fields) = value.as_object_mut() else { return };
    for (key, names) in [("shortNames", &of.short_names), ("categories", &of.categories)] {
        if !names.is_empty() {
            fields.insert(key.to_owned(), json!(names));
        }
    }
}

/// `APIGroupDiscoveryList`.
pub(super) fn aggregated(groups: &[ApiGroupVersion]) -> Value {
    let known: Vec<&ApiGroupVersion> = groups.iter().filter(|group| group.known.aggregated).collect();
    let mut names: Vec<&str> = Vec::new();
    for group in &known {
        if !names.contains(&group.name.as_str()) {
            names.push(&group.name);
        }
    }
    let item = |name: &str| {
        let own = known.iter().filter(|group| group.name == name);
        let versions: Vec<Value> = own
            .map(|group| {
                let each: Vec<Value> = group.resources.iter().map(discovered).collect();
                json!({"version": group.version, "resources": each, "freshness": "Current"})
            })
            .collect();
        json!({"metadata": {"name": name}, "versions": versions})
    };
    let items: Vec<Value> = names.into_iter().map(item).collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

/// Without group and version, a kind is of those it is listed under.
fn discovered(of: &ApiResource) -> Value {
    let mut value = json!({
        "resource": of.name,
        "responseKind": {"group": "", "version": "", "kind": of.kind},
        "scope": if of.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": of.singular,
        "verbs": of.verbs,
    });
    named(&mut value, of);
    value
}
