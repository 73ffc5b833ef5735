//! Answers that go on: one line each time something happens, until the client, its time or the server ends.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, stream};
use http::Response;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::response::{self, Body, BodyError, JSON};
use crate::status::Status;
use crate::tls::Activity;

/// How long a client may leave a line unread.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many lines may wait for a client.
const WAITING: usize = 16;

/// How long answers of a connection may be followed, and how many.
#[derive(Clone, Debug)]
pub struct WatchStreams {
    pub(crate) places: Arc<Semaphore>,
    pub(crate) limit: Duration,
    pub(crate) stop: watch::Receiver<bool>,
    pub(crate) activity: Activity,
}

impl WatchStreams {
    /// Sends each line as it comes, for `limit` at most (and never longer than the server allows). A client that does
    /// not read is left behind.
    pub fn send(
        &self,
        mut lines: BoxStream<'static, Bytes>,
        limit: Option<Duration>,
    ) -> Result<Response<Body>, Status> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| Status::too_many())?;
        let limit = limit.unwrap_or(self.limit).min(self.limit);
        let (sender, mut receiver) = mpsc::channel::<Bytes>(WAITING);
        let (mut stop, busy) = (self.stop.clone(), self.activity.begin());
        tokio::spawn(async move {
            let pump = async {
                while let Some(line) = lines.next().await {
                    if sender.send_timeout(line, PATIENCE).await.is_err() {
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
            drop((place, busy));
        });
        let frames = stream::poll_fn(move |context| receiver.poll_recv(context));
        let body = StreamBody::new(frames.map(|line| Ok::<_, BodyError>(Frame::data(line))));
        Ok(response::with_type(200, JSON, body.boxed_unsync()))
    }
}

/// A long answer, made piece by piece while it is read.
pub(crate) fn pieces(pieces: impl Iterator<Item = Result<Bytes, BodyError>> + Send + 'static) -> Body {
    let frames = stream::iter(pieces.map(|piece| piece.map(Frame::data)));
    StreamBody::new(frames).boxed_unsync()
}
