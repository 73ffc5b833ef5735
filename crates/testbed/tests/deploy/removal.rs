//! What `helm uninstall` keeps and deletes. `make test-install` runs it on a real cluster.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::chart::rendered;
use crate::shared::manifests::repository;

/// The annotations of a hook with which Helm deletes the object that has its name.
const HOOK: &str = "helm.sh/hook";
const HOOK_DELETE_POLICY: &str = "helm.sh/hook-delete-policy";

/// The Secrets and Leases that are created while the roles run, as `kind/name`: those that a role may write by their name, and those that
/// cert-manager writes.
fn created_objects(objects: &[Value]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for object in objects {
        for rule in object["rules"].as_array().into_iter().flatten() {
            let kind = match rule["resources"][0].as_str() {
                Some("secrets") => "Secret",
                Some("leases") => "Lease",
                _ => continue,
            };
            let names = rule["resourceNames"].as_array().into_iter().flatten();
            found.extend(names.map(|name| format!("{kind}/{}", name.as_str().unwrap())));
        }
        if object["kind"] == "Certificate" {
            found.insert(format!("Secret/{}", object["spec"]["secretName"].as_str().unwrap()));
        }
    }
    found
}

/// The Secrets and Leases among the objects, each of which is a hook of `helm uninstall` without contents.
fn deleted_objects(objects: &[Value]) -> BTreeSet<String> {
    let kinds = [json!("Secret"), json!("Lease")];
    let hooks = objects.iter().filter(|object| kinds.contains(&object["kind"]));
    let names = hooks.map(|object| {
        let annotations = &object["metadata"]["annotations"];
        assert_eq!(annotations[HOOK], "post-delete", "{object}");
        assert_eq!(annotations[HOOK_DELETE_POLICY], "before-hook-creation,hook-succeeded", "{object}");
        assert!(object["data"].is_null() && object["spec"].is_null(), "{object}");
        format!("{}/{}", object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap())
    });
    names.collect()
}

/// The Secrets and Leases in the command of the chart's page that deletes them where there are no hooks.
fn documented_objects() -> BTreeSet<String> {
    let page = std::fs::read_to_string(repository().join("charts/plimsoll/README.md")).unwrap();
    let (_, command) =
        page.split_once("\n    kubectl -n plimsoll-system delete --ignore-not-found ").unwrap();
    let (command, _) = command.split_once("\n\n").unwrap();
    command.split_whitespace().filter(|word| *word != "\\").map(str::to_owned).collect()
}

#[test]
fn helm_uninstall_deletes_what_the_roles_create() {
    let all = "metrics.enabled=true,operator.enabled=true";
    let one = "singleProcess.enabled=true,controller.mode=active";
    let managed = "certificates.mode=cert-manager";
    let cases = [
        (format!("{all},controller.mode=active"), 5),
        (format!("{all},controller.mode=active,{managed}"), 6),
        (format!("{all},controller.mode=active,{managed},certificates.issuerRef.name=a"), 5),
        (format!("{all},{one}"), 3),
        (format!("{all},{one},{managed}"), 4),
        (format!("{all},controller.mode=shadow"), 3),
        ("operator.enabled=true,operator.restrictSecretAccess=true".to_owned(), 2),
        // In shadow mode nothing is written.
        ("controller.mode=shadow".to_owned(), 0),
    ];
    let mut all_deleted = BTreeSet::new();
    for (values, count) in cases {
        let values = format!("--set={values}");
        let objects = rendered(std::slice::from_ref(&values));
        let deleted = deleted_objects(&objects);
        assert_eq!(deleted, created_objects(&objects), "{values}");
        assert_eq!(deleted.len(), count, "{values}: {deleted:?}");
        let without_hooks = rendered(&[values.clone(), "--no-hooks".to_owned()]);
        assert_eq!(deleted_objects(&without_hooks), BTreeSet::new());
        // For Argo CD.
        assert_eq!(rendered(&[values, "--set=removal.hooks=false".to_owned()]), without_hooks);
        all_deleted.extend(deleted.into_iter().map(|object| object.to_lowercase()));
    }
    assert_eq!(documented_objects(), all_deleted);
}

#[test]
fn helm_uninstall_keeps_definitions() {
    let with_operator = rendered(&["--set=operator.enabled=true".to_owned()]);
    let definitions: Vec<&Value> =
        with_operator.iter().filter(|object| object["kind"] == "CustomResourceDefinition").collect();
    assert_eq!(definitions.len(), 7, "Autoscaler and KEDA's six kinds");
    for definition in definitions {
        let kept = &definition["metadata"]["annotations"]["helm.sh/resource-policy"];
        assert_eq!(*kept, json!("keep"), "{}", definition["metadata"]["name"]);
    }
}
