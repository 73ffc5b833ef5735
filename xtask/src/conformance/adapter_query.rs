//! PromQL from rules and metric requests (`adapter_query.jsonl`).

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use api::provider::Compat;
use api::selector::Selector;
use serde_json::{Value, json};
use sources::prometheus::config::AdapterConfig;
use sources::prometheus::mapper::RestMapper;
use sources::prometheus::query::{self, CustomQueryArgs, ObjectFilter, QueryError};
use sources::prometheus::registry::{Registry, Series};
use sources::prometheus::rule::Rules;

use super::adapter_config::compare_error;
use super::adapter_config::fixture::{self, FixtureResponse};
use super::{Difference, Outcome};

pub(crate) fn replay(file: &Path, records: &[Value]) -> anyhow::Result<Vec<Outcome>> {
    let mapper = fixture::mapper(file)?;
    let replayed = |record| Outcome::of(record, |compat| Ok::<_, Infallible>(check(record, &mapper, compat)));
    Ok(records.iter().map(replayed).collect())
}

fn check(record: &Value, mapper: &RestMapper, compat: Compat) -> Vec<Difference> {
    let config = fixture::text_of(&record["config"]);
    let rules = match AdapterConfig::parse(&config).and_then(|config| Rules::compile(&config, mapper, compat))
    {
        Ok(rules) => rules,
        Err(error) => return compare_error("configError", record.pointer("/expect/configError"), &error),
    };
    let found: Vec<(Arc<str>, Vec<Series>)> = rules
        .selectors()
        .into_iter()
        .filter_map(|selector| match fixture::answer(&record["series"], &selector) {
            FixtureResponse::Series(series) => Some((selector, series)),
            FixtureResponse::Null | FixtureResponse::Failed => None,
        })
        .collect();
    let registry = Registry::build(&rules, mapper, &found);
    let got = answer(&record["request"], &rules, &registry, mapper);
    let mut expected = record["expect"].clone();
    if let Some(expected) = expected.as_object_mut() {
        // What was logged is for information.
        expected.remove("log");
    }
    let any = expected.get("anyOf").and_then(Value::as_array).is_some_and(|any| any.contains(&got));
    if any || expected == got { Vec::new() } else { vec![Difference::json("expect", &expected, &got)] }
}

fn answer(request: &Value, rules: &Rules, registry: &Registry, mapper: &RestMapper) -> Value {
    let text = |key: &str| request[key].as_str().unwrap_or_default();
    let series = match Selector::parse(text("metricSelector")) {
        Ok(selector) => selector,
        Err(error) => return json!({"selectorError": error.to_string()}),
    };
    let names: Vec<&str> =
        request["names"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let objects = ObjectFilter::Named(&names);
    let namespace = Some(text("namespace")).filter(|namespace| !namespace.is_empty());
    match text("api") {
        "custom" => {
            let ask = CustomQueryArgs {
                resource: text("resource"),
                namespace,
                objects,
                metric: text("metric"),
                series: &series,
            };
            match query::custom(rules, registry, mapper, &ask) {
                Ok((query, _)) => json!({"query": query.text}),
                Err(_) => json!({"notFound": true}),
            }
        }
        "external" => {
            let namespace = text("namespace");
            match query::external(rules, registry, mapper, namespace, text("metric"), &series) {
                Ok(query) => json!({"query": query}),
                Err(QueryError::NoMetric) => {
                    let known = if namespace == "default" { "namespaces" } else { "" };
                    json!({"error": api::provider::MetricsError::no_metric(text("metric"), known).to_string()})
                }
                Err(_) => json!({"error": "Internal error occurred: unable to fetch metrics"}),
            }
        }
        _ => {
            let Some(resource) = rules.resource() else { return json!({"queries": []}) };
            let queries =
                [&resource.cpu, &resource.memory].into_iter().filter_map(|rule| match text("resource") {
                    "nodes" => rule.nodes_query(mapper, &objects).ok(),
                    _ => rule.containers_query(mapper, text("namespace"), &objects).ok(),
                });
            let mut texts: Vec<String> = queries.map(|query| query.text).collect();
            texts.sort();
            json!({"queries": texts})
        }
    }
}
