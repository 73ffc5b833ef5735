//! Requests that are answered from Prometheus, over HTTP (`adapter_result.jsonl`).

mod played;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use api::provider::Compat;
use futures::future::BoxFuture;
use http::Request;
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use serde_json::{Value, json};
use serve::metrics::MetricsApiSettings;
use serve::{App, InProcessServer};
use sources::Clock;
use sources::prometheus::client::{PrometheusClient, PrometheusSettings};
use sources::prometheus::config::AdapterConfig;
use sources::prometheus::mapper::RestMapper;
use sources::prometheus::provider::{self, PrometheusProvider};

use super::{Difference, Outcome, adapter_config};
use played::{PlayedPrometheus, RecordedCluster};

/// The fixture of all records.
struct AdapterResultFixture {
    config: AdapterConfig,
    series: Value,
    objects: Value,
    now: Timestamp,
    mapper: Arc<RestMapper>,
}

/// Our response.
struct RecordedResponse {
    status: u16,
    body: Value,
    queries: Vec<String>,
}

/// Replays the whole file: its first record is what Prometheus and the cluster know.
pub(crate) fn replay(file: &Path, records: &[Value]) -> anyhow::Result<Vec<Outcome>> {
    let [first, records @ ..] = records else { anyhow::bail!("the file is empty") };
    let fixture = AdapterResultFixture {
        config: AdapterConfig::parse(first["config"].as_str().context("the first record is no fixture")?)?,
        series: first["series"].clone(),
        objects: first["objects"].clone(),
        now: first["time"].as_str().context("the fixture has no time")?.parse()?,
        mapper: Arc::new(adapter_config::fixture::mapper(file)?),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let replayed = |record: &Value| {
        Outcome::of(record, |compat| {
            let answer = runtime.block_on(send_request(&fixture, record, compat))?;
            Ok::<_, anyhow::Error>(compare(&record["expect"], &answer))
        })
    };
    Ok(records.iter().map(replayed).collect())
}

fn send_request<'a>(
    fixture: &'a AdapterResultFixture,
    record: &'a Value,
    compat: Compat,
) -> BoxFuture<'a, anyhow::Result<RecordedResponse>> {
    Box::pin(async move {
        let played = Arc::new(PlayedPrometheus::new(fixture.series.clone(), record["prometheus"].clone()));
        let recorded_cluster = Arc::new(RecordedCluster::new(
            &fixture.objects,
            Arc::clone(&fixture.mapper),
            record["listStatus"].as_u64().is_some(),
        ));
        let now = fixture.now;
        let clock = serve::Clock::new(move || now);
        let settings =
            provider::ProviderSettings { compat, ..provider::ProviderSettings::new(Clock::new(move || now)) };
        let prometheus = PrometheusClient::new(Arc::clone(&played) as Arc<_>, PrometheusSettings::default());
        let provider =
            PrometheusProvider::idle(settings, prometheus, fixture.config.clone(), recorded_cluster)?;
        provider.discover().await;

        let settings = MetricsApiSettings { clock, ..MetricsApiSettings::from(compat) };
        let provider = Arc::new(provider);
        let mut groups = serve::metrics::custom(provider.clone(), &settings);
        groups.extend(serve::metrics::external(provider.clone(), &settings));
        groups.extend(serve::metrics::resource(provider, &settings));
        let server = InProcessServer::new(App { groups, ..App::default() });
        let path = record["path"].as_str().context("a record has no path")?;
        let answer = server.respond(Request::get(path).body(serve::response::full(""))?).await;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.map_err(|error| anyhow::anyhow!(error))?.to_bytes();
        let mut body = serde_json::from_slice(&body)
            .unwrap_or_else(|_| json!(String::from_utf8_lossy(&body).into_owned()));
        if let Some(resources) = body.get_mut("resources").and_then(Value::as_array_mut) {
            resources.sort_by_key(|resource| resource["name"].as_str().map(str::to_owned));
        }
        Ok(RecordedResponse { status, body, queries: played.queries() })
    })
}

fn compare(expected: &Value, got: &RecordedResponse) -> Vec<Difference> {
    // prometheus-adapter crashes here, which we do not reproduce.
    if expected.get("panic").is_some() {
        return Vec::new();
    }
    let mut differences = Vec::new();
    let mut check = |at: &str, expected: &Value, got: Value| {
        if *expected != got {
            differences.push(Difference::json(at, expected, &got));
        }
    };
    check("status", &expected["status"], json!(got.status));
    check("body", &expected["body"], got.body.clone());
    check("queries", &expected["queries"], json!(got.queries));
    differences
}
