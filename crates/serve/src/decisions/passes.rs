//! The resource `passes`.

use api::decisions::VERSION;
use api::decisions::passes::{MAX_PASSES, PassDetail, PassQuery};
use api::selector::FieldSelector;
use http::Response;
use serde_json::json;

use super::{DecisionSource, ResponseForm, table, time};
use crate::api_group::ApiResource;
use crate::request::AuthorizedRequest;
use crate::response::{self, Body};
use crate::status::Status;

/// The resource in discovery.
pub(super) fn resource() -> ApiResource {
    let text = |description: &str| json!({"type": "string", "description": description});
    let count = |description: &str| json!({"type": "integer", "format": "int32", "description": description});
    ApiResource {
        name: "passes".to_owned(),
        singular: "pass".to_owned(),
        kind: "Pass".to_owned(),
        verbs: vec!["list".to_owned()],
        description: "Pass is one reconcile of an autoscaler in short: what was seen and what was decided."
            .to_owned(),
        properties: json!({
            "namespace": text("Namespace of the autoscaler."),
            "name": text("Kind, a dot, name of the autoscaler."),
            "at": {"type": "string", "format": "date-time", "description": "When."},
            "mode": text("What the controller does with it: active, shadow, dry-run or off."),
            "current": count("The count that was found."),
            "desired": count("The count that should be."),
            "min": count("The lower bound."),
            "max": count("The upper bound."),
            "outcome": text("failed, kept, pending, scaled, dryRun or writeFailed."),
            "reason": text("Why, in one sentence."),
            "limit": text("What kept the count from the recommendation."),
            "error": text("The error of the pass."),
            "changed": {"type": "boolean", "description": "Whether the count was changed."},
            "metrics": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "description": "What each metric said: name, value, target, ratio, proposal, error."},
        }),
        ..ApiResource::default()
    }
}

/// Lists passes.
pub(super) fn answer(
    group: &'static str,
    decisions: &dyn DecisionSource,
    namespace: Option<&str>,
    call: &AuthorizedRequest,
) -> Result<Response<Body>, Status> {
    let form = ResponseForm::of(call)?;
    let given = |key: &str| call.query.get(key).filter(|text| !text.is_empty());
    let fields = FieldSelector::parse(given("fieldSelector").unwrap_or_default());
    let fields = fields.map_err(|error| Status::bad_request(error.to_string()))?;
    let known = fields.restricted_to(&["metadata.name", "metadata.namespace"]);
    known.map_err(|error| Status::bad_request(error.to_string()))?;
    let limit = given("limit").map(|text| match text.parse::<usize>() {
        Ok(limit) => Ok(if limit == 0 { MAX_PASSES } else { limit.min(MAX_PASSES) }),
        Err(_) => Err(Status::bad_request(format!("limit: Invalid value: {}", api::gotext::quote(text)))),
    });
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let query = PassQuery {
        namespace: owned(namespace.or_else(|| fields.exact("metadata.namespace"))),
        name: owned(fields.exact("metadata.name")),
        after: owned(given("after")),
        since: time(call, "since")?,
        until: time(call, "until")?,
        limit: limit.transpose()?,
        detail: match given("detail") {
            Some("full") => PassDetail::Full,
            Some("changed") => PassDetail::Changed,
            _ => PassDetail::Short,
        },
    };
    let mut list = decisions.passes(&query).map_err(|error| Status::gone(error.to_string()))?;
    list.items.retain(|item| {
        let field =
            |field: &str| if field == "metadata.name" { item.name.as_str() } else { item.namespace.as_str() };
        fields.matches(field)
    });
    if let ResponseForm::Table(style) = form {
        return Ok(response::json(200, &table::passes(&list.items, style, &list.metadata.cursor)));
    }
    "PassList".clone_into(&mut list.kind);
    list.api_version = format!("{group}/{VERSION}");
    Ok(response::json(200, &list))
}
