//! Discovery: groups, versions, resources and schemas. Documents are encoded once, except for lists of APIs whose
//! resources change at run time.

mod groups;
mod openapi;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION, VARY};
use http::{HeaderMap, Response, StatusCode};
use serde_json::Value;

use crate::api_group::{ApiGroupVersion, ResourceList, ResourceListing};
use crate::digest;
use crate::encode::{Encoded, presentable};
use crate::media_type::accepted_media_types;
use crate::query::Query;
use crate::request::AuthorizedRequest;
use crate::response::{self, Body, JSON};
use crate::status::Status;

const AGGREGATED_DISCOVERY_TYPE: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// All discovery documents, encoded.
pub(crate) struct Discovery {
    groups: Encoded,
    aggregated: Document,
    group: Vec<(String, Encoded)>,
    version: Vec<(String, GroupResources)>,
    swagger: Document,
    index: Document,
    schemas: Vec<(String, Document)>,
}

/// The resources of an API.
enum GroupResources {
    Fixed(ResourceList),
    Changing(ResourceListing),
}

/// A JSON document that does not change, with its ETag.
struct Document {
    bytes: Bytes,
    tag: String,
}

impl Document {
    fn new(value: &Value) -> Self {
        let bytes = Bytes::from(format!("{value}\n"));
        Self { tag: digest::tag(&bytes), bytes }
    }

    /// The document with its ETag, or 304 if the client has it.
    fn tagged(&self, content_type: &str, headers: &HeaderMap) -> Response<Body> {
        let tag = format!("\"{}\"", self.tag);
        let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        let known = known.is_some_and(|known| known.split(',').any(|one| one.trim() == tag));
        let body = if known { response::full(Bytes::new()) } else { response::full(self.bytes.clone()) };
        let mut response = response::with_type(if known { 304 } else { 200 }, content_type, body);
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            headers.insert(ETAG, tag);
        }
        response
    }
}

impl Discovery {
    /// `address` is the `serverAddress` in `/apis`.
    pub(crate) fn new(groups: &[ApiGroupVersion], version: &str, address: &str) -> Self {
        let schemas: Vec<(String, Document)> = groups
            .iter()
            .map(|group| {
                (format!("apis/{}", group.group_version()), Document::new(&openapi::v3(group, version)))
            })
            .collect();
        let tags = schemas.iter().map(|(path, document)| (path.as_str(), document.tag.as_str()));
        let listed = groups::all(groups, if address.is_empty() { ":443" } else { address });
        let resources = |group: &ApiGroupVersion| {
            let group_version = group.group_version();
            let resources = match &group.listing {
                Some(listing) => GroupResources::Changing(listing.clone()),
                None => GroupResources::Fixed(ResourceList::new(&group_version, &group.resources)),
            };
            (group_version, resources)
        };
        Self {
            groups: Encoded::new(&listed),
            aggregated: Document::new(&groups::aggregated(groups)),
            group: listed.each().map(|(name, group)| (name.to_owned(), Encoded::new(group))).collect(),
            version: groups.iter().map(resources).collect(),
            swagger: Document::new(&openapi::v2(groups, version)),
            index: Document::new(&openapi::index(tags)),
            schemas,
        }
    }

    /// `/apis`, plain or aggregated.
    pub(crate) fn apis(&self, headers: &HeaderMap, query: &Query) -> Result<Response<Body>, Status> {
        presentable(headers, false)?;
        // As in Kubernetes, also after a type that it would prefer.
        let media = accepted_media_types(headers);
        if media.iter().any(|media| media.is("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")) {
            return Ok(self.aggregated.tagged(AGGREGATED_DISCOVERY_TYPE, headers));
        }
        respond(&self.groups, headers, query)
    }

    /// `/apis/{group}`; none if there is no such group.
    pub(crate) fn group(
        &self,
        name: &str,
        headers: &HeaderMap,
        query: &Query,
    ) -> Option<Result<Response<Body>, Status>> {
        find(&self.group, name).map(|group| respond(group, headers, query))
    }

    /// `/apis/{group}/{version}`.
    pub(crate) fn version(
        &self,
        group: &str,
        version: &str,
        headers: &HeaderMap,
        query: &Query,
    ) -> Result<Response<Body>, Status> {
        match find(&self.version, &format!("{group}/{version}")).ok_or_else(Status::no_path)? {
            GroupResources::Fixed(list) => respond(&list.0, headers, query),
            GroupResources::Changing(listing) => respond(&listing(headers).0, headers, query),
        }
    }

    /// `/openapi/…`.
    pub(crate) fn openapi(&self, rest: &[&str], call: &AuthorizedRequest) -> Result<Response<Body>, Status> {
        match rest {
            ["v2"] => Ok(self.swagger.tagged(JSON, &call.headers)),
            ["v3"] => Ok(self.index.tagged(JSON, &call.headers)),
            ["v3", path @ ..] => {
                let path = path.join("/");
                let document = find(&self.schemas, &path).ok_or_else(Status::no_path)?;
                Ok(match call.query.get("hash") {
                    Some(hash) if hash != document.tag => moved(&path, &document.tag),
                    Some(_) => lasting(document.tagged(JSON, &call.headers)),
                    None => document.tagged(JSON, &call.headers),
                })
            }
            _ => Err(Status::no_path()),
        }
    }
}

/// Sends a document in the encoding that the client accepts.
fn respond(document: &Encoded, headers: &HeaderMap, query: &Query) -> Result<Response<Body>, Status> {
    let (content_type, bytes) = document.negotiated(headers, query)?;
    Ok(response::with_type(200, content_type, response::full(bytes)))
}

fn find<'a, T>(documents: &'a [(String, T)], name: &str) -> Option<&'a T> {
    documents.iter().find(|(own, _)| own == name).map(|(_, document)| document)
}

/// Redirects to the document with its current hash.
fn moved(path: &str, tag: &str) -> Response<Body> {
    let mut response = response::text(301, Bytes::new());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(place) = HeaderValue::from_str(&format!("/openapi/v3/{path}?hash={tag}")) {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

/// A document that is addressed by its hash never changes.
fn lasting(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
    headers.insert(
        HeaderName::from_static("expires"),
        HeaderValue::from_static("Fri, 31 Dec 9999 23:59:59 GMT"),
    );
    response
}

#[cfg(test)]
mod tests;
