//! The server behind the aggregation layer of a cluster.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use common::{DECISIONS, FakeDecisionSource};
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use http::Request;
use kube::Client;
use localkube::Cluster;
use serde_json::{Value, json};
use serve::{App, Certificate, Server, ServerOptions, ServiceBackend, ServiceRef};

const TEST_TIMEOUT: Duration = Duration::from_mins(1);

async fn get(client: &Client, path: &str, accept: &str) -> Result<Value, kube::Error> {
    client.request(Request::get(path).header("accept", accept).body(Vec::new()).unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_serves_decisions() {
    let cluster = Cluster::start(localkube::Options::default()).await.unwrap();
    let client = cluster.client();
    let mut place = ServiceRef {
        namespace: "default".into(),
        service: "plimsoll".into(),
        behind: ServiceBackend::ThisMachine(0),
    };
    let options = ServerOptions {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        certificate: Certificate::SelfSigned(vec![place.server_name()]),
        ..ServerOptions::default()
    };
    let app = App { decisions: Some(Arc::new(FakeDecisionSource)), ..App::default() };
    let server = Server::start(options, client.clone(), app).await.unwrap();
    place.behind = ServiceBackend::ThisMachine(server.port());
    for object in server.api_services(&place) {
        let path = match object["kind"].as_str() {
            Some("Service") => "/api/v1/namespaces/default/services",
            _ => "/apis/apiregistration.k8s.io/v1/apiservices",
        };
        let body = object.to_string().into_bytes();
        let request = Request::post(path).header("content-type", "application/json").body(body).unwrap();
        client.request::<Value>(request).await.unwrap();
    }
    let list = format!("{DECISIONS}/namespaces/a/decisions");
    let wait = async {
        loop {
            match get(&client, &list, "application/json").await {
                Ok(found) => return found,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    let found = tokio::time::timeout(TEST_TIMEOUT, wait).await.unwrap();
    assert_eq!(
        (&found["kind"], &found["items"][0]["metadata"]["name"]),
        (&json!("DecisionList"), &json!("hpa.web"))
    );
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    assert_eq!(get(&client, &list, table).await.unwrap()["rows"][0]["cells"][6], "above max 10");
    let groups = get(&client, "/apis", "application/json").await.unwrap();
    assert!(
        groups["groups"].as_array().unwrap().iter().any(|group| group["name"] == "decisions.plimsoll.dev")
    );
    let resources = get(&client, DECISIONS, "application/json").await.unwrap();
    assert_eq!(resources["resources"][0]["singularName"], "decision");
    let missing = get(&client, &format!("{list}/hpa.none"), "application/json").await.unwrap_err();
    assert!(missing.to_string().contains("\"hpa.none\" not found"), "{missing}");
    // Events arrive as they happen, through both servers.
    let request = Request::get(format!("{list}/hpa.web?watch=true")).body(Vec::new()).unwrap();
    let mut lines = client.request_stream(request).await.unwrap().lines();
    for _ in 0..3 {
        let line = tokio::time::timeout(TEST_TIMEOUT, lines.try_next()).await.unwrap();
        let event: Value = serde_json::from_str(&line.unwrap().unwrap()).unwrap();
        assert_eq!((&event["type"], &event["object"]["kind"]), (&json!("ADDED"), &json!("Decision")));
    }
    // The watch ends when the server ends.
    tokio::time::timeout(TEST_TIMEOUT, server.stop()).await.unwrap();
    let rest = async { while let Ok(Some(_)) = lines.try_next().await {} };
    tokio::time::timeout(TEST_TIMEOUT, rest).await.unwrap();
}
