//! Schemas, and type errors compared with the texts of a real API server.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use serde_json::{Value, json};

use super::*;
use crate::kinds::KINDS;

fn deployment() -> Arc<Schema> {
    built_in("apps", "v1", "Deployment").unwrap()
}

fn at<'s>(schema: &'s Schema, path: &str) -> SchemaCursor<'s> {
    path.split('.').fold(SchemaCursor::Known(schema), |cursor, key| match cursor.list() {
        Some(list) => SchemaCursor::Known(list.items.schema()).field(key),
        None => cursor.field(key),
    })
}

#[test]
fn every_kind_has_a_schema_in_every_version() {
    for kind in KINDS {
        for version in kind.versions {
            assert!(built_in(kind.group, version, kind.kind).is_some(), "{} {version}", kind.kind);
        }
    }
    for (group, version, kind) in [
        ("autoscaling", "v1", "Scale"),
        ("authentication.k8s.io", "v1", "TokenReview"),
        ("authorization.k8s.io", "v1", "SubjectAccessReview"),
        ("policy", "v1", "Eviction"),
    ] {
        assert!(built_in(group, version, kind).is_some(), "{kind}");
    }
    assert!(built_in("apps", "v9", "Deployment").is_none());
}

#[test]
fn lists_and_maps_are_merged_as_declared() {
    let schema = deployment();
    let keys = |path: &str| at(&schema, path).list().unwrap().kind.clone();
    let map = |keys: &[&str]| ListKind::Map(keys.iter().map(|key| (*key).to_owned()).collect());
    assert_eq!(keys("spec.template.spec.containers"), map(&["name"]));
    assert_eq!(keys("spec.template.spec.containers.ports"), map(&["containerPort", "protocol"]));
    assert_eq!(keys("metadata.finalizers"), ListKind::Set);
    assert_eq!(keys("spec.template.spec.tolerations"), ListKind::Atomic);
    assert!(at(&schema, "spec.selector").schema().unwrap().is_leaf());
    let ports = at(&schema, "spec.template.spec.containers").list().unwrap().items.schema();
    let strategy = &SchemaCursor::Known(ports).declared("ports").unwrap().strategy;
    assert_eq!((strategy.merge, strategy.key.as_deref()), (true, Some("containerPort")));
    let volumes = &at(&schema, "spec.template.spec").declared("volumes").unwrap().strategy;
    assert!(volumes.merge && volumes.retain_keys);
}

#[test]
fn recursive_types_are_supported() {
    let schema = built_in("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap();
    let definition = json!({"type": "object", "properties": {"a": {"properties": {"b": {"bogus": 1}}}}});
    let versions = json!([{"schema": {"openAPIV3Schema": definition}}]);
    assert_eq!(
        unknown_fields(&schema, &json!({"spec": {"versions": versions}})),
        ["spec.versions[0].schema.openAPIV3Schema.properties.a.properties.b.bogus"]
    );
    assert!(format!("{schema:?}").contains("CustomResourceDefinitionSpec"));
}

#[test]
fn unknown_fields_are_reported_and_dropped() {
    let mut object = json!({
        "foo": 1, "metadata": {"name": "x", "bar": 1},
        "spec": {"Replicas": 1, "template": {"spec": {"x": 1, "containers": [{"name": "a", "zz": 1}, {"ports": [{"q": 1}]}]}}},
    });
    assert_eq!(
        unknown_fields(&deployment(), &object),
        [
            "foo",
            "metadata.bar",
            "spec.Replicas",
            "spec.template.spec.x",
            "spec.template.spec.containers[0].zz",
            "spec.template.spec.containers[1].ports[0].q",
        ]
    );
    prune(&deployment(), &mut object);
    assert_eq!(
        object,
        json!({"metadata": {"name": "x"}, "spec": {"template": {"spec": {"containers": [{"name": "a"}, {"ports": [{}]}]}}}})
    );
}

fn thing() -> Arc<Schema> {
    let text = json!({"type": "string"});
    Schema::of_custom(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": text}}},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"known": {"type": "object"}}},
        "emb": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": text}}},
    }}}}))
}

#[test]
fn custom_resources_preserve_fields_as_their_definition_says() {
    let mut object = json!({"apiVersion": "v1", "kind": "T", "metadata": {"name": "q", "zz": 1}, "spec": {
        "m": {"k": {"q": 1, "x": "y"}}, "list": [{"a": "b", "c": 1}],
        "any": {"u": {"v": [1]}, "known": {"w": 1}},
        "emb": {"apiVersion": "v1", "kind": "P", "metadata": {"name": "x", "bogus": 1}, "u": 1},
    }, "status": {}});
    assert_eq!(
        unknown_fields(&thing(), &object),
        [
            "spec.any.known.w",
            "spec.list[0].c",
            "spec.m.k.q",
            "status",
            "metadata.zz",
            "spec.emb.metadata.bogus"
        ]
    );
    prune(&thing(), &mut object);
    assert_eq!(object["spec"]["any"], json!({"u": {"v": [1]}, "known": {}}));
    assert_eq!(object["spec"]["emb"]["u"], 1);
    assert_eq!(object["spec"]["emb"]["metadata"], json!({"name": "x"}));
    let open = Schema::of_custom(&json!({"x-kubernetes-preserve-unknown-fields": true, "type": "object"}));
    assert!(unknown_fields(&open, &json!({"spec": {"a": 1}, "x": 1})).is_empty());
}

/// The real server's responses to a Deployment with this `spec`, after `cannot unmarshal`.
#[test]
fn type_errors_have_the_texts_of_go() {
    let container = |container: Value| json!({"template": {"spec": {"containers": [container]}}});
    for (spec, text) in [
        (json!({"replicas": "x"}), "string into Go struct field DeploymentSpec.spec.replicas of type int32"),
        (
            json!({"replicas": 1.5}),
            "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"replicas": 3_000_000_000_i64, "paused": 1}),
            "number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (json!({"paused": 1}), "number into Go struct field DeploymentSpec.spec.paused of type bool"),
        (json!("x"), "string into Go struct field Deployment.spec of type v1.DeploymentSpec"),
        (
            json!({"selector": {"matchLabels": []}}),
            "array into Go struct field LabelSelector.spec.selector.matchLabels of type map[string]string",
        ),
        (
            json!({"selector": {"matchLabels": {"a": 5}}}),
            "number into Go struct field LabelSelector.spec.selector.matchLabels of type string",
        ),
        (
            json!({"strategy": {"type": 5}}),
            "number into Go struct field DeploymentStrategy.spec.strategy.type of type v1.DeploymentStrategyType",
        ),
        (
            json!({"strategy": {"rollingUpdate": {"maxSurge": true}}}),
            "bool into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
        ),
        (
            json!({"template": {"spec": {"containers": {}}}}),
            "object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
        (
            json!({"template": {"spec": {"containers": ["x"]}}}),
            "string into Go struct field PodSpec.spec.template.spec.containers of type v1.Container",
        ),
        (
            container(json!({"command": [5]})),
            "number into Go struct field Container.spec.template.spec.containers.command of type string",
        ),
        (
            container(json!({"resources": {"limits": []}})),
            "array into Go struct field ResourceRequirements.spec.template.spec.containers.resources.limits of type \
             v1.ResourceList",
        ),
        (
            container(json!({"livenessProbe": {"httpGet": {"port": true}}})),
            "bool into Go struct field \
             HTTPGetAction.spec.template.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
        ),
    ] {
        let found = type_error(&deployment(), &json!({"spec": spec})).unwrap();
        assert_eq!(found, format!("json: cannot unmarshal {text}"));
    }
    let status = unreadable("Deployment", "v1", "no");
    assert_eq!(status.message, "Deployment in version \"v1\" cannot be handled as a Deployment: no");
}

#[test]
fn types_with_their_own_decoder_end_decoding() {
    let cpu = |cpu: Value| {
        let container = json!({"resources": {"limits": {"cpu": cpu}}});
        let object = json!({"spec": {"replicas": "x", "template": {"spec": {"containers": [container]}}}});
        type_error(&deployment(), &object).unwrap()
    };
    assert!(cpu(json!("abc")).starts_with("quantities must match the regular expression"));
    assert!(cpu(json!(true)).starts_with("quantities must match the regular expression"));
    assert_eq!(cpu(json!("1e")), "unable to parse quantity's suffix");
    assert!(cpu(json!(1.5)).contains("replicas"));
    let time = |text: Value| type_error(&deployment(), &json!({"metadata": {"creationTimestamp": text}}));
    assert_eq!(
        time(json!("2026-01-01")).unwrap(),
        "parsing time \"2026-01-01\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" as \"T\""
    );
    assert_eq!(
        time(json!(5)).unwrap(),
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string"
    );
    assert_eq!(time(json!("2026-01-01T00:00:00.123Z")), None);
    assert_eq!(time(Value::Null), None);
    let lease = built_in("coordination.k8s.io", "v1", "Lease").unwrap();
    let renewed = |text: &str| type_error(&lease, &json!({"spec": {"renewTime": text}}));
    assert_eq!(renewed("2026-01-01T00:00:00.123456Z"), None);
    assert_eq!(
        renewed("2026-01-01T00:00:00Z").unwrap(),
        "parsing time \"2026-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\""
    );
}

#[test]
fn base64_errors_have_the_positions_of_go() {
    let secret = built_in("", "v1", "Secret").unwrap();
    for (text, at) in [
        ("YQ==", None),
        ("YWJj\n", None),
        ("", None),
        ("!!", Some(0)),
        ("YQ", Some(0)),
        ("YQ=", Some(3)),
        ("YQ==x", Some(4)),
        ("Y!==", Some(1)),
        ("YWJjYQ", Some(4)),
    ] {
        let found = type_error(&secret, &json!({"data": {"a": text}}));
        assert_eq!(found, at.map(|at| format!("illegal base64 data at input byte {at}")), "{text:?}");
    }
}

#[test]
fn only_metadata_of_custom_resources_is_type_checked() {
    let wrong = |object: Value| type_error(&thing(), &object);
    assert_eq!(
        wrong(json!({"metadata": {"labels": {"a": 5}}})).unwrap(),
        "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
    );
    assert_eq!(
        wrong(json!({"metadata": 5})).unwrap(),
        "json: cannot unmarshal number into Go value of type v1.ObjectMeta"
    );
    assert_eq!(wrong(json!({"spec": 5})), None);
}

#[test]
fn objects_are_normalized_as_go_encodes_them() {
    let normalized = |group: &str, kind: &str, mut object: Value| {
        normalize(&built_in(group, "v1", kind).unwrap(), &mut object);
        object
    };
    let pod = json!({"metadata": {"labels": {}, "annotations": {"a": null}, "finalizers": []}, "spec": {
        "containers": [{"name": "a", "env": null}], "securityContext": {}, "nodeSelector": {}}});
    assert_eq!(
        normalized("", "Pod", pod),
        json!({"metadata": {"annotations": {"a": ""}}, "spec": {"containers": [{"name": "a", "resources": {}}], "securityContext": {}}, "status": {}})
    );
    let node = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let node = normalized("", "Node", node);
    let condition =
        json!({"type": "Ready", "status": "True", "lastHeartbeatTime": null, "lastTransitionTime": null});
    assert_eq!(node["status"]["conditions"], json!([condition]));
    assert_eq!(node["status"]["daemonEndpoints"], json!({"kubeletEndpoint": {"Port": 0}}));
    let service = normalized("", "Service", json!({"spec": {"ports": [{"port": 80}]}}));
    assert_eq!(service["status"], json!({"loadBalancer": {}}));
}
