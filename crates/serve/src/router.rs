//! Routes requests: authentication, authorization, then the handler of the path.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Either};
use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use runtime::Clock;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use tower::ServiceExt as _;

use crate::access::{Authorizer, Permission, RequestAttributes, ReviewedClient};
use crate::api_group::{ApiGroupVersion, Route};
use crate::app::App;
use crate::client_permits::{ClientPermits, PermitDivision};
use crate::discovery::Discovery;
use crate::encode::{for_errors, gzip};
use crate::health::{Endpoint, HealthChecks};
use crate::identity::{Authenticator, User};
use crate::peer_address::PeerAddress;
use crate::query::{self, Query};
use crate::request::AuthorizedRequest;
use crate::request_metrics::{RequestLabels, RequestMetrics};
use crate::response::{self, Body};
use crate::status::{Status, StatusDetails};
use crate::stream::WatchStreams;
use crate::tls::{self, Caller, ConnectionRank, ServerLimits};
use crate::{MetricsExporter, decisions};

/// Identifies a request in audit logs; the response repeats it.
const AUDIT_ID_HEADER: HeaderName = HeaderName::from_static("audit-id");

/// Longer audit IDs are not repeated.
const MAX_AUDIT_ID_BYTES: usize = 256;

/// Authenticator and authorizer; none if every request is allowed.
pub(crate) type Guard = Option<(Authenticator, Authorizer)>;

/// Routes requests to the APIs and pages of an [`App`].
pub(crate) struct Router {
    guard: Guard,
    limits: ServerLimits,
    /// By name of the user: a tenant whose sources answer slowly must not hold those of the HPA controller.
    request_permits: ClientPermits<String>,
    /// Those of anonymous clients, who may send AdmissionReviews slowly: users do not wait for them.
    anonymous_permits: ClientPermits<Option<PeerAddress>>,
    /// By name of the user.
    watch_permits: ClientPermits<String>,
    stop: watch::Receiver<bool>,
    /// Whether the server is about to stop: it serves, and is not ready.
    draining: Arc<AtomicBool>,
    version: String,
    checks: HealthChecks,
    metrics: Option<MetricsExporter>,
    discovery: Discovery,
    groups: Vec<ApiGroupVersion>,
    routes: Vec<(String, Route)>,
    traffic: Arc<RequestMetrics>,
    health: bool,
    clock: Clock,
}

impl Router {
    pub(crate) fn new(app: App, guard: Guard, limits: ServerLimits, stop: watch::Receiver<bool>) -> Self {
        let mut groups: Vec<ApiGroupVersion> = app.decisions.map(decisions::group).into_iter().collect();
        groups.extend(app.groups);
        let mut routes = app.routes;
        // The longest prefix is the most specific.
        routes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        let (stopping, draining) = (stop.clone(), Arc::<AtomicBool>::default());
        let is_draining = Arc::clone(&draining);
        let mut checks = HealthChecks::new();
        checks.add("ping", || Ok(()));
        checks.extend(app.checks);
        checks.add_ready("shutdown", move || {
            let stops = is_draining.load(Ordering::Relaxed) || *stopping.borrow();
            if stops { Err("the server is stopping".into()) } else { Ok(()) }
        });
        let among_users =
            if guard.is_some() { PermitDivision::LessThanFree } else { PermitDivision::Undivided };
        let anonymous = (limits.requests / 4).max(1);
        Self {
            guard,
            limits,
            request_permits: ClientPermits::new(limits.requests, among_users),
            anonymous_permits: ClientPermits::new(anonymous, PermitDivision::LessThanThirdOfFree),
            watch_permits: ClientPermits::new(limits.watches, among_users),
            stop,
            draining,
            discovery: Discovery::new(&groups, &app.version, &app.address),
            version: app.version,
            checks,
            metrics: app.metrics,
            groups,
            routes,
            traffic: app.traffic,
            health: true,
            clock: app.clock,
        }
    }

    /// The same router without health paths.
    pub(crate) fn without_health(self) -> Self {
        Self { health: false, ..self }
    }

    /// Makes `/readyz` fail when it is set; requests are still served.
    pub(crate) fn draining(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.draining)
    }

    /// The served group versions.
    pub(crate) fn versions(&self) -> Vec<(String, String)> {
        self.groups.iter().map(|group| (group.name.clone(), group.version.clone())).collect()
    }

    /// Handles a request; errors and panics become responses.
    pub(crate) async fn respond(self: Arc<Self>, request: Request<Body>, caller: Caller) -> Response<Body> {
        let (_busy, _running, begin) = (caller.activity.begin(), self.traffic.begin(), Instant::now());
        let (headers, method, uri) =
            (request.headers().clone(), request.method().clone(), request.uri().clone());
        let (path, query) = match query::read(&uri) {
            Ok(read) => read,
            Err(error) => return response::presented(&error, for_errors(&headers, &Query::default())),
        };
        let wanted = RequestAttributes::of(&method, &path, &query);
        let requested = RequestLabels::of(&wanted, &self.groups);
        let time = self.time(&wanted, &query);
        let work = self.handle(request, path, query.clone(), wanted, &caller);
        // Handlers and providers of callers may panic.
        let work = AssertUnwindSafe(work).catch_unwind();
        let answer = match time {
            Err(error) => Err(error),
            Ok(time) => match tokio::time::timeout(time, work).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) => Err(Status::internal("the response could not be made")),
                Err(_) => Err(Status::timeout()),
            },
        };
        let mut response = answer.unwrap_or_else(|error| response::status(&error));
        if let Some(error) = response.extensions_mut().remove::<Status>() {
            response = response::presented(&error, for_errors(&headers, &query));
        }
        if let Some(id) = headers.get(AUDIT_ID_HEADER).filter(|id| id.len() <= MAX_AUDIT_ID_BYTES) {
            response.headers_mut().insert(AUDIT_ID_HEADER, id.clone());
        }
        self.traffic.count(requested, response.status().as_u16(), begin.elapsed());
        gzip::compressed(response, &headers)
    }

    /// The timeout of a request: the client's, if it is shorter than the limit. As in Kubernetes a watch has none of the client.
    fn time(&self, wanted: &RequestAttributes, query: &Query) -> Result<Duration, Status> {
        let limit = self.limits.answer;
        if wanted.verb == "watch" {
            return Ok(limit);
        }
        let Some(text) = query.get("timeout").filter(|text| !text.is_empty()) else { return Ok(limit) };
        let time = api::time::parse_go_duration(text).ok_or_else(|| {
            let why = wrong_duration(text);
            Status::bad_request(format!("invalid timeout specified in the request URL - time: {why}"))
        })?;
        Ok(Duration::try_from(time).ok().filter(|time| !time.is_zero() && *time < limit).unwrap_or(limit))
    }

    async fn handle(
        &self,
        request: Request<Body>,
        path: String,
        query: Query,
        wanted: RequestAttributes,
        caller: &Caller,
    ) -> Result<Response<Body>, Status> {
        let (mut parts, body) = request.into_parts();
        let certificate = caller.certificate.as_deref();
        let user = match &self.guard {
            None => User::anonymous(),
            Some((authenticator, _)) => {
                let user = authenticator.identify(certificate, caller.address, &parts.headers).await?;
                authenticator.strip(&mut parts.headers);
                user
            }
        };
        let is_anonymous = self.guard.is_some() && user.is_anonymous();
        // Held until the answer.
        let permit = if is_anonymous {
            self.anonymous_permits.try_acquire(caller.address).map(Either::Left)
        } else {
            self.request_permits.try_acquire(user.name.clone()).map(Either::Right)
        };
        // Members of system:masters, above all the API server, are not limited. Probes end at once.
        if permit.is_none() && !user.is_in("system:masters") && !self.is_probe(&path) {
            return Ok(too_many_requests());
        }
        if let Some((authenticator, authorizer)) = &self.guard {
            impersonation(&parts.headers, &user)?;
            let is_proxy = authenticator.is_front_proxy(certificate);
            if is_proxy {
                caller.activity.rise(ConnectionRank::FrontProxy);
            }
            // The API server has authorized its users before.
            let client = ReviewedClient::of(&user, caller.address).filter(|_| !is_proxy);
            if authorizer.check(client, &user, &wanted).await? == Permission::OfUser {
                caller.activity.rise(ConnectionRank::Authorized);
            }
        }
        tracing::debug!(user = user.name, verb = wanted.verb, path, "request");
        let streams = WatchStreams {
            permits: self.watch_permits.clone(),
            user: user.name.clone(),
            limit: self.limits.watch,
            stop: self.stop.clone(),
            activity: caller.activity.clone(),
        };
        let (method, headers) = (parts.method.clone(), parts.headers.clone());
        parts.extensions.insert(caller.clone());
        let call = AuthorizedRequest {
            method,
            path,
            query,
            headers,
            user,
            wanted,
            streams,
            clock: self.clock.clone(),
        };
        self.route(parts, body, call).await
    }

    async fn route(
        &self,
        parts: http::request::Parts,
        body: Body,
        call: AuthorizedRequest,
    ) -> Result<Response<Body>, Status> {
        let path = call.path.clone();
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let read = |answer: Result<Response<Body>, Status>| match call.method {
            Method::GET | Method::HEAD => answer,
            _ => Err(Status::not_allowed()),
        };
        // Discovery documents support GET only.
        let (headers, query) = (&call.headers, &call.query);
        let document = |answer: &dyn Fn() -> Result<Response<Body>, Status>| match call.method {
            Method::GET => answer(),
            _ => Err(Status::not_allowed()),
        };
        match segments.as_slice() {
            [""] => read(Ok(self.index(200))),
            [first, rest @ ..] if self.health && Endpoint::of(first).is_some() => {
                let endpoint = Endpoint::of(first).unwrap_or(Endpoint::Healthz);
                read(self.health(endpoint, &rest.join("/"), &call))
            }
            ["metrics"] if self.metrics.is_some() => read(self.metrics()),
            ["version"] => read(Ok(self.version())),
            ["openapi", rest @ ..] => read(self.discovery.openapi(rest, &call)),
            ["apis"] => document(&|| self.discovery.apis(headers, query)),
            ["apis", group, ..] if !self.groups.iter().any(|own| own.name == *group) => Ok(self.index(404)),
            ["apis", group] => document(&|| {
                self.discovery.group(group, headers, query).unwrap_or_else(|| Err(Status::no_path()))
            }),
            ["apis", group, version] => document(&|| self.discovery.version(group, version, headers, query)),
            ["apis", group, version, ..] => {
                let own = |it: &&ApiGroupVersion| it.name == *group && it.version == *version;
                let route = self.groups.iter().find(own).map(|group| group.route.clone());
                self.pass(route.ok_or_else(Status::no_path)?, parts, body, call).await
            }
            _ => match self.routes.iter().find(|(prefix, _)| begins(&path, prefix)) {
                Some((_, route)) => self.pass(route.clone(), parts, body, call).await,
                None => Ok(self.index(404)),
            },
        }
    }

    /// Passes a request to a route, with a limit on the size of its body.
    async fn pass(
        &self,
        route: Route,
        parts: http::request::Parts,
        body: Body,
        call: AuthorizedRequest,
    ) -> Result<Response<Body>, Status> {
        let length = parts
            .headers
            .get(http::header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        if length.is_some_and(|length: usize| length > self.limits.body_size) {
            return Err(Status::too_large(self.limits.body_size));
        }
        let body = Limited::new(body, self.limits.body_size).boxed_unsync();
        let mut request = Request::from_parts(parts, body);
        request.extensions_mut().insert(call);
        // Boxed, because the compiler cannot prove `Send` for the body's future otherwise.
        let answer: BoxFuture<'static, Result<Response<Body>, Infallible>> = Box::pin(route.oneshot(request));
        match answer.await {
            Ok(response) => Ok(response),
            Err(never) => match never {},
        }
    }

    fn health(
        &self,
        endpoint: Endpoint,
        name: &str,
        call: &AuthorizedRequest,
    ) -> Result<Response<Body>, Status> {
        match name {
            "" => Ok(self.checks.all(endpoint, &call.query)),
            name => self.checks.one(endpoint, name).ok_or_else(Status::no_path),
        }
    }

    /// Whether a path is one of health.
    fn is_probe(&self, path: &str) -> bool {
        let first = path.trim_matches('/').split('/').next().unwrap_or_default();
        self.health && Endpoint::of(first).is_some()
    }

    fn metrics(&self) -> Result<Response<Body>, Status> {
        let made = self.metrics.as_ref().ok_or_else(Status::no_path)?();
        Ok(response::with_type(200, &made.content_type, response::full(made.text)))
    }

    fn version(&self) -> Response<Body> {
        let mut numbers = self.version.split('.');
        let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        let (os, machine) = (std::env::consts::OS, std::env::consts::ARCH);
        response::json(
            200,
            &json!({"major": major, "minor": minor, "gitVersion": format!("v{}", self.version), "gitCommit": "",
                "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "rustc",
                "platform": format!("{os}/{machine}")}),
        )
    }

    /// The list of paths, also the body of a 404.
    fn index(&self, code: u16) -> Response<Body> {
        let mut paths = vec!["/apis".to_owned()];
        for group in &self.groups {
            paths.extend([format!("/apis/{}", group.name), format!("/apis/{}", group.group_version())]);
        }
        paths.extend(["/openapi/v2", "/openapi/v3", "/version"].map(str::to_owned));
        if self.health {
            paths.extend(["/healthz", "/livez", "/readyz"].map(str::to_owned));
        }
        paths.extend(self.metrics.as_ref().map(|_| "/metrics".to_owned()));
        paths.extend(self.routes.iter().map(|(prefix, _)| prefix.clone()));
        paths.sort_unstable();
        paths.dedup();
        response::json(code, &json!({"paths": paths}))
    }
}

impl tls::ConnectionHandler for Router {
    async fn answer(self: Arc<Self>, request: Request<Incoming>, caller: Caller) -> Response<Body> {
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        self.respond(request, caller).await
    }
}

/// The response when the limit of concurrent requests is reached.
fn too_many_requests() -> Response<Body> {
    let mut response = response::text(429, "Too many requests, please try again later.\n");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Why a text is not a duration, with the text of Go.
fn wrong_duration(text: &str) -> String {
    let quoted = api::gotext::quote(text);
    let number = |c: char| c.is_ascii_digit() || c == '.';
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    while rest.starts_with(number) {
        let tail = rest.trim_start_matches(number);
        let end = tail.find(number).unwrap_or(tail.len());
        let (unit, next) = tail.split_at_checked(end).unwrap_or((tail, ""));
        match unit {
            "" => return format!("missing unit in duration {quoted}"),
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => rest = next,
            _ => return format!("unknown unit {} in duration {quoted}", api::gotext::quote(unit)),
        }
    }
    format!("invalid duration {quoted}")
}

/// Whether a path equals a prefix or lies below it.
fn begins(path: &str, prefix: &str) -> bool {
    let prefix = prefix.trim_end_matches('/');
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Refuses impersonation. Serving the request as the user itself would be another request than the client sent.
fn impersonation(headers: &HeaderMap, user: &User) -> Result<(), Status> {
    if headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
        let user = api::gotext::quote(&user.name);
        let text = format!(
            "forbidden: User {user} cannot impersonate anybody at this server; ask the API server instead"
        );
        return Err(Status::forbidden(text, StatusDetails::default()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_durations_have_the_errors_of_go() {
        assert_eq!(wrong_duration("abc"), "invalid duration \"abc\"");
        assert_eq!(wrong_duration("5"), "missing unit in duration \"5\"");
        assert_eq!(wrong_duration("1m5x"), "unknown unit \"x\" in duration \"1m5x\"");
    }

    #[test]
    fn a_prefix_is_made_of_whole_segments() {
        assert!(begins("/debug", "/debug") && begins("/debug/a", "/debug/") && begins("/x", "/"));
        assert!(!begins("/debugger", "/debug") && !begins("/a/debug", "/debug"));
    }
}
