//! Exports to a collector that decodes what it gets.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use prost::Message as _;
use runtime::Clock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service};
use tonic::server::UnaryService;
use tonic::transport::server::TcpIncoming;
use tonic_prost::ProstCodec;

use crate::settings::{CollectorSettings, Signal};
use crate::traces::{SpanTimes, TraceExport, TraceSpans};
use crate::wire::{ExportResponse, KeyValue, MetricsRequest, PartialSuccess, ResourceMetrics, TracesRequest};
use crate::{Collector, ExportError, MetricsExport};

/// A request as a collector sees it.
struct Received {
    head: String,
    body: Vec<u8>,
}

/// A collector that answers every request over HTTP with this status and message; returns its URL.
async fn http_collector(
    status: &'static str,
    answer: ExportResponse,
) -> (String, mpsc::UnboundedReceiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = Vec::new();
            let (head, length) = loop {
                assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "the request has no end");
                let text = String::from_utf8_lossy(&bytes).to_lowercase();
                let Some(end) = text.find("\r\n\r\n") else { continue };
                let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
                // A request without a body has no length.
                let length = length.map_or(0, |length| length.parse::<usize>().unwrap());
                break (text[..end].to_owned(), end + 4 + length);
            };
            while bytes.len() < length {
                assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "the body has no end");
            }
            let body = bytes.split_off(head.len() + 4);
            let answer = answer.encode_to_vec();
            let start =
                format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", answer.len());
            stream.write_all(&[start.as_bytes(), &answer].concat()).await.unwrap();
            let _ = sender.send(Received { head, body });
        }
    });
    (url, received)
}

/// A message that is not empty.
fn message() -> MetricsRequest {
    MetricsRequest { resource_metrics: vec![ResourceMetrics::default()] }
}

fn collector(variables: &[(&str, &str)]) -> Collector {
    collector_of(Signal::Metrics, variables)
}

fn collector_of(signal: Signal, variables: &[(&str, &str)]) -> Collector {
    let known: HashMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let variable = |name: &str| known.get(name).cloned();
    Collector::new(CollectorSettings::from_environment(signal, None, &variable).unwrap()).unwrap()
}

#[tokio::test]
async fn metrics_are_posted_at_the_interval() {
    let (url, mut received) = http_collector("200 OK", ExportResponse::default()).await;
    let export = MetricsExport {
        collector: collector(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &url),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=k%20y"),
        ]),
        interval: Duration::from_millis(20),
        resource: vec![KeyValue::text("service.name", "test")],
        meter: "meter",
        page: Arc::new(|| "# HELP a A.\n# TYPE a gauge\na{x=\"y\"} 2\n".to_owned()),
        convert: |mut families| {
            families[0].name.push_str(".renamed");
            families
        },
        clock: Clock::system(),
    };
    let task = tokio::spawn(export.run());
    for _ in 0..2 {
        let Received { head, body } = received.recv().await.unwrap();
        assert!(head.starts_with("post /v1/metrics http/1.1\r\n"), "{head}");
        assert!(head.contains("content-type: application/x-protobuf"), "{head}");
        assert!(head.contains("x-key: k y"), "{head}");
        let request = MetricsRequest::decode(&*body).unwrap();
        let of_process = &request.resource_metrics[0];
        assert_eq!(
            of_process.resource.as_ref().unwrap().attributes,
            [KeyValue::text("service.name", "test")]
        );
        let scope = &of_process.scope_metrics[0];
        assert_eq!(scope.scope.as_ref().unwrap().name, "meter");
        let metric = &scope.metrics[0];
        assert_eq!((&*metric.name, &*metric.description), ("a.renamed", "A."));
        let point = &metric.gauge.as_ref().unwrap().data_points[0];
        assert_eq!((point.as_double, &*point.attributes), (Some(2.0), &[KeyValue::text("x", "y")][..]));
        assert!(point.time_unix_nano >= point.start_time_unix_nano && point.start_time_unix_nano > 0);
    }
    task.abort();
}

#[tokio::test]
async fn answers_of_the_collector_are_named() {
    let send = async |url: &str| {
        let collector = collector(&[("OTEL_EXPORTER_OTLP_ENDPOINT", url)]);
        collector.send(message()).await
    };
    let (url, _received) = http_collector("503 Service Unavailable", ExportResponse::default()).await;
    let error = send(&url).await.unwrap_err();
    assert_eq!(error.to_string(), "the collector answered 503 Service Unavailable");
    let partial_success = Some(PartialSuccess { rejected: 3, error_message: "too old".to_owned() });
    let (url, _received) = http_collector("200 OK", ExportResponse { partial_success }).await;
    let error = send(&url).await.unwrap_err();
    assert_eq!(error.to_string(), "the collector refused 3 of what was sent: too old");
    // Nobody listens where the listener was.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = send(&url).await.unwrap_err();
    assert!(matches!(error, ExportError::Http(_)), "{error}");
    let grpc = collector(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &url), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
    let error = grpc.send(message()).await.unwrap_err();
    assert!(matches!(error, ExportError::Connection(_)), "{error}");
}

/// A call of a gRPC method: path, header `x-key` and message.
type GrpcCall = (String, String, MetricsRequest);

/// A collector that accepts everything over gRPC.
#[derive(Clone)]
struct GrpcCollector(mpsc::UnboundedSender<GrpcCall>);

struct ExportMethod {
    path: String,
    calls: mpsc::UnboundedSender<GrpcCall>,
}

impl Service<http::Request<Body>> for GrpcCollector {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let method = ExportMethod { path: request.uri().path().to_owned(), calls: self.0.clone() };
        let codec = ProstCodec::<ExportResponse, MetricsRequest>::default();
        Box::pin(async move { Ok(tonic::server::Grpc::new(codec).unary(method, request).await) })
    }
}

impl UnaryService<MetricsRequest> for ExportMethod {
    type Response = ExportResponse;
    type Future = std::future::Ready<Result<tonic::Response<ExportResponse>, Status>>;

    fn call(&mut self, request: tonic::Request<MetricsRequest>) -> Self::Future {
        let key = request.metadata().get("x-key").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let call = (self.path.clone(), key.to_owned(), request.get_ref().clone());
        let _ = self.calls.send(call);
        std::future::ready(Ok(tonic::Response::new(ExportResponse::default())))
    }
}

#[tokio::test]
async fn metrics_are_sent_by_grpc() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, mut calls) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let (incoming, never) = (TcpIncoming::from(listener), std::future::pending());
        let server = tonic::transport::Server::builder();
        server.serve_with_incoming_shutdown(GrpcCollector(sender), incoming, never).await.unwrap();
    });
    let collector = collector(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &url),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=k"),
    ]);
    collector.send(message()).await.unwrap();
    let (path, key, received) = calls.recv().await.unwrap();
    assert_eq!(path, "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export");
    assert_eq!((&*key, received), ("k", message()));
}

#[tokio::test]
async fn traces_are_posted() {
    let (url, mut received) = http_collector("200 OK", ExportResponse::default()).await;
    let collector = collector_of(Signal::Traces, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &url)]);
    let resource = vec![KeyValue::text("service.name", "test")];
    let (sender, export) = TraceExport::new(collector, resource, "tracer", Duration::from_millis(20));
    let task = tokio::spawn(export.run());
    let time = |second| jiff::Timestamp::from_second(second).unwrap();
    sender.send(move || {
        let mut trace = TraceSpans::new(7);
        let root = trace.add(None, "decision", SpanTimes { start: time(1), end: time(3) });
        let child = trace.add(Some(root), "write", SpanTimes { start: time(2), end: time(3) });
        trace.set_attributes(child, vec![KeyValue::integer("decision.desired", 4)]);
        trace.set_error(child, "conflict");
        trace.into_spans()
    });
    let Received { head, body } = received.recv().await.unwrap();
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    let request = TracesRequest::decode(&*body).unwrap();
    let scope = &request.resource_spans[0].scope_spans[0];
    assert_eq!(scope.scope.as_ref().unwrap().name, "tracer");
    let [root, child] = &*scope.spans else { panic!("{scope:?}") };
    assert_eq!((&*root.name, &*child.name), ("decision", "write"));
    assert_eq!((root.trace_id.len(), root.span_id.len(), root.parent_span_id.len()), (16, 8, 0));
    assert_eq!((&child.parent_span_id, &child.trace_id), (&root.span_id, &root.trace_id));
    assert_ne!(child.span_id, root.span_id);
    assert_eq!((root.start_time_unix_nano, root.end_time_unix_nano), (1_000_000_000, 3_000_000_000));
    assert_eq!(child.attributes, [KeyValue::integer("decision.desired", 4)]);
    let status = child.status.as_ref().unwrap();
    assert_eq!((&*status.message, status.code), ("conflict", 2));
    assert_eq!(sender.dropped(), 0);
    task.abort();
}

#[tokio::test]
async fn unreadable_certificate_is_named() {
    for protocol in ["grpc", "http/protobuf"] {
        let variable = |name: &str| match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => Some("https://127.0.0.1:9".to_owned()),
            "OTEL_EXPORTER_OTLP_PROTOCOL" => Some(protocol.to_owned()),
            "OTEL_EXPORTER_OTLP_CERTIFICATE" => Some("/no/such/ca.pem".to_owned()),
            _ => None,
        };
        let settings = CollectorSettings::from_environment(Signal::Metrics, None, &variable).unwrap();
        let error = Collector::new(settings).unwrap_err().to_string();
        assert!(error.contains("/no/such/ca.pem"), "{protocol}: {error}");
    }
}

#[tokio::test]
async fn grpc_over_tls_reports_a_server_without_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let grpc = collector(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &url), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
    let error = grpc.send(message()).await.unwrap_err();
    assert!(matches!(error, ExportError::Connection(_)), "{error}");
}
