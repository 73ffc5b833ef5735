//! Review objects: they get a response and are never stored.

use api::field::{AsJson, FieldError};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Access;
use super::policy::{AccessTarget, Attributes};
use super::tokens::{ISSUER, ServiceAccountRef};
use super::user::User;
use crate::json::{strings, text};
use crate::release::ApiServerBehavior;
use crate::request::ResourcePath;
use crate::status::{About, Cause, Status};

/// Responds to a review: `TokenReview`, `SelfSubjectReview`, `SubjectAccessReview` or `SelfSubjectAccessReview`.
pub fn answer(
    access: &Access,
    kind: &str,
    mut review: Value,
    user: &User,
    now: Timestamp,
    behavior: &ApiServerBehavior,
) -> Result<Value, Status> {
    let status = match kind {
        "TokenReview" => token_review(access, &review, now)?,
        "SelfSubjectReview" => json!({"userInfo": user.to_json()}),
        _ => {
            let own = (kind == "SelfSubjectAccessReview").then_some(user);
            access_review(access, &review, own, behavior)?
        }
    };
    let group = if kind.ends_with("AccessReview") { "authorization.k8s.io" } else { "authentication.k8s.io" };
    let mut metadata = json!({});
    if kind == "SelfSubjectReview" {
        metadata = json!({"creationTimestamp": api::instant::format(now)});
    }
    let mut answer = json!({"kind": kind, "apiVersion": format!("{group}/v1"), "metadata": metadata});
    if let Some(fields) = answer.as_object_mut() {
        if let Some(spec) = review.get_mut("spec").filter(|_| kind != "SelfSubjectReview") {
            fields.insert("spec".to_owned(), spec.take());
        }
        fields.insert("status".to_owned(), status);
    }
    Ok(answer)
}

fn token_review(access: &Access, review: &Value, now: Timestamp) -> Result<Value, Status> {
    let token = text(review, "spec.token");
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let mut wanted = strings(review, "spec.audiences");
    if wanted.is_empty() {
        wanted.push(ISSUER.to_owned());
    }
    Ok(match access.tokens.read(token, &wanted, now) {
        Ok((user, audiences)) => {
            json!({"authenticated": true, "user": user.to_json(), "audiences": audiences})
        }
        Err(refusal) => json!({"user": {}, "error": refusal.to_string()}),
    })
}

fn access_review(
    access: &Access,
    review: &Value,
    own: Option<&User>,
    behavior: &ApiServerBehavior,
) -> Result<Value, Status> {
    let resource = review.pointer("/spec/resourceAttributes").filter(|given| given.is_object());
    let path = review.pointer("/spec/nonResourceAttributes").filter(|given| given.is_object());
    let mut faults = Vec::new();
    let one = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    let of_spec = behavior.one_error_of_review_attributes;
    match (resource, path) {
        (None, None) => {
            let field = if of_spec { "spec" } else { "spec.resourceAttributes" };
            faults.push(FieldError::invalid(field, AsJson(&Value::Null), one));
        }
        (Some(_), Some(path)) => {
            let shown = json!({"Path": text(path, "path"), "Verb": text(path, "verb")});
            let both = "cannot be specified in combination with resourceAttributes";
            let (field, detail) = if of_spec { ("spec", one) } else { ("spec.nonResourceAttributes", both) };
            faults.push(FieldError::invalid(field, AsJson(&shown), detail));
        }
        _ => {}
    }
    let groups = strings(review, "spec.groups");
    if own.is_none() && text(review, "spec.user").is_empty() && groups.is_empty() {
        faults.push(FieldError::invalid("spec.user", "", "at least one of user or group must be specified"));
    }
    let metadata = review.get("metadata").and_then(Value::as_object);
    if metadata.is_some_and(|metadata| metadata.keys().any(|field| field != "managedFields")) {
        faults.push(FieldError::invalid("metadata", AsJson(&metadata), "must be empty"));
    }
    if !faults.is_empty() {
        return Err(invalid(About::new("authorization.k8s.io", "", ""), &faults));
    }
    let asked = User { name: text(review, "spec.user").to_owned(), groups, ..User::default() };
    let wanted = match (resource, path) {
        (Some(given), _) => resource_attributes(given),
        (_, Some(given)) => {
            let target = AccessTarget::Path(text(given, "path").to_owned());
            Attributes { verb: text(given, "verb").to_owned(), target }
        }
        _ => Attributes::default(),
    };
    Ok(json!({"allowed": access.allows(own.unwrap_or(&asked), &wanted)}))
}

fn resource_attributes(given: &Value) -> Attributes {
    let optional = |path: &str| Some(text(given, path).to_owned()).filter(|text| !text.is_empty());
    let path = ResourcePath {
        group: text(given, "group").to_owned(),
        version: text(given, "version").to_owned(),
        namespace: optional("namespace"),
        resource: text(given, "resource").to_owned(),
        name: optional("name"),
        subresource: optional("subresource"),
        watch: false,
    };
    Attributes { verb: text(given, "verb").to_owned(), target: AccessTarget::Resource(path) }
}

fn invalid(about: About, faults: &[FieldError]) -> Status {
    let cause = |fault: &FieldError| Cause {
        reason: fault.kind.reason().to_owned(),
        message: fault.message(),
        field: fault.field.clone(),
    };
    Status::invalid(about, faults.iter().map(cause).collect())
}

/// Responds to a `TokenRequest` for an existing service account.
#[expect(clippy::needless_pass_by_value, reason = "a request is used up by its answer")]
pub fn token_request(
    access: &Access,
    namespace: &str,
    name: &str,
    uid: &str,
    request: Value,
    now: Timestamp,
) -> Result<Value, Status> {
    let mut audiences = strings(&request, "spec.audiences");
    if audiences.is_empty() {
        audiences.push(ISSUER.to_owned());
    }
    let seconds = request.pointer("/spec/expirationSeconds").and_then(Value::as_i64).unwrap_or(3600);
    let detail = match seconds {
        ..600 => Some("may not specify a duration less than 10 minutes"),
        600..=0x1_0000_0000 => None,
        _ => Some("may not specify a duration larger than 2^32 seconds"),
    };
    if let Some(detail) = detail {
        let fault = FieldError::invalid("spec.expirationSeconds", seconds, detail);
        return Err(invalid(About::new("authentication.k8s.io", "TokenRequest", ""), &[fault]));
    }
    let expiry = now.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
    let bound = request.pointer("/spec/boundObjectRef").cloned().unwrap_or_default();
    let token = access.tokens.issue(ServiceAccountRef { namespace, name, uid }, &audiences, now, expiry);
    let format = api::instant::format;
    Ok(json!({
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": format(now)},
        "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": bound},
        "status": {"token": token, "expirationTimestamp": format(expiry)},
    }))
}
