//! A switch that pauses a server, as when its process is suspended: connections stay open and no response is sent.

use futures::stream;
use http_body::Body as _;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::watch;

use crate::response::ResponseBody;

/// Pauses and resumes a server; clones share the switch.
#[derive(Clone, Debug)]
pub struct PauseSwitch(watch::Sender<bool>);

impl Default for PauseSwitch {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl PauseSwitch {
    /// Pauses or resumes the server.
    pub fn set(&self, paused: bool) {
        self.0.send_replace(paused);
    }

    /// Whether the server is paused.
    pub fn is_paused(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the server is not paused.
    pub(crate) async fn resumed(&self) {
        if self.is_paused() {
            // This switch is a sender, so the channel is open.
            let _ = self.0.subscribe().wait_for(|paused| !paused).await;
        }
    }

    /// A body whose frames wait while the server is paused. Complete responses are returned as they are: they have a length.
    pub(crate) fn hold(&self, body: ResponseBody) -> ResponseBody {
        if body.size_hint().exact().is_some() {
            return body;
        }
        let frames = stream::unfold((body, self.clone()), |(mut body, switch)| async move {
            let frame = body.frame().await?;
            switch.resumed().await;
            Some((frame, (body, switch)))
        });
        BodyExt::boxed_unsync(StreamBody::new(frames))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use futures::StreamExt as _;
    use hyper::body::Frame;
    use tokio::time::timeout;

    use super::*;

    const LONG: Duration = Duration::from_hours(1);

    #[tokio::test(start_paused = true)]
    async fn paused_server_answers_when_it_is_resumed() {
        let switch = PauseSwitch::default();
        timeout(LONG, switch.resumed()).await.unwrap();
        switch.set(true);
        assert!(timeout(LONG, switch.resumed()).await.is_err());
        let other = switch.clone();
        let waiting = tokio::spawn(async move { other.resumed().await });
        switch.set(false);
        timeout(LONG, waiting).await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn watch_events_wait_while_the_server_is_paused() {
        let switch = PauseSwitch::default();
        let events = stream::iter(["first", "second"]).map(|text| Ok(Frame::data(Bytes::from(text))));
        let mut body = switch.hold(BodyExt::boxed_unsync(StreamBody::new(events)));
        let data = |frame: Option<Result<Frame<Bytes>, _>>| {
            let frame: Result<Frame<Bytes>, crate::response::BodyError> = frame.unwrap();
            frame.unwrap().into_data().unwrap()
        };
        assert_eq!(data(timeout(LONG, body.frame()).await.unwrap()), "first");
        switch.set(true);
        assert!(timeout(LONG, body.frame()).await.is_err());
        switch.set(false);
        assert_eq!(data(timeout(LONG, body.frame()).await.unwrap()), "second");
        assert!(body.frame().await.is_none());
    }
}
