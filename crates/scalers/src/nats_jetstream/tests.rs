use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::query::{Consumer, at_host, jetstream, server as varz};
use crate::test_support::{ServerAction, build, read, server, trigger};

fn jsz(size: u64, leader: &str, pending: &str) -> String {
    format!(
        r#"{{"meta_cluster":{{"cluster_size":{size}}},"account_details":[{{"name":"$G","id":"ID","stream_detail":[
        {{"name":"s","consumer_detail":[{{"name":"c","num_pending":{pending},"num_ack_pending":2,"cluster":{{"leader":"{leader}"}}}}]}}]}}]}}"#
    )
}

#[test]
fn responses_are_decoded_or_refused() {
    let consumer = |body: &str| jetstream(body.as_bytes(), "$G", "s", "c");
    let found = consumer(&jsz(3, "n0", "5")).unwrap();
    assert_eq!(found.consumer, Some(Consumer { lag: 7, leader: "n0".into() }));
    assert_eq!(found.servers, 3);
    assert_eq!(jetstream(jsz(1, "", "5").as_bytes(), "ID", "s", "c").unwrap().consumer.unwrap().lag, 7);
    for other in [("$X", "s", "c"), ("$G", "x", "c"), ("$G", "s", "x")] {
        assert_eq!(jetstream(jsz(1, "", "5").as_bytes(), other.0, other.1, other.2).unwrap().consumer, None);
    }
    assert_eq!(consumer("{}").unwrap().consumer, None);
    for bad in ["null", "<html>", "[]", &jsz(1, "", "null"), &jsz(1, "", "\"5\""), &jsz(1, "", "-1")] {
        assert!(consumer(bad).is_err(), "{bad}");
    }
    // Numbers beyond i64 do not wrap around.
    assert_eq!(consumer(&jsz(1, "", "18446744073709551615")).unwrap().consumer.unwrap().lag, u64::MAX);
}

#[test]
fn addresses_of_servers_are_decoded() {
    let found = varz(br#"{"server_name":"n0","connect_urls":["10.0.0.1:4222","[::1]:4222"],"cluster":{"urls":["n-1.nats:6222"]}}"#);
    let found = found.unwrap();
    assert_eq!(found.hosts, ["10.0.0.1", "[::1]"]);
    assert_eq!(found.labels, ["n-1"]);
    assert_eq!(at_host("nats.svc:8222", "10.0.0.1"), "10.0.0.1:8222");
    assert!(varz(b"{}").is_err());
}

#[tokio::test]
async fn single_server() {
    let url = server(|head| {
        assert!(head.starts_with("GET /jsz?acc=%24G&config=true&consumers=true "), "{head}");
        ServerAction::Answer(200, jsz(0, "", "5"))
    })
    .await;
    let endpoint = url.strip_prefix("http://").unwrap();
    let mut trigger = trigger(
        "nats-jetstream",
        &[("natsServerMonitoringEndpoint", endpoint), ("account", "$G"), ("stream", "s"), ("consumer", "c")],
    );
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "7");
    trigger.metadata.insert("consumer".into(), "x".into());
    assert_eq!(read(&trigger).await.unwrap_err().message, "consumer \"x\" not found in stream \"s\"");
}

/// The configured endpoint is not the leader: the leader is found by its host and cached.
#[tokio::test]
async fn leader_state_is_used() {
    let bases = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&bases);
    let url = server(move |head| {
        let jetstream = head.starts_with("GET /jsz");
        // One process plays both servers, distinguished by the Host header.
        let leads = head.to_lowercase().contains("host: localhost");
        count.fetch_add(usize::from(!leads && jetstream), Ordering::SeqCst);
        ServerAction::Answer(
            200,
            match (jetstream, leads) {
                (true, true) => jsz(3, "leader", "40"),
                (true, false) => jsz(3, "leader", "1"),
                (false, true) => r#"{"server_name":"leader"}"#.to_owned(),
                (false, false) => {
                    r#"{"server_name":"follower","connect_urls":["127.0.0.1:4222","localhost:4222"]}"#
                        .to_owned()
                }
            },
        )
    })
    .await;
    let endpoint = url.strip_prefix("http://").unwrap();
    let trigger = trigger(
        "nats-jetstream",
        &[("natsServerMonitoringEndpoint", endpoint), ("account", "$G"), ("stream", "s"), ("consumer", "c")],
    );
    let scaler = build(&trigger).unwrap();
    assert_eq!(scaler.read("m").await.unwrap().values.first().unwrap().value.canonical(), "42");
    let before = bases.load(Ordering::SeqCst);
    assert_eq!(scaler.read("m").await.unwrap().values.first().unwrap().value.canonical(), "42");
    assert_eq!(bases.load(Ordering::SeqCst), before);
}

#[tokio::test]
async fn no_leader_is_an_error() {
    let url = server(|head| {
        let jetstream = head.starts_with("GET /jsz");
        ServerAction::Answer(
            200,
            if jetstream { jsz(3, "gone", "1") } else { r#"{"server_name":"n0"}"#.to_owned() },
        )
    })
    .await;
    let endpoint = url.strip_prefix("http://").unwrap();
    let trigger = trigger(
        "nats-jetstream",
        &[("natsServerMonitoringEndpoint", endpoint), ("account", "$G"), ("stream", "s"), ("consumer", "c")],
    );
    assert_eq!(read(&trigger).await.unwrap_err().message, "leader node not found for consumer c");
}
