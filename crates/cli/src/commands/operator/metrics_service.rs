//! KEDA's internal gRPC service (docs/spec/keda.md 4.2), for KEDA's own metrics adapter.

use std::net::SocketAddr;
use std::sync::Arc;

use cluster::Clock;
use controllers::metrics::MetricsWriter;
use controllers::operator::{MetricRequestError, OperatorHandle};
use external_scaler::metrics_adapter::{
    CallMetrics, DURATION_BUCKETS_SECONDS, MetricsSource, SourceValue, service,
};
use external_scaler::raw_metrics::RawMetricsBroker;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use serve::{Body, ExtraListener, Keyring, Route, StartError};
use tower::{ServiceExt as _, service_fn};

use super::raw_metrics::{RawMetrics, RawMetricsMode};

/// The path prefix of the raw metrics service.
const RAW: &str = "/api.RawMetricsService/";

/// Reads metric values; every replica answers, whichever is the leader.
struct Values {
    handle: OperatorHandle,
    clock: Clock,
}

impl MetricsSource for Values {
    type Error = MetricRequestError;

    async fn values(
        &self,
        namespace: &str,
        object: &str,
        metric: &str,
    ) -> Result<Vec<SourceValue>, MetricRequestError> {
        let found = self.handle.metric(namespace, object, metric).await?;
        let seconds = self.clock.now().as_second();
        let value = |value: keda::activity::MetricValue| SourceValue {
            metric: value.name,
            quantity: value.value.to_string(),
            seconds,
        };
        Ok(found.into_iter().map(value).collect())
    }
}

/// What the service needs.
pub(super) struct ServiceInputs<'a> {
    pub(super) handle: &'a OperatorHandle,
    pub(super) clock: &'a Clock,
    pub(super) calls: Arc<CallMetrics>,
}

/// Starts the service for clients with a certificate of our CA, and the raw metrics service if it is enabled.
pub(super) async fn start(
    address: SocketAddr,
    keyring: &Keyring,
    inputs: ServiceInputs<'_>,
    raw_metrics: Option<RawMetricsMode>,
) -> Result<ExtraListener, StartError> {
    let ServiceInputs { handle, clock, calls } = inputs;
    let raw = raw_metrics.map(|mode| RawMetrics { raw: RawMetricsBroker::default(), mode });
    let values = Values { handle: handle.clone(), clock: clock.clone() };
    let route = route(values, calls, raw.as_ref().map(|own| &own.raw));
    let listener = ExtraListener::mutual_tls(address, keyring, route).await?;
    if let Some(raw) = raw {
        handle.subscribe_raw_metrics(Arc::new(raw));
    }
    Ok(listener)
}

/// Routes both services by path.
fn route(source: impl MetricsSource, calls: Arc<CallMetrics>, raw: Option<&RawMetricsBroker>) -> Route {
    let whole = |request: Request<Body>| request;
    let values = service(source, calls)
        .map_request(whole)
        .map_response(|answer: Response<_>| answer.map(|body| body.map_err(Into::into).boxed_unsync()));
    let values = Route::new(values);
    // Without raw metrics the first service answers `Unimplemented`.
    let Some(raw) = raw else { return values };
    let raw_metrics_route = raw
        .service()
        .map_request(whole)
        .map_response(|answer: Response<_>| answer.map(|body| body.map_err(Into::into).boxed_unsync()));
    let raw_metrics_route = Route::new(raw_metrics_route);
    Route::new(service_fn(move |request: Request<Body>| {
        let route = if request.uri().path().starts_with(RAW) { &raw_metrics_route } else { &values };
        route.clone().oneshot(request)
    }))
}

/// Exports the call metrics under the names of KEDA's gRPC library.
pub(super) fn write_metrics(page: &mut MetricsWriter, calls: &CallMetrics) {
    let seen = calls.counts();
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
    .histogram(&labels, DURATION_BUCKETS_SECONDS.into_iter().zip(seen.within).chain([(f64::INFINITY, count)]), seen.seconds);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use controllers::operator::{MetricRequester, RawMetric, RawMetricsSubscriber as _};
    use external_scaler::metrics_service::{
        ExternalMetricValueList, RawMetricsRequest, RawMetricsResponse, ScaledObjectRef, SubscriptionAck,
        SubscriptionRequest,
    };
    use http::uri::PathAndQuery;
    use jiff::Timestamp;
    use keda::activity::MetricValue;
    use quantity::Quantity;
    use tonic::Code;
    use tonic::client::Grpc;
    use tonic_prost::ProstCodec;
    use tower::util::BoxCloneSyncService;

    use super::*;

    /// A source whose value is always 7.
    struct Seven;

    impl MetricsSource for Seven {
        type Error = MetricRequestError;

        async fn values(
            &self,
            _: &str,
            _: &str,
            metric: &str,
        ) -> Result<Vec<SourceValue>, MetricRequestError> {
            Ok(vec![SourceValue { metric: metric.to_owned(), quantity: "7".to_owned(), seconds: 1 }])
        }
    }

    type Service = BoxCloneSyncService<Request<tonic::body::Body>, Response<Body>, std::convert::Infallible>;

    /// The route in the form of a gRPC channel.
    fn service(raw: Option<&RawMetricsBroker>) -> Service {
        let route = route(Seven, Arc::default(), raw);
        Service::new(route.map_request(|request: Request<tonic::body::Body>| {
            request.map(|body| body.map_err(Into::into).boxed_unsync())
        }))
    }

    fn of(metric_name: &str) -> ScaledObjectRef {
        ScaledObjectRef { name: "so".into(), namespace: "ns".into(), metric_name: metric_name.into() }
    }

    #[tokio::test]
    async fn one_address_serves_metrics_and_raw_metrics_if_enabled() {
        let own = RawMetrics { raw: RawMetricsBroker::default(), mode: RawMetricsMode::Hpa };
        let service = service(Some(&own.raw));
        let mut client = Grpc::new(service);
        client.ready().await.unwrap();
        let path = PathAndQuery::from_static("/api.MetricsService/GetMetrics");
        let codec = ProstCodec::<_, ExternalMetricValueList>::default();
        let answer = client.unary(tonic::Request::new(of("s0-q")), path, codec).await.unwrap();
        let first = answer.into_inner().items.into_iter().next().unwrap();
        assert_eq!(first.value.unwrap().string, "7");

        let subscription =
            SubscriptionRequest { subscriber: "me".into(), metric_metadata: Some(of("queue")) };
        client.ready().await.unwrap();
        let path = PathAndQuery::from_static("/api.RawMetricsService/SubscribeMetric");
        let codec = ProstCodec::<_, SubscriptionAck>::default();
        let answer = client.unary(tonic::Request::new(subscription), path, codec).await.unwrap();
        assert!(!answer.into_inner().was_subscribed);
        client.ready().await.unwrap();
        let inputs = tonic::Request::new(RawMetricsRequest { subscriber: "me".into() });
        let path = PathAndQuery::from_static("/api.RawMetricsService/GetRawMetricsStream");
        let codec = ProstCodec::<_, RawMetricsResponse>::default();
        let mut stream =
            client.server_streaming(inputs, path.clone(), codec.clone()).await.unwrap().into_inner();
        for (by, value) in [(MetricRequester::Poll, 3), (MetricRequester::Hpa, 4)] {
            let value = Quantity::new(value, quantity::Format::DecimalSi);
            own.publish(&RawMetric {
                by,
                at: Timestamp::from_second(5).unwrap(),
                namespace: "ns",
                object: "so",
                trigger: "queue",
                values: &[MetricValue { name: "s0-q".into(), value }],
                active: true,
            });
        }
        let raw_metrics_route = stream.message().await.unwrap().unwrap().metrics;
        let raw_metrics_route: Vec<_> =
            raw_metrics_route.iter().map(|one| (one.value, one.is_active)).collect();
        assert_eq!(raw_metrics_route, [(4.0, true)], "polls are not wanted in this mode");

        let mut without = Grpc::new(self::service(None));
        without.ready().await.unwrap();
        let inputs = tonic::Request::new(RawMetricsRequest::default());
        let refused = without.server_streaming(inputs, path, codec).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unimplemented);
    }
}
