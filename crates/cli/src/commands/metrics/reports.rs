//! `metrics.plimsoll.dev`: the report of this replica, for `plimsoll metrics doctor`.

use std::sync::Arc;

use api::reports::{API_VERSION, CURRENT, GROUP, KIND, RESOURCE, ReportList, ServerReport, VERSION};
use http::{Method, Request, Response};
use serde_json::json;
use serve::{ApiGroupVersion, ApiResource, AuthorizedRequest, Body, Status, StatusDetails};

/// Creates the report.
pub(super) type Reporter = Arc<dyn Fn() -> ServerReport + Send + Sync>;

/// The API group of the report.
pub(super) fn group(reporter: Reporter) -> ApiGroupVersion {
    let route = tower_service(move |call: &AuthorizedRequest| answer(&reporter, call));
    let any = |description: &str| json!({"type": "object", "description": description, "x-kubernetes-preserve-unknown-fields": true});
    let resource = ApiResource {
        name: RESOURCE.to_owned(),
        singular: "report".to_owned(),
        kind: KIND.to_owned(),
        namespaced: false,
        verbs: vec!["get".to_owned(), "list".to_owned()],
        description:
            "Report is the status of a replica of the metrics server, with its problems by cause and their remedies."
                .to_owned(),
        properties: json!({
            "server": any("Who reports."),
            "resource": any("Status of metrics.k8s.io."),
            "custom": any("Status of custom.metrics.k8s.io."),
            "external": any("Status of external.metrics.k8s.io."),
        }),
        ..ApiResource::default()
    };
    ApiGroupVersion::new(GROUP, VERSION, vec![resource], route)
}

fn answer(reporter: &Reporter, call: &AuthorizedRequest) -> Result<Response<Body>, Status> {
    let segments: Vec<&str> = call.path.trim_matches('/').split('/').skip(3).collect();
    let about = |name: &str| StatusDetails::new(GROUP, RESOURCE, name);
    match segments.as_slice() {
        [RESOURCE, ..] if call.method != Method::GET => Err(Status::not_allowed()),
        [RESOURCE] | [RESOURCE, _] if call.query.is_set("watch") => Err(Status::no_watch(about(""))),
        [RESOURCE] => {
            let kind = format!("{KIND}List");
            let list = ReportList { api_version: API_VERSION.to_owned(), kind, items: vec![reporter()] };
            Ok(serve::response::json(200, &list))
        }
        [RESOURCE, CURRENT] => Ok(serve::response::json(200, &reporter())),
        [RESOURCE, name] => Err(Status::not_found(about(name))),
        _ => Err(Status::no_path()),
    }
}

/// Makes a route of a function.
fn tower_service(
    answer: impl Fn(&AuthorizedRequest) -> Result<Response<Body>, Status> + Send + Sync + 'static,
) -> serve::Route {
    let answer = Arc::new(answer);
    serve::Route::new(tower::service_fn(move |request: Request<Body>| {
        let answer = Arc::clone(&answer);
        async move {
            let found = match request.extensions().get::<AuthorizedRequest>() {
                Some(call) => answer(call),
                None => Err(Status::internal("the request has not been authorized")),
            };
            Ok(found.unwrap_or_else(|status| serve::response::status(&status)))
        }
    }))
}
