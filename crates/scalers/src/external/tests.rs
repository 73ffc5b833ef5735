mod spec_stream;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};

use api::provider::Compat;
use external_scaler::{ActivityStream, ExternalScaler, MetricSpec, MetricValue, Server, Status};
use futures::StreamExt as _;
use sources::http::ProxyRules;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::query;
use super::*;
use crate::grpc::CALL_TIMEOUT;
use crate::web::HttpSettings;

/// An external scaler whose responses are scripted in the metadata.
#[derive(Clone, Default)]
struct Play {
    requested: Arc<AtomicUsize>,
    seen: Arc<Mutex<Option<ScaledObjectRef>>>,
    streams: Arc<AtomicUsize>,
}

impl ExternalScaler for Play {
    async fn metric_specs(&self, object: &ScaledObjectRef) -> Result<Vec<MetricSpec>, Status> {
        self.requested.fetch_add(1, Ordering::SeqCst);
        *self.seen.lock().unwrap() = Some(object.clone());
        match object.text("specs").unwrap_or("one") {
            "hang" => std::future::pending().await,
            "refuse" => Err(Status::failed_precondition("not today")),
            "none" => Ok(Vec::new()),
            _ => Ok(vec![MetricSpec::new("letters", object.number_or("target", 5.0)?)]),
        }
    }

    async fn metrics(&self, object: &ScaledObjectRef, metric: &str) -> Result<Vec<MetricValue>, Status> {
        let whole = object.number_or("whole", 0.0)? as i64;
        let float = object.text("float").ok().and_then(|text| text.parse().ok()).unwrap_or_default();
        let value = |name: &str| MetricValue {
            metric_name: name.to_owned(),
            metric_value: whole,
            metric_value_float: float,
        };
        let mut values = vec![value(metric), value("another name")];
        values.resize(object.number_or("values", 2.0)? as usize, value(""));
        Ok(values)
    }

    async fn is_active(&self, object: &ScaledObjectRef) -> Result<bool, Status> {
        match object.text("active").unwrap_or("yes") {
            "refuse" => Err(Status::unavailable("asleep")),
            text => Ok(text == "yes"),
        }
    }

    async fn activity(&self, object: &ScaledObjectRef) -> Result<ActivityStream, Status> {
        let count = self.streams.fetch_add(1, Ordering::SeqCst);
        if object.text("stream").is_ok_and(|stream| stream == "late") {
            // Longer than the timeout: servers in Go send no headers before the first message.
            tokio::time::sleep(CALL_TIMEOUT + CALL_TIMEOUT / 4).await;
        }
        let end = object.text("stream").unwrap_or("eof") == "eof";
        let reported = futures::stream::iter([Ok(count.is_multiple_of(2))]);
        if end { Ok(Box::pin(reported)) } else { Ok(Box::pin(reported.chain(futures::stream::pending()))) }
    }
}

async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

fn serve_on(listener: TcpListener, play: &Play) -> (oneshot::Sender<()>, JoinHandle<()>) {
    let (end, ended) = oneshot::channel::<()>();
    let server = Server::new(play.clone());
    let task = tokio::spawn(async move {
        let ended = async move { drop(ended.await) };
        server.serve_until(listener, ended).await.unwrap();
    });
    (end, task)
}

async fn served() -> (String, Play, oneshot::Sender<()>) {
    let (listener, address) = listener().await;
    let play = Play::default();
    let (end, _) = serve_on(listener, &play);
    (address, play, end)
}

/// A server that runs this for every connection.
async fn odd<F: Future<Output = ()> + Send + 'static>(
    what: impl Fn(TcpStream) -> F + Send + 'static,
) -> String {
    let (listener, address) = listener().await;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(what(stream));
        }
    });
    address
}

fn trigger(address: &str, metadata: &[(&str, &str)]) -> Trigger {
    let mut trigger = Trigger { type_: "external".into(), index: 3, ..Trigger::default() };
    trigger.owner.name = "so".into();
    trigger.owner.namespace = "ns".into();
    trigger.metadata.insert("scalerAddress".into(), address.into());
    trigger.metadata.extend(metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    trigger
}

fn built(compat: Compat, trigger: &Trigger) -> Arc<dyn Scaler> {
    let backends = Backends::without_cluster(HttpSettings::allowing_loopback(), compat);
    (if trigger.type_ == "external" { TYPE } else { PUSH }.build)(trigger, &backends).unwrap()
}

fn better(address: &str, metadata: &[(&str, &str)]) -> Arc<dyn Scaler> {
    built(Compat::Better, &trigger(address, metadata))
}

fn texts(reading: &Reading) -> Vec<(String, String)> {
    reading.values.iter().map(|value| (value.name.clone(), value.value.to_string())).collect()
}

#[tokio::test]
async fn specs_and_values_have_hpa_names() {
    let (address, play, _end) = served().await;
    let mut trigger = trigger(&address, &[("float", "1.25"), ("pwFromEnv", "PW"), ("goneFromEnv", "GONE")]);
    trigger.environment.insert("PW".into(), "secret".into());
    trigger.auth.insert("token".into(), "hidden".into());
    let scaler = built(Compat::Better, &trigger);
    let specs = scaler.specs().await.unwrap();
    let external = specs[0].external.as_ref().unwrap();
    assert_eq!(external.metric.name, "s3-letters");
    assert_eq!(external.target.average_value.as_ref().unwrap().to_string(), "5");
    let reading = scaler.read("s3-letters").await.unwrap();
    assert!(reading.active);
    let expected = ("s3-letters".to_owned(), "1.250".to_owned());
    assert_eq!(texts(&reading), [expected.clone(), expected]);

    let seen = play.seen.lock().unwrap().clone().unwrap();
    let keys: Vec<&str> = seen.scaler_metadata.keys().map(String::as_str).collect();
    assert_eq!(keys, ["float", "pwFromEnv", "scalerAddress"]);
    assert_eq!(seen.scaler_metadata["pwFromEnv"], "secret");
    assert_eq!((&*seen.name, &*seen.namespace), ("so", "ns"));
}

#[tokio::test]
async fn large_messages_are_refused_by_their_announced_length() {
    let (address, _, _end) = served().await;
    let few = better(&address, &[("values", "1000")]);
    assert_eq!(few.read("s3-letters").await.unwrap().values.len(), 1000);
    let many = better(&address, &[("values", "100000")]);
    let error = many.read("s3-letters").await.unwrap_err();
    assert!(error.message.contains("too large"), "{error}");
}

#[tokio::test]
async fn specs_are_cached_except_in_strict_mode() {
    let (address, play, _end) = served().await;
    let scaler = better(&address, &[]);
    for _ in 0..3 {
        scaler.specs().await.unwrap();
    }
    assert_eq!(play.requested.load(Ordering::SeqCst), 1);
    let scaler = built(Compat::Strict, &trigger(&address, &[]));
    for _ in 0..3 {
        scaler.specs().await.unwrap();
    }
    assert_eq!(play.requested.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn refusals_are_errors_with_the_servers_message() {
    let (address, _play, _end) = served().await;
    let refused = better(&address, &[("specs", "refuse")]).specs().await.unwrap_err();
    assert_eq!(
        refused.message,
        format!("external scaler {address} refused GetMetricSpec: not today (FailedPrecondition)")
    );
    let strict = built(Compat::Strict, &trigger(&address, &[("specs", "refuse")]));
    assert_eq!(strict.specs().await.unwrap(), []);
    let asleep = better(&address, &[("active", "refuse")]).read("s3-letters").await.unwrap_err();
    assert_eq!(asleep.message, format!("external scaler {address} refused IsActive: asleep (Unavailable)"));
}

#[tokio::test]
async fn hanging_server_times_out() {
    let (address, _play, _end) = served().await;
    let late = better(&address, &[("specs", "hang")]).specs().await.unwrap_err();
    assert_eq!(
        late.message,
        format!("external scaler {address}: no answer to GetMetricSpec within {CALL_TIMEOUT:?}")
    );

    let silent = odd(|stream| async move {
        let _held = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let late = better(&silent, &[]).read("s3-letters").await.unwrap_err();
    assert_eq!(
        late.message,
        format!("external scaler {silent}: no answer to GetMetrics within {CALL_TIMEOUT:?}")
    );
}

#[tokio::test]
async fn broken_servers_are_errors_that_name_the_server() {
    let closing = odd(|stream| async move { drop(stream) }).await;
    let error = better(&closing, &[]).read("s3-letters").await.unwrap_err();
    assert!(error.message.starts_with(&format!("external scaler {closing}: ")), "{error}");

    let nonsense = odd(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
        std::future::pending::<()>().await;
    })
    .await;
    let error = better(&nonsense, &[]).read("s3-letters").await.unwrap_err();
    assert!(error.message.starts_with(&format!("external scaler {nonsense}: ")), "{error}");

    let (free, address) = listener().await;
    drop(free);
    let error = better(&address, &[]).specs().await.unwrap_err();
    assert_eq!(error.message, format!("external scaler {address}: connection refused"));
}

#[tokio::test]
async fn restarted_server_is_reconnected() {
    let (listener, address) = listener().await;
    let play = Play::default();
    let (end, task) = serve_on(listener, &play);
    let scaler = better(&address, &[("float", "2")]);
    assert!(scaler.read("s3-letters").await.is_ok());
    end.send(()).unwrap();
    task.await.unwrap();
    assert!(scaler.read("s3-letters").await.is_err());
    let listener = TcpListener::bind(&address).await.unwrap();
    let (_end, _task) = serve_on(listener, &play);
    let until = Instant::now() + Duration::from_secs(10);
    while let Err(error) = scaler.read("s3-letters").await {
        assert!(Instant::now() < until, "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn pushes_arrive_and_stream_is_reopened() {
    let (address, play, _end) = served().await;
    let mut trigger = trigger(&address, &[("stream", "eof")]);
    assert!(built(Compat::Better, &trigger).push(mpsc::channel(1).0).is_none());
    trigger.type_ = "external-push".into();
    let (sender, mut reported) = mpsc::channel(4);
    let listening = tokio::spawn(built(Compat::Better, &trigger).push(sender).unwrap());
    let begun = Instant::now();
    assert_eq!(reported.recv().await, Some(true));
    assert_eq!(reported.recv().await, Some(false));
    assert!(begun.elapsed() >= query::MIN_RECONNECT_DELAY);
    assert_eq!(play.streams.load(Ordering::SeqCst), 2);
    listening.abort();
    assert_eq!(reported.recv().await, None);
}

#[tokio::test]
async fn idle_stream_stays_open() {
    let (address, play, _server) = served().await;
    let mut trigger = trigger(&address, &[("stream", "late")]);
    trigger.type_ = "external-push".into();
    let (sender, mut reported) = mpsc::channel(4);
    let listening = tokio::spawn(built(Compat::Better, &trigger).push(sender).unwrap());
    let change = tokio::time::timeout(CALL_TIMEOUT * 20, reported.recv()).await;
    assert_eq!(change.unwrap(), Some(true));
    assert_eq!(play.streams.load(Ordering::SeqCst), 1);
    listening.abort();
}

#[tokio::test]
async fn scaler_is_reached_through_a_tunnel_of_the_proxy() {
    let (address, _, _end) = served().await;
    let proxy = odd(move |mut stream| {
        let address = address.clone();
        async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            assert!(head.starts_with(b"CONNECT 10.9.8.7:6000 HTTP/1.1\r\n"), "{head:?}");
            let mut server = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
        }
    })
    .await;
    let settings = HttpSettings::from_environment(|name| (name == "HTTPS_PROXY").then(|| proxy.clone()));
    let backends = Backends::without_cluster(settings, Compat::Better);
    // Nothing is sent to this address but to the proxy.
    let scaler = (TYPE.build)(&trigger("10.9.8.7:6000", &[("whole", "4")]), &backends).unwrap();
    let reading = scaler.read("s3-letters").await.unwrap();
    assert_eq!(texts(&reading)[0].1, "4");
}

#[tokio::test]
async fn channels_are_shared_by_equal_destinations_only() {
    let dialer = crate::dial::Dialer::default();
    let plain = |address: &str| Destination {
        what: "external scaler",
        address: address.into(),
        tls: None,
        server_name: String::new(),
        dialer: dialer.clone(),
        proxies: ProxyRules::default(),
    };
    let channels = Channels::default();
    let channel = channels.of(plain("shared:1"));
    assert!(Arc::ptr_eq(&channel, &channels.of(plain("shared:1"))));
    assert!(!Arc::ptr_eq(&channel, &channels.of(plain("shared:2"))));
    let tls = Destination { tls: Some(TlsSettings::default()), ..plain("shared:1") };
    assert!(!Arc::ptr_eq(&channel, &channels.of(tls)));
}

#[test]
fn float_value_wins_if_positive_and_values_are_not_negative() {
    let read = |whole, float, compat| {
        let value = MetricValue { metric_name: "x".into(), metric_value: whole, metric_value_float: float };
        let values = query::values("s0-x", &[value], compat)?;
        Ok::<_, String>(values[0].value.to_string())
    };
    assert_eq!(read(7, 0.25, Compat::Better).unwrap(), "250m");
    assert_eq!(read(7, 0.0, Compat::Better).unwrap(), "7");
    assert_eq!(read(7, -2.0, Compat::Better).unwrap(), "7");
    assert_eq!(read(-7, -2.0, Compat::Better).unwrap(), "0");
    assert_eq!(read(7, f64::NAN, Compat::Better).unwrap(), "7");
    assert_eq!(read(0, f64::NAN, Compat::Better).unwrap_err(), "the value of s0-x is not a number");
    assert_eq!(read(0, f64::NAN, Compat::Strict).unwrap(), "0");
    assert_eq!(read(i64::MAX, 0.0, Compat::Better).unwrap(), "9223372036854775807");
    assert_eq!(read(7, f64::INFINITY, Compat::Strict).unwrap(), "0");
    assert!(read(7, f64::INFINITY, Compat::Better).is_err());
}

#[test]
fn reconnect_delay_grows() {
    let seconds = Duration::from_secs;
    let mut delay = query::MIN_RECONNECT_DELAY;
    let mut waits = Vec::new();
    for _ in 0..7 {
        let (wait, next) = query::reconnect(delay, false, Duration::ZERO);
        waits.push(wait.as_secs());
        delay = next;
    }
    assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60]);
    assert_eq!(query::reconnect(delay, true, Duration::ZERO), (seconds(2), seconds(2)));
    assert_eq!(query::reconnect(delay, false, seconds(3600)), (seconds(2), seconds(4)));
}
