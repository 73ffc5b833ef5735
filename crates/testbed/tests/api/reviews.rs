//! TokenReviews and SubjectAccessReviews.

use serde_json::{Value, json};
use testbed::cases;
use testbed::harness::{Case, Session};

pub(crate) const CASES: &[Case] = cases![
    a_token_nobody_gave,
    no_token,
    an_administrator,
    somebody_unknown,
    paths_that_are_no_resources,
    questions_that_are_wrong,
    only_asking
];

const TOKENS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

fn token(spec: &Value) -> Value {
    json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec})
}

fn access(spec: &Value) -> Value {
    json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
}

async fn a_token_nobody_gave(s: Session) {
    s.post(TOKENS, token(&json!({"token": "nonsense"}))).await;
}

async fn no_token(s: Session) {
    s.post(TOKENS, token(&json!({}))).await;
    s.post(TOKENS, token(&json!({"token": ""}))).await;
}

async fn an_administrator(s: Session) {
    let what = json!({"namespace": "{ns}", "verb": "get", "resource": "pods"});
    s.post(ACCESS, access(&json!({"user": "ada", "groups": ["system:masters"], "resourceAttributes": what})))
        .await;
}

async fn somebody_unknown(s: Session) {
    let what = json!({"namespace": "{ns}", "verb": "get", "group": "metrics.k8s.io", "resource": "pods"});
    s.post(ACCESS, access(&json!({"user": "nobody", "resourceAttributes": what}))).await;
}

async fn paths_that_are_no_resources(s: Session) {
    let what = json!({"path": "/metrics", "verb": "get"});
    s.post(
        ACCESS,
        access(&json!({"user": "ada", "groups": ["system:masters"], "nonResourceAttributes": what})),
    )
    .await;
    s.post(ACCESS, access(&json!({"user": "nobody", "nonResourceAttributes": what}))).await;
}

async fn questions_that_are_wrong(s: Session) {
    s.post(ACCESS, access(&json!({"user": "ada"}))).await;
    s.post(ACCESS, access(&json!({"resourceAttributes": {"verb": "get", "resource": "pods"}}))).await;
    let both = json!({"user": "ada", "resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/", "verb": "get"}});
    s.post(ACCESS, access(&both)).await;
    let mut named =
        access(&json!({"user": "ada", "resourceAttributes": {"verb": "get", "resource": "pods"}}));
    named["metadata"] = json!({"name": "a"});
    s.post(ACCESS, named).await;
}

async fn only_asking(s: Session) {
    s.get(TOKENS).await;
    s.get(ACCESS).await;
    s.delete(&format!("{ACCESS}/a")).await;
}
