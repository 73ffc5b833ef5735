#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use http::HeaderValue;
use serde_json::{Value, json};

use super::*;
use crate::KubernetesVersion::{self, V1_36, V1_37};
use crate::release::ApiServerBehavior;

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
        .collect()
}

fn review(access: &Access, kind: &str, spec: &Value) -> Value {
    answer(access, kind, json!({"spec": spec}), &User::admin(), NOW, ApiServerBehavior::of(V1_36)).unwrap()
}

#[test]
fn user_comes_from_the_connection_the_token_or_is_anonymous() {
    let access = Access::new().unwrap();
    let who =
        |pairs: &[(&'static str, &str)], peer: Option<&User>| access.authenticate(&headers(pairs), peer, NOW);
    assert_eq!(who(&[], None).unwrap(), User::anonymous());
    assert_eq!(who(&[("authorization", "Basic eDp5")], None).unwrap(), User::anonymous());
    assert_eq!(who(&[("authorization", "Bearer ")], None).unwrap(), User::anonymous());
    let refused = who(&[("authorization", "Bearer nonsense")], None).unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (401, "Unauthorized"));
    let token = format!("Bearer {}", access.tokens.admin());
    assert_eq!(who(&[("authorization", &token)], None).unwrap(), User::admin());
    assert_eq!(who(&[], Some(&User::admin())).unwrap(), User::admin());
}

#[test]
fn administrators_can_impersonate() {
    let access = Access::new().unwrap();
    let who =
        |pairs: &[(&'static str, &str)], peer: &User| access.authenticate(&headers(pairs), Some(peer), NOW);
    let admin = User::admin();
    let jane = who(
        &[("impersonate-user", "jane"), ("impersonate-group", "dev"), ("impersonate-extra-scopes", "a")],
        &admin,
    );
    let jane = jane.unwrap();
    assert_eq!((jane.name.as_str(), jane.groups.join(",").as_str()), ("jane", "dev,system:authenticated"));
    assert_eq!(jane.extra["scopes"], ["a"]);
    let bob = who(&[("impersonate-user", "system:serviceaccount:team:bob")], &admin).unwrap();
    assert_eq!(bob, User::service_account("team", "bob"));
    assert_eq!(who(&[("impersonate-user", "system:anonymous")], &admin).unwrap(), User::anonymous());
    assert_eq!(who(&[("impersonate-group", "dev")], &admin).unwrap_err().code, 400);
    assert_eq!(who(&[("impersonate-user", "jane")], &bob).unwrap_err().code, 403);
}

#[test]
fn tokens_are_issued_and_reviewed() {
    let access = Access::new().unwrap();
    let request = json!({"spec": {"audiences": ["foo"], "expirationSeconds": 700}});
    let made = token_request(&access, "team", "bob", "u-1", request, NOW).unwrap();
    assert_eq!(made["spec"], json!({"audiences": ["foo"], "expirationSeconds": 700, "boundObjectRef": null}));
    assert_eq!(made["status"]["expirationTimestamp"], "2027-01-15T08:11:40Z");
    let token = &made["status"]["token"];
    let good = review(&access, "TokenReview", &json!({"token": token, "audiences": ["foo", "bar"]}));
    assert_eq!(good["status"]["authenticated"], true);
    assert_eq!(good["status"]["audiences"], json!(["foo"]));
    assert_eq!(good["status"]["user"]["username"], "system:serviceaccount:team:bob");
    let bad = review(&access, "TokenReview", &json!({"token": "x"}));
    assert_eq!(bad["status"], json!({"user": {}, "error": "invalid bearer token"}));
    assert_eq!(bad["kind"], "TokenReview");
    let behavior = ApiServerBehavior::of(V1_36);
    let refused = answer(&access, "TokenReview", json!({}), &User::admin(), NOW, behavior).unwrap_err();
    assert_eq!(refused.message, "token is required for TokenReview in authentication");
    let short = token_request(&access, "team", "bob", "u", json!({"spec": {"expirationSeconds": 10}}), NOW);
    assert_eq!(
        short.unwrap_err().message,
        "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 10: may not specify a \
         duration less than 10 minutes"
    );
}

#[test]
fn subject_access_reviews_are_answered() {
    let access = Access::new().unwrap();
    let pods = json!({"namespace": "x", "verb": "get", "resource": "pods"});
    let allowed = |user: &str, groups: &[&str]| {
        let spec = json!({"resourceAttributes": pods, "user": user, "groups": groups});
        review(&access, "SubjectAccessReview", &spec)["status"] == json!({"allowed": true})
    };
    assert!(allowed("admin", &["system:masters"]) && allowed("bob", &["system:authenticated"]));
    assert!(!allowed("bob", &[]));
    access.deny(DenyRule { resource: "pods".into(), ..DenyRule::everything("bob") });
    assert!(!allowed("bob", &["system:authenticated"]) && allowed("eve", &["system:authenticated"]));
    let own = review(&access, "SelfSubjectAccessReview", &json!({"resourceAttributes": pods}));
    assert_eq!(own["status"], json!({"allowed": true}));
    let who = review(&access, "SelfSubjectReview", &json!({}));
    assert_eq!(who["status"]["userInfo"]["groups"], json!(["system:masters", "system:authenticated"]));
}

#[test]
fn review_errors_have_the_texts_of_the_real_server() {
    let access = Access::new().unwrap();
    let refused = |version: KubernetesVersion, spec: Value| {
        let behavior = ApiServerBehavior::of(version);
        answer(&access, "SubjectAccessReview", json!({"spec": spec}), &User::admin(), NOW, behavior)
            .unwrap_err()
            .message
    };
    let none = |field: &str| {
        format!(
            ".authorization.k8s.io \"\" is invalid: [{field}: Invalid value: null: exactly one of nonResourceAttributes or \
             resourceAttributes must be specified, spec.user: Invalid value: \"\": at least one of user or group must be \
             specified]"
        )
    };
    let both = |text: &str| {
        let shown = "{\"Path\":\"/\",\"Verb\":\"get\"}";
        format!(".authorization.k8s.io \"\" is invalid: {}", text.replace("VALUE", shown))
    };
    for (version, nothing, everything) in [
        (
            V1_36,
            none("spec.resourceAttributes"),
            both(
                "spec.nonResourceAttributes: Invalid value: VALUE: cannot be specified in combination with resourceAttributes",
            ),
        ),
        (
            V1_37,
            none("spec"),
            both(
                "spec: Invalid value: VALUE: exactly one of nonResourceAttributes or resourceAttributes must be specified",
            ),
        ),
    ] {
        assert_eq!(refused(version, json!({})), nothing);
        let all = json!({"user": "bob", "resourceAttributes": {}, "nonResourceAttributes": {"path": "/", "verb": "get"}});
        assert_eq!(refused(version, all), everything);
    }
}
