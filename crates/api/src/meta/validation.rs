//! The rules for metadata that all namespaced objects share.

use std::collections::BTreeSet;

use engine::KubernetesProfile;
use serde::Serialize;

use super::{ManagedFieldsEntry, ObjectMeta, OwnerReference};
use crate::field::{AsJson, FieldError};
use crate::map::StringMap;
use crate::{gotext, instant, names};

/// The size of all keys and values of annotations.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;

/// Validates the metadata of a new object as in a release of Kubernetes. `name_faults` checks names of its kind.
pub fn validate_create(
    meta: &ObjectMeta,
    name_faults: impl Fn(&str) -> Vec<String>,
    profile: &KubernetesProfile,
) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if !meta.generate_name.is_empty() {
        for wrong in name_faults(&without_trailing_dash(&meta.generate_name)) {
            faults.push(FieldError::invalid("metadata.generateName", &meta.generate_name, wrong));
        }
    }
    if meta.name.is_empty() {
        faults.push(FieldError::required("metadata.name", "name or generateName is required"));
    }
    if !meta.name.is_empty() {
        for wrong in name_faults(&meta.name) {
            faults.push(FieldError::invalid("metadata.name", &meta.name, wrong));
        }
    }
    if meta.namespace.is_empty() {
        faults.push(FieldError::required("metadata.namespace", ""));
    } else {
        for wrong in names::dns_label_faults(&meta.namespace) {
            faults.push(FieldError::invalid("metadata.namespace", &meta.namespace, wrong));
        }
    }
    if meta.generation < 0 {
        faults.push(FieldError::invalid("metadata.generation", meta.generation, NEGATIVE));
    }
    faults.extend(label_faults(&meta.labels));
    faults.extend(annotation_faults(&meta.annotations));
    faults.extend(owner_faults(&meta.owner_references, profile));
    faults.extend(finalizer_faults(&meta.finalizers));
    faults.extend(managed_fields_faults(&meta.managed_fields));
    faults.extend(finalizer_prefix_faults(&meta.finalizers));
    faults
}

/// Validates the new metadata of an existing object as in a release of Kubernetes.
pub fn validate_update(new: &ObjectMeta, old: &ObjectMeta, profile: &KubernetesProfile) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if old.deletion_timestamp.is_some() {
        faults.extend(new_finalizers_fault(&new.finalizers, &old.finalizers));
    }
    if new.resource_version.is_empty() {
        let detail = "must be specified for an update";
        faults.push(FieldError::invalid("metadata.resourceVersion", &new.resource_version, detail));
    }
    if new.generation < old.generation {
        faults.push(FieldError::invalid("metadata.generation", new.generation, "must not be decremented"));
    }
    for (path, new, old) in
        [("metadata.name", &new.name, &old.name), ("metadata.namespace", &new.namespace, &old.namespace)]
    {
        if new != old {
            faults.push(FieldError::invalid(path, new, IMMUTABLE));
        }
    }
    faults.extend(immutable("metadata.uid", &new.uid, &old.uid));
    let times = |meta: &ObjectMeta| {
        (meta.creation_timestamp.map(instant::format), meta.deletion_timestamp.map(instant::format))
    };
    faults.extend(immutable("metadata.creationTimestamp", &times(new).0, &times(old).0));
    faults.extend(immutable("metadata.deletionTimestamp", &times(new).1, &times(old).1));
    faults.extend(immutable(
        "metadata.deletionGracePeriodSeconds",
        &new.deletion_grace_period_seconds,
        &old.deletion_grace_period_seconds,
    ));
    faults.extend(label_faults(&new.labels));
    faults.extend(annotation_faults(&new.annotations));
    faults.extend(owner_faults(&new.owner_references, profile));
    faults.extend(managed_fields_faults(&new.managed_fields));
    faults.extend(finalizer_prefix_faults(&new.finalizers));
    faults
}

const NEGATIVE: &str = "must be greater than or equal to 0";
const IMMUTABLE: &str = "field is immutable";

/// A prefix may end in a dash, since something follows; the character before the dash is not checked either.
fn without_trailing_dash(prefix: &str) -> String {
    let mut shorter = prefix.to_owned();
    if prefix.len() > 1 && shorter.pop() == Some('-') {
        shorter.pop();
        shorter.push('a');
        return shorter;
    }
    prefix.to_owned()
}

fn immutable<T: PartialEq + Serialize>(path: &str, new: &T, old: &T) -> Option<FieldError> {
    (new != old).then(|| FieldError::invalid(path, AsJson(new), IMMUTABLE))
}

fn label_faults(labels: &StringMap) -> Vec<FieldError> {
    let mut faults = Vec::new();
    for (key, value) in labels {
        for wrong in names::label_key_faults(key) {
            faults.push(FieldError::invalid("metadata.labels", key, wrong));
        }
        for wrong in names::label_value_faults(value) {
            faults.push(FieldError::invalid("metadata.labels", value, wrong));
        }
    }
    faults
}

/// Annotation keys follow the rule for label keys, whatever their case.
fn annotation_faults(annotations: &StringMap) -> Vec<FieldError> {
    let mut faults = Vec::new();
    for key in annotations.keys() {
        for wrong in names::label_key_faults(&key.to_lowercase()) {
            faults.push(FieldError::invalid("metadata.annotations", key, wrong));
        }
    }
    let size: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if size > MAX_ANNOTATIONS_BYTES {
        faults.push(FieldError::too_long("metadata.annotations", MAX_ANNOTATIONS_BYTES));
    }
    faults
}

fn owner_faults(owners: &[OwnerReference], profile: &KubernetesProfile) -> Vec<FieldError> {
    const PATH: &str = "metadata.ownerReferences";
    let mut faults = Vec::new();
    let mut controller: Option<String> = None;
    for (index, owner) in owners.iter().enumerate() {
        let path = if profile.indexed_owner_references { &format!("{PATH}[{index}]") } else { PATH };
        let (group, version) = group_version(&owner.api_version);
        faults.extend(if profile.indexed_owner_references {
            required_owner_faults(path, owner, version)
        } else {
            written_owner_faults(path, owner, version)
        });
        if group.is_empty() && version == "v1" && owner.kind == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            faults.push(FieldError::invalid(path, AsJson(owner), detail));
        }
        if owner.controller == Some(true) {
            let name = format!("{}/{}", owner.kind, owner.name);
            match &controller {
                None => controller = Some(name),
                Some(first) => faults.push(FieldError::invalid(
                    PATH,
                    AsJson(owners),
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} \
                         and {name}"
                    ),
                )),
            }
        }
    }
    faults
}

/// Empty fields of an owner as up to 1.36: the value is invalid.
fn written_owner_faults(path: &str, owner: &OwnerReference, version: &str) -> Vec<FieldError> {
    const EMPTY: &str = "must not be empty";
    let mut faults = Vec::new();
    if version.is_empty() {
        let detail = "version must not be empty";
        faults.push(FieldError::invalid(format_args!("{path}.apiVersion"), &owner.api_version, detail));
    }
    for (field, value) in [("kind", &owner.kind), ("name", &owner.name)] {
        if value.is_empty() {
            faults.push(FieldError::invalid(format_args!("{path}.{field}"), value, EMPTY));
        }
    }
    if owner.uid.is_empty() {
        faults.push(FieldError::invalid(format_args!("{path}.uid"), AsJson(&owner.uid), EMPTY));
    }
    faults
}

/// Empty fields of an owner since 1.37: a value is required.
fn required_owner_faults(path: &str, owner: &OwnerReference, version: &str) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if !owner.api_version.is_empty() && version.is_empty() {
        let detail = "must be <group>/<version> or <version>";
        faults.push(FieldError::invalid(format_args!("{path}.apiVersion"), &owner.api_version, detail));
    }
    for (field, value) in [
        ("apiVersion", &owner.api_version),
        ("kind", &owner.kind),
        ("name", &owner.name),
        ("uid", &owner.uid),
    ] {
        if value.is_empty() {
            faults.push(FieldError::required(format_args!("{path}.{field}"), "must not be empty"));
        }
    }
    faults
}

/// Group and version of an `apiVersion`; both empty when it has more than one slash.
fn group_version(api_version: &str) -> (&str, &str) {
    match api_version.split_once('/') {
        None => ("", api_version),
        Some((_, rest)) if rest.contains('/') => ("", ""),
        Some(pair) => pair,
    }
}

fn finalizer_faults(finalizers: &[String]) -> Vec<FieldError> {
    const PATH: &str = "metadata.finalizers";
    let mut faults = Vec::new();
    for finalizer in finalizers {
        for wrong in names::label_key_faults(finalizer) {
            faults.push(FieldError::invalid(PATH, finalizer, wrong));
        }
    }
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        faults.push(FieldError::invalid(PATH, finalizers, detail));
    }
    faults
}

fn new_finalizers_fault(new: &[String], old: &[String]) -> Option<FieldError> {
    let extra: BTreeSet<&String> = new.iter().filter(|finalizer| !old.contains(finalizer)).collect();
    let list: Vec<String> = extra.into_iter().map(|name| gotext::quote(name)).collect();
    (!list.is_empty()).then(|| {
        FieldError::forbidden(
            "metadata.finalizers",
            format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                list.join(", ")
            ),
        )
    })
}

fn managed_fields_faults(entries: &[ManagedFieldsEntry]) -> Vec<FieldError> {
    let mut faults = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        let path = |name: &str| format!("metadata.managedFields[{i}].{name}");
        if !matches!(entry.operation.as_str(), "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            faults.push(FieldError::invalid(path("operation"), AsJson(&entry.operation), detail));
        }
        if !matches!(entry.fields_type.as_str(), "" | "FieldsV1") {
            faults.push(FieldError::invalid(path("fieldsType"), &entry.fields_type, "must be `FieldsV1`"));
        }
        if entry.manager.len() > 128 {
            faults.push(FieldError::too_long(path("manager"), 128));
        }
        for (at, c) in entry.manager.char_indices().filter(|(_, c)| !gotext::is_printable(*c)) {
            let detail = format!("invalid character U+{:04X} (at position {at})", c as u32);
            faults.push(FieldError::invalid(path("manager"), &entry.manager, detail));
        }
        if entry.subresource.len() > 256 {
            faults.push(FieldError::too_long(path("subresource"), 256));
        }
    }
    faults
}

const NO_PREFIX: &str = "name is neither a standard finalizer name nor is it fully qualified";

/// Whether an error applies to built-in kinds only. Finalizers of custom resources need no prefix.
pub fn is_of_built_in_kinds(fault: &FieldError) -> bool {
    fault.field.starts_with("metadata.finalizers[") && fault.detail == NO_PREFIX
}

/// A finalizer without a prefix must be one of those Kubernetes itself uses.
fn finalizer_prefix_faults(finalizers: &[String]) -> Vec<FieldError> {
    let standard = ["kubernetes", "orphan", "foregroundDeletion"];
    let wrong = finalizers
        .iter()
        .enumerate()
        .filter(|(_, name)| !name.contains('/') && !standard.contains(&name.as_str()));
    wrong
        .map(|(i, name)| FieldError::invalid(format_args!("metadata.finalizers[{i}]"), name, NO_PREFIX))
        .collect()
}

#[cfg(test)]
mod tests {
    use engine::profile::{V1_36, V1_37};

    use super::*;

    fn meta(name: &str) -> ObjectMeta {
        ObjectMeta {
            name: name.into(),
            namespace: "shop".into(),
            resource_version: "1".into(),
            ..Default::default()
        }
    }

    fn texts(faults: &[FieldError]) -> Vec<String> {
        faults.iter().map(ToString::to_string).collect()
    }

    fn create(meta: &ObjectMeta) -> Vec<String> {
        texts(&validate_create(meta, names::subdomain_faults, &V1_36))
    }

    #[test]
    fn empty_fields_of_owners_are_required_since_1_37() {
        let owner =
            |api_version: &str| OwnerReference { api_version: api_version.into(), ..Default::default() };
        let owned = ObjectMeta { owner_references: vec![owner(""), owner("a/b/c")], ..meta("web") };
        let new = texts(&validate_create(&owned, names::subdomain_faults, &V1_37));
        assert_eq!(
            new,
            [
                "metadata.ownerReferences[0].apiVersion: Required value: must not be empty",
                "metadata.ownerReferences[0].kind: Required value: must not be empty",
                "metadata.ownerReferences[0].name: Required value: must not be empty",
                "metadata.ownerReferences[0].uid: Required value: must not be empty",
                "metadata.ownerReferences[1].apiVersion: Invalid value: \"a/b/c\": must be <group>/<version> or <version>",
                "metadata.ownerReferences[1].kind: Required value: must not be empty",
                "metadata.ownerReferences[1].name: Required value: must not be empty",
                "metadata.ownerReferences[1].uid: Required value: must not be empty",
            ]
        );
        assert_eq!(
            create(&owned)[0],
            "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty"
        );
        let event = OwnerReference { kind: "Event".into(), name: "e".into(), uid: "u".into(), ..owner("v1") };
        let owned = ObjectMeta { owner_references: vec![event], ..meta("web") };
        let new = texts(&validate_update(&owned, &owned, &V1_37));
        assert!(new[0].starts_with("metadata.ownerReferences[0]: Invalid value: "), "{new:?}");
    }

    #[test]
    fn names_on_create() {
        assert!(create(&meta("web.a-b")).is_empty());
        assert_eq!(create(&meta("")), ["metadata.name: Required value: name or generateName is required"]);
        assert!(
            create(&meta("Web"))[0]
                .starts_with("metadata.name: Invalid value: \"Web\": a lowercase RFC 1123")
        );
        let nameless = ObjectMeta { namespace: String::new(), ..meta("web") };
        assert_eq!(create(&nameless), ["metadata.namespace: Required value"]);
        let prefixed = ObjectMeta { generate_name: "web-".into(), ..meta("web-x") };
        assert!(create(&prefixed).is_empty());
        let prefixed = ObjectMeta { generate_name: "_-x".into(), ..meta("web-x") };
        assert_eq!(create(&prefixed).len(), 1);
    }

    #[test]
    fn owners_and_finalizers() {
        let event = OwnerReference {
            api_version: "v1".into(),
            kind: "Event".into(),
            name: "e".into(),
            uid: "u".into(),
            controller: Some(true),
            ..Default::default()
        };
        let two = ObjectMeta { owner_references: vec![event.clone(), event], ..meta("web") };
        let faults = create(&two);
        assert_eq!(faults.len(), 3);
        assert!(faults[0].ends_with("/v1, Kind=Event is disallowed from being an owner"));
        assert!(faults[2].ends_with("Found \"true\" in references for Event/e and Event/e"));
        let bare = ObjectMeta { owner_references: vec![OwnerReference::default()], ..meta("web") };
        assert_eq!(create(&bare).len(), 4);
        let both =
            ObjectMeta { finalizers: vec!["orphan".into(), "foregroundDeletion".into()], ..meta("web") };
        assert_eq!(create(&both).len(), 1);
    }

    #[test]
    fn updates_of_immutable_metadata_are_refused() {
        let old = meta("web");
        assert!(validate_update(&old, &old, &V1_36).is_empty());
        let new = ObjectMeta {
            uid: "x".into(),
            creation_timestamp: instant::parse("2026-01-01T00:00:00Z").unwrap(),
            resource_version: String::new(),
            ..meta("other")
        };
        assert_eq!(
            texts(&validate_update(&new, &old, &V1_36)),
            [
                "metadata.resourceVersion: Invalid value: \"\": must be specified for an update",
                "metadata.name: Invalid value: \"other\": field is immutable",
                "metadata.uid: Invalid value: \"x\": field is immutable",
                "metadata.creationTimestamp: Invalid value: \"2026-01-01T00:00:00Z\": field is immutable",
            ]
        );
        let dying =
            ObjectMeta { deletion_timestamp: instant::parse("2026-01-01T00:00:00Z").unwrap(), ..meta("web") };
        let held = ObjectMeta { finalizers: vec!["a/b".into()], ..dying.clone() };
        assert_eq!(
            texts(&validate_update(&held, &dying, &V1_36)),
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
              finalizers []string{\"a/b\"}"
            ]
        );
    }
}
