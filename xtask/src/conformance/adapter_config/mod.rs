//! Rule files of prometheus-adapter and what they discover (`adapter_config.jsonl`).

pub(crate) mod fixture;

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use api::provider::Compat;
use api::time::go_duration;
use jiff::SignedDuration;
use serde_json::{Map, Value, json};
use sources::prometheus::config::{AdapterConfig, ConfigError};
use sources::prometheus::mapper::RestMapper;
use sources::prometheus::registry::{Registry, Series};
use sources::prometheus::rule::{RuleFamily, Rules};

use super::{Difference, Outcome};
use fixture::FixtureResponse;

pub(crate) fn replay(file: &Path, records: &[Value]) -> anyhow::Result<Vec<Outcome>> {
    let mapper = fixture::mapper(file)?;
    let replayed = |record| Outcome::of(record, |compat| Ok::<_, Infallible>(check(record, &mapper, compat)));
    Ok(records.iter().map(replayed).collect())
}

fn check(record: &Value, mapper: &RestMapper, compat: Compat) -> Vec<Difference> {
    let config = fixture::text_of(&record["config"]);
    let rules = AdapterConfig::parse(&config).and_then(|config| Rules::compile(&config, mapper, compat));
    match rules {
        Err(error) => compare_error("error", record.pointer("/expect/error"), &error),
        Ok(rules) => {
            let got = state(record, &rules, mapper);
            let mut expected = record["expect"].clone();
            shorten_update_errors(&mut expected);
            if expected == got { Vec::new() } else { vec![Difference::json("expect", &expected, &got)] }
        }
    }
}

/// Stage, and the part of the message that is the adapter's own.
pub(crate) fn compare_error(at: &str, expected: Option<&Value>, error: &ConfigError) -> Vec<Difference> {
    let own = |message: &str| -> String {
        let foreign = ["yaml: ", "template: ", "error parsing regexp: "];
        let end = foreign.iter().filter_map(|text| message.find(text)).min();
        let start = "unable to parse metrics discovery config: ";
        let end = end.unwrap_or(if message.starts_with(start) { start.len() } else { message.len() });
        message.get(..end).unwrap_or_default().to_owned()
    };
    let got = json!({"stage": error.stage.name(), "message": own(&error.message)});
    let text = |key: &str| expected.and_then(|expected| expected.get(key)).and_then(Value::as_str);
    let expected = json!({"stage": text("stage"), "message": text("message").map(own)});
    if expected == got { Vec::new() } else { vec![Difference::json(at, &expected, &got)] }
}

/// Text after the selector in a failure comes from Prometheus or Go.
fn shorten_update_errors(expected: &mut Value) {
    for error in expected["updateErrors"].as_array_mut().into_iter().flatten() {
        let text = fixture::text_of(error);
        let end = text.find("\": ").map_or(text.len(), |end| end + 1);
        *error = json!(text.get(..end));
    }
    if expected["updateErrors"].is_null()
        && let Some(expected) = expected.as_object_mut()
    {
        expected.remove("updateErrors");
    }
}

fn state(record: &Value, rules: &Rules, mapper: &RestMapper) -> Value {
    let mut state = Map::new();
    let mut registry = Registry::new(rules);
    let mut errors = Vec::new();
    let strict = rules.compat().is_strict();
    for (family, selectors) in
        [(RuleFamily::Custom, rules.custom_selectors()), (RuleFamily::External, rules.external_selectors())]
    {
        let mut found: Vec<(Arc<str>, Vec<Series>)> = Vec::new();
        let before = errors.len();
        for selector in selectors {
            match fixture::answer(&record["series"], &selector) {
                FixtureResponse::Series(series) => found.push((selector, series)),
                FixtureResponse::Null => errors.push(format!("no metrics retrieved for query {selector:?}")),
                FixtureResponse::Failed => {
                    errors.push(format!("unable to fetch metrics for query {selector:?}"));
                }
            }
        }
        if errors.len() == before || !strict {
            registry.replace(rules, mapper, family, &found);
        }
    }
    let installed = |family| !rules.of(family).is_empty();
    if installed(RuleFamily::Custom) {
        let metrics = registry.custom_metrics();
        let mut metrics: Vec<(&str, bool, &str)> =
            metrics.iter().map(|m| (m.metric.as_str(), m.namespaced, m.resource.as_str())).collect();
        metrics.sort_unstable();
        let shown: Vec<Value> = metrics
            .iter()
            .map(|(metric, namespaced, resource)| json!({"metric": metric, "resource": resource, "namespaced": namespaced}))
            .collect();
        state.insert("custom".to_owned(), shown.into());
    }
    if installed(RuleFamily::External) {
        state.insert("external".to_owned(), json!(*registry.external_metrics()));
    }
    if let Some(resource) = rules.resource() {
        let window = SignedDuration::try_from(resource.window).unwrap_or(SignedDuration::MAX);
        state.insert("resource".to_owned(), json!({"window": go_duration(window)}));
    }
    if installed(RuleFamily::Custom) || installed(RuleFamily::External) {
        let mut asked = [rules.custom_selectors(), rules.external_selectors()].concat();
        asked.sort();
        state.insert("seriesRequests".to_owned(), asked.iter().map(|text| json!(**text)).collect());
    }
    if !errors.is_empty() {
        let texts =
            errors.iter().map(|error| json!(format!("unable to update list of all metrics: {error}")));
        state.insert("updateErrors".to_owned(), texts.collect());
    }
    state.into()
}
