//! A sample application: pods that count the requests they serve, and other counters and gauges of tests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::error::Error;
use crate::kubelets::locked;
use crate::simulated::SimulatedServer;

/// The application, which serves its metrics until it is dropped.
///
/// ```text
/// /pods/NAMESPACE/POD/metrics   metrics of one pod: http_requests_total
/// /metrics                      counters and gauges of tests
/// /everything                   metrics of all pods, with namespace and pod as labels
/// ```
pub struct SampleApp {
    server: SimulatedServer,
    shop: Arc<Mutex<SampleMetrics>>,
}

#[derive(Default)]
struct SampleMetrics {
    /// The requests of each pod, by namespace and name.
    pods: BTreeMap<(String, String), Count>,
    /// Other counters and gauges, by name and labels in the exposition format.
    others: BTreeMap<String, Count>,
}

/// A value that grows at a constant rate, which may be zero.
#[derive(Clone, Copy)]
struct Count {
    value: f64,
    since: Instant,
    per_second: f64,
}

impl SampleApp {
    /// Starts the application without pods.
    pub fn start() -> Result<Self, Error> {
        let shop = Arc::new(Mutex::new(SampleMetrics::default()));
        let state = Arc::clone(&shop);
        let server =
            SimulatedServer::start_http("the sample application", move |request: Request<Incoming>| {
                std::future::ready(locked(&state).answer(request.uri().path()))
            })?;
        Ok(Self { server, shop })
    }

    /// Sets the number of requests per second of a pod, and adds the pod if it does not exist.
    pub fn set_load(&self, namespace: &str, pod: &str, per_second: f64) {
        let key = (namespace.to_owned(), pod.to_owned());
        locked(&self.shop).pods.entry(key).or_insert_with(Count::zero).change(per_second);
    }

    /// Removes a pod.
    pub fn remove(&self, namespace: &str, pod: &str) {
        locked(&self.shop).pods.remove(&(namespace.to_owned(), pod.to_owned()));
    }

    /// Sets a gauge, such as `queue_depth{queue="orders"}`.
    pub fn set_gauge(&self, series: &str, value: f64) {
        let count = Count { value, ..Count::zero() };
        locked(&self.shop).others.insert(series.to_owned(), count);
    }

    /// Sets the rate per second of a counter, such as `service_requests_total{namespace="shop",service="web"}`.
    pub fn set_counter(&self, series: &str, per_second: f64) {
        locked(&self.shop).others.entry(series.to_owned()).or_insert_with(Count::zero).change(per_second);
    }

    /// The scrape targets: one for each pod, and one for all other metrics.
    pub fn targets(&self) -> Value {
        let place = format!("127.0.0.1:{}", self.server.port);
        let pod = |(namespace, name): &(String, String)| {
            json!({"targets": [place], "labels": {
                "namespace": namespace, "pod": name, "__metrics_path__": format!("/pods/{namespace}/{name}/metrics")
            }})
        };
        let mut targets: Vec<Value> = locked(&self.shop).pods.keys().map(pod).collect();
        targets.push(json!({"targets": [place]}));
        Value::Array(targets)
    }

    /// One scrape target with all pods on one page, for tests with many pods.
    pub fn one_target(&self) -> Value {
        json!([{"targets": [format!("127.0.0.1:{}", self.server.port)], "labels": {"__metrics_path__": "/everything"}}])
    }
}

impl Count {
    fn zero() -> Self {
        Self { value: 0.0, since: Instant::now(), per_second: 0.0 }
    }

    fn now(&self) -> f64 {
        self.value + self.since.elapsed().as_secs_f64() * self.per_second
    }

    fn change(&mut self, per_second: f64) {
        *self = Self { value: self.now(), since: Instant::now(), per_second };
    }
}

impl SampleMetrics {
    fn answer(&self, path: &str) -> Response<Full<Bytes>> {
        let page = match path.split('/').collect::<Vec<_>>().as_slice() {
            ["", "metrics"] => Some(self.others()),
            ["", "everything"] => Some(self.everything()),
            ["", "pods", namespace, pod, "metrics"] => self.of_pod(namespace, pod),
            _ => None,
        };
        let code = if page.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
        let mut response = Response::new(Full::new(Bytes::from(page.unwrap_or_default())));
        *response.status_mut() = code;
        let kind = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
        response
    }

    fn of_pod(&self, namespace: &str, pod: &str) -> Option<String> {
        let count = self.pods.get(&(namespace.to_owned(), pod.to_owned()))?;
        let total = count.now();
        Some(format!(
            "# HELP http_requests_total The amount of requests served by the server in total\n\
             # TYPE http_requests_total counter\n\
             http_requests_total{{method=\"GET\"}} {}\nhttp_requests_total{{method=\"POST\"}} {}\n",
            total * 0.75,
            total * 0.25
        ))
    }

    fn everything(&self) -> String {
        let mut page = String::from("# TYPE http_requests_total counter\n");
        for ((namespace, pod), count) in &self.pods {
            // Writing to a string cannot fail.
            let _ = writeln!(
                page,
                "http_requests_total{{namespace=\"{namespace}\",pod=\"{pod}\"}} {}",
                count.now()
            );
        }
        page + &self.others()
    }

    fn others(&self) -> String {
        let mut page = String::new();
        for (series, count) in &self.others {
            let _ = writeln!(page, "{series} {}", count.now());
        }
        page
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn pages_have_the_values_that_were_set() {
        let mut shop = SampleMetrics::default();
        shop.pods.insert(("shop".into(), "web-0".into()), Count { value: 8.0, ..Count::zero() });
        shop.others.insert("queue_depth{queue=\"orders\"}".into(), Count { value: 7.0, ..Count::zero() });
        let page = shop.of_pod("shop", "web-0").unwrap();
        assert!(page.contains("http_requests_total{method=\"GET\"} 6\n"), "{page}");
        assert!(shop.of_pod("shop", "web-1").is_none());
        assert_eq!(shop.others(), "queue_depth{queue=\"orders\"} 7\n");
        assert!(shop.everything().contains("{namespace=\"shop\",pod=\"web-0\"} 8\n"));
        assert_eq!(shop.answer("/nothing").status(), 404);
    }
}
