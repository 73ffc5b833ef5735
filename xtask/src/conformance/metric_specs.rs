//! Triggers against recorded metric specs: what a scaler makes of its parameters, without asking its source.

mod server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use api::autoscaling::v2::MetricSpec;
use api::keda::PodIdentity;
use api::provider::Compat;
use scalers::backends::Backends;
use scalers::parameters::notices;
use scalers::web::HttpSettings;
use scalers::{Owner, Scaler, Trigger, table};
use serde_json::Value;

use self::server::ExternalServer;
use super::{Difference, Outcome};

/// Replays all records of types that we have; the others are counted apart.
pub(crate) fn replay(records: &[Value]) -> anyhow::Result<Vec<Outcome>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = runtime.block_on(ExternalServer::start())?;
    let (mut outcomes, mut unknown) = (Vec::new(), BTreeMap::<&str, usize>::new());
    for record in records {
        let name = record.pointer("/in/type").and_then(Value::as_str).context("a record without type")?;
        if table::find(name).is_none() {
            *unknown.entry(name).or_default() += 1;
            continue;
        }
        outcomes.push(Outcome::of(record, |compat| check(record, compat, &runtime, &server)));
    }
    if !unknown.is_empty() {
        let (types, count) = (unknown.len(), unknown.values().sum::<usize>());
        let names: Vec<_> = unknown.keys().copied().collect();
        println!("  {count} records of {types} types are not replayed here: {}", names.join(" "));
    }
    Ok(outcomes)
}

fn check(
    record: &Value,
    compat: Compat,
    runtime: &tokio::runtime::Runtime,
    server: &ExternalServer,
) -> anyhow::Result<Vec<Difference>> {
    let input = record.get("in").context("no `in`")?;
    let out = record.get("out").context("no `out`")?;
    let mut trigger = trigger(input)?;
    server.prepare(input.get("externalServer"), &mut trigger);
    let backends = Backends::without_cluster(HttpSettings::allowing_loopback(), compat);
    let built = table::build(&trigger, &backends)
        .and_then(|scaler: Arc<dyn Scaler>| runtime.block_on(scaler.specs()));
    let mut found = differences(out, built.map_err(String::from))?;
    let (saw, got) = (out.get("serverSaw").cloned().unwrap_or_default(), server.saw());
    if saw != got {
        found.push(Difference::json("serverSaw", &saw, &got));
    }
    let told =
        table::find(&trigger.type_).map(|scaler| notices(scaler.parameters, &trigger)).unwrap_or_default();
    let told: Vec<_> =
        told.iter().map(|one| (if one.warning { "Warning" } else { "Normal" }, &*one.text)).collect();
    let events = out.get("events").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let text =
        |event: &'_ Value, name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let events: Vec<_> = events.iter().map(|event| (text(event, "type"), text(event, "note"))).collect();
    if !told.iter().copied().eq(events.iter().map(|(kind, note)| (&**kind, &**note))) {
        found.push(Difference {
            at: "events".to_owned(),
            expected: format!("{events:?}"),
            got: format!("{told:?}"),
        });
    }
    Ok(found)
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
    let crashed = out.get("panic").is_some() || out.get("recoveredPanic").is_some();
    let wanted = match (out.get("metricSpecs"), out.get("error").and_then(Value::as_str)) {
        (Some(specs), _) => Ok(serde_json::from_value::<Vec<MetricSpec>>(specs.clone())?),
        (None, Some(error)) => Err(error),
        (None, None) if crashed => Err(""),
        (None, None) => bail!("neither specs nor error"),
    };
    let difference =
        |at: &str, expected: String, got: String| Ok(vec![Difference { at: at.to_owned(), expected, got }]);
    match (wanted, built) {
        // Where the original crashed, any error will do.
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

/// What libraries say begins so; what is before it is the product's own.
const LIBRARIES: [&str; 14] = [
    "json: ",
    "strconv.",
    "invalid character ",
    "unexpected end of JSON",
    "unable to parse requirement: ",
    "parse \"",
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
