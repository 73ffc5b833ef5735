//! The server of `plimsoll metrics`: the three APIs, its report, health and exported metrics.

use std::net::SocketAddr;
use std::sync::Arc;

use cluster::Clock;
use controllers::metrics::exported_metrics::CONTENT_TYPE;
use controllers::metrics::{CheckScope, MetricsWriter, Providers, Sources};
use kube::Client;
use serve::metrics::{FreshnessHistogram, MetricsApiSettings, custom, external, resource};
use serve::{App, Certificate, Exposition, HealthChecks, Keyring, RequestMetrics, Server};
use sources::federation;

use super::options::MetricsServing;
use super::reports;
use crate::failure::Failure;
use crate::instance::own_namespace;
use crate::serving::{certificate, names};

/// The name of its Service, in manifests and in `plimsoll up`.
pub(crate) const SERVICE: &str = "plimsoll-metrics";

/// Starts the server.
pub(super) async fn start(
    serving: &MetricsServing,
    client: Client,
    app: App,
    keyring: Option<Keyring>,
) -> Result<Server, Failure> {
    let certificate = match keyring {
        Some(keyring) => Certificate::Shared(keyring),
        None => certificate(serving.certificate.clone(), names(SERVICE, &own_namespace())),
    };
    crate::serving::start(server_options(serving, certificate), client, app).await
}

/// The options of the server.
pub(crate) fn server_options(serving: &MetricsServing, certificate: Certificate) -> serve::ServerOptions {
    let mut options = serve::ServerOptions {
        address: SocketAddr::new(serving.address, serving.port),
        certificate,
        open_paths: serving.open_paths.clone(),
        trusted: serving.trusted.clone(),
        reviews: serving.reviews,
        ..serve::ServerOptions::default()
    };
    options.limits.requests = serving.requests;
    options.limits.streams = serving.streams;
    options.limits.answer = serving.timeout;
    options
}

/// What is served. `guard` wraps the routes whose responses may come from other Plimsoll servers.
pub(super) fn app(
    sources: &Sources,
    providers: &Providers,
    routes: Vec<(String, serve::Route)>,
    guard: impl Fn(serve::Route) -> serve::Route,
    clock: &Clock,
) -> App {
    let mut settings = MetricsApiSettings::from(sources.compat);
    let now = clock.clone();
    settings.clock = serve::Clock::new(move || now.now());
    let mut groups = Vec::new();
    groups.extend(providers.resource.iter().flat_map(|source| resource(Arc::clone(source), &settings)));
    groups.extend(providers.custom.iter().flat_map(|source| custom(Arc::clone(source), &settings)));
    groups.extend(providers.external.iter().flat_map(|source| external(Arc::clone(source), &settings)));
    for group in &mut groups {
        group.route = guard(group.route.clone());
        // Lists as well: two servers that are upstreams of each other would keep metrics alive that neither has any more.
        group.listing = group.listing.take().map(|listing| -> serve::ResourceListing {
            Arc::new(move |headers| federation::with_hop_header(headers, || listing(headers)))
        });
    }
    let (reporter, now) = (sources.clone(), clock.clone());
    groups.push(reports::group(Arc::new(move || reporter.report(now.now()))));
    let traffic = Arc::new(RequestMetrics::default());
    let (exported, requests, now) = (sources.clone(), Arc::clone(&traffic), clock.clone());
    App {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        checks: checks(sources),
        metrics: Some(Arc::new(move || {
            let mut page = MetricsWriter::default();
            exported.export(&mut page, now.now());
            served(&mut page, &settings.freshness.seen(), &requests);
            Exposition { content_type: CONTENT_TYPE.to_owned(), text: page.finish() }
        })),
        groups,
        routes,
        traffic,
        ..App::default()
    }
}

/// Exports the freshness of served samples and the requests of the server.
fn served(page: &mut MetricsWriter, ages: &FreshnessHistogram, traffic: &RequestMetrics) {
    let within = FreshnessHistogram::bounds().into_iter().zip(ages.within);
    page.family(
        "histogram",
        "metrics_server_api_metric_freshness_seconds",
        "[ALPHA] Freshness of metrics exported",
    )
    .histogram(&[], within.chain([(f64::INFINITY, ages.count)]), ages.seconds);
    page.family(
        "counter",
        "apiserver_request_total",
        "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, \
         component, and HTTP response code.",
    );
    for count in traffic.counts() {
        let code = count.code.to_string();
        let labels = [
            ("code", code.as_str()),
            ("component", "apiserver"),
            ("dry_run", ""),
            ("group", &count.group),
            ("resource", &count.resource),
            ("scope", count.scope),
            ("subresource", count.subresource),
            ("verb", count.verb),
            ("version", &count.version),
        ];
        page.value(&labels, count.count);
    }
    page.family(
        "histogram",
        "apiserver_request_duration_seconds",
        "[STABLE] Response latency distribution in seconds for each verb, dry run value, group, version, resource, \
         subresource, scope and component.",
    );
    for duration in traffic.durations() {
        let labels = [
            ("component", "apiserver"),
            ("dry_run", ""),
            ("group", duration.group.as_str()),
            ("resource", &duration.resource),
            ("scope", duration.scope),
            ("subresource", duration.subresource),
            ("verb", duration.verb),
            ("version", &duration.version),
        ];
        let within = serve::RequestDurations::BOUNDS.into_iter().zip(duration.within);
        page.histogram(&labels, within.chain([(f64::INFINITY, duration.count)]), duration.seconds);
    }
    page.family(
        "gauge",
        "apiserver_current_inflight_requests",
        "[STABLE] Maximal number of currently used inflight request limit of this apiserver per request kind in last second.",
    )
    .value(&[("request_kind", "readOnly")], traffic.running());
}

/// The health checks of the replaced servers, in their order.
fn checks(sources: &Sources) -> HealthChecks {
    let mut checks = HealthChecks::new();
    // Probes and alerts use these names.
    for name in
        ["log", "poststarthook/max-in-flight-filter", "poststarthook/storage-object-count-tracker-hook"]
    {
        checks.add(name, || Ok(()));
    }
    for check in sources.checks() {
        let (name, scope) = (check.name, check.scope);
        let probe = move || check.run();
        match scope {
            CheckScope::All => checks.add(name, probe),
            CheckScope::Ready => checks.add_ready(name, probe),
            CheckScope::Live => checks.add_live(name, probe),
        }
    }
    checks
}
