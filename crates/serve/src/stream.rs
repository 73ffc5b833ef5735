//! Watch responses: one line per event, until the client, its timeout or the server ends them.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, stream};
use http::Response;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::sync::{mpsc, watch};

use crate::body::{Body, BodyError};
use crate::client_permits::ClientPermits;
use crate::response::{self, JSON};
use crate::status::Status;
use crate::tls::Activity;

/// How long a client may leave an event unread.
const SLOW_CLIENT_TIMEOUT: Duration = Duration::from_secs(30);

/// How many events may wait for a client.
const MAX_WAITING_EVENTS: usize = 16;

/// Sends watch responses within the limits of the server.
#[derive(Clone, Debug)]
pub struct WatchStreams {
    pub(crate) permits: ClientPermits<String>,
    /// The name of the user, among whom the permits are divided.
    pub(crate) user: String,
    pub(crate) limit: Duration,
    pub(crate) stop: watch::Receiver<bool>,
    pub(crate) activity: Activity,
}

impl WatchStreams {
    /// Sends each line as it arrives, for at most `limit` and the server's own limit. A client that does
    /// not read is disconnected.
    pub fn send(
        &self,
        mut lines: BoxStream<'static, Bytes>,
        limit: Option<Duration>,
    ) -> Result<Response<Body>, Status> {
        let permit = self.permits.try_acquire(self.user.clone()).ok_or_else(Status::too_many)?;
        let limit = limit.unwrap_or(self.limit).min(self.limit);
        let (sender, mut receiver) = mpsc::channel::<Bytes>(MAX_WAITING_EVENTS);
        let (mut stop, busy) = (self.stop.clone(), self.activity.begin());
        tokio::spawn(async move {
            let pump = async {
                while let Some(line) = lines.next().await {
                    if sender.send_timeout(line, SLOW_CLIENT_TIMEOUT).await.is_err() {
                        break;
                    }
                }
            };
            tokio::select! {
                () = pump => {}
                () = tokio::time::sleep(limit) => {}
                () = sender.closed() => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
            drop((permit, busy));
        });
        let frames = stream::poll_fn(move |context| receiver.poll_recv(context));
        let body = StreamBody::new(frames.map(|line| Ok::<_, BodyError>(Frame::data(line))));
        Ok(response::with_type(200, JSON, body.boxed_unsync()))
    }
}
