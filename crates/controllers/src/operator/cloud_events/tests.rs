#![allow(clippy::unwrap_used)]

use api::keda::EventSubscription;
use jiff::Timestamp;
use runtime::reconcile_loop::PanicCounter;
use serde_json::Value;

use super::event::{CloudEvent, accepts};
use super::*;
use crate::operator::auth::{AuthResolver, AuthRules, ManifestObjects};

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
    assert!(accepts(&subscription(&[], &[]), "a"));
    assert!(!accepts(&subscription(&[], &["a"]), "a"));
    assert!(accepts(&subscription(&["a"], &["a"]), "a"));
    assert!(!accepts(&subscription(&["b"], &[]), "a"));
}

#[test]
fn failing_destination_is_skipped_for_a_while() {
    let now = Instant::now();
    let failing_since = |since| {
        let mut destination = Destination::new(Arc::default(), mpsc::channel(1).0);
        destination.failing_since = since;
        destination
    };
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
            while !text.ends_with(b"}") && !text.ends_with(b"]") {
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

/// Deliveries on a cluster in memory.
async fn started(compat: Compat) -> (localkube::Running, Arc<CloudEvents>) {
    let running = localkube::Cluster::start(localkube::Options { workloads: false, ..Default::default() })
        .await
        .unwrap();
    let client = running.client();
    let discovery = cluster::discovery::Discovery::new(client.clone());
    let client = LeaderClient::new(client, discovery, cluster::lease::Leadership::without_election());
    let settings = OperatorSettings { compat, ..OperatorSettings::default() };
    let (dialer, proxies) = (Dialer::allowing_loopback(), ProxyRules::default());
    let (clock, panics) = (Clock::system(), PanicCounter::default());
    let events = CloudEvents::start(client, &settings, dialer, proxies, clock, panics, topics());
    (running, events)
}

/// A TriggerAuthentication with an access key, and one with the operator's identity.
fn topics() -> TopicCredentials {
    let authentication = |name: &str, spec: Value| serde_json::json!({"kind": "TriggerAuthentication", "metadata": {"name": name, "namespace": "shop"}, "spec": spec});
    let key = serde_json::json!({"parameter": "accessKey", "name": "s", "key": "key"});
    let objects = vec![
        serde_json::json!({"kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}, "stringData": {"key": "sesame"}}),
        authentication("key", serde_json::json!({"secretTargetRef": [key]})),
        authentication("workload", serde_json::json!({"podIdentity": {"provider": "azure-workload"}})),
        authentication("aws", serde_json::json!({"podIdentity": {"provider": "aws"}})),
        authentication("nothing", serde_json::json!({})),
    ];
    let rules = AuthRules::from(&OperatorSettings::default());
    TopicCredentials {
        auth: AuthResolver::new(Arc::new(ManifestObjects::new(objects)), rules),
        identities: Arc::default(),
        web: Arc::new(scalers::web::SharedHttpClient::new(scalers::web::HttpSettings::default())),
    }
}

fn source(namespace: &str, name: &str, uri: &str) -> CloudEventSource {
    serde_json::from_value(serde_json::json!({
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterName": name, "destination": {"http": {"uri": uri}}},
    }))
    .unwrap()
}

fn id(name: &str) -> DestinationId {
    DestinationId { of_cluster: false, name: crate::operator::id::NamespacedName::new("shop", name) }
}

fn exported(events: &CloudEvents) -> String {
    let mut page = MetricsWriter::default();
    events.export(&mut page);
    page.finish()
}

#[test]
fn destination_of_a_namespace_receives_only_events_of_it() {
    let id = |of_cluster, namespace: &str| DestinationId {
        of_cluster,
        name: crate::operator::id::NamespacedName::new(namespace, "d"),
    };
    let event = |namespace: &str| {
        let metadata = ObjectMeta { namespace: namespace.into(), ..metadata() };
        let event = Event::normal("ScaledObjectReady", "yes");
        CloudEvent::of(EventSubject::Object, &metadata, &event, Timestamp::UNIX_EPOCH).unwrap()
    };
    let any = CloudEventSource::default();
    for (id, namespace, better, strict) in [
        (id(false, "shop"), "shop", true, true),
        (id(false, "other"), "shop", false, true),
        (id(false, "shop"), "", false, true),
        (id(true, ""), "shop", true, true),
        (id(true, ""), "", true, true),
    ] {
        let event = event(namespace);
        assert_eq!(receives(&id, &any, &event, Compat::Better), better, "{id:?} {namespace}");
        assert_eq!(receives(&id, &any, &event, Compat::Strict), strict, "{id:?} {namespace}");
    }
}

#[tokio::test]
async fn slow_destination_delays_no_other_and_its_drops_are_counted() {
    let (_running, events) = started(Compat::Better).await;
    // It accepts connections and never responds.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, mut requests) = server().await;
    let mut store = Store::default();
    let slow = source("shop", "slow", &format!("http://{}/", silent.local_addr().unwrap()));
    store.apply_destination(false, "", cluster::watch::WatchEvent::Applied(slow));
    store.apply_destination(false, "", cluster::watch::WatchEvent::Applied(source("shop", "fast", &address)));
    events.update(&store);
    let offer =
        || events.offer(EventSubject::Object, &metadata(), &Event::normal("ScaledObjectReady", "yes"));
    offer();
    // The slow destination holds its first event from now on.
    let (_held, _) = silent.accept().await.unwrap();
    for _ in 0..=MAX_QUEUED_EVENTS {
        requests.recv().await.unwrap();
        offer();
    }
    requests.recv().await.unwrap();
    let page = exported(&events);
    let dropped = |name: &str, reason: &str| {
        format!(
            r#"plimsoll_cloudevents_dropped_total{{namespace="shop",cloudeventsource="{name}",reason="{reason}"}}"#
        )
    };
    assert!(page.contains(&format!("{} 1\n", dropped("slow", "queue_full"))), "{page}");
    assert!(page.contains(&format!("{} 0\n", dropped("fast", "queue_full"))), "{page}");
}

#[tokio::test]
async fn deliveries_of_one_namespace_are_limited() {
    let (_running, events) = started(Compat::Better).await;
    // It accepts connections and never responds.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, mut requests) = server().await;
    let mut store = Store::default();
    for number in 0..=MAX_NAMESPACE_DELIVERIES {
        let url = format!("http://{}/", silent.local_addr().unwrap());
        let slow = source("shop", &format!("slow{number}"), &url);
        store.apply_destination(false, "", cluster::watch::WatchEvent::Applied(slow));
    }
    store.apply_destination(
        false,
        "",
        cluster::watch::WatchEvent::Applied(source("other", "fast", &address)),
    );
    events.update(&store);
    let event = Event::normal("ScaledObjectReady", "yes");
    events.offer(EventSubject::Object, &metadata(), &event);
    let mut held = Vec::new();
    for _ in 0..MAX_NAMESPACE_DELIVERIES {
        held.push(silent.accept().await.unwrap());
    }
    assert!(tokio::time::timeout(Duration::from_millis(100), silent.accept()).await.is_err());
    // Those of other namespaces are delivered meanwhile.
    let other = ObjectMeta { namespace: "other".into(), ..metadata() };
    events.offer(EventSubject::Object, &other, &event);
    requests.recv().await.unwrap();
}

/// Deliveries with the default dialer, and an event.
fn delivery(events: &CloudEvents, proxies: ProxyRules) -> (DeliveryState, CloudEvent) {
    let shared = DeliveryState {
        client: events.shared.client.clone(),
        cluster: String::new(),
        namespace: String::new(),
        compat: Compat::Better,
        dialer: Dialer::default(),
        proxies,
        topics: topics(),
        deliveries: delivery_permits(),
        destinations: Mutex::default(),
    };
    let event = Event::normal("ScaledObjectReady", "yes");
    (shared, CloudEvent::of(EventSubject::Object, &metadata(), &event, Timestamp::UNIX_EPOCH).unwrap())
}

#[tokio::test]
async fn refused_address_is_not_sent_to() {
    let (_running, events) = started(Compat::Better).await;
    let (shared, event) = delivery(&events, ProxyRules::default());
    let (address, mut requests) = server().await;
    let error =
        deliver::send(&shared, &event, &id("one"), &source("shop", "one", &address)).await.unwrap_err();
    assert!(error.to_string().contains("--allow-source-cidr"), "{error}");
    assert!(requests.try_recv().is_err());
}

#[tokio::test]
async fn events_are_sent_through_the_proxy() {
    let (_running, events) = started(Compat::Better).await;
    let (proxy, mut requests) = server().await;
    let proxies = ProxyRules::from_environment(|name| (name == "HTTP_PROXY").then(|| proxy.clone()));
    let (shared, event) = delivery(&events, proxies);
    // Nothing is sent to this address but to the proxy.
    deliver::send(&shared, &event, &id("one"), &source("shop", "one", "http://10.9.8.7/take")).await.unwrap();
    let request = requests.recv().await.unwrap();
    assert!(request.starts_with("POST http://10.9.8.7/take HTTP/1.1"), "{request}");
}

#[tokio::test]
async fn event_reaches_destinations_that_want_it() {
    let (_running, events) = started(Compat::Better).await;
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

fn topic(endpoint: &str, authentication: Option<&str>) -> CloudEventSource {
    serde_json::from_value(serde_json::json!({
        "metadata": {"name": "topic", "namespace": "shop"},
        "spec": {
            "clusterName": "c",
            "destination": {"azureEventGridTopic": {"endpoint": endpoint}},
            "authenticationRef": authentication.map(|name| serde_json::json!({"name": name})),
        },
    }))
    .unwrap()
}

#[tokio::test]
async fn topic_of_event_grid_receives_batches_with_its_access_key() {
    let (_running, events) = started(Compat::Better).await;
    let (address, mut requests) = server().await;
    let mut store = Store::default();
    let source = topic(&address, Some("key"));
    store.apply_destination(false, "", cluster::watch::WatchEvent::Applied(source));
    events.update(&store);
    events.offer(EventSubject::Object, &metadata(), &Event::normal("ScaledObjectReady", "yes"));
    let request = requests.recv().await.unwrap();
    assert!(request.starts_with("POST /take?api-version=2018-01-01 "), "{request}");
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("aeg-sas-key: sesame"), "{head}");
    assert!(head.contains("content-type: application/cloudevents-batch+json; charset=utf-8"), "{head}");
    let batch: Value = serde_json::from_str(body).unwrap();
    let [event] = &**batch.as_array().unwrap() else { panic!("{batch}") };
    assert_eq!(event["type"], "keda.scaledobject.ready.v1");
    assert_eq!(event["specversion"], "1.0");
    assert_eq!(event["datacontenttype"], "application/json");
    assert_eq!(event["source"], "/c/keda/keda");
    assert_eq!(event["subject"], "/c/shop/scaledobject/worker");
    assert_eq!(event["data"], serde_json::json!({"reason": "ScaledObjectReady", "message": "yes"}));
    assert!(exported(&events).contains("eventsink=\"azureEventGridTopic\""));
}

#[tokio::test]
async fn topic_without_usable_credentials_is_not_sent_to() {
    let (_running, events) = started(Compat::Better).await;
    let (address, mut requests) = server().await;
    let event = Event::normal("ScaledObjectReady", "yes");
    let event = CloudEvent::of(EventSubject::Object, &metadata(), &event, Timestamp::UNIX_EPOCH).unwrap();
    for (authentication, expected) in [
        ("nothing", "no azure event grid access key provided"),
        ("workload", "eventgrid.azure.net only"),
        ("aws", "pod identity aws"),
        ("unknown", "unknown"),
    ] {
        let source = topic(&address, Some(authentication));
        let error = deliver::send(&events.shared, &event, &id("topic"), &source).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{authentication}: {error}");
    }
    let mut of_cluster = topic(&address, Some("key"));
    of_cluster.metadata.namespace.clear();
    let error = deliver::send(&events.shared, &event, &id("topic"), &of_cluster).await.unwrap_err();
    assert!(error.to_string().contains("refer to a ClusterTriggerAuthentication"), "{error}");
    assert!(requests.try_recv().is_err());
    assert_eq!(sink_of(&topic(&address, None)), None);
}
