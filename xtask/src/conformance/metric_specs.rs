//! Triggers and their recorded metric specs: the specs of a scaler from its parameters, without queries to its source.

mod http_server;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use api::autoscaling::v2::MetricSpec;
use api::keda::{KedaProfile, PodIdentity};
use api::provider::Compat;
use scalers::backends::Backends;
use scalers::parameters::notices;
use scalers::web::HttpSettings;
use scalers::{Owner, Scaler, Trigger, table};
use serde_json::Value;

use self::http_server::HttpServer;
use self::server::ExternalServer;
use super::improvements::only_hidden_body;
use super::{Difference, Outcome, read};

/// Inputs that depend on how the host resolves names, as the README of the vectors of 2.21 says.
const HOST_DEPENDENT_RECORDS: [&str; 2] = ["metric_specs-01373", "metric_specs-01396"];

/// The servers that records speak of.
struct Servers {
    external: ExternalServer,
    http: HttpServer,
}

/// Replays all records of types that we have; the others are counted apart. The folder names the release. The folder of 2.21 has
/// only what 2.20 answers otherwise, so all other records of 2.20 are replayed with it.
pub(crate) fn replay(file: &Path, records: &[Value]) -> anyhow::Result<Vec<Outcome>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let servers = runtime.block_on(async {
        anyhow::Ok(Servers { external: ExternalServer::start().await?, http: HttpServer::start().await? })
    })?;
    let profile = profile(file);
    let unchanged = if profile == KedaProfile::V2_20 { Vec::new() } else { unchanged(file, records)? };
    let (mut outcomes, mut unknown) = (Vec::new(), BTreeMap::<&str, usize>::new());
    for record in records.iter().chain(&unchanged) {
        let name = record.pointer("/in/type").and_then(Value::as_str).context("a record without type")?;
        if table::find(name).is_none() {
            *unknown.entry(name).or_default() += 1;
            continue;
        }
        outcomes.push(Outcome::of(record, |compat| check(record, profile, compat, &runtime, &servers)));
    }
    if !unknown.is_empty() {
        let (types, count) = (unknown.len(), unknown.values().sum::<usize>());
        let names: Vec<_> = unknown.keys().copied().collect();
        println!("  {count} records of {types} types are not replayed here: {}", names.join(" "));
    }
    Ok(outcomes)
}

/// The release of KEDA that the folder of a file names: `keda-2.21`, or else the first.
fn profile(file: &Path) -> KedaProfile {
    let folder = file.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    folder.strip_prefix("keda-").and_then(|release| release.parse().ok()).unwrap_or_default()
}

/// The records of the folder `keda` beside this one that are not in this file.
fn unchanged(file: &Path, records: &[Value]) -> anyhow::Result<Vec<Value>> {
    fn id(record: &Value) -> &str {
        record.get("id").and_then(Value::as_str).unwrap_or_default()
    }
    let changed: BTreeSet<&str> = records.iter().map(id).chain(HOST_DEPENDENT_RECORDS).collect();
    let beside = file.parent().and_then(Path::parent).unwrap_or(Path::new("")).join("keda");
    let names = ["metric_specs.jsonl", "metric_specs.jsonl.zst"];
    let files = names.map(|name| beside.join(name));
    let Some(older): Option<&PathBuf> = files.iter().find(|file| file.exists()) else {
        return Ok(Vec::new());
    };
    let all: Vec<Value> = read::records(older)?.collect::<anyhow::Result<_>>()?;
    Ok(all.into_iter().filter(|record| !changed.contains(id(record))).collect())
}

fn check(
    record: &Value,
    profile: KedaProfile,
    compat: Compat,
    runtime: &tokio::runtime::Runtime,
    servers: &Servers,
) -> anyhow::Result<Vec<Difference>> {
    let input = record.get("in").context("no `in`")?;
    let out = record.get("out").context("no `out`")?;
    let mut trigger = Trigger { profile, ..trigger(input)? };
    servers.external.prepare(input.get("externalServer"), &mut trigger);
    servers.http.prepare(input.get("httpServer"), &mut trigger);
    let backends = Backends::without_cluster(HttpSettings::allowing_loopback(), compat);
    let built = table::build(&trigger, &backends)
        .and_then(|scaler: Arc<dyn Scaler>| runtime.block_on(scaler.specs()));
    let mut found = differences(out, built.map_err(|error| servers.http.named(&String::from(error))))?;
    if compat.is_strict() {
        // Responses of addresses that tenants choose are not quoted in strict mode either.
        found.retain(|difference| !only_hidden_body(difference));
    }
    let saw = out.get("serverSaw").cloned().unwrap_or_default();
    let got = if input.get("httpServer").is_some() { servers.http.saw() } else { servers.external.saw() };
    if saw != got {
        found.push(Difference::json("serverSaw", &saw, &got));
    }
    // Where KEDA crashed, it recorded nothing about the parameters after the crash.
    if !has_crashed(out) {
        found.extend(compare_events(out, &trigger));
    }
    Ok(found)
}

fn compare_events(out: &Value, trigger: &Trigger) -> Option<Difference> {
    let reported =
        table::find(&trigger.type_).map(|scaler| notices(scaler.parameters, trigger)).unwrap_or_default();
    let reported: Vec<_> =
        reported.iter().map(|one| (if one.warning { "Warning" } else { "Normal" }, &*one.text)).collect();
    let events = out.get("events").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let text =
        |event: &Value, name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut wanted: Vec<(String, String)> = Vec::new();
    for event in events {
        // The recorder of 2.20 listed some notices twice; the product emits each once.
        let event = (text(event, "type"), text(event, "note"));
        if !wanted.contains(&event) {
            wanted.push(event);
        }
    }
    let same = reported.iter().copied().eq(wanted.iter().map(|(kind, note)| (&**kind, &**note)));
    let difference = || Difference {
        at: "events".to_owned(),
        expected: format!("{wanted:?}"),
        got: format!("{reported:?}"),
    };
    (!same).then(difference)
}

/// Whether the original crashed, which only means that the input must be refused.
fn has_crashed(out: &Value) -> bool {
    out.get("panic").is_some() || out.get("recoveredPanic").is_some()
}

/// The trigger of a record.
pub(super) fn trigger(input: &Value) -> anyhow::Result<Trigger> {
    let texts = |name: &str| -> anyhow::Result<BTreeMap<String, String>> {
        let Some(Value::Object(members)) = input.get(name) else { return Ok(BTreeMap::new()) };
        members
            .iter()
            .map(|(key, value)| Ok((key.clone(), value.as_str().context("not a text")?.to_owned())))
            .collect()
    };
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let identity = match input.get("podIdentity") {
        Some(identity) => serde_json::from_value(identity.clone())?,
        None => PodIdentity::default(),
    };
    let namespace = input.get("namespace").and_then(Value::as_str).unwrap_or("ns");
    Ok(Trigger {
        owner: Owner { kind: "ScaledObject".into(), namespace: namespace.to_owned(), name: "so".into() },
        index: usize::try_from(input.get("triggerIndex").and_then(Value::as_u64).unwrap_or_default())?,
        type_: text("type"),
        metric_type: text("metricType"),
        metadata: texts("metadata")?,
        auth: texts("authParams")?,
        environment: texts("resolvedEnv")?,
        identity,
        feeds_formula: input.get("asMetricSource").and_then(Value::as_bool).unwrap_or_default(),
        http_timeout: Duration::from_secs(3),
        ..Trigger::default()
    })
}

fn differences(out: &Value, built: Result<Vec<MetricSpec>, String>) -> anyhow::Result<Vec<Difference>> {
    let crashed = has_crashed(out);
    let wanted = match (out.get("metricSpecs"), out.get("error").and_then(Value::as_str)) {
        (Some(specs), _) => Ok(serde_json::from_value::<Vec<MetricSpec>>(specs.clone())?),
        (None, Some(error)) => Err(error),
        (None, None) if crashed => Err(""),
        (None, None) => bail!("neither specs nor error"),
    };
    let difference =
        |at: &str, expected: String, got: String| Ok(vec![Difference { at: at.to_owned(), expected, got }]);
    match (wanted, built) {
        // Where KEDA crashed, any error is accepted.
        (Err(_), Err(_)) if crashed => Ok(Vec::new()),
        (Ok(wanted), Ok(got)) if wanted == got => Ok(Vec::new()),
        (Err(wanted), Err(got)) if same_error(wanted, &got) => Ok(Vec::new()),
        (Ok(wanted), Ok(got)) => {
            difference("specs", serde_json::to_string(&wanted)?, serde_json::to_string(&got)?)
        }
        (Err(wanted), Err(got)) => difference("error", wanted.to_owned(), got),
        (Ok(wanted), Err(got)) => difference("error", serde_json::to_string(&wanted)?, got),
        (Err(wanted), Ok(got)) => difference("specs", wanted.to_owned(), serde_json::to_string(&got)?),
    }
}

/// The begins of messages of libraries; the text before them is KEDA's own.
const LIBRARIES: [&str; 15] = [
    "json: ",
    "strconv.",
    "invalid character ",
    "unexpected end of JSON",
    "unable to parse requirement: ",
    "parse \"",
    "pkcs12: ",
    "expected exactly 5 fields",
    "failed to parse int",
    "end of range",
    "beginning of range",
    "too many ",
    "unknown time zone",
    "time: ",
    "found '",
];

/// Whether two errors are the same, line by line, up to what libraries say.
pub(super) fn same_error(wanted: &str, got: &str) -> bool {
    let (wanted, got): (Vec<_>, Vec<_>) = (wanted.lines().collect(), got.lines().collect());
    wanted.len() == got.len()
        && wanted.iter().zip(&got).all(|(wanted, got)| {
            let tail = LIBRARIES.iter().filter_map(|words| wanted.find(words)).min();
            match tail {
                Some(at) => wanted.get(..at).is_some_and(|own| got.starts_with(own)),
                None => wanted == got,
            }
        })
}
