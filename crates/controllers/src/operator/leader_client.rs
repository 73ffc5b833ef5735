//! Reads and writes of single objects. A write is refused unless this replica leads.

use std::time::Duration;

use api::keda::GroupVersionKindResource;
use cluster::discovery::{Discovery, Resource};
use cluster::lease::Leadership;
use cluster::request::{self, ApiError, Request, path, with_query};
use cluster::scale::{ScaleClient, ScaleObject};
use cluster::watch::slim;
use http::Method;
use keda::executor::ScaleResult;
use kube::Client;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// Writes of a replica count that meet a conflict.
const MAX_SCALE_WRITES: u32 = 3;

/// Maximum size of a list that a tenant fills and that is not large, in bytes: about a hundred pods.
const MAX_SMALL_LIST_BYTES: usize = 1 << 20;
/// Maximum size of a page of a list that a tenant fills, in bytes.
const MAX_PAGE_BYTES: usize = 16 << 20;
/// Objects in a page of a list that is larger, as client-go's pager requests them.
const OBJECTS_PER_PAGE: &str = "500";
/// The same where such a page is larger, too: etcd stores at most 1.5 MiB for an object.
const LARGE_OBJECTS_PER_PAGE: &str = "10";
/// Larger responses are decoded on another thread, in bytes.
const MAX_INLINE_BYTES: usize = 64 << 10;

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// Reads at any time, writes only while this replica leads.
#[derive(Clone)]
pub(crate) struct LeaderClient {
    pub(crate) kube: Client,
    pub(crate) leadership: Leadership,
    pub(crate) scales: ScaleClient,
    pub(crate) discovery: Discovery,
}

/// A list, or a page of it.
#[derive(Debug, Deserialize)]
#[serde(default, bound = "T: Deserialize<'de>")]
struct ListPage<T> {
    metadata: PageMetadata,
    items: Vec<T>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageMetadata {
    #[serde(rename = "continue")]
    next: String,
}

impl<T> Default for ListPage<T> {
    fn default() -> Self {
        Self { metadata: PageMetadata::default(), items: Vec::new() }
    }
}

/// The path of an object: `/apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects/worker`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourcePath<'a> {
    /// Empty for the core group.
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) plural: &'a str,
    /// Empty for cluster-scoped objects.
    pub(crate) namespace: &'a str,
    /// Empty for the collection.
    pub(crate) name: &'a str,
}

impl<'a> ResourcePath<'a> {
    pub(crate) fn keda(plural: &'a str, namespace: &'a str, name: &'a str) -> Self {
        Self { group: api::keda::GROUP, version: "v1alpha1", plural, namespace, name }
    }

    pub(crate) fn hpa(namespace: &'a str, name: &'a str) -> Self {
        Self { group: "autoscaling", version: "v2", plural: "horizontalpodautoscalers", namespace, name }
    }

    pub(crate) fn job(namespace: &'a str, name: &'a str) -> Self {
        Self { group: "batch", version: "v1", plural: "jobs", namespace, name }
    }

    pub(crate) fn core(plural: &'a str, namespace: &'a str, name: &'a str) -> Self {
        Self { group: "", version: "v1", plural, namespace, name }
    }

    fn uri(&self, subresource: &str) -> String {
        let base: &[&str] = if self.group.is_empty() { &["api"] } else { &["apis", self.group] };
        let namespace: &[&str] =
            if self.namespace.is_empty() { &[] } else { &["namespaces", self.namespace] };
        let rest = [self.name, subresource];
        let rest = rest.iter().copied().filter(|part| !part.is_empty());
        let segments = base.iter().copied().chain([self.version]).chain(namespace.iter().copied());
        path(segments.chain([self.plural]).chain(rest))
    }

    fn resource(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{}{dot}{}", self.plural, self.group)
    }
}

impl LeaderClient {
    pub(crate) fn new(kube: Client, discovery: Discovery, leadership: Leadership) -> Self {
        let scales = ScaleClient::new(kube.clone(), discovery.clone()).with_leadership(leadership.clone());
        Self { kube, leadership, scales, discovery }
    }

    /// Reads an object.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: ResourcePath<'_>) -> Result<T, ApiError> {
        let request = Request::get(path.uri(""), path.resource(), REQUEST_TIMEOUT).named(path.name);
        read(&request::send(&self.kube, request).await?)
    }

    /// Reads only the metadata of an object.
    pub(crate) async fn get_metadata<T: DeserializeOwned>(
        &self,
        path: ResourcePath<'_>,
    ) -> Result<T, ApiError> {
        let request = Request::get(path.uri(""), path.resource(), REQUEST_TIMEOUT).named(path.name);
        read(&request::metadata(&self.kube, &request).await?.body)
    }

    /// Lists the objects of a collection that a tenant fills, from the API server's watch cache. A list above
    /// [`MAX_SMALL_LIST_BYTES`] is an error for which [`ApiError::is_too_large`] is true.
    pub(crate) async fn small_list<T: DeserializeOwned + Send + 'static>(
        &self,
        path: ResourcePath<'_>,
        selector: &str,
    ) -> Result<Vec<T>, ApiError> {
        self.cached_list(path, selector, MAX_SMALL_LIST_BYTES).await
    }

    /// The same for a list of any size: one above [`MAX_PAGE_BYTES`] is requested again in pages.
    pub(crate) async fn large_list<T: DeserializeOwned + Send + 'static>(
        &self,
        path: ResourcePath<'_>,
        selector: &str,
    ) -> Result<Vec<T>, ApiError> {
        match self.cached_list(path, selector, MAX_PAGE_BYTES).await {
            Err(error) if error.is_too_large() => {}
            listed => return listed,
        }
        let (mut items, mut next, mut limit) = (Vec::new(), String::new(), OBJECTS_PER_PAGE);
        loop {
            let query = [("labelSelector", selector), ("limit", limit), ("continue", &next)];
            let used = if next.is_empty() { &query[..2] } else { &query[..] };
            let page = match self.page(path, used, MAX_PAGE_BYTES).await {
                Err(error) if error.is_too_large() && limit != LARGE_OBJECTS_PER_PAGE => {
                    limit = LARGE_OBJECTS_PER_PAGE;
                    continue;
                }
                page => page?,
            };
            items.extend(page.items);
            next = page.metadata.next;
            if next.is_empty() {
                return Ok(items);
            }
        }
    }

    async fn cached_list<T: DeserializeOwned + Send + 'static>(
        &self,
        path: ResourcePath<'_>,
        selector: &str,
        max_bytes: usize,
    ) -> Result<Vec<T>, ApiError> {
        let query = [("labelSelector", selector), ("resourceVersion", "0")];
        self.page(path, &query, max_bytes).await.map(|page| page.items)
    }

    /// A list or a page of it. A large response is decoded on another thread, so that other requests do not wait.
    async fn page<T: DeserializeOwned + Send + 'static>(
        &self,
        path: ResourcePath<'_>,
        query: &[(&str, &str)],
        max_bytes: usize,
    ) -> Result<ListPage<T>, ApiError> {
        let uri = with_query(&path.uri(""), query.iter().copied());
        let request = Request::get(uri, path.resource(), REQUEST_TIMEOUT).max_bytes(max_bytes);
        let answer = request::send(&self.kube, request).await?;
        if answer.len() <= MAX_INLINE_BYTES { read(&answer) } else { read_in_background(answer).await }
    }

    /// Lists a whole collection, of any size: the response is decoded on another thread, so that other requests do not wait.
    pub(crate) async fn list_in_background<T: DeserializeOwned + Send + 'static>(
        &self,
        path: ResourcePath<'_>,
    ) -> Result<T, ApiError> {
        let uri = with_query(&path.uri(""), [("resourceVersion", "0")]);
        let answer = request::send(&self.kube, Request::get(uri, path.resource(), REQUEST_TIMEOUT)).await?;
        read_in_background(answer).await
    }

    /// Applies a merge patch to an object, or to a subresource.
    pub(crate) async fn merge<T: DeserializeOwned>(
        &self,
        path: ResourcePath<'_>,
        subresource: &str,
        patch: &Value,
    ) -> Result<T, ApiError> {
        let body = Some((MERGE_PATCH, patch.to_string().into_bytes()));
        let answer = self.write(Method::PATCH, path, path.uri(subresource), body).await?;
        slim(&answer).map_err(|error| failure(&format!("failed to decode the server's response: {error}")))
    }

    /// Creates an object.
    pub(crate) async fn create<T: DeserializeOwned>(
        &self,
        path: ResourcePath<'_>,
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        let uri = ResourcePath { name: "", ..path }.uri("");
        read(&self.write(Method::POST, path, uri, Some((JSON, encode(body)?))).await?)
    }

    /// Replaces an object.
    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        path: ResourcePath<'_>,
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        read(&self.write(Method::PUT, path, path.uri(""), Some((JSON, encode(body)?))).await?)
    }

    /// Deletes an object. An object that does not exist counts as deleted.
    pub(crate) async fn delete(&self, path: ResourcePath<'_>, propagation: &str) -> Result<(), ApiError> {
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation});
        let body = Some((JSON, options.to_string().into_bytes()));
        match self.write(Method::DELETE, path, path.uri(""), body).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    async fn write(
        &self,
        method: Method,
        path: ResourcePath<'_>,
        uri: String,
        body: Option<(&'static str, Vec<u8>)>,
    ) -> Result<Vec<u8>, ApiError> {
        let request =
            Request { method, body, ..Request::get(uri, path.resource(), REQUEST_TIMEOUT).named(path.name) };
        request::send_leading(&self.kube, request, &self.leadership).await.map(|bytes| bytes.to_vec())
    }

    /// Reads the scale of a target.
    pub(crate) async fn scale(
        &self,
        namespace: &str,
        name: &str,
        of: &GroupVersionKindResource,
    ) -> Result<ScaleObject, ApiError> {
        self.scales.of(namespace, name, resource(of)).await
    }

    /// Reads the scale of a target and writes a replica count, if the count is still `expected` or nothing is expected.
    pub(crate) async fn scale_from(
        &self,
        namespace: &str,
        name: &str,
        of: &GroupVersionKindResource,
        expected: Option<i32>,
        to: i32,
    ) -> ScaleResult {
        let mut attempt = 1;
        loop {
            let held = match self.scale(namespace, name, of).await {
                Ok(held) => held,
                Err(error) => return ScaleResult::NotRead(error.message),
            };
            let from = held.scale.spec_replicas.get();
            if expected.is_some_and(|expected| expected != from) {
                let error = format!("the count is {from} by now; the next round decides again");
                return ScaleResult::NotWritten { from, error };
            }
            match self.scales.put(namespace, name, &held, to).await {
                Ok(_) => return ScaleResult::Written { from },
                // The conflicting write may have changed another field than the count.
                Err(error) if error.conflict && attempt < MAX_SCALE_WRITES => attempt += 1,
                Err(error) => return ScaleResult::NotWritten { from, error: error.text },
            }
        }
    }
}

/// Decodes a response on another thread.
async fn read_in_background<T: DeserializeOwned + Send + 'static>(
    answer: impl AsRef<[u8]> + Send + 'static,
) -> Result<T, ApiError> {
    let decoded = tokio::task::spawn_blocking(move || read(answer.as_ref())).await;
    decoded.map_err(|error| failure(&format!("decoding the server's response: {error}")))?
}

/// The resource as discovery describes it.
pub(crate) fn resource(of: &GroupVersionKindResource) -> Resource {
    Resource {
        group: of.group.clone(),
        version: of.version.clone(),
        plural: of.resource.clone(),
        singular: String::new(),
        kind: of.kind.clone(),
        namespaced: true,
    }
}

fn encode(body: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(body).map_err(|error| failure(&error.to_string()))
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes)
        .map_err(|error| failure(&format!("failed to decode the server's response: {error}")))
}

fn failure(text: &str) -> ApiError {
    ApiError::unanswered(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_paths_are_request_paths() {
        let path = ResourcePath::keda("scaledobjects", "shop", "worker");
        assert_eq!(path.uri("status"), "/apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects/worker/status");
        assert_eq!(path.resource(), "scaledobjects.keda.sh");
        let cluster = ResourcePath::keda("clustertriggerauthentications", "", "vault");
        assert_eq!(cluster.uri(""), "/apis/keda.sh/v1alpha1/clustertriggerauthentications/vault");
        assert_eq!(ResourcePath::core("secrets", "a", "b").uri(""), "/api/v1/namespaces/a/secrets/b");
        assert_eq!(
            ResourcePath { name: "", ..ResourcePath::job("a", "b") }.uri(""),
            "/apis/batch/v1/namespaces/a/jobs"
        );
    }
}
