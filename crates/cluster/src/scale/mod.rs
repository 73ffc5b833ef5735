//! Reads and writes the scale subresource of any object.

mod object;
#[cfg(test)]
mod tests;

use std::time::Duration;

use api::scale::group_of;
use engine::act::ScaleWriteError;
use engine::{RecordedError, RequestFailure, Scale, ScaleReadError};
use http::Method;
use kube::Client;
use runtime::Leadership;

use crate::discovery::{Discovery, Resource, ScaleKind};
use crate::request::{ApiError, Request, exchange, exchange_leading, path};

/// The deadline of one read or write.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);

/// A scale as it was read, which can be written back.
#[derive(Clone, Debug)]
pub struct ScaleObject {
    /// The scale for the engine; the selector is normalised as in client-go.
    pub scale: Scale,
    /// The resource it belongs to.
    pub resource: Resource,
    /// The version of the object.
    pub resource_version: String,
    /// Its metadata as it was read.
    metadata: serde_json::Value,
}

/// Reads and writes scales.
#[derive(Clone)]
pub struct ScaleClient {
    client: Client,
    discovery: Discovery,
    leadership: Leadership,
}

impl ScaleClient {
    /// A client that finds resources with `discovery`.
    pub fn new(client: Client, discovery: Discovery) -> Self {
        let leadership = Leadership::without_election();
        Self { client, discovery, leadership }
    }

    /// Sends writes only while this leadership lasts.
    pub fn with_leadership(self, leadership: Leadership) -> Self {
        Self { leadership, ..self }
    }

    /// Finds the target and reads its scale (docs/spec/hpa.md 3.2, Appendix C.1).
    pub async fn get(
        &self,
        namespace: &str,
        api_version: &str,
        kind: &str,
        name: &str,
    ) -> Result<ScaleObject, ScaleReadError> {
        let group = group_of(api_version).map_err(|e| ScaleReadError::InvalidApiVersion(e.to_string()))?;
        let mappings = self.discovery.mappings(group, kind).await;
        let mappings = mappings.map_err(|error| ScaleReadError::UnknownKind(error.to_string()))?;
        let mut first = None;
        // A kind with several versions is requested once per version, although the URI is the same (T43).
        for resource in mappings {
            match self.read(namespace, name, resource.clone()).await {
                Ok(scale) => return Ok(scale),
                Err(error) => _ = first.get_or_insert((error, resource)),
            }
        }
        Err(ScaleReadError::Query(match first {
            Some((error, resource)) => {
                let failure = self.failure(&error, &resource).await;
                RecordedError::new(error.message, Some(failure))
            }
            None => "unrecognized resource".into(),
        }))
    }

    /// What a failed read means. A subresource that a custom resource does not have is answered as if the object did not exist;
    /// discovery tells the two apart.
    async fn failure(&self, error: &ApiError, resource: &Resource) -> RequestFailure {
        let failure = error.failure();
        if failure == RequestFailure::NotFound
            && self.discovery.scale_kind(resource).await == ScaleKind::Absent
        {
            return RequestFailure::NotServed;
        }
        failure
    }

    /// Reads the scale of a known resource, without discovery.
    pub async fn of(&self, namespace: &str, name: &str, resource: Resource) -> Result<ScaleObject, ApiError> {
        self.read(namespace, name, resource).await
    }

    /// Reads a scale again.
    pub async fn refetch(
        &self,
        namespace: &str,
        name: &str,
        held: &ScaleObject,
    ) -> Result<ScaleObject, ApiError> {
        self.read(namespace, name, held.resource.clone()).await
    }

    /// Writes a replica count to the scale `held` (docs/spec/hpa.md Appendix C.2).
    pub async fn put(
        &self,
        namespace: &str,
        name: &str,
        held: &ScaleObject,
        replicas: i32,
    ) -> Result<ScaleObject, ScaleWriteError> {
        self.write(namespace, name, held, replicas)
            .await
            .map_err(|error| ScaleWriteError { conflict: error.is_conflict(), text: error.message })
    }

    async fn read(&self, namespace: &str, name: &str, resource: Resource) -> Result<ScaleObject, ApiError> {
        let request = request(Method::GET, namespace, name, &resource);
        let answer = exchange(&self.client, &request).await?;
        object::read(&answer, resource)
    }

    async fn write(
        &self,
        namespace: &str,
        name: &str,
        held: &ScaleObject,
        replicas: i32,
    ) -> Result<ScaleObject, ApiError> {
        let resource = &held.resource;
        if self.discovery.scale_kind(resource).await == ScaleKind::Absent {
            let named = format!("{}, Resource={}", resource.api_version(), resource.plural);
            return Err(ApiError::unanswered(format!(
                "could not find proper group-version for scale subresource of {named}: could not find scale \
                 subresource for {named} in discovery information"
            )));
        }
        let mut request = request(Method::PUT, namespace, name, resource);
        request.body = Some(("application/json", object::body(held, replicas)));
        let answer = exchange_leading(&self.client, &request, &self.leadership).await?;
        object::read(&answer, resource.clone())
    }
}

fn request(method: Method, namespace: &str, name: &str, resource: &Resource) -> Request {
    let Resource { group, version, plural, .. } = resource;
    let place = ["namespaces", namespace, plural, name, "scale"];
    let uri = if group.is_empty() {
        path(["api", version].into_iter().chain(place))
    } else {
        path(["apis", group, version].into_iter().chain(place))
    };
    // Kubernetes' scale client has no group in its messages.
    Request { method, ..Request::get(uri, plural, REQUEST_DEADLINE).named(name) }
}
