//! KEDA's internal service (spec 4.2): its own metrics adapter may ask us, too.

use std::net::SocketAddr;
use std::sync::Arc;

use cluster::Clock;
use controllers::metrics::Figures;
use controllers::operator::Handle;
use external_scaler::adapter::{BOUNDS, Calls, Source, Value, service};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use serve::{Beside, Body, Keyring, Route, StartError};
use tower::ServiceExt as _;

/// Who answers: on every replica, whoever leads.
struct Values {
    handle: Handle,
    clock: Clock,
}

impl Source for Values {
    async fn values(&self, namespace: &str, object: &str, metric: &str) -> Result<Vec<Value>, String> {
        let found = self.handle.metric(namespace, object, metric).await?;
        let seconds = self.clock.now().as_second();
        let value = |value: keda::activity::MetricValue| Value {
            metric: value.name,
            quantity: value.value.to_string(),
            seconds,
        };
        Ok(found.into_iter().map(value).collect())
    }
}

/// Starts to serve, to those who show a certificate of ours.
pub(super) async fn start(
    address: SocketAddr,
    keyring: &Keyring,
    handle: &Handle,
    clock: &Clock,
    calls: Arc<Calls>,
) -> Result<Beside, StartError> {
    let service = service(Values { handle: handle.clone(), clock: clock.clone() }, calls);
    let service = service
        .map_request(|request: Request<Body>| request)
        .map_response(|answer: Response<_>| answer.map(|body| body.map_err(Into::into).boxed_unsync()));
    Beside::mutual(address, keyring, Route::new(service)).await
}

/// What was asked and answered, under the names of the original's library.
pub(super) fn figures(page: &mut Figures, calls: &Calls) {
    let seen = calls.seen();
    let labels =
        [("grpc_method", "GetMetrics"), ("grpc_service", "api.MetricsService"), ("grpc_type", "unary")];
    let [method, of, kind] = labels;
    page.family(
        "counter",
        "keda_internal_metricsservice_grpc_server_started_total",
        "Total number of RPCs started on the server.",
    )
    .value(&labels, seen.started);
    page.family(
        "counter",
        "keda_internal_metricsservice_grpc_server_handled_total",
        "Total number of RPCs completed on the server, regardless of success or failure.",
    );
    for (code, count) in &seen.handled {
        page.value(&[("grpc_code", *code), method, of, kind], count);
    }
    page.family(
        "counter",
        "keda_internal_metricsservice_grpc_server_msg_received_total",
        "Total number of RPC stream messages received on the server.",
    )
    .value(&labels, seen.started);
    page.family(
        "counter",
        "keda_internal_metricsservice_grpc_server_msg_sent_total",
        "Total number of gRPC stream messages sent by the server.",
    )
    .value(&labels, seen.sent);
    let count = seen.handled.values().sum();
    page.family(
        "histogram",
        "keda_internal_metricsservice_grpc_server_handling_seconds",
        "Histogram of response latency (seconds) of gRPC that had been application-level handled by the server.",
    )
    .histogram(&labels, BOUNDS.into_iter().zip(seen.within).chain([(f64::INFINITY, count)]), seen.seconds);
}
