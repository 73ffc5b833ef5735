//! What is served, told to clients: groups, versions, resources, schemas. Made once; nothing of it changes.

mod groups;
mod openapi;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION, VARY};
use http::{HeaderMap, Response, StatusCode};
use serde_json::Value;

use crate::accept::accepted;
use crate::answer::{self, Body, JSON};
use crate::app::Group;
use crate::digest;
use crate::request::Call;
use crate::status::Status;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// All documents, ready to be sent.
pub(crate) struct Discovery {
    groups: Document,
    aggregated: Document,
    group: Vec<(String, Document)>,
    version: Vec<(String, Document)>,
    swagger: Document,
    index: Document,
    schemas: Vec<(String, Document)>,
}

/// A document that does not change.
struct Document {
    bytes: Bytes,
    tag: String,
}

impl Document {
    fn new(value: &Value) -> Self {
        let bytes = Bytes::from(format!("{value}\n"));
        Self { tag: digest::tag(&bytes), bytes }
    }

    fn plain(&self) -> Response<Body> {
        answer::with_type(200, JSON, answer::full(self.bytes.clone()))
    }

    /// With its tag, and without its text for whoever has it already.
    fn tagged(&self, content_type: &str, headers: &HeaderMap) -> Response<Body> {
        let tag = format!("\"{}\"", self.tag);
        let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        let known = known.is_some_and(|known| known.split(',').any(|one| one.trim() == tag));
        let body = if known { answer::full(Bytes::new()) } else { answer::full(self.bytes.clone()) };
        let mut response = answer::with_type(if known { 304 } else { 200 }, content_type, body);
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
    pub(crate) fn new(groups: &[Group], version: &str) -> Self {
        let mut names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let schemas: Vec<(String, Document)> = groups
            .iter()
            .map(|group| {
                (format!("apis/{}", group.group_version()), Document::new(&openapi::v3(group, version)))
            })
            .collect();
        let tags = schemas.iter().map(|(path, document)| (path.as_str(), document.tag.as_str()));
        Self {
            groups: Document::new(&groups::list(groups)),
            aggregated: Document::new(&groups::aggregated(groups)),
            group: names
                .iter()
                .map(|name| ((*name).to_owned(), Document::new(&groups::group(groups, name))))
                .collect(),
            version: groups
                .iter()
                .map(|group| (group.group_version(), Document::new(&groups::resources(group))))
                .collect(),
            swagger: Document::new(&openapi::v2(groups, version)),
            index: Document::new(&openapi::index(tags)),
            schemas,
        }
    }

    /// `/apis`, in the form asked for.
    pub(crate) fn apis(&self, headers: &HeaderMap) -> Result<Response<Body>, Status> {
        let answer = accepted(headers).iter().find_map(|media| {
            if media.is("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") {
                return Some(self.aggregated.tagged(AGGREGATED, headers));
            }
            media.is_plain().then(|| self.groups.plain())
        });
        answer.ok_or_else(Status::not_acceptable)
    }

    /// `/apis/{group}`.
    pub(crate) fn group(&self, name: &str) -> Result<Response<Body>, Status> {
        find(&self.group, name).map(Document::plain).ok_or_else(Status::no_path)
    }

    /// `/apis/{group}/{version}`.
    pub(crate) fn version(&self, group: &str, version: &str) -> Result<Response<Body>, Status> {
        let found = find(&self.version, &format!("{group}/{version}"));
        found.map(Document::plain).ok_or_else(Status::no_path)
    }

    /// `/openapi/…`.
    pub(crate) fn openapi(&self, rest: &[&str], call: &Call) -> Result<Response<Body>, Status> {
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

fn find<'a>(documents: &'a [(String, Document)], name: &str) -> Option<&'a Document> {
    documents.iter().find(|(own, _)| own == name).map(|(_, document)| document)
}

/// Where the document of this hash is now.
fn moved(path: &str, tag: &str) -> Response<Body> {
    let mut response = answer::text(301, Bytes::new());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(place) = HeaderValue::from_str(&format!("/openapi/v3/{path}?hash={tag}")) {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

/// What is asked for by its hash never changes.
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
