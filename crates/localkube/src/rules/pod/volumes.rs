//! Validation of volumes.

use std::collections::BTreeSet;

use api::field::FieldError;
use api::names::dns_label_faults;
use serde_json::Value;

use crate::rules::faults::{Faults, config_key_faults};
use crate::rules::json::{amount, at, has, list, number, text};

type VolumeCheck = fn(&mut Faults, &str, &Value);

/// Values of `hostPath.type`.
const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

/// The validated volume sources, in the order of the checks.
const SOURCES: [(&str, VolumeCheck); 8] = [
    ("emptyDir", empty),
    ("hostPath", host),
    ("secret", |faults, path, secret| {
        faults.present(format_args!("{path}.secretName"), text(secret, "secretName"));
        items(faults, path, secret);
    }),
    ("nfs", nfs),
    ("persistentVolumeClaim", |faults, path, claim| {
        faults.present(format_args!("{path}.claimName"), text(claim, "claimName"));
    }),
    ("downwardAPI", downward),
    ("configMap", |faults, path, map| {
        faults.present(format_args!("{path}.name"), text(map, "name"));
        items(faults, path, map);
    }),
    ("csi", |faults, path, csi| {
        faults.present(format_args!("{path}.driver"), text(csi, "driver"));
    }),
];

/// Validates the volumes of a pod; returns their names.
pub(super) fn check<'a>(faults: &mut Faults, path: &str, spec: &'a Value) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (i, volume) in list(spec, "volumes").iter().enumerate() {
        let path = format!("{path}.volumes[{i}]");
        source(faults, &path, volume);
        let name = text(volume, "name");
        faults.name(format_args!("{path}.name"), name, dns_label_faults);
        if !name.is_empty() && !names.insert(name) {
            faults.add(FieldError::duplicate(format_args!("{path}.name"), name));
        }
    }
    names
}

fn source(faults: &mut Faults, path: &str, volume: &Value) {
    let mut found = false;
    for (name, check) in SOURCES {
        if !has(volume, name) {
            continue;
        }
        let path = format!("{path}.{name}");
        if found {
            faults.forbidden(path, "may not specify more than 1 volume type");
        } else {
            check(faults, &path, at(volume, name));
        }
        found = true;
    }
}

fn empty(faults: &mut Faults, path: &str, source: &Value) {
    if amount(at(source, "sizeLimit")).is_some_and(|limit| limit.sign() < 0) {
        faults
            .forbidden(format_args!("{path}.sizeLimit"), "SizeLimit field must be a valid resource quantity");
    }
}

fn host(faults: &mut Faults, path: &str, source: &Value) {
    let target = text(source, "path");
    if faults.present(format_args!("{path}.path"), target) {
        no_steps_back(faults, &format!("{path}.path"), target);
    }
    faults.one_of(format_args!("{path}.type"), text(source, "type"), &HOST_PATH_TYPES);
}

fn nfs(faults: &mut Faults, path: &str, source: &Value) {
    faults.present(format_args!("{path}.server"), text(source, "server"));
    let target = text(source, "path");
    faults.present(format_args!("{path}.path"), target);
    if !target.starts_with('/') {
        faults.invalid(format_args!("{path}.path"), target, "must be an absolute path");
    }
}

fn downward(faults: &mut Faults, path: &str, source: &Value) {
    for item in list(source, "items") {
        faults.present(format_args!("{path}.path"), text(item, "path"));
        if !has(item, "fieldRef") && !has(item, "resourceFieldRef") {
            faults.add(FieldError::required(path, "one of fieldRef and resourceFieldRef is required"));
        }
    }
}

fn items(faults: &mut Faults, path: &str, source: &Value) {
    mode(faults, &format!("{path}.defaultMode"), number(source, "defaultMode"));
    for (i, item) in list(source, "items").iter().enumerate() {
        let path = format!("{path}.items[{i}]");
        faults.name(format_args!("{path}.key"), text(item, "key"), config_key_faults);
        let target = text(item, "path");
        if faults.present(format_args!("{path}.path"), target) {
            if target.starts_with('/') {
                faults.invalid(format_args!("{path}.path"), target, "must be a relative path");
            }
            no_steps_back(faults, &format!("{path}.path"), target);
        }
        mode(faults, &format!("{path}.mode"), number(item, "mode"));
    }
}

fn mode(faults: &mut Faults, path: &str, mode: Option<i64>) {
    if let Some(mode) = mode.filter(|mode| !(0..=0o777).contains(mode)) {
        faults.invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive");
    }
}

fn no_steps_back(faults: &mut Faults, path: &str, target: &str) {
    if target.split('/').any(|step| step == "..") {
        faults.invalid(path, target, "must not contain '..'");
    }
}
