//! Calls of the external scaler protocol.

use external_scaler::ScaledObjectRef;
use external_scaler::protocol::external_scaler_client::ExternalScalerClient;
use external_scaler::protocol::{GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse};
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::transport;
use tonic::{Code, Status};

use super::calls::CallCounter;
use crate::ScalerError;
use crate::grpc::{CALL_TIMEOUT, CallError, Channel};

/// Maximum size of a message, in bytes. Messages of external scalers have some hundred bytes.
const MAX_MESSAGE_BYTES: usize = 64 << 10;

impl Channel {
    pub(super) async fn metric_spec(
        &self,
        object: &ScaledObjectRef,
        counter: &CallCounter,
    ) -> Result<GetMetricSpecResponse, ScalerError> {
        self.call("GetMetricSpec", object, |channel, request| {
            counted(counter, "GetMetricSpec", async move { client(channel).get_metric_spec(request).await })
        })
        .await
    }

    pub(super) async fn metrics(
        &self,
        requested: &GetMetricsRequest,
        counter: &CallCounter,
    ) -> Result<GetMetricsResponse, ScalerError> {
        self.call("GetMetrics", requested, |channel, request| {
            counted(counter, "GetMetrics", async move { client(channel).get_metrics(request).await })
        })
        .await
    }

    pub(super) async fn is_active(
        &self,
        object: &ScaledObjectRef,
        counter: &CallCounter,
    ) -> Result<bool, ScalerError> {
        let answer = self
            .call("IsActive", object, |channel, request| {
                counted(counter, "IsActive", async move { client(channel).is_active(request).await })
            })
            .await?;
        Ok(answer.result)
    }

    /// Forwards activity from the server until the stream ends; an error if it does not end cleanly.
    pub(super) async fn listen(
        &self,
        object: &ScaledObjectRef,
        counter: &CallCounter,
        sender: &mpsc::Sender<bool>,
    ) -> Result<(), ScalerError> {
        let name = "StreamIsActive";
        let (channel, _) = timeout(CALL_TIMEOUT, self.connected()).await.map_err(|_| self.late(name))??;
        let mut client = client(channel);
        let call = counter.stream(name);
        // Servers respond with the first activity, which may take forever; TCP keepalive detects dead servers meanwhile.
        let answer = tokio::select! {
            answer = client.stream_is_active(object.clone()) => answer,
            () = sender.closed() => return Ok(()),
        };
        let mut stream = match answer {
            Ok(answer) => answer.into_inner(),
            Err(status) => {
                call.end(status.code());
                let fault = self.fault(name, &status);
                if matches!(fault, CallError::Lost(_)) {
                    self.forget().await;
                }
                return Err(fault.into_error());
            }
        };
        loop {
            tokio::select! {
                message = stream.message() => match message {
                    Ok(Some(message)) => {
                        call.received();
                        if sender.send(message.result).await.is_err() {
                            return Ok(());
                        }
                    }
                    Ok(None) => {
                        call.end(Code::Ok);
                        return Ok(());
                    }
                    Err(status) => {
                        call.end(status.code());
                        return Err(self.fault(name, &status).into_error());
                    }
                },
                () = sender.closed() => return Ok(()),
            }
        }
    }
}

/// Counts a call.
fn counted<'a, T: 'a>(
    counter: &'a CallCounter,
    name: &'static str,
    call: impl Future<Output = Result<tonic::Response<T>, Status>> + Send + 'a,
) -> BoxFuture<'a, Result<tonic::Response<T>, Status>> {
    Box::pin(async move {
        let counted = counter.unary(name);
        let answer = call.await;
        if answer.is_ok() {
            counted.received();
        }
        counted.end(answer.as_ref().map_or_else(Status::code, |_| Code::Ok));
        answer
    })
}

/// A client that refuses large messages by their announced length. Decoded values take much more memory than their bytes.
pub(super) fn client(channel: transport::Channel) -> ExternalScalerClient<transport::Channel> {
    ExternalScalerClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES)
}
