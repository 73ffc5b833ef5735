//! Against a cluster in this process.

use api::autoscaling::v2::HorizontalPodAutoscaler;
use futures::StreamExt as _;
use http::Request;
use localkube::{Cluster, Options};
use serde_json::{Value, json};

use super::server::reported;
use crate::watch::{WatchEvent, WatchSource, watch};

fn post(path: &str, object: &Value) -> Request<Vec<u8>> {
    Request::post(path)
        .header("Content-Type", "application/json")
        .body(object.to_string().into_bytes())
        .unwrap()
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

#[tokio::test]
async fn pods_are_applied_and_deleted() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = cluster.client();
    let pods = "/api/v1/namespaces/default/pods";
    client.request::<Value>(post(pods, &pod("a"))).await.unwrap();
    let (health, changes) = watch::<api::pod::Pod>(cluster.client(), WatchSource::pods());
    futures::pin_mut!(changes);
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| last != "listed") {
        seen.push(reported(&changes.next().await.unwrap()));
    }
    assert_eq!(seen, ["listing", "+a Pending", "listed"]);
    assert!(health.synced());
    client.request::<Value>(post(pods, &pod("b"))).await.unwrap();
    assert_eq!(reported(&changes.next().await.unwrap()), "+b Pending");
    let delete = Request::delete(format!("{pods}/a")).body(Vec::new()).unwrap();
    client.request::<Value>(delete).await.unwrap();
    while reported(&changes.next().await.unwrap()) != "-default/a" {}
}

#[tokio::test]
async fn autoscalers_are_decoded_without_managed_fields() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers?fieldManager=us";
    let hpa = json!({"metadata": {"name": "web"}, "spec": {"maxReplicas": 5,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    let made = cluster.client().request::<Value>(post(path, &hpa)).await.unwrap();
    assert!(made["metadata"]["managedFields"].is_array());
    let (_, changes) = watch::<HorizontalPodAutoscaler>(cluster.client(), WatchSource::hpas());
    futures::pin_mut!(changes);
    assert_eq!(changes.next().await, Some(WatchEvent::Listing));
    let Some(WatchEvent::Applied(hpa)) = changes.next().await else { unreachable!() };
    assert_eq!((hpa.metadata.name.as_str(), hpa.spec.max_replicas), ("web", 5));
    assert!(hpa.metadata.managed_fields.is_empty());
    assert_eq!(changes.next().await, Some(WatchEvent::Listed));
}

#[tokio::test]
async fn an_expired_version_is_followed_by_a_list() {
    // The history of the cluster is so short that a watch which is not read expires.
    let options = Options { watch_history: 4, workloads: false, ..Options::default() };
    let cluster = Cluster::start(options).await.unwrap();
    let (health, changes) = watch::<api::pod::Pod>(cluster.client(), WatchSource::pods());
    futures::pin_mut!(changes);
    assert_eq!(changes.next().await, Some(WatchEvent::Listing));
    assert_eq!(changes.next().await, Some(WatchEvent::Listed));
    for n in 0..50 {
        let create = post("/api/v1/namespaces/default/pods", &pod(&format!("p{n}")));
        cluster.client().request::<Value>(create).await.unwrap();
    }
    let mut names = std::collections::BTreeSet::new();
    while names.len() < 50 {
        if let WatchEvent::Applied(pod) = changes.next().await.unwrap() {
            names.insert(pod.metadata.name);
        }
    }
    assert_eq!(changes.next().await, Some(WatchEvent::Listed));
    assert_eq!(health.lists(), 2);
}
