use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use localkube::{Cluster, Options};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::Clock;
use crate::lease::{Election, Leadership, LeaseSettings};

fn clock() -> Clock {
    let clock = localkube::clock::Clock::system();
    Clock::new(move || clock.now())
}

fn stand(client: &Client, identity: &str) -> (Election, Leadership) {
    Election::start(client.clone(), LeaseSettings::new("default", "test", identity), clock())
}

async fn within(seconds: u64, leadership: &Leadership) {
    timeout(Duration::from_secs(seconds), leadership.acquired()).await.unwrap();
    assert!(leadership.is_leader());
}

fn leases(client: &Client) -> Api<Lease> {
    Api::namespaced(client.clone(), "default")
}

#[tokio::test(start_paused = true)]
async fn the_second_candidate_leads_after_a_release() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = cluster.client();
    let (first, one) = stand(&client, "one");
    within(1, &one).await;
    let (second, two) = stand(&client, "two");
    sleep(Duration::from_mins(10)).await;
    assert!(one.is_leader() && !two.is_leader());
    for leadership in [&one, &two] {
        assert_eq!(leadership.holder().as_deref(), Some("one"));
        assert_eq!(leadership.transitions(), Some(0));
    }

    let lost = tokio::spawn({
        let one = one.clone();
        async move { one.lost().await }
    });
    first.release().await;
    timeout(Duration::from_secs(1), lost).await.unwrap().unwrap();
    assert!(!one.is_leader());
    let given = leases(&client).get("test").await.unwrap().spec.unwrap();
    assert_eq!((given.holder_identity.as_deref(), given.lease_duration_seconds), (Some(""), Some(1)));

    let start = Instant::now();
    within(5, &two).await;
    assert!(start.elapsed() <= Duration::from_millis(4_400), "{:?}", start.elapsed());
    assert_eq!((two.holder().as_deref(), two.transitions()), (Some("two"), Some(1)));
    second.release().await;
}

#[tokio::test(start_paused = true)]
async fn the_second_candidate_leads_after_the_lease_expires() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = cluster.client();
    let (first, one) = stand(&client, "one");
    within(1, &one).await;
    let (_second, two) = stand(&client, "two");
    sleep(Duration::from_secs(30)).await;

    let start = Instant::now();
    drop(first);
    sleep(Duration::from_millis(1)).await;
    assert!(!one.is_leader(), "the lease is not renewed");
    timeout(Duration::from_secs(1), one.lost()).await.unwrap();
    within(30, &two).await;
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(12) && took <= Duration::from_millis(15_000 + 8_800), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_created_again() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = cluster.client();
    let (_election, one) = stand(&client, "one");
    within(1, &one).await;
    leases(&client).delete("test", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_secs(3)).await;
    assert!(one.is_leader());
    let spec = leases(&client).get("test").await.unwrap().spec.unwrap();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("one"), Some(0)));
}

#[tokio::test(start_paused = true)]
async fn an_annotated_lease_keeps_its_leader() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = cluster.client();
    let (_election, one) = stand(&client, "one");
    within(1, &one).await;
    let lost = one.lost();
    tokio::pin!(lost);
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"note": "mine"}}}));
    leases(&client).patch("test", &PatchParams::default(), &patch).await.unwrap();
    assert!(timeout(Duration::from_secs(30), &mut lost).await.is_err());
    let lease = leases(&client).get("test").await.unwrap();
    assert_eq!(lease.metadata.annotations.unwrap().get("note").map(String::as_str), Some("mine"));
}

#[tokio::test(start_paused = true)]
async fn a_lease_with_missing_fields_is_acquired() {
    // A lease without a holder is free; a holder without a duration has that of the settings.
    for (spec, seconds) in [
        (json!(null), 1),
        (json!({}), 1),
        (json!({"holderIdentity": "ghost"}), 25),
        (json!({"renewTime": "2100-01-01T00:00:00.000000Z"}), 1),
    ] {
        let cluster = Cluster::start(Options::default()).await.unwrap();
        let client = cluster.client();
        let lease: Lease =
            serde_json::from_value(json!({"metadata": {"name": "test"}, "spec": spec})).unwrap();
        leases(&client).create(&PostParams::default(), &lease).await.unwrap();
        let (_election, one) = stand(&client, "one");
        within(seconds, &one).await;
        assert_eq!(one.transitions(), Some(1), "{spec}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_jump_blocks_writes_but_keeps_the_lease() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let ahead = std::sync::Arc::new(std::sync::atomic::AtomicI64::new(0));
    let (base, shift) = (localkube::clock::Clock::system(), ahead.clone());
    let clock = Clock::new(move || {
        let hours = shift.load(std::sync::atomic::Ordering::Relaxed);
        base.now() + jiff::SignedDuration::from_hours(hours)
    });
    let settings = LeaseSettings::new("default", "test", "one");
    let (_election, one) = Election::start(cluster.client(), settings, clock);
    within(1, &one).await;
    for hours in [1, -5] {
        let lost = one.lost();
        tokio::pin!(lost);
        ahead.store(hours, std::sync::atomic::Ordering::Relaxed);
        // As after a suspended machine has woken up: leadership is unknown until the next renewal.
        assert_eq!(one.is_leader(), hours < 0);
        assert!(timeout(Duration::from_secs(3), &mut lost).await.is_err());
        assert!(one.is_leader());
    }
}

#[tokio::test(start_paused = true)]
async fn without_election_the_process_always_leads() {
    let alone = Leadership::without_election();
    assert!(alone.is_leader());
    alone.acquired().await;
    assert!(timeout(Duration::from_hours(1), alone.lost()).await.is_err());
    assert_eq!((alone.holder(), alone.transitions()), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_process_whose_main_thread_is_stuck_loses_the_lease() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = cluster.client();
    let heartbeat = runtime::Heartbeat::default();
    let settings = LeaseSettings::new("default", "test", "one");
    let here = tokio::runtime::Handle::current();
    let (_first, one) = Election::start_on(&here, client.clone(), settings, clock(), Some(heartbeat.clone()));
    within(1, &one).await;
    let (second, two) = stand(&client, "two");
    let beating = tokio::spawn(heartbeat.clone().run());
    sleep(Duration::from_mins(10)).await;
    assert!(one.is_leader() && !two.is_leader());

    beating.abort();
    timeout(Duration::from_mins(1), one.lost()).await.unwrap();
    assert!(!one.is_leader());
    within(60, &two).await;
    assert_eq!(two.holder().as_deref(), Some("two"));
    // When it makes progress again, it is a candidate like any other.
    let _beating = tokio::spawn(heartbeat.run());
    drop(second);
    within(60, &one).await;
}

#[tokio::test(start_paused = true)]
async fn candidates_see_the_address_of_the_leader() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = cluster.client();
    let with = |identity: &str, address: &str| {
        let settings = LeaseSettings::new("default", "test", identity);
        let settings = LeaseSettings { address: Some(address.parse().unwrap()), ..settings };
        Election::start(client.clone(), settings, clock())
    };
    let (first, one) = with("one", "10.0.0.1:10257");
    within(1, &one).await;
    let (second, two) = with("two", "10.0.0.2:10257");
    timeout(Duration::from_secs(30), async {
        while two.address().is_none() {
            sleep(Duration::from_millis(100)).await;
        }
    })
    .await
    .unwrap();
    assert_eq!(two.address(), Some("10.0.0.1:10257".parse().unwrap()));
    first.release().await;
    within(5, &two).await;
    assert_eq!(two.address(), Some("10.0.0.2:10257".parse().unwrap()));
    second.release().await;
}

#[tokio::test(start_paused = true)]
async fn an_election_that_dies_is_noticed() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let (mut election, leadership) = stand(&cluster.client(), "one");
    within(1, &leadership).await;
    election.task.as_ref().unwrap().abort();
    timeout(Duration::from_secs(1), election.ended()).await.unwrap();
    // The task is not awaited again.
    timeout(Duration::from_secs(1), election.release()).await.unwrap();
    assert!(!leadership.is_leader());
}
