//! The cluster of the options, and requests to it.

use std::io;
use std::time::Duration;

use cluster::Clock;
use cluster::connect::{ConcurrencyLimiter, ConnectTarget, Connection, Credentials, connect, explain};
use http::Request;
use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::{ClusterArgs, RequestError, Scope};
use crate::failure::Failure;

/// The timeout of a request.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// How often a request is sent again to an overloaded server.
const MAX_RETRIES: u32 = 2;

/// A cluster and a namespace.
pub(crate) struct ClusterClient {
    connection: Connection,
    /// The recording that answers instead of a cluster.
    recording: Option<RecordingSummary>,
    /// The namespace of requests.
    pub(crate) namespace: String,
    /// The time of the cluster.
    clock: Clock,
}

/// What is known about a recording that stands for a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordingSummary {
    pub(crate) path: String,
    /// The first pass that was read.
    pub(crate) from: Timestamp,
    /// The last pass, which is the present.
    pub(crate) until: Timestamp,
    pub(crate) passes: usize,
    pub(crate) autoscalers: usize,
}

impl ClusterClient {
    /// A recording, whose client answers without a cluster.
    pub(crate) fn recorded(client: kube::Client, recording: RecordingSummary) -> Self {
        let namespace = "default".to_owned();
        let connection = Connection {
            client,
            server: String::new(),
            namespace: namespace.clone(),
            origin: format!("recording {}", recording.path),
            limiter: ConcurrencyLimiter::default(),
            credentials: Credentials::default(),
        };
        Self { connection, recording: Some(recording), namespace, clock: Clock::system() }
    }

    /// The client of kube-rs, for watches.
    pub(crate) fn kube_client(&self) -> &kube::Client {
        &self.connection.client
    }

    /// The recording, if this is not a cluster.
    pub(crate) fn recording(&self) -> Option<&RecordingSummary> {
        self.recording.as_ref()
    }

    /// The present: of a recording, its end.
    pub(crate) fn now(&self) -> Timestamp {
        self.recording.as_ref().map_or_else(|| self.clock.now(), |recording| recording.until)
    }

    /// Connects to the cluster of the options.
    pub(crate) async fn open(place: &ClusterArgs) -> Result<Self, Failure> {
        place.use_zone();
        let target = ConnectTarget { kubeconfig: place.kubeconfig.clone(), context: place.context.clone() };
        let connection = connect(&target).await.map_err(|error| Failure::Outside(error.to_string()))?;
        let namespace = place.namespace.clone().unwrap_or_else(|| connection.namespace.clone());
        super::named::check("namespace", &namespace)?;
        Ok(Self { connection, recording: None, namespace, clock: Clock::system() })
    }

    /// The same for a cluster whose time is not that of this machine.
    #[cfg(feature = "desk")]
    pub(crate) fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Where the settings came from: `~/.kube/config, context prod`.
    pub(crate) fn origin(&self) -> &str {
        &self.connection.origin
    }

    /// The part of the cluster that the options mean.
    pub(crate) fn scope(&self, all: bool) -> Scope<'_> {
        if all { Scope::All } else { Scope::Namespace(&self.namespace) }
    }

    /// Gets a path as JSON.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, RequestError> {
        let text = self.get_plain(path).await?;
        // Lists and watches are decoded from bytes: decoding from text would compile every type once more.
        serde_json::from_slice(text.as_bytes())
            .map_err(|error| RequestError::InvalidResponse(error.to_string()))
    }

    /// Gets a path as text.
    pub(crate) async fn get_plain(&self, path: &str) -> Result<String, RequestError> {
        self.in_time(self.get_text(request(path)?)).await
    }

    /// Gets a text. A server that is overloaded is asked again, after the time of its `Retry-After`, which the limiter of the
    /// connection keeps.
    async fn get_text(&self, request: Request<Vec<u8>>) -> kube::Result<String> {
        let mut retries = 0;
        loop {
            match self.connection.client.request_text(request.clone()).await {
                Err(kube::Error::Api(status))
                    if matches!(status.code, 429 | 503)
                        && retries < MAX_RETRIES
                        && self.connection.limiter.snapshot().held_until.is_some() =>
                {
                    retries += 1;
                }
                result => return result,
            }
        }
    }

    /// Gets a path line by line, as the lines arrive.
    pub(crate) async fn lines(
        &self,
        path: &str,
    ) -> Result<impl futures::AsyncBufRead + Unpin + use<>, RequestError> {
        let stream = self.in_time(self.connection.client.request_stream(request(path)?)).await?;
        Ok(Box::pin(stream))
    }

    async fn in_time<T>(&self, answer: impl Future<Output = kube::Result<T>>) -> Result<T, RequestError> {
        match tokio::time::timeout(REQUEST_TIMEOUT, answer).await {
            Ok(answer) => answer.map_err(|error| RequestError::of(&error, &self.connection)),
            Err(_) => {
                let late = io::Error::from(io::ErrorKind::TimedOut);
                Err(RequestError::Unreachable(explain(&late, &self.connection)))
            }
        }
    }

    /// The failure of a command.
    pub(crate) fn failure(&self, doing: &str, error: &RequestError) -> Failure {
        Failure::Outside(match error {
            RequestError::Unreachable(why) => why.clone(),
            RequestError::Refused { code: 403, message } => format!(
                "failed to {doing}: {message}\n  remedy: ask for that right; `kubectl auth can-i --list` shows what you \
                 may do"
            ),
            other => format!("failed to {doing}: {other}\n  kubeconfig: {}", self.connection.origin),
        })
    }
}

fn request(path: &str) -> Result<Request<Vec<u8>>, RequestError> {
    Request::get(path).body(Vec::new()).map_err(|error| RequestError::InvalidResponse(error.to_string()))
}
