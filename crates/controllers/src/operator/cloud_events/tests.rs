#![allow(clippy::unwrap_used)]

use api::keda::EventSubscription;
use jiff::Timestamp;
use runtime::reconcile_loop::PanicCounter;
use serde_json::Value;

use super::event::{CloudEvent, wants};
use super::*;

fn metadata() -> ObjectMeta {
    ObjectMeta { namespace: "shop".into(), name: "Worker".into(), ..ObjectMeta::default() }
}

#[test]
fn events_of_reconciles_are_cloud_events_and_those_of_polls_are_not() {
    let event = Event::warning("ScaledObjectCheckFailed", "no");
    let message = CloudEvent::of(EventSubject::Object, &metadata(), &event, Timestamp::UNIX_EPOCH).unwrap();
    let headers = message.headers("kubernetes-default", "keda");
    let header = |name: &str| headers.iter().find(|(own, _)| *own == name).unwrap().1.clone();
    assert_eq!(header("ce-type"), "keda.scaledobject.failed.v1");
    assert_eq!(header("ce-source"), "/kubernetes-default/keda/keda");
    assert_eq!(header("ce-subject"), "/kubernetes-default/shop/scaledobject/worker");
    assert_eq!(header("ce-time"), "1970-01-01T00:00:00Z");
    assert_eq!(header("ce-id").len(), 36);
    let body: Value = serde_json::from_slice(&message.body()).unwrap();
    assert_eq!(body, serde_json::json!({"reason": "ScaledObjectCheckFailed", "message": "no"}));
    let round = Event::normal("KEDAScaleTargetActivated", "up");
    assert_eq!(CloudEvent::of(EventSubject::Object, &metadata(), &round, Timestamp::UNIX_EPOCH), None);
}

#[test]
fn included_event_types_win_over_excluded_ones() {
    let subscription = |included: &[&str], excluded: &[&str]| EventSubscription {
        included_event_types: included.iter().map(|&text| text.to_owned()).collect(),
        excluded_event_types: excluded.iter().map(|&text| text.to_owned()).collect(),
    };
    assert!(wants(&subscription(&[], &[]), "a"));
    assert!(!wants(&subscription(&[], &["a"]), "a"));
    assert!(wants(&subscription(&["a"], &["a"]), "a"));
    assert!(!wants(&subscription(&["b"], &[]), "a"));
}

#[test]
fn failing_destination_is_skipped_for_a_while() {
    let now = Instant::now();
    let failing_since =
        |since| Destination { source: Arc::default(), failing_since: since, emitted: 0, failed: 0 };
    let later = now + DESTINATION_RETRY_DELAY;
    assert!(failing_since(None).is_due(now, Compat::Better));
    assert!(
        !failing_since(Some(now)).is_due(later.checked_sub(Duration::from_secs(1)).unwrap(), Compat::Better)
    );
    assert!(failing_since(Some(now)).is_due(later, Compat::Better));
    assert!(!failing_since(Some(now)).is_due(later, Compat::Strict));
}

/// Serves requests; returns their text.
async fn server() -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/take", listener.local_addr().unwrap());
    let (sender, requests) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut text = Vec::new();
            while !text.ends_with(b"}") {
                let mut piece = [0; 4096];
                let count = stream.read(&mut piece).await.unwrap();
                text.extend_from_slice(piece.get(..count).unwrap());
            }
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                .await
                .unwrap();
            sender.send(String::from_utf8(text).unwrap()).unwrap();
        }
    });
    (address, requests)
}

#[tokio::test]
async fn event_reaches_destinations_that_want_it() {
    let running = localkube::Cluster::start(localkube::Options { workloads: false, ..Default::default() })
        .await
        .unwrap();
    let client = running.client();
    let discovery = cluster::discovery::Discovery::new(client.clone());
    let client = LeaderClient::new(client, discovery, cluster::lease::Leadership::without_election());
    let events =
        CloudEvents::start(client, &OperatorSettings::default(), Clock::system(), PanicCounter::default());
    let (address, mut requests) = server().await;
    let mut store = Store::default();
    let destination = |name: &str, excluded: &[&str]| {
        serde_json::from_value(serde_json::json!({
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {
                "clusterName": name,
                "destination": {"http": {"uri": address}},
                "eventSubscription": {"excludedEventTypes": excluded},
            },
        }))
        .unwrap()
    };
    let one = cluster::watch::WatchEvent::Applied(destination("one", &[]));
    store.apply_destination(false, "", one);
    let other = cluster::watch::WatchEvent::Applied(destination("other", &["keda.scaledobject.ready.v1"]));
    store.apply_destination(false, "", other);
    events.update(&store);
    events.offer(EventSubject::Object, &metadata(), &Event::normal("ScaledObjectReady", "yes"));
    events.offer(EventSubject::Object, &metadata(), &Event::normal("ScaledObjectPaused", "yes"));
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(requests.recv().await.unwrap());
    }
    let to = |cluster: &str| {
        all.iter().filter(|text| text.contains(&format!("ce-subject: /{cluster}/shop"))).count()
    };
    assert_eq!((to("one"), to("other")), (2, 1));
    assert!(all.iter().all(|text| text.starts_with("POST /take")), "{all:?}");
}
