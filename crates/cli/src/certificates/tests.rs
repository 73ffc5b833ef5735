#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};

use super::*;

const PATH: &str = "/api/v1/namespaces/default/secrets/kedaorg-certs";

/// A clock that the test sets, in days.
#[derive(Clone, Default)]
struct Days(Arc<AtomicI64>);

impl Days {
    fn set(&self, day: i64) {
        self.0.store(day, Ordering::Relaxed);
    }

    fn clock(&self) -> Clock {
        let own = self.clone();
        Clock::new(move || {
            let days = SignedDuration::from_hours(24 * own.0.load(Ordering::Relaxed));
            Timestamp::from_second(1_800_000_000).unwrap() + days
        })
    }
}

async fn cluster() -> localkube::Running {
    localkube::Cluster::start(localkube::Options { workloads: false, ..Default::default() }).await.unwrap()
}

fn secret(client: &Client) -> Secret {
    Secret {
        client: client.clone(),
        namespace: "default".into(),
        name: "kedaorg-certs".into(),
        names: vec!["localhost".into(), "keda-operator.default.svc".into()],
        lives: CertificateLifetimes::default(),
    }
}

async fn opened(client: &Client, clock: &Clock) -> CertificateRenewer {
    let secret = secret(client);
    let (current, logged) = secret.open(clock).await.unwrap();
    let (keyring, is_own) = (Keyring::new(current.clone()).unwrap(), logged.is_some());
    CertificateRenewer {
        store: CertificateLocation::Secret(secret),
        clock: clock.clone(),
        keyring,
        current,
        is_own,
        logged,
    }
}

async fn stored(client: &Client) -> Value {
    serde_json::from_slice(&send(client, Request::get(PATH, "", REQUEST_TIMEOUT)).await.unwrap()).unwrap()
}

async fn put(client: &Client, object: &Value) {
    let body = Some(("application/json", object.to_string().into_bytes()));
    send(client, Request { method: Method::PUT, body, ..Request::get(PATH, "", REQUEST_TIMEOUT) })
        .await
        .unwrap();
}

async fn delete(client: &Client) {
    send(client, Request { method: Method::DELETE, ..Request::get(PATH, "", REQUEST_TIMEOUT) })
        .await
        .unwrap();
}

#[tokio::test]
async fn concurrent_replicas_create_one_certificate_bundle() {
    let (running, days) = (cluster().await, Days::default());
    let (client, clock) = (running.client(), days.clock());
    let all = futures::future::join_all((0..8).map(|_| opened(&client, &clock))).await;
    let kept = material(&stored(&client).await);
    for one in &all {
        assert!(!one.is_own && one.current == kept);
        assert_eq!(one.keyring.authorities(), kept.authorities);
    }
}

/// As `helm template | kubectl apply` creates it: the hooks of the chart are objects without contents.
#[tokio::test]
async fn concurrent_replicas_fill_a_secret_without_data() {
    let (running, days) = (cluster().await, Days::default());
    let (client, clock) = (running.client(), days.clock());
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "kedaorg-certs", "labels": {"team": "a"}}});
    let body = Some(("application/json", secret.to_string().into_bytes()));
    let uri = "/api/v1/namespaces/default/secrets";
    let request = Request { method: Method::POST, body, ..Request::get(uri, "", REQUEST_TIMEOUT) };
    send(&client, request).await.unwrap();
    let all = futures::future::join_all((0..4).map(|_| opened(&client, &clock))).await;
    let object = stored(&client).await;
    assert_eq!(object["metadata"]["labels"]["team"], "a");
    let kept = material(&object);
    assert!(kept.is_good(clock.now()));
    for one in &all {
        assert!(!one.is_own && one.current == kept);
    }
}

#[tokio::test]
async fn leader_renews_the_bundle_and_followers_load_it() {
    let (running, days) = (cluster().await, Days::default());
    let (client, clock) = (running.client(), days.clock());
    let (mut leader, mut other) = (opened(&client, &clock).await, opened(&client, &clock).await);
    let first = leader.current.clone();
    days.set(200);
    leader.refresh(true).await;
    assert_eq!(leader.current, first);
    days.set(300);
    other.refresh(false).await;
    assert_eq!(other.current, first, "renewed by who does not lead");
    leader.refresh(true).await;
    assert_ne!(leader.current.certificate, first.certificate);
    assert_eq!(leader.current.authorities, first.authorities);
    other.refresh(false).await;
    assert_eq!(other.current, leader.current);
    // There was no leader for two years: the next replica renews the bundle.
    days.set(1000);
    other.refresh(false).await;
    leader.refresh(false).await;
    assert!(other.current.is_good(clock.now()));
    assert_eq!(other.current, leader.current);
}

#[tokio::test]
async fn foreign_secret_data_is_kept_and_broken_bundle_is_repaired() {
    let (running, days) = (cluster().await, Days::default());
    let (client, clock) = (running.client(), days.clock());
    let mut one = opened(&client, &clock).await;
    let first = one.current.clone();
    delete(&client).await;
    one.refresh(false).await;
    assert_eq!(material(&stored(&client).await), first, "one that was deleted comes back as it was");
    let mut object = stored(&client).await;
    object["metadata"]["labels"]["team"] = json!("a");
    object["data"]["note"] = json!("eA==");
    object["data"]["tls.key"] = json!("eA==");
    put(&client, &object).await;
    one.refresh(false).await;
    let object = stored(&client).await;
    assert_eq!(
        (&object["data"]["note"], &object["metadata"]["labels"]["team"]),
        (&json!("eA=="), &json!("a"))
    );
    assert!(material(&object).is_good(clock.now()));
    assert_eq!(one.current, material(&object));
    assert_eq!(one.current.authorities, first.authorities);
}

#[tokio::test]
async fn replica_without_permission_uses_its_own_bundle_until_permitted() {
    let (running, days) = (cluster().await, Days::default());
    let (client, clock) = (running.client(), days.clock());
    // Nothing can be made in a namespace that is not there.
    let CertificateRenewer { store: CertificateLocation::Secret(mut hidden), .. } =
        opened(&client, &clock).await
    else {
        panic!("a folder")
    };
    delete(&client).await;
    hidden.namespace = "later".into();
    let (current, logged) = hidden.open(&clock).await.unwrap();
    assert!(logged.as_ref().is_some_and(|logged| logged.contains("later")), "{logged:?}");
    let keyring = Keyring::new(current.clone()).unwrap();
    let mut alone = CertificateRenewer {
        store: CertificateLocation::Secret(hidden),
        clock: clock.clone(),
        keyring,
        current,
        is_own: true,
        logged,
    };
    let first = alone.current.clone();
    alone.refresh(true).await;
    assert_eq!(alone.current, first);
    days.set(300);
    alone.refresh(true).await;
    assert_ne!(alone.current, first, "one's own is renewed, too");
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}});
    let body = Some(("application/json", body.to_string().into_bytes()));
    let request =
        Request { method: Method::POST, body, ..Request::get("/api/v1/namespaces", "", REQUEST_TIMEOUT) };
    send(&client, request).await.unwrap();
    let mine = alone.current.clone();
    alone.refresh(false).await;
    assert!(!alone.is_own && alone.current == mine);
}
