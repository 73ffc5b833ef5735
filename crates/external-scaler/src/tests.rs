#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use futures::stream;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tonic::Code;
use tonic::transport::Channel;

use super::*;
use crate::protocol::GetMetricsRequest;
use crate::protocol::external_scaler_client::ExternalScalerClient;

struct Mailbox;

impl ExternalScaler for Mailbox {
    async fn metric_specs(&self, object: &ScaledObjectRef) -> Result<Vec<MetricSpec>, Status> {
        Ok(vec![MetricSpec::new("letters", object.number_or("perReplica", 2.5)?)])
    }

    async fn metrics(&self, object: &ScaledObjectRef, metric: &str) -> Result<Vec<MetricValue>, Status> {
        Ok(vec![MetricValue::new(metric, object.number("letters")?)])
    }

    async fn activity(&self, object: &ScaledObjectRef) -> Result<ActivityStream, Status> {
        object.text("letters")?;
        Ok(Box::pin(stream::iter([Ok(false), Ok(true)])))
    }

    async fn metric_spec_changes(&self, object: &ScaledObjectRef) -> Result<MetricSpecStream, Status> {
        object.text("letters").map_err(|_| Status::unimplemented("no letters, no stream"))?;
        let specs = |target| Ok(vec![MetricSpec::new("letters", target)]);
        Ok(Box::pin(stream::iter([specs(1.0), specs(2.0)])))
    }
}

fn object(metadata: &[(&str, &str)]) -> ScaledObjectRef {
    let metadata: BTreeMap<_, _> =
        metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    ScaledObjectRef { name: "so".into(), namespace: "ns".into(), scaler_metadata: metadata }
}

async fn served() -> (ExternalScalerClient<Channel>, oneshot::Sender<()>) {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (end, ended) = oneshot::channel::<()>();
    tokio::spawn(Server::new(Mailbox).serve_until(listener, async move {
        let _ = ended.await;
    }));
    (ExternalScalerClient::connect(format!("http://{address}")).await.unwrap(), end)
}

#[tokio::test]
async fn client_reads_a_scaler_over_grpc() {
    let (mut client, _end) = served().await;
    let specs = client.get_metric_spec(object(&[])).await.unwrap().into_inner().metric_specs;
    assert_eq!(specs, [MetricSpec { metric_name: "letters".into(), target_size: 3, target_size_float: 2.5 }]);
    let requested = GetMetricsRequest {
        scaled_object_ref: Some(object(&[("letters", "0.25")])),
        metric_name: "letters".into(),
    };
    let values = client.get_metrics(requested).await.unwrap().into_inner().metric_values;
    assert_eq!(
        values,
        [MetricValue { metric_name: "letters".into(), metric_value: 0, metric_value_float: 0.25 }]
    );
}

#[tokio::test]
async fn activity_is_any_metric_above_zero_unless_it_is_written_otherwise() {
    let (mut client, _end) = served().await;
    assert!(client.is_active(object(&[("letters", "0.25")])).await.unwrap().into_inner().result);
    assert!(!client.is_active(object(&[("letters", "0")])).await.unwrap().into_inner().result);
    assert!(!client.is_active(object(&[("letters", "-3")])).await.unwrap().into_inner().result);
}

#[tokio::test]
async fn activity_streams_and_errors_arrive_with_their_words() {
    let (mut client, _end) = served().await;
    let mut reported = client.stream_is_active(object(&[("letters", "1")])).await.unwrap().into_inner();
    assert!(!reported.message().await.unwrap().unwrap().result);
    assert!(reported.message().await.unwrap().unwrap().result);
    assert!(reported.message().await.unwrap().is_none());

    let refused = client.is_active(object(&[("letters", "many")])).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(refused.message(), "letters in the trigger's metadata is \"many\", which is no number");
    let missing = client.stream_is_active(object(&[("letters", " ")])).await.unwrap_err();
    assert_eq!(missing.message(), "the trigger has no letters in its metadata");
}

#[tokio::test]
async fn metric_specs_are_streamed_only_by_scalers_that_support_it() {
    let (mut client, _end) = served().await;
    let mut changes = client.stream_metric_spec(object(&[("letters", "1")])).await.unwrap().into_inner();
    for target in [1.0, 2.0] {
        let specs = changes.message().await.unwrap().unwrap().metric_specs;
        assert_eq!(specs, [MetricSpec::new("letters", target)]);
    }
    assert!(changes.message().await.unwrap().is_none());
    // The default, which is how a scaler answers that was written for an older protocol.
    let unknown = client.stream_metric_spec(object(&[])).await.unwrap_err();
    assert_eq!(unknown.code(), Code::Unimplemented);
}

#[test]
fn float_target_overrides_integer_only_above_zero() {
    let value = |whole, float| MetricValue {
        metric_name: String::new(),
        metric_value: whole,
        metric_value_float: float,
    };
    assert_eq!(value(7, 0.5).amount(), 0.5);
    assert_eq!(value(7, 0.0).amount(), 7.0);
    assert_eq!(value(7, -1.0).amount(), 7.0);
    assert_eq!(value(7, f64::NAN).amount(), 7.0);
    assert_eq!(MetricSpec::new("a", 0.0).target(), 0.0);
    assert_eq!(MetricValue::new("a", f64::NAN).metric_value, 0);
    assert_eq!(MetricValue::new("a", 1e300).metric_value, 9_007_199_254_740_992);
}
