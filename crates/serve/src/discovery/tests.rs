#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::convert::Infallible;

use http::Request;
use http::header::ACCEPT;
use http_body_util::BodyExt as _;
use serde_json::json;
use tower::util::BoxCloneSyncService;

use super::*;
use crate::api_group::ApiResource;

fn group(name: &str, version: &str) -> ApiGroupVersion {
    let route = tower::service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(response::text(200, "")) });
    let resource = ApiResource {
        name: "things".into(),
        singular: "thing".into(),
        kind: "Thing".into(),
        verbs: vec!["get".into(), "list".into()],
        short_names: vec!["th".into()],
        properties: json!({"size": {"type": "integer"}}),
        ..ApiResource::default()
    };
    let route = BoxCloneSyncService::new(route);
    ApiGroupVersion::new(name, version, vec![resource], route)
}

fn discovery() -> Discovery {
    Discovery::new(&[group("b.dev", "v2"), group("a.dev", "v1"), group("b.dev", "v1")], "1.2.3", "")
}

async fn json(response: Response<Body>) -> Value {
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

fn accept(text: &str) -> HeaderMap {
    [(ACCEPT, text.parse().unwrap())].into_iter().collect()
}

#[tokio::test]
async fn groups_are_listed_once_with_all_their_versions() {
    let discovery = discovery();
    let list = json(discovery.apis(&HeaderMap::new(), &Query::default()).unwrap()).await;
    assert_eq!(list["groups"].as_array().unwrap().len(), 2);
    assert_eq!(list["groups"][0]["preferredVersion"]["groupVersion"], "b.dev/v2");
    let group = json(discovery.group("b.dev", &HeaderMap::new(), &Query::default()).unwrap().unwrap()).await;
    assert_eq!((&group["kind"], group["versions"].as_array().unwrap().len()), (&json!("APIGroup"), 2));
    let resources =
        json(discovery.version("b.dev", "v1", &HeaderMap::new(), &Query::default()).unwrap()).await;
    assert_eq!(
        resources["resources"][0],
        json!({"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing",
            "verbs": ["get", "list"], "shortNames": ["th"]})
    );
    let (headers, query) = (HeaderMap::new(), Query::default());
    assert!(discovery.group("c.dev", &headers, &query).is_none());
    assert_eq!(discovery.version("b.dev", "v3", &headers, &query).unwrap_err().code, 404);
}

#[tokio::test]
async fn the_aggregated_form_has_a_tag() {
    let discovery = discovery();
    let mut headers =
        accept("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json");
    let response = discovery.apis(&headers, &Query::default()).unwrap();
    assert_eq!(response.headers()["content-type"], AGGREGATED_DISCOVERY_TYPE);
    let tag = response.headers()[ETAG].clone();
    let list = json(response).await;
    assert_eq!(list["kind"], "APIGroupDiscoveryList");
    assert_eq!(list["items"][0]["versions"][1]["version"], "v1");
    assert_eq!(list["items"][0]["versions"][0]["resources"][0]["responseKind"]["kind"], "Thing");
    headers.insert(IF_NONE_MATCH, tag);
    let response = discovery.apis(&headers, &Query::default()).unwrap();
    assert_eq!(response.status(), 304);
    assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
    let old = accept("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList");
    assert_eq!(discovery.apis(&old, &Query::default()).unwrap_err().code, 406);
    let later =
        accept("application/json,application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    let response = discovery.apis(&later, &Query::default()).unwrap();
    assert_eq!(response.headers()["content-type"], AGGREGATED_DISCOVERY_TYPE);
}

/// Every reference leads somewhere.
fn references(document: &Value, value: &Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(target)) = fields.get("$ref") {
                let pointer = target.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{target}");
            }
            fields.values().for_each(|field| references(document, field));
        }
        Value::Array(items) => items.iter().for_each(|item| references(document, item)),
        _ => {}
    }
}

#[test]
fn schemas_are_whole() {
    let groups = [group("b.dev", "v2"), group("a.dev", "v1")];
    for document in [openapi::v2(&groups, ""), openapi::v3(&groups[0], "1.2.3")] {
        references(&document, &document);
        let paths = document["paths"].as_object().unwrap();
        assert!(paths.contains_key("/apis/b.dev/v2/namespaces/{namespace}/things/{name}"), "{document}");
        let mut ids: Vec<&Value> = paths.values().map(|path| &path["get"]["operationId"]).collect();
        let count = ids.len();
        ids.sort_by_key(ToString::to_string);
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
    let document = openapi::v3(&groups[0], "1.2.3");
    let thing = &document["components"]["schemas"]["dev.b.v2.Thing"];
    assert_eq!(thing["properties"]["size"]["type"], "integer");
    assert_eq!(
        thing["x-kubernetes-group-version-kind"][0],
        json!({"group": "b.dev", "version": "v2", "kind": "Thing"})
    );
}
