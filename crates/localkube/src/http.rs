//! The API as a tower service: called in-process by tests, or behind a listener.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Mutex;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, USER_AGENT, WARNING};
use http::request::Parts;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::Frame;
use serde_json::Value;

use crate::access::{self, User};
use crate::catalog::ResourceOrigin;
use crate::cluster::Cluster;
use crate::discovery::AggregatedVersion;
use crate::object::{self, set};
use crate::request::{Query, RequestPath, ResourcePath};
use crate::response::{BodyError, PLAIN_TEXT, ResponseBody, respond};
use crate::status::Status;
use crate::verbs::present::Representation;
use crate::verbs::{
    ApiCall, CallOutcome, create, decode, delete, options, patch, read, scale, special, update, watch,
};
use crate::{aggregate, discovery, fields, openapi};

/// The maximum size of a request body, as on the real server.
const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// The API of a cluster.
#[derive(Clone)]
pub struct Api {
    cluster: Cluster,
}

impl Api {
    /// The API of a cluster.
    pub fn new(cluster: Cluster) -> Self {
        Self { cluster }
    }
}

impl<B> tower::Service<Request<B>> for Api
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BodyError>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<ResponseBody>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let cluster = self.cluster.clone();
        async move {
            let (parts, body) = request.into_parts();
            let read = Limited::new(body, MAX_BODY_BYTES).collect().await;
            let answer = match read {
                Ok(body) => answer(cluster, parts, body.to_bytes()).await,
                Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                    Err(Status::too_large(MAX_BODY_BYTES))
                }
                Err(error) => Err(Status::bad_request(format!("the body could not be read: {error}"))),
            };
            Ok(answer.unwrap_or_else(|status| json(status.code, &status.to_json())))
        }
        .boxed()
    }
}

async fn answer(cluster: Cluster, parts: Parts, body: Bytes) -> Result<Response<ResponseBody>, Status> {
    let now = cluster.0.clock.now();
    let user = cluster.0.access.authenticate(&parts.headers, parts.extensions.get::<User>(), now)?;
    let query = Query::parse(parts.uri.query().unwrap_or_default())
        .ok_or_else(|| Status::bad_request("the query is not properly encoded"))?;
    let path = RequestPath::parse(parts.uri.path())
        .ok_or_else(|| Status::bad_request("the path is not properly encoded"))?;
    cluster.0.access.authorize(&user, &parts.method, &path, parts.uri.path(), &query)?;
    match path {
        RequestPath::Resource(path) => match cluster.upstream(&path.group, &path.version) {
            Some(upstream) => aggregate::forward(upstream, parts, body, &user).await,
            None => resource(cluster, &parts, query, path, user, body).await,
        },
        RequestPath::Discovery { group, version } => {
            let upstream = group.as_deref().zip(version.as_deref()).and_then(|(g, v)| cluster.upstream(g, v));
            match upstream {
                Some(upstream) => aggregate::forward(upstream, parts, body, &user).await,
                None => discover(&cluster, &parts, group.as_deref(), version.as_deref()).await,
            }
        }
        RequestPath::Other => other(&cluster, &parts),
    }
}

/// Responds to a request for a resource.
async fn resource(
    cluster: Cluster,
    parts: &Parts,
    query: Query,
    path: ResourcePath,
    user: User,
    body: Bytes,
) -> Result<Response<ResponseBody>, Status> {
    let catalog = cluster.catalog();
    if !catalog.has_version(&path.group, &path.version) {
        return if catalog.is_built_in(&path.group) { Err(Status::no_path()) } else { Ok(no_page()) };
    }
    let served = catalog.find(&path.group, &path.version, &path.resource).ok_or_else(Status::no_path)?;
    let misplaced = path.namespace.is_some() && !served.namespaced;
    let unplaced = served.namespaced && path.namespace.is_none() && path.name.is_some();
    if misplaced || unplaced {
        return if served.row().is_some() { Err(Status::no_path()) } else { Ok(no_page()) };
    }
    let header =
        |name| parts.headers.get(name).and_then(|value| HeaderValue::to_str(value).ok()).unwrap_or_default();
    let agent = header(USER_AGENT).split('/').next().unwrap_or_default();
    let manager = query.get("fieldManager").filter(|given| !given.is_empty()).unwrap_or(agent).to_owned();
    let form = Representation::accepted(
        &all_values(parts, &ACCEPT),
        query.get("includeObject"),
        path.name.is_none(),
    )?;
    let call = ApiCall {
        served: served.clone(),
        version: path.version,
        namespace: path.namespace,
        name: path.name,
        subresource: path.subresource,
        query,
        user,
        manager,
        now: cluster.0.clock.now(),
        by_server: false,
        warnings: Mutex::default(),
        cluster,
    };
    if let ResourceOrigin::Custom(definition) = &call.served.origin
        && let Some(warning) = definition.warning(&call.version)
    {
        call.warn(warning);
    }
    let watching = parts.method == Method::GET
        && call.subresource.is_none()
        && (path.watch || call.query.is_set("watch"));
    if parts.method == Method::GET {
        form.fits(&call, watching)?;
    }
    if watching {
        let events = watch::start(call, form)?.map(|chunk| Ok(Frame::data(chunk)));
        let mut response = Response::new(BodyExt::boxed_unsync(StreamBody::new(events)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        return Ok(response);
    }
    options::check(&call, &parts.method, header(CONTENT_TYPE))?;
    let outcome = act(&call, &parts.method, header(CONTENT_TYPE), &body).await?;
    if parts.method != Method::GET {
        // Lets watches run first, so that many writers do not exceed the kept watch history.
        tokio::task::yield_now().await;
    }
    let code = outcome.code;
    let mut response = text(code, form.body(&call, outcome));
    for warning in call.warnings.lock().map(|all| all.clone()).unwrap_or_default() {
        let quoted = format!("299 - {}", Value::from(warning));
        if let Ok(value) = HeaderValue::from_str(&quoted) {
            response.headers_mut().append(WARNING, value);
        }
    }
    Ok(response)
}

fn all_values(parts: &Parts, name: &http::HeaderName) -> String {
    let values = parts.headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
}

/// Performs a method on an object or collection.
async fn act(
    call: &ApiCall,
    method: &Method,
    content_type: &str,
    body: &[u8],
) -> Result<CallOutcome, Status> {
    let review = call.served.row().is_some_and(|row| row.review);
    let target = (call.name.is_some(), call.subresource.as_deref());
    let object = || decode::object(call, content_type, body);
    if review {
        return match (method, target) {
            (&Method::POST, (false, None)) => {
                let (access, kind) = (&call.cluster.0.access, call.served.kind.as_str());
                let mut asked = object()?;
                decode::shape(call, &mut asked)?;
                if let Some(schema) = call.served.schema(&call.version) {
                    call.writing(|who| fields::record_update(&schema, None, &mut asked, who));
                }
                let metadata = asked.get("metadata").cloned().unwrap_or_default();
                let mut answer =
                    access::answer(access, kind, asked, &call.user, call.now, call.cluster.behavior())?;
                for (key, value) in metadata.as_object().into_iter().flatten() {
                    set(&mut answer, &["metadata", key], value.clone());
                }
                Ok(CallOutcome::other(201, answer))
            }
            (_, (true, _)) => Err(Status::no_path()),
            _ => Err(Status::not_allowed()),
        };
    }
    if let Some(name) = target.1 {
        let row = call.served.row();
        let known = match name {
            "status" => call.served.has_status(&call.version),
            "scale" => call.served.scale(&call.version).is_some(),
            other => row.is_some_and(|row| row.more.contains(&other)),
        };
        if !known {
            let about = call.served.about(call.name.as_deref().unwrap_or_default());
            return Err(if row.is_some() { Status::no_path() } else { Status::not_found(about) });
        }
    }
    match (method, target) {
        (&Method::GET, (true, None | Some("status"))) => read::get(call),
        (&Method::GET, (false, None)) => read::list(call),
        (&Method::POST, (false, None)) if call.served.namespaced == call.namespace.is_some() => {
            create::create(call, object()?).await
        }
        (&Method::PUT, (true, None | Some("status"))) => update::update(call, object()?).await,
        (&Method::PATCH, (true, None | Some("status"))) => patch::patch(call, content_type, body).await,
        (&Method::DELETE, (true, None)) => {
            delete::delete(call, &delete::DeleteOptions::of(call, content_type, body)?).await
        }
        (&Method::DELETE, (false, None))
            if call.served.namespaced == call.namespace.is_some()
                && call.served.row().is_none_or(|row| row.collection) =>
        {
            delete::delete_collection(call, &delete::DeleteOptions::of(call, content_type, body)?).await
        }
        (&Method::GET, (true, Some("scale"))) => scale::get(call),
        (&Method::PUT, (true, Some("scale"))) => {
            scale::put(call, decode::json(call, content_type, body)?).await
        }
        (&Method::PATCH, (true, Some("scale"))) => scale::patch(call, content_type, body).await,
        (&Method::PUT, (true, Some("finalize"))) => special::finalize(call, object()?).await,
        (&Method::POST, (true, Some("binding" | "eviction" | "token"))) => {
            special::post(call, decode::json(call, content_type, body)?).await
        }
        _ => Err(Status::not_allowed()),
    }
}

async fn discover(
    cluster: &Cluster,
    parts: &Parts,
    group: Option<&str>,
    version: Option<&str>,
) -> Result<Response<ResponseBody>, Status> {
    if parts.method != Method::GET {
        return Err(Status::not_allowed());
    }
    let core = parts.uri.path().trim_matches('/').split('/').next() == Some("api");
    let found = discovery::answer(
        &cluster.catalog(),
        &aggregated_versions(cluster).await,
        core,
        group,
        version,
        &all_values(parts, &ACCEPT),
    );
    let Some((content_type, value)) = found else {
        let known = core || group.is_some_and(|group| cluster.catalog().is_built_in(group));
        return if known { Err(Status::no_path()) } else { Ok(no_page()) };
    };
    let mut response = json(200, &value);
    if let Ok(content_type) = HeaderValue::from_str(&content_type) {
        response.headers_mut().insert(CONTENT_TYPE, content_type);
    }
    Ok(response)
}

/// The resources of all aggregated APIs.
async fn aggregated_versions(cluster: &Cluster) -> Vec<AggregatedVersion> {
    let catalog = cluster.catalog();
    let Some(services) = catalog.resource("apiregistration.k8s.io", "apiservices") else { return Vec::new() };
    let stored = cluster.objects(services, None);
    let asked =
        stored.iter().filter_map(|(_, stored)| {
            let value = object::unpack(stored);
            let text = |field: &str| object::string(&value, &["spec", field]).to_owned();
            let number = |field: &str| value.pointer(field).and_then(Value::as_i64).unwrap_or_default();
            let (group, version) = (text("group"), text("version"));
            let upstream = cluster.upstream(&group, &version)?;
            let (group_priority, version_priority) =
                (number("/spec/groupPriorityMinimum"), number("/spec/versionPriority"));
            Some(async move {
                aggregate::discover(&upstream, group, version, group_priority, version_priority).await
            })
        });
    futures::future::join_all(asked).await
}

/// Responds to non-resource requests.
fn other(cluster: &Cluster, parts: &Parts) -> Result<Response<ResponseBody>, Status> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return Err(Status::not_allowed());
    }
    let segments: Vec<&str> = parts.uri.path().trim_matches('/').split('/').collect();
    Ok(match segments.as_slice() {
        [""] => json(200, &serde_json::json!({"paths": paths(cluster)})),
        ["api", ..] => return Err(Status::no_path()),
        ["apis", group, ..] if cluster.catalog().is_built_in(group) => return Err(Status::no_path()),
        ["healthz" | "livez" | "readyz", ..] => plain(200, "ok"),
        ["version"] => json(200, &discovery::version(cluster.gates().profile())),
        ["openapi", "v3"] => json(200, &openapi::index(&cluster.catalog(), cluster.gates().profile())),
        ["openapi", "v3", "api", version] => document(cluster, "", version),
        ["openapi", "v3", "apis", group, version] => document(cluster, group, version),
        _ => no_page(),
    })
}

/// The paths of the root document.
fn paths(cluster: &Cluster) -> Vec<String> {
    let fixed = ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"];
    let mut paths: BTreeSet<String> = fixed.into_iter().map(str::to_owned).collect();
    for (group, version) in cluster.catalog().versions() {
        if group.is_empty() {
            paths.insert(format!("/api/{version}"));
        } else {
            paths.insert(format!("/apis/{group}"));
            paths.insert(format!("/apis/{group}/{version}"));
        }
    }
    paths.into_iter().collect()
}

fn document(cluster: &Cluster, group: &str, version: &str) -> Response<ResponseBody> {
    openapi::document(&cluster.catalog(), cluster.gates().profile(), group, version)
        .map_or_else(no_page, |found| json(200, &found))
}

fn no_page() -> Response<ResponseBody> {
    plain(404, "404 page not found\n")
}

fn json(code: u16, value: &Value) -> Response<ResponseBody> {
    text(code, value.to_string().into())
}

fn text(code: u16, body: Bytes) -> Response<ResponseBody> {
    uncached(code, "application/json", body)
}

fn plain(code: u16, body: &'static str) -> Response<ResponseBody> {
    uncached(code, PLAIN_TEXT, Bytes::from_static(body.as_bytes()))
}

fn uncached(code: u16, content_type: &'static str, body: Bytes) -> Response<ResponseBody> {
    let mut response = respond(code, content_type, body);
    response.headers_mut().insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
