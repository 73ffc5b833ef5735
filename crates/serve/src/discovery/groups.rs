//! Plain and aggregated discovery documents.

use serde_json::{Value, json};

use crate::api_group::{ApiGroupVersion, ApiResource};
use crate::encode::{Object, json, protobuf};

/// `APIGroupList`, without `apiVersion` as aggregated servers send it.
pub(super) struct GroupList {
    groups: Vec<ApiGroup>,
    address: String,
}

/// `APIGroup`.
pub(super) struct ApiGroup {
    name: String,
    versions: Vec<String>,
}

/// All listed groups with their versions.
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
        json::value(out, &json!({"kind": "APIGroupList", "groups": each.collect::<Vec<_>>()}));
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
        json::value(out, &group);
    }

    fn protobuf(&self, out: &mut Vec<u8>) {
        self.message(out, None);
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

/// `responseKind` without group and version means those of the list.
fn discovered(of: &ApiResource) -> Value {
    let mut value = json!({
        "resource": of.name,
        "responseKind": {"group": "", "version": "", "kind": of.kind},
        "scope": if of.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": of.singular,
        "verbs": of.verbs,
    });
    of.add_optional_names(&mut value);
    value
}
