use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::Event;
use http::{Method, Request, Response};
use k8s_openapi::api::core::v1::Event as Stored;
use kube::api::{Api, DeleteParams, ListParams};
use kube::client::Body;
use kube::{Client, ResourceExt};
use localkube::{Cluster, Options, Running};
use serde_json::json;
use tokio::time::Instant;

use super::{about, warning};
use crate::Clock;
use crate::events::{EventCounts, EventRecorder, MAX_QUEUED_EVENTS};

/// What happens to a request.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Nobody is there.
    Down,
    /// It is answered, but the answer is lost.
    Lost,
    /// The server refuses the event.
    Status(u16),
}

/// A cluster with scripted failures of requests, and a recorder of events there.
struct Case {
    cluster: Running,
    recorder: EventRecorder,
    faults: Arc<Mutex<VecDeque<Fault>>>,
    seen: Arc<Mutex<Vec<Method>>>,
}

impl Case {
    async fn new() -> Self {
        let cluster = Cluster::start(Options::default()).await.unwrap();
        let (faults, seen) = (Arc::<Mutex<VecDeque<Fault>>>::default(), Arc::<Mutex<Vec<Method>>>::default());
        let (inner, script, log) = (cluster.client(), faults.clone(), seen.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            log.lock().unwrap().push(request.method().clone());
            let (fault, inner) = (script.lock().unwrap().pop_front(), inner.clone());
            async move { answer(fault, &inner, request).await }
        });
        let clock = cluster.clock();
        let recorder = EventRecorder::start(
            Client::new(service, "default"),
            "horizontal-pod-autoscaler",
            Clock::new(move || clock.now()),
        );
        Self { cluster, recorder, faults, seen }
    }

    fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.faults.lock().unwrap().extend(faults);
    }

    /// Records an event, and waits until it is delivered.
    async fn deliver(&self, event: Event) {
        self.recorder.record(&place("web"), &event);
        self.recorder.flush(Duration::from_mins(10)).await;
    }

    fn api(&self) -> Api<Stored> {
        Api::namespaced(self.cluster.client(), "default")
    }

    async fn stored(&self) -> Vec<Stored> {
        let mut all = self.api().list(&ListParams::default()).await.unwrap().items;
        all.sort_by_key(ResourceExt::name_any);
        all
    }

    fn methods(&self) -> Vec<Method> {
        self.seen.lock().unwrap().drain(..).collect()
    }
}

async fn answer(
    fault: Option<Fault>,
    inner: &Client,
    request: Request<Body>,
) -> Result<Response<Body>, Box<dyn std::error::Error + Send + Sync>> {
    let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
    match fault {
        None => Ok(inner.send(request).await?),
        Some(Fault::Down) => Err(refused().into()),
        Some(Fault::Lost) => {
            inner.send(request).await?;
            Err(io::Error::from(io::ErrorKind::ConnectionReset).into())
        }
        Some(Fault::Status(code)) => {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "no"});
            let response = Response::builder().status(code).header("content-type", "application/json");
            Ok(response.body(Body::from(status.to_string().into_bytes()))?)
        }
    }
}

fn place(name: &str) -> super::ObjectReference {
    super::ObjectReference { namespace: "default".to_owned(), ..about(name) }
}

#[tokio::test(start_paused = true)]
async fn an_event_is_created_and_then_counted() {
    let case = Case::new().await;
    case.deliver(warning("m")).await;
    let first = case.stored().await.remove(0);
    assert_eq!(
        (first.count, first.message.as_deref(), first.type_.as_deref()),
        (Some(1), Some("m"), Some("Warning"))
    );
    tokio::time::sleep(Duration::from_secs(15)).await;
    case.deliver(warning("m")).await;
    let all = case.stored().await;
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].count, Some(2));
    assert_eq!(all[0].first_timestamp, first.first_timestamp);
    assert_ne!(all[0].last_timestamp, first.last_timestamp);
    assert_eq!(case.methods(), [Method::POST, Method::PATCH]);
    assert_eq!(case.recorder.counts(), EventCounts { created: 1, patched: 1, ..EventCounts::default() });
}

#[tokio::test(start_paused = true)]
async fn a_deleted_event_is_created_again_with_its_count() {
    let case = Case::new().await;
    case.deliver(warning("m")).await;
    let name = case.stored().await[0].name_any();
    case.api().delete(&name, &DeleteParams::default()).await.unwrap();
    case.deliver(warning("m")).await;
    let all = case.stored().await;
    assert_eq!((all.len(), all[0].count, all[0].name_any()), (1, Some(2), name));
    assert_eq!(case.methods(), [Method::POST, Method::PATCH, Method::POST]);
}

#[tokio::test(start_paused = true)]
async fn delivery_is_retried_in_order() {
    let case = Case::new().await;
    case.fail([Fault::Down, Fault::Status(500), Fault::Status(503), Fault::Status(429), Fault::Down]);
    let start = Instant::now();
    for n in 0..3 {
        case.recorder.record(&place("web"), &warning(&n.to_string()));
    }
    case.recorder.flush(Duration::from_mins(10)).await;
    // A random part of ten seconds, then four times ten.
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(40) && took < Duration::from_secs(51), "{took:?}");
    let messages: Vec<_> = case.stored().await.into_iter().filter_map(|event| event.message).collect();
    assert_eq!(messages, ["0", "1", "2"]);
    assert_eq!(case.recorder.counts(), EventCounts { created: 3, ..EventCounts::default() });
}

#[tokio::test(start_paused = true)]
async fn delivery_gives_up_after_twelve_attempts() {
    let case = Case::new().await;
    case.fail([Fault::Down; 12]);
    case.deliver(warning("lost")).await;
    assert_eq!(case.methods().len(), 12);
    assert_eq!(case.recorder.counts(), EventCounts { given_up: 1, ..EventCounts::default() });
    // What was never created is, when it happens again.
    case.deliver(warning("lost")).await;
    assert_eq!(case.stored().await[0].count, Some(2));
    assert_eq!(case.methods(), [Method::PATCH, Method::POST]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_event_is_dropped() {
    let case = Case::new().await;
    let start = Instant::now();
    for code in [400, 403, 404, 409, 422] {
        case.fail([Fault::Status(code)]);
        case.deliver(warning(&code.to_string())).await;
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(case.methods(), vec![Method::POST; 5]);
    assert_eq!(case.recorder.counts(), EventCounts { refused: 5, ..EventCounts::default() });
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_does_not_create_a_second_event() {
    let case = Case::new().await;
    case.fail([Fault::Lost]);
    case.deliver(warning("m")).await;
    assert_eq!(case.stored().await.len(), 1);
    assert_eq!(case.recorder.counts(), EventCounts { created: 1, ..EventCounts::default() });
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_drops_events_without_blocking() {
    let case = Case::new().await;
    // The first eight fail twice: between the second and the third attempt is the whole pause.
    case.fail([Fault::Down; 16]);
    for n in 0..MAX_QUEUED_EVENTS + 200 {
        case.recorder.record(&place(&format!("web-{n}")), &warning("m"));
    }
    assert_eq!(case.recorder.counts().overflowed, 200);
    // The delay is not longer than requested.
    let start = Instant::now();
    case.recorder.flush(Duration::from_secs(1)).await;
    assert_eq!(start.elapsed(), Duration::from_secs(1));
    case.recorder.flush(Duration::from_mins(10)).await;
    let created = MAX_QUEUED_EVENTS as u64;
    assert_eq!(case.recorder.counts(), EventCounts { created, overflowed: 200, ..EventCounts::default() });
}

#[tokio::test(start_paused = true)]
async fn an_undeliverable_event_delays_only_its_object() {
    let case = Case::new().await;
    case.fail([Fault::Down]);
    let start = Instant::now();
    for name in ["web", "web", "worker"] {
        case.recorder.record(&place(name), &warning(name));
    }
    while case.recorder.counts().created == 0 {
        // Time stands still while a task can make progress.
        tokio::task::yield_now().await;
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(case.stored().await[0].involved_object.name.as_deref(), Some("worker"));
    case.recorder.flush(Duration::from_mins(1)).await;
    assert_eq!(case.recorder.counts(), EventCounts { created: 2, patched: 1, ..EventCounts::default() });
}

#[tokio::test(start_paused = true)]
async fn another_component_shares_queue_and_counts() {
    let case = Case::new().await;
    let shadow = case.recorder.with_component("plimsoll-shadow");
    shadow.record(&place("web"), &warning("m"));
    case.deliver(warning("m")).await;
    let components: Vec<_> =
        case.stored().await.into_iter().filter_map(|event| event.reporting_component).collect();
    assert_eq!(components, ["plimsoll-shadow", "horizontal-pod-autoscaler"]);
    assert_eq!(shadow.counts().created, 2);
    for _ in 0..30 {
        shadow.record(&place("web"), &warning("m"));
    }
    shadow.flush(Duration::from_secs(1)).await;
    assert_eq!(
        shadow.counts(),
        EventCounts { created: 2, patched: 24, held_back: 6, ..EventCounts::default() }
    );
}
