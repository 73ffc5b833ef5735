//! Writes that only the leader may send: checked when a request leaves, because it may have waited for the limiter or for a
//! connection longer than the lease lasts.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::client::Body;
use runtime::Leadership;

/// Marks a request, as an extension, that is sent only while this leadership lasts.
#[derive(Clone, Debug)]
pub(crate) struct LeaderOnly(pub(crate) Leadership);

/// This process is not the leader any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another instance leads by now")]
pub(crate) struct NotLeading;

/// Why a body was not sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    /// This process is not the leader any more.
    #[error("the request was not sent: {0}")]
    NotLeading(#[from] NotLeading),
    /// The body itself failed.
    #[error("{0}")]
    Body(#[from] kube::Error),
}

/// A body that fails instead of being sent when this process is not the leader any more; the server never sees a whole request.
#[derive(Debug)]
pub(super) struct LeaderBody {
    body: Body,
    leader_only: Option<LeaderOnly>,
}

/// Refuses a request that is marked, unless this process is the leader.
pub(super) fn check<B>(request: &Request<B>) -> Result<(), NotLeading> {
    match request.extensions().get::<LeaderOnly>() {
        Some(LeaderOnly(leadership)) if !leadership.is_leader() => Err(NotLeading),
        _ => Ok(()),
    }
}

/// The request with a body that obeys its mark.
pub(super) fn guarded(request: Request<Body>) -> Request<LeaderBody> {
    let leader_only = request.extensions().get::<LeaderOnly>().cloned();
    request.map(|body| LeaderBody { body, leader_only })
}

impl HttpBody for LeaderBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(LeaderOnly(leadership)) = &self.leader_only
            && !self.body.is_end_stream()
            && !leadership.is_leader()
        {
            return Poll::Ready(Some(Err(NotLeading.into())));
        }
        Pin::new(&mut self.body).poll_frame(context).map_err(BodyError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
