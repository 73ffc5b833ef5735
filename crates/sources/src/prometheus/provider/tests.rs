#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod failing_selector;
mod panics;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use api::provider::{
    CustomMetricQuery, CustomMetricsProvider, ExternalMetricQuery, ExternalMetricsProvider, Labels,
    ListFilter, Lookup, ObjectSelection, ResourceMetricsProvider, SampleSource,
};
use api::selector::FieldSelector;
use locks::MutexExt as _;

use super::*;
use crate::http::tests::{answer, folder, plainly};
use crate::http::{Auth, Endpoint, HttpClient};
use crate::prometheus::client::PrometheusSettings;
use crate::prometheus::client::tests::{Played, prometheus, vector};

const RULES: &str = r#"
rules:
- seriesQuery: requests
  resources: {template: "<<.Resource>>"}
  name: {matches: "^(.*)_total$", as: "${1}_per_second"}
  metricsQuery: "sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)"
externalRules:
- seriesQuery: queues
  resources: {template: "<<.Resource>>"}
  metricsQuery: "<<.Series>>{<<.LabelMatchers>>}"
resourceRules:
  cpu:
    containerQuery: "sum(cpu{<<.LabelMatchers>>}) by (<<.GroupBy>>)"
    nodeQuery: "sum(node_cpu{<<.LabelMatchers>>}) by (<<.GroupBy>>)"
    resources: {overrides: {namespace: {resource: namespace}, node: {resource: node}, pod: {resource: pod}}}
    containerLabel: container
  memory:
    containerQuery: "sum(memory{<<.LabelMatchers>>}) by (<<.GroupBy>>)"
    nodeQuery: "sum(node_memory{<<.LabelMatchers>>}) by (<<.GroupBy>>)"
    resources: {overrides: {namespace: {resource: namespace}, node: {resource: node}, pod: {resource: pod}}}
    containerLabel: container
  window: 5m
"#;

struct FakeCluster {
    pods: usize,
    mapper: Mutex<Arc<RestMapper>>,
}

fn known(group: &str, plural: &str, kind: &str, namespaced: bool) -> KnownResource {
    KnownResource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        kind: kind.to_owned(),
        namespaced,
    }
}

fn core() -> Vec<KnownResource> {
    vec![
        known("", "namespaces", "Namespace", false),
        known("", "nodes", "Node", false),
        known("", "pods", "Pod", true),
    ]
}

fn cluster(pods: usize) -> Arc<FakeCluster> {
    Arc::new(FakeCluster { pods, mapper: Mutex::new(Arc::new(RestMapper::new(core()))) })
}

impl ClusterResources for FakeCluster {
    fn mapper(&self) -> Arc<RestMapper> {
        Arc::clone(&self.mapper.lock().unwrap())
    }

    fn names<'a>(
        &'a self,
        _: &'a KnownResource,
        _: Option<&'a str>,
        _: &'a Selector,
    ) -> ProviderFuture<'a, Vec<String>> {
        Box::pin(async { Ok((0..self.pods).map(|number| format!("web-{number}")).collect()) })
    }

    fn pods(&self, namespace: Option<&str>) -> Vec<Arc<Pod>> {
        let namespace: Arc<str> = Arc::from(namespace.unwrap_or("default"));
        let pod = |number| Pod {
            namespace: Arc::clone(&namespace),
            name: format!("web-{number}").into(),
            labels: Arc::new(Labels::default()),
        };
        (0..self.pods).map(|number| Arc::new(pod(number))).collect()
    }

    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        self.pods(Some(namespace)).into_iter().find(|pod| &*pod.name == name)
    }

    fn nodes(&self) -> Vec<Arc<Node>> {
        vec![Arc::new(Node { name: "node-a".into(), ..Node::default() })]
    }

    fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.nodes().into_iter().find(|node| &*node.name == name)
    }
}

/// Fake that lists the series of the rules.
fn series(selector: &str) -> String {
    let data = match selector {
        "requests" => r#"{"__name__":"http_requests_total","namespace":"default","pod":"web-0"}"#,
        "queues" => r#"{"__name__":"queue_depth","namespace":"default","queue":"q1"}"#,
        "widgets" => r#"{"__name__":"widget_size","namespace":"default","widget":"w"}"#,
        _ => "",
    };
    format!(r#"{{"status":"success","data":[{data}]}}"#)
}

fn played(result: &'static str) -> Arc<Played> {
    Played::new(move |path, text| (200, if path.ends_with("series") { series(text) } else { vector(result) }))
}

fn config(text: &str) -> AdapterConfig {
    AdapterConfig::parse(text).unwrap()
}

async fn provider(played: &Arc<Played>, cluster: Arc<FakeCluster>) -> PrometheusProvider {
    let prometheus = prometheus(played, PrometheusSettings::default());
    let provider =
        PrometheusProvider::idle(ProviderSettings::new(Clock::system()), prometheus, config(RULES), cluster)
            .unwrap();
    provider.discover().await;
    provider
}

fn custom_query(metric: &str, objects: ObjectSelection) -> CustomMetricQuery {
    CustomMetricQuery {
        resource: "pods".to_owned(),
        namespace: Some("default".to_owned()),
        objects,
        metric: metric.to_owned(),
        series: Selector::everything(),
        source: SampleSource::default(),
    }
}

fn everything() -> ListFilter {
    ListFilter { namespace: None, labels: Selector::everything(), fields: FieldSelector::parse("").unwrap() }
}

async fn custom(
    provider: &PrometheusProvider,
    objects: ObjectSelection,
) -> Result<Vec<String>, MetricsError> {
    let values =
        CustomMetricsProvider::values(provider, &custom_query("http_requests_per_second", objects)).await?;
    let shown = values.into_iter().map(|value| {
        let second = value.timestamp.map_or(0, Timestamp::as_second);
        format!("{} {} at {second}", value.object.name, value.value)
    });
    Ok(shown.collect())
}

fn one(name: &str) -> ObjectSelection {
    ObjectSelection::One(name.to_owned())
}

fn all() -> ObjectSelection {
    ObjectSelection::All(Selector::everything())
}

#[tokio::test]
async fn values_have_sample_times() {
    let played = played(
        r#"{"metric":{"pod":"web-1"},"value":[100.5,"2"]},{"metric":{"pod":"web-0"},"value":[101,"0.5"]},
           {"metric":{"pod":"web-2"},"value":[101,"NaN"]}"#,
    );
    let provider = provider(&played, cluster(3)).await;
    assert_eq!(custom(&provider, all()).await.unwrap(), ["web-0 500m at 101", "web-1 2 at 100"]);
    assert_eq!(custom(&provider, one("web-1")).await.unwrap(), ["web-1 2 at 100"]);
    let missing = custom(&provider, one("web-2")).await.unwrap_err();
    let metric = "http_requests_per_second";
    assert_eq!(missing, MetricsError::no_value(metric, "pods", "web-2"));
    let report = provider.report();
    assert_eq!(report.without_value, 2);
    assert_eq!(report.custom.unwrap().rules[0].metrics, 2);
    let requested = played.requested.lock().unwrap().clone();
    assert_eq!(
        requested[2].1,
        r#"sum(rate(http_requests_total{namespace="default",pod=~"web-0|web-1|web-2"}[2m])) by (pod)"#
    );
}

#[tokio::test]
async fn many_names_become_one_query_for_all_objects() {
    let played =
        played(r#"{"metric":{"pod":"web-7"},"value":[1,"7"]},{"metric":{"pod":"other"},"value":[1,"9"]}"#);
    let provider = provider(&played, cluster(100)).await;
    assert_eq!(custom(&provider, all()).await.unwrap(), ["web-7 7 at 1"]);
    let requested = played.requested.lock().unwrap().last().unwrap().1.clone();
    assert!(requested.len() < 120 && !requested.contains("web-"), "{requested}");
    assert!(ResourceMetricsProvider::pods(&provider, &everything()).await.is_ok());
    let requested = played.requested.lock().unwrap().last().unwrap().1.clone();
    assert!(requested.len() < 120 && !requested.contains("web-"), "{requested}");
}

#[tokio::test]
async fn external_metrics_have_one_value_per_series() {
    let played =
        played(r#"{"metric":{"queue":"a"},"value":[1,"3"]},{"metric":{"queue":"b"},"value":[1,"NaN"]}"#);
    let provider = provider(&played, cluster(1)).await;
    let external_query = |metric: &str| ExternalMetricQuery {
        namespace: "default".to_owned(),
        metric: metric.to_owned(),
        series: Selector::parse("queue!=c").unwrap(),
        source: SampleSource::default(),
    };
    let query = external_query("queue_depth");
    let values = ExternalMetricsProvider::values(&provider, &query).await.unwrap();
    let source = query.source.stated().unwrap();
    assert!(source.starts_with("Prometheus: ") && source.contains("queue_depth"), "{source}");
    assert_eq!(values.len(), 1);
    assert_eq!(values[0].labels.as_deref().unwrap(), [("queue".to_owned(), "a".to_owned())]);
    assert!(matches!(
        ExternalMetricsProvider::values(&provider, &external_query("nope")).await,
        Err(MetricsError::NoMetric(_))
    ));
    assert_eq!(*ExternalMetricsProvider::known(&provider), ["queue_depth"]);
}

#[tokio::test]
async fn nodes_and_pods_need_two_queries_each() {
    let played = played(r#"{"metric":{"pod":"web-0","container":"app","node":"node-a"},"value":[9,"0.25"]}"#);
    let provider = provider(&played, cluster(2)).await;
    let pods = ResourceMetricsProvider::pods(&provider, &everything()).await.unwrap();
    assert_eq!((pods.len(), &*pods[0].name, pods[0].window), (1, "web-0", 300_000_000_000));
    assert_eq!(pods[0].containers[0].usage[0].1.to_string(), "250m");
    assert!(matches!(
        ResourceMetricsProvider::pod(&provider, "default", "web-1").await,
        Ok(Lookup::NoSamples)
    ));
    assert!(matches!(ResourceMetricsProvider::pod(&provider, "default", "gone").await, Ok(Lookup::NotFound)));
    assert!(matches!(ResourceMetricsProvider::node(&provider, "node-a").await, Ok(Lookup::Found(_))));
}

#[tokio::test]
async fn prometheus_outage_is_not_an_empty_result() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = HttpClient::new(Endpoint::at(format!("http://{address}"))).unwrap();
    let prometheus = PrometheusClient::new(Arc::new(client), PrometheusSettings::default());
    let provider = PrometheusProvider::idle(
        ProviderSettings::new(Clock::system()),
        prometheus,
        config(RULES),
        cluster(1),
    )
    .unwrap();
    provider.discover().await;
    let refused = format!("http://{address}: connection refused");
    let Err(MetricsError::Unavailable(text)) = ResourceMetricsProvider::pods(&provider, &everything()).await
    else {
        panic!("answered")
    };
    assert_eq!(text, format!("unable to fetch metrics: {refused}"));
    assert!(ResourceMetricsProvider::node(&provider, "node-a").await.is_err());
    let report = provider.report();
    assert_eq!(report.backend.health.error.unwrap().0, refused);
    let rule = &report.custom.unwrap().rules[0];
    assert_eq!((rule.place.as_str(), rule.matches_nothing()), ("rules[0]", false));
    assert_eq!(rule.selector.as_ref().unwrap().error.as_ref().unwrap().0, refused);
}

#[tokio::test]
async fn proxy_error_page_is_reported_with_its_cause() {
    for (body, cause) in [
        ("<html>Log in</html>".to_owned(), "an HTML page"),
        (r#"{"status":"success","data":{"resultType":"vec"#.to_owned(), "string without end"),
        (r#"{"status":"error","errorType":"execution","error":"boom"}"#.to_owned(), "execution: boom"),
        (r#"{"data":{"resultType":"matrix","result":[]}}"#.to_owned(), "got a matrix"),
        (vector(r#"{"metric":{"pod":"web-0"},"value":[1,"-Inf"]}"#), "the value of web-0 is -Inf"),
    ] {
        let played = Played::new(move |path, text| {
            (200, if path.ends_with("series") { series(text) } else { body.clone() })
        });
        let provider = provider(&played, cluster(1)).await;
        let Err(MetricsError::Internal(text)) = custom(&provider, all()).await else { panic!("{cause}") };
        assert!(text.starts_with("unable to fetch metrics: ") && text.contains(cause), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_prometheus_times_out() {
    let slow = Played::slow(Duration::from_hours(1), |_, _| (200, vector("")));
    let quick = played("");
    let settings =
        ProviderSettings { query_timeout: Duration::from_secs(10), ..ProviderSettings::new(Clock::system()) };
    let known = provider(&quick, cluster(1)).await;
    let hangs = PrometheusProvider::idle(
        settings,
        prometheus(&slow, PrometheusSettings::default()),
        config(RULES),
        cluster(1),
    )
    .unwrap();
    // Discovery succeeded while Prometheus was up.
    let state = ProviderState::new(
        config(RULES),
        hangs.0.cluster.mapper(),
        Compat::Better,
        &known.0.discovery_states.locked(),
    );
    hangs.0.exchange(state.unwrap());
    let Err(MetricsError::Internal(text)) = custom(&hangs, one("web-0")).await else { panic!("answered") };
    assert_eq!(text, "unable to fetch metrics: no answer within 10s");
}

#[tokio::test]
async fn invalid_rules_do_not_replace_valid_ones() {
    let played = played(r#"{"metric":{"pod":"web-0"},"value":[1,"1"]}"#);
    let provider = provider(&played, cluster(1)).await;
    assert_eq!(provider.reload(config(RULES)), ReloadOutcome::Unchanged);
    let broken = config(&RULES.replace("<<.GroupBy>>", "<<.GroupBy"));
    let ReloadOutcome::Refused(error) = provider.reload(broken) else { panic!("accepted") };
    assert!(error.starts_with("rules[0]: "), "{error}");
    assert_eq!(custom(&provider, one("web-0")).await.unwrap().len(), 1);
    // Another name for the same series is known without a new request.
    let renamed = config(&RULES.replace("_per_second", "_rate"));
    assert_eq!(provider.reload(renamed), ReloadOutcome::Reloaded);
    assert!(matches!(custom(&provider, one("web-0")).await, Err(MetricsError::NoMetric(_))));
    let values =
        CustomMetricsProvider::values(&provider, &custom_query("http_requests_rate", one("web-0"))).await;
    assert_eq!(values.unwrap().len(), 1);
    let none = config("externalRules: []");
    assert_eq!(provider.reload(none), ReloadOutcome::Reloaded);
    assert_eq!(provider.serves(), (false, false, false));
    assert!(CustomMetricsProvider::known(&provider).is_empty());
}

#[tokio::test(start_paused = true)]
async fn discovery_retries_soon_and_reload_triggers_it() {
    let up = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&up);
    let played =
        Played::new(move |path, text| match (well.load(Ordering::SeqCst), path.ends_with("series")) {
            (false, _) => (502, "starting".to_owned()),
            (true, true) => (200, series(text)),
            (true, false) => (200, vector("")),
        });
    let prometheus = prometheus(&played, PrometheusSettings::default());
    let provider = PrometheusProvider::start(
        ProviderSettings::new(Clock::system()),
        prometheus,
        config(RULES),
        cluster(1),
    )
    .unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(CustomMetricsProvider::known(&provider).is_empty());
    up.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(
        !CustomMetricsProvider::known(&provider).is_empty()
            && !ExternalMetricsProvider::known(&provider).is_empty()
    );
    let before = played.count();
    let more = RULES.replace(
        "rules:\n- seriesQuery: requests",
        "rules:\n- seriesQuery: others\n  metricsQuery: x\n- seriesQuery: requests",
    );
    assert_eq!(provider.reload(config(&more)), ReloadOutcome::Reloaded);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let requested: Vec<String> =
        played.requested.lock().unwrap()[before..].iter().map(|requested| requested.1.clone()).collect();
    assert!(requested.contains(&"others".to_owned()), "{requested:?}");
    let rules = provider.report().custom.unwrap().rules;
    assert!(rules[0].matches_nothing() && !rules[1].matches_nothing());
    // Discovery of a dropped provider stops.
    drop(provider);
    let before = played.count();
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(played.count(), before);
}

#[tokio::test]
async fn new_cluster_resources_are_picked_up() {
    let played = played("");
    let cluster = cluster(1);
    let text =
        RULES.replace("seriesQuery: requests", "seriesQuery: widgets").replace("^(.*)_total$", "^(.*)_size$");
    let prometheus = prometheus(&played, PrometheusSettings::default());
    let shared = Arc::clone(&cluster) as Arc<dyn ClusterResources>;
    let provider =
        PrometheusProvider::idle(ProviderSettings::new(Clock::system()), prometheus, config(&text), shared)
            .unwrap();
    let resources = || {
        CustomMetricsProvider::known(&provider).iter().map(|known| known.resource.clone()).collect::<Vec<_>>()
    };
    provider.discover().await;
    assert_eq!(resources(), ["namespaces"]);
    let more = core().into_iter().chain([known("example.com", "widgets", "Widget", true)]).collect();
    *cluster.mapper.lock().unwrap() = Arc::new(RestMapper::new(more));
    provider.discover().await;
    assert_eq!(resources(), ["namespaces", "widgets.example.com"]);
}

#[tokio::test]
async fn replaced_token_is_used() {
    let path = folder("provider-token").join("token");
    fs::write(&path, "old\n").unwrap();
    let wanted = Arc::new(Mutex::new("Bearer old"));
    let good = Arc::clone(&wanted);
    let address = plainly(move |request| {
        let given = request.headers().get("authorization").unwrap().to_str().unwrap();
        let query = request.uri().query().unwrap_or_default().to_owned();
        if given != *good.lock().unwrap() {
            return answer(401, "no");
        }
        if request.uri().path().ends_with("series") {
            let selector = query.split(['=', '&']).nth(1).unwrap();
            return answer(200, series(selector));
        }
        answer(200, vector(r#"{"metric":{"pod":"web-0"},"value":[1,"1"]}"#))
    })
    .await;
    let endpoint =
        Endpoint { auth: Auth::TokenFile(path.clone()), ..Endpoint::at(format!("http://{address}")) };
    let settings = PrometheusSettings { cache_age: Duration::ZERO, ..PrometheusSettings::default() };
    let prometheus = PrometheusClient::new(Arc::new(HttpClient::new(endpoint).unwrap()), settings);
    let provider = PrometheusProvider::idle(
        ProviderSettings::new(Clock::system()),
        prometheus,
        config(RULES),
        cluster(1),
    )
    .unwrap();
    provider.discover().await;
    assert!(custom(&provider, one("web-0")).await.is_ok());
    *wanted.lock().unwrap() = "Bearer new";
    let Err(MetricsError::Internal(text)) = custom(&provider, one("web-0")).await else { panic!("accepted") };
    assert!(text.contains("unknown response code 401"), "{text}");
    fs::write(&path, "new\n").unwrap();
    assert!(custom(&provider, one("web-0")).await.is_ok());
}
