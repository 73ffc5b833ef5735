//! `StreamMetricSpec`: a scaler reports its metrics whenever they change (KEDA 2.21). A scaler that does not know the method is
//! queried with `GetMetricSpec` only.

use std::sync::Arc;
use std::time::Duration;

use external_scaler::ScaledObjectRef;
use external_scaler::protocol::GetMetricSpecResponse;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::Code;

use super::calls::CallCounter;
use super::client;
use super::query::MIN_RECONNECT_DELAY;
use super::{External, query};
use crate::ScalerError;
use crate::grpc::{CALL_TIMEOUT, CallError, Channel};

const METHOD: &str = "StreamMetricSpec";
/// Minimum time between two updates of one stream, so that a scaler that reports without end does not keep the operator busy.
pub(super) const MIN_UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// Why a stream ended.
enum StreamEnd {
    /// The scaler closed it.
    Clean,
    /// The scaler does not know the method.
    Unimplemented,
    /// The connection was lost, or the scaler returned an error.
    Failed(ScalerError),
}

/// Keeps the streamed metrics in the scaler, and reports changes until the future is dropped. It ends if the server cannot stream
/// them.
pub(super) async fn follow(scaler: Arc<External>, changed: mpsc::Sender<()>) {
    let mut delay = MIN_RECONNECT_DELAY;
    loop {
        let mut delivered = false;
        let end = scaler
            .channel
            .stream_specs(&scaler.object, &scaler.counter, |update| {
                delivered = true;
                // A full channel holds a report that has not been acted on; it covers this update.
                if scaler.keep_streamed(&update) {
                    let _ = changed.try_send(());
                }
            })
            .await;
        let is_clean = match end {
            StreamEnd::Unimplemented => return,
            StreamEnd::Clean => true,
            StreamEnd::Failed(error) => {
                tracing::debug!(trigger = ?scaler.trigger, %error, "stream of metric specs ended");
                false
            }
        };
        let (wait, next) = reconnect(delay, is_clean, delivered);
        tokio::time::sleep(wait).await;
        delay = next;
    }
}

/// The delay before the stream is opened again, and the delay after its next end. It starts over after a clean end, or after a
/// stream that delivered something.
fn reconnect(delay: Duration, is_clean: bool, delivered: bool) -> (Duration, Duration) {
    // A stream that delivered something counts as one that lasted.
    let lived = if delivered { Duration::MAX } else { Duration::ZERO };
    query::reconnect(delay, is_clean, lived)
}

impl Channel {
    async fn stream_specs(
        &self,
        object: &ScaledObjectRef,
        counter: &CallCounter,
        mut on_update: impl FnMut(GetMetricSpecResponse),
    ) -> StreamEnd {
        let channel = match timeout(CALL_TIMEOUT, self.connected()).await {
            Ok(Ok((channel, _))) => channel,
            Ok(Err(error)) => return StreamEnd::Failed(error),
            Err(_) => return StreamEnd::Failed(self.late(METHOD)),
        };
        let mut client = client::client(channel);
        let call = counter.stream(METHOD);
        // Servers in Go send no headers before the first message, which may take forever.
        let mut stream = match client.stream_metric_spec(object.clone()).await {
            Ok(answer) => answer.into_inner(),
            Err(status) if status.code() == Code::Unimplemented => {
                call.end(Code::Unimplemented);
                return StreamEnd::Unimplemented;
            }
            Err(status) => {
                call.end(status.code());
                let fault = self.fault(METHOD, &status);
                if matches!(fault, CallError::Lost(_)) {
                    self.forget().await;
                }
                return StreamEnd::Failed(fault.into_error());
            }
        };
        loop {
            match stream.message().await {
                Ok(Some(update)) => {
                    call.received();
                    on_update(update);
                    // Further updates wait in the windows of HTTP/2, and then at the scaler.
                    tokio::time::sleep(MIN_UPDATE_INTERVAL).await;
                }
                Ok(None) => {
                    call.end(Code::Ok);
                    return StreamEnd::Clean;
                }
                Err(status) => {
                    call.end(status.code());
                    return match status.code() {
                        Code::Unimplemented => StreamEnd::Unimplemented,
                        _ => StreamEnd::Failed(self.fault(METHOD, &status).into_error()),
                    };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_start_over_after_a_useful_stream() {
        let secs = Duration::from_secs;
        assert_eq!(reconnect(secs(2), false, false), (secs(2), secs(4)));
        assert_eq!(reconnect(secs(60), false, false), (secs(60), secs(60)));
        assert_eq!(reconnect(secs(60), false, true), (secs(2), secs(4)));
        assert_eq!(reconnect(secs(60), true, false), (secs(2), secs(2)));
    }
}
