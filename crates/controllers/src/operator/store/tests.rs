#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use serde_json::{Value, json};

use api::keda::FINALIZER;

use super::*;

fn object(name: &str, version: u32, spec: &Value) -> ScaledObject {
    let metadata = json!({"name": name, "namespace": "ns", "resourceVersion": version.to_string()});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

fn spec() -> Value {
    let reference = json!({"name": "creds"});
    let trigger = json!({"type": "redis", "metadata": {}, "authenticationRef": reference});
    json!({"scaleTargetRef": {"name": "web"}, "triggers": [trigger]})
}

fn gone(name: &str) -> WatchEvent<ScaledObject> {
    WatchEvent::Deleted { namespace: "ns".into(), name: name.into() }
}

#[test]
fn edits_cause_events_and_own_writes_do_not() {
    let mut store = Store::default();
    let id = ResourceId::object("ns", "a");
    let one = object("a", 1, &spec());
    assert_eq!(store.apply_object("", WatchEvent::Applied(one.clone())), [StoreEvent::New(id.clone())]);
    let mut status = one.clone();
    status.metadata.resource_version = "2".into();
    status.status.hpa_name = "keda-hpa-a".into();
    assert_eq!(store.apply_object("", WatchEvent::Applied(status.clone())), []);
    let mut edited = status;
    edited.metadata.resource_version = "3".into();
    edited.metadata.generation = 2;
    assert_eq!(
        store.apply_object("", WatchEvent::Applied(edited.clone())),
        [StoreEvent::Changed(id.clone())]
    );
    edited.metadata.resource_version = "4".into();
    edited.metadata.annotations.insert(api::keda::annotations::PAUSED.into(), "true".into());
    assert_eq!(store.apply_object("", WatchEvent::Applied(edited)), [StoreEvent::Changed(id.clone())]);
    assert_eq!(store.apply_object("", gone("a")), [StoreEvent::Gone(id)]);
}

#[test]
fn users_of_an_authentication_follow_the_triggers() {
    let mut store = Store::default();
    let name = NamespacedName::new("ns", "creds");
    store.apply_object("", WatchEvent::Applied(object("a", 1, &spec())));
    store.apply_object("", WatchEvent::Applied(object("b", 2, &spec())));
    assert_eq!(store.users(&name).len(), 2);
    let mut other = spec();
    other["triggers"][0]["authenticationRef"] =
        json!({"name": "creds", "kind": "ClusterTriggerAuthentication"});
    store.apply_object("", WatchEvent::Applied(object("b", 3, &other)));
    assert_eq!(store.users(&name), [ResourceId::object("ns", "a")]);
    assert_eq!(store.users(&NamespacedName::new("", "creds")), [ResourceId::object("ns", "b")]);
    store.apply_object("", gone("a"));
    store.apply_object("", gone("b"));
    assert!(store.users.is_empty() && store.scalers_of.is_empty());
}

#[test]
fn undecodable_object_uses_and_scales_nothing() {
    let mut store = Store::default();
    for version in [1, 2, 3] {
        store.apply_object("", WatchEvent::Applied(object("a", version, &spec())));
        assert_eq!(store.scalers_of[&NamespacedName::new("ns", "web")], [ResourceId::object("ns", "a")]);
        let odd = WatchEvent::Unreadable { namespace: "ns".into(), name: "a".into(), error: "odd".into() };
        assert_eq!(
            store.apply_object("", odd),
            [StoreEvent::Undecodable(ResourceId::object("ns", "a"), "odd".into())]
        );
        assert!(store.users.is_empty() && store.scalers_of.is_empty());
    }
}

#[test]
fn job_deleted_before_its_creation_was_answered_stays_deleted() {
    let job = |name: &str| -> Job {
        let labels = json!({"scaledjob.keda.sh/name": "sj"});
        let metadata = json!({"name": name, "namespace": "ns", "resourceVersion": "5", "labels": labels});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    };
    let mut jobs = Jobs::default();
    jobs.add_created(job("slow"));
    assert_eq!(jobs.of(&NamespacedName::new("ns", "sj")).len(), 1, "the watch has not delivered it");
    for name in ["slow", "swift"] {
        jobs.apply_job("", WatchEvent::Applied(job(name)));
        jobs.apply_job("", WatchEvent::Deleted { namespace: "ns".into(), name: name.into() });
    }
    jobs.add_created(job("swift"));
    assert_eq!(jobs.of(&NamespacedName::new("ns", "sj")), []);
}

fn hpa(version: u32, owner: bool, max: i32, active: &str) -> HorizontalPodAutoscaler {
    let owner = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "a", "uid": "u", "controller": owner});
    serde_json::from_value(json!({
        "metadata": {"name": "keda-hpa-a", "namespace": "ns", "resourceVersion": version.to_string(), "ownerReferences": [owner]},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": max},
        "status": {"conditions": [{"type": "ScalingActive", "status": active, "reason": "R", "message": "m"}]},
    }))
    .unwrap()
}

#[test]
fn full_hpa_is_kept_until_it_was_checked() {
    let mut store = Store::default();
    let (id, name) = (ResourceId::object("ns", "a"), NamespacedName::new("ns", "keda-hpa-a"));
    let events = store.apply_hpa("", WatchEvent::Applied(hpa(1, true, 5, "True")));
    let fingerprint = store.hpas.get(&name).unwrap().fingerprint;
    assert_eq!(events, [StoreEvent::Hpa(id.clone(), Some(fingerprint))]);
    store.checked_hpa(&name, fingerprint + 1);
    assert!(store.hpas.get(&name).unwrap().full.is_some(), "another one was looked at");
    store.checked_hpa(&name, fingerprint);
    assert_eq!(
        store.apply_hpa("", WatchEvent::Applied(hpa(2, true, 5, "False"))),
        [],
        "only its status has changed"
    );
    let held = store.hpas.get(&name).unwrap();
    assert!(held.full.is_none() && held.scaling_active.as_ref().unwrap().status == "False");
    assert_eq!(store.apply_hpa("", WatchEvent::Applied(hpa(3, true, 6, "False"))).len(), 1);
    assert!(store.hpas.get(&name).unwrap().full.is_some());
    assert_eq!(
        store.apply_hpa("", WatchEvent::Applied(hpa(4, false, 6, "False"))),
        [StoreEvent::Hpa(id, None)]
    );
}

#[test]
fn jobs_are_found_with_their_pods() {
    let mut store = Store::default();
    let name = NamespacedName::new("ns", "sj");
    let job = |name: &str, version: &str, conditions: Value| -> WatchEvent<Job> {
        WatchEvent::Applied(
            serde_json::from_value(json!({
                "metadata": {"name": name, "namespace": "ns", "resourceVersion": version, "labels": {"scaledjob.keda.sh/name": "sj"}},
                "status": {"conditions": conditions},
            }))
            .unwrap(),
        )
    };
    store.jobs.apply_job("", job("sj-1", "1", json!([])));
    store.jobs.apply_job("", job("sj-2", "2", json!([])));
    let pod = serde_json::from_value(json!({
        "metadata": {"name": "sj-1-x", "namespace": "ns", "resourceVersion": "3", "labels": {"job-name": "sj-1"}},
        "status": {"phase": "Running"},
    }));
    store.jobs.apply_pod("", WatchEvent::Applied(pod.unwrap()));
    let jobs = store.jobs.of(&name);
    assert_eq!(jobs.len(), 2);
    assert_eq!(jobs[0].pods.as_ref().unwrap()[0].phase, "Running");
    assert_eq!(jobs[1].pods, Some(Vec::new()));
    store.jobs.apply_job("", job("sj-1", "4", json!([{"type": "Complete", "status": "True"}])));
    assert_eq!(store.jobs.of(&name)[0].state, keda::jobs::JobState::Complete);
    store.jobs.apply_job("", WatchEvent::Deleted { namespace: "ns".into(), name: "sj-1".into() });
    assert_eq!(store.jobs.of(&name).len(), 1);
}

#[test]
fn edit_that_comes_back_with_own_write_is_reported() {
    let mut store = Store::default();
    let (id, name) = (ResourceId::object("ns", "a"), NamespacedName::new("ns", "a"));
    let one = object("a", 1, &spec());
    store.apply_object("", WatchEvent::Applied(one.clone()));
    // Only our own write: the watch adds nothing.
    let mut written = one.clone();
    written.metadata.resource_version = "2".into();
    written.metadata.finalizers.push(FINALIZER.to_owned());
    store.wrote_object(&name, written.clone());
    assert_eq!(store.object(&id).unwrap().metadata.finalizers, [FINALIZER]);
    assert_eq!(store.apply_object("", WatchEvent::Applied(written.clone())), []);
    // Another client edits the object at version 3, the operator writes its status at version 4.
    let mut edited = written;
    edited.metadata.resource_version = "3".into();
    edited.metadata.generation = 2;
    let mut written = edited.clone();
    written.metadata.resource_version = "4".into();
    written.status.hpa_name = "keda-hpa-a".into();
    store.wrote_object(&name, written.clone());
    assert_eq!(store.apply_object("", WatchEvent::Applied(edited)), [StoreEvent::Changed(id)]);
    assert_eq!(store.apply_object("", WatchEvent::Applied(written)), []);
}

#[test]
fn only_a_changed_spec_of_an_authentication_is_an_edit() {
    let mut store = Store::default();
    let name = NamespacedName::new("ns", "creds");
    let authentication = |version: u32, finalizers: &[&str], key: &str| -> TriggerAuthentication {
        let metadata = json!({
            "name": "creds", "namespace": "ns", "resourceVersion": version.to_string(), "finalizers": finalizers,
        });
        let secret = json!([{"parameter": "password", "name": "secret", "key": key}]);
        serde_json::from_value(json!({"metadata": metadata, "spec": {"secretTargetRef": secret}})).unwrap()
    };
    let mut take =
        |authentication| store.apply_authentication(false, "", WatchEvent::Applied(authentication));
    assert_eq!(
        take(authentication(1, &[], "a")),
        [StoreEvent::Authentication(name.clone(), AuthenticationChange::Other)]
    );
    assert_eq!(
        take(authentication(2, &[FINALIZER], "a")),
        [StoreEvent::Authentication(name.clone(), AuthenticationChange::Other)]
    );
    assert_eq!(take(authentication(3, &[FINALIZER], "a")), []);
    assert_eq!(
        take(authentication(4, &[FINALIZER], "b")),
        [StoreEvent::Authentication(name, AuthenticationChange::SpecEdited)]
    );
}
