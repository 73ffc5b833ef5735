//! Routes of the console's API.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use web_console::{ApiError, ApiRequest, ConsoleBackend};

use super::path::ObjectPath;
use super::poll::Poller;
use super::{history, object, range, whatif};

/// Answers requests from the state of the poller's cluster.
pub(super) struct Backend {
    poller: Arc<Poller>,
    lab: Option<Box<dyn ConsoleBackend>>,
}

impl Backend {
    pub(super) fn new(poller: Arc<Poller>, lab: Option<Box<dyn ConsoleBackend>>) -> Self {
        Self { poller, lab }
    }

    async fn object(
        &self,
        request: &ApiRequest,
        segments: &[String],
        page: Option<&str>,
    ) -> Result<Value, ApiError> {
        let path = ObjectPath::parse(segments)?;
        if self.poller.namespace.as_deref().is_some_and(|only| only != path.namespace) {
            return Err(ApiError::new(404, "this console shows one namespace only"));
        }
        let (client, now) = (&self.poller.client, self.poller.client.now());
        match page {
            None => object::detail(client, &path, now).await,
            Some("whatif") => {
                let body = request.body.clone().ok_or_else(|| ApiError::new(405, "POST the fields"))?;
                whatif::what_if(client, &path, body).await
            }
            Some("history") if request.parameter("range").is_some() => {
                let range = request.parameter("range").and_then(|text| text.parse().ok());
                range::read(client, &path, range, now).await
            }
            Some("history") => {
                history::history(client, &path, &self.poller.samples, request.parameter("after"), now).await
            }
            Some("why") => {
                let at = request.parameter("at").and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
                history::why(client, &path, at, now).await
            }
            Some(_) => Err(ApiError::new(404, "there is no such path")),
        }
    }
}

impl ConsoleBackend for Backend {
    fn answer(&self, request: ApiRequest) -> BoxFuture<'_, Result<Value, ApiError>> {
        Box::pin(async move {
            let path = request.path.clone();
            match (path.split_first(), &self.lab) {
                (Some((first, [])), Some(lab)) if first == "lab" => lab.answer(request).await,
                (Some((first, rest)), _) if first == "autoscalers" => match rest {
                    [_, _, _] => self.object(&request, rest, None).await,
                    [segments @ .., page] if segments.len() == 3 => {
                        self.object(&request, segments, Some(page)).await
                    }
                    _ => Err(ApiError::new(404, "there is no such path")),
                },
                _ => Err(ApiError::new(404, "there is no such path")),
            }
        })
    }
}
