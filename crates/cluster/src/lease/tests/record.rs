use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::lease::Lease;

fn lease(value: &Value) -> Lease {
    Lease::parse(value.to_string().as_bytes()).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn sent(lease: &Lease) -> Value {
    serde_json::from_slice(&lease.body()).unwrap()
}

/// The first write of kube-controller-manager 1.36 with `--leader-elect`, as it went over the wire.
#[test]
fn a_new_lease_equals_that_of_kube_controller_manager() {
    let new = Lease::new("hc", "hc-elect").held("vm_b53a4b29", 15, at("2026-11-15T08:53:59.982795123Z"));
    let expected = json!({
        "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": "hc-elect", "namespace": "hc"},
        "spec": {
            "holderIdentity": "vm_b53a4b29", "leaseDurationSeconds": 15,
            "acquireTime": "2026-11-15T08:53:59.982795Z", "renewTime": "2026-11-15T08:53:59.982795Z",
            "leaseTransitions": 0
        }
    });
    assert_eq!(sent(&new), expected);
}

#[test]
fn a_renewal_changes_the_time_and_an_acquisition_the_transitions() {
    let stored = lease(&json!({
        "metadata": {"name": "l", "resourceVersion": "7", "labels": {"a": "b"}, "managedFields": [{"manager": "x"}]},
        "spec": {
            "holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z", "leaseTransitions": 3, "strategy": "kept"
        }
    }));
    // Labels and fields of others stay, and fields that the server manages are not sent.
    let renewed = sent(&stored.held("me", 15, at("2026-01-01T00:00:02Z")));
    assert_eq!(renewed["metadata"], json!({"name": "l", "resourceVersion": "7", "labels": {"a": "b"}}));
    assert_eq!(renewed["spec"]["strategy"], "kept");
    assert_eq!(renewed["spec"]["acquireTime"], "2026-01-01T00:00:00.000000Z");
    assert_eq!(renewed["spec"]["renewTime"], "2026-01-01T00:00:02.000000Z");
    assert_eq!(renewed["spec"]["leaseTransitions"], 3);

    let taken = sent(&stored.held("you", 20, at("2026-01-01T00:00:20Z")));
    assert_eq!(taken["spec"]["acquireTime"], "2026-01-01T00:00:20.000000Z");
    assert_eq!(taken["spec"]["leaseTransitions"], 4);
    assert_eq!(taken["spec"]["leaseDurationSeconds"], 20);

    // kube-controller-manager took over at once from exactly this.
    let released = stored.released(at("2026-01-01T00:00:30Z"));
    assert_eq!(released.holder(), "");
    assert_eq!(released.duration(), Some(Duration::from_secs(1)));
    assert_eq!(released.transitions(), 3);
    assert_eq!(sent(&released.held("you", 15, at("2026-01-01T00:00:31Z")))["spec"]["leaseTransitions"], 4);
}

#[test]
fn invalid_fields_are_read_as_absent() {
    let specs = [
        json!(null),
        json!(7),
        json!([]),
        json!({}),
        json!({"holderIdentity": null, "leaseDurationSeconds": null, "leaseTransitions": null}),
        json!({"holderIdentity": 5, "leaseDurationSeconds": "15", "leaseTransitions": "x", "acquireTime": 5}),
        json!({"holderIdentity": {}, "leaseDurationSeconds": -15, "leaseTransitions": -1, "renewTime": "soon"}),
        json!({"holderIdentity": "", "leaseDurationSeconds": 0, "leaseTransitions": 1.5}),
        json!({"holderIdentity": "", "leaseDurationSeconds": 1e300, "leaseTransitions": -1e300}),
        json!({"holderIdentity": "", "leaseDurationSeconds": u64::MAX, "leaseTransitions": null}),
    ];
    for spec in specs {
        let stored = lease(&json!({"metadata": {"resourceVersion": "1"}, "spec": spec}));
        assert_eq!((stored.holder(), stored.duration(), stored.transitions()), ("", None, 0), "{spec}");
        let taken = sent(&stored.held("me", 15, Timestamp::UNIX_EPOCH));
        assert_eq!(taken["spec"]["leaseTransitions"], 1, "{spec}");
        assert_eq!(taken["spec"]["acquireTime"], "1970-01-01T00:00:00.000000Z", "{spec}");
    }
    let most = lease(
        &json!({"metadata": {"resourceVersion": "1"}, "spec": {"leaseTransitions": u64::from(u32::MAX)}}),
    );
    assert_eq!(sent(&most.held("me", 15, Timestamp::MAX))["spec"]["leaseTransitions"], i32::MAX);
    for text in ["", "null", "[]", "\"x\"", "{", "{\"a\":1}x"] {
        assert_eq!(Lease::parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn the_address_is_that_of_the_holder_that_wrote_it() {
    let now = at("2026-01-01T00:00:00Z");
    let address = Some("10.0.0.7:10257".parse().unwrap());
    let stored = lease(&json!({
        "metadata": {"name": "l", "resourceVersion": "7", "annotations": {"a": "b"}},
        "spec": {"holderIdentity": "me"}
    }));
    assert_eq!(stored.address(), None);
    let held = stored.held("me", 15, now).with_address(address);
    assert_eq!(held.address(), address);
    let written = json!({"a": "b", "plimsoll.dev/leader-address": "me 10.0.0.7:10257"});
    assert_eq!(sent(&held)["metadata"]["annotations"], written);

    // A holder of an earlier version leaves the annotation, and a released lease has no holder.
    assert_eq!(held.held("you", 15, now).address(), None);
    assert_eq!(held.released(now).address(), None);
    let without = held.held("you", 15, now).with_address(None);
    assert_eq!(sent(&without)["metadata"]["annotations"], json!({"a": "b"}));
    let six = Some("[fd00::1]:6443".parse().unwrap());
    assert_eq!(Lease::new("ns", "l").held("me", 15, now).with_address(six).address(), six);

    for text in
        ["", "me", "me ", "me 10.0.0.7", "me user@10.0.0.7:1", "me evil.example:443", "you 10.0.0.7:1"]
    {
        let annotations = json!({"plimsoll.dev/leader-address": text});
        let odd = json!({"metadata": {"annotations": annotations}, "spec": {"holderIdentity": "me"}});
        assert_eq!(lease(&odd).address(), None, "{text}");
    }
}

/// The lease of a leader of version 0.1.0; a later one may have written more into it.
#[test]
fn the_lease_of_another_version_is_read_and_kept() {
    let text = include_str!("../../../../../tests/stored/v0.1.0/lease.json");
    let mut stored: Value = serde_json::from_str(text).unwrap();
    stored["metadata"]["annotations"]["plimsoll.dev/later"] = json!("kept");
    stored["spec"]["preferredHolder"] = json!("kept");
    let stored = lease(&stored);
    assert_eq!(stored.holder(), "plimsoll-controller-0_93268e5745e8f74e");
    assert_eq!(stored.address(), Some("10.0.0.7:10257".parse().unwrap()));
    assert_eq!((stored.duration(), stored.transitions()), (Some(Duration::from_secs(15)), 0));
    // The address is that of the old leader until the new one writes its own.
    let taken = stored.held("plimsoll-controller-1", 15, at("2026-11-18T01:20:00Z"));
    assert_eq!((taken.address(), taken.transitions()), (None, 1));
    let sent = sent(&taken);
    assert_eq!(sent["metadata"]["annotations"]["plimsoll.dev/later"], "kept");
    assert_eq!(sent["spec"]["preferredHolder"], "kept");
}
