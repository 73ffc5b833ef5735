//! `plimsoll metrics explain`: what rules discover, and the exact PromQL they become.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::provider::Compat;
use api::selector::Selector;
use jiff::Timestamp;
use serde_json::{Value, json};
use sources::prometheus::client::{PrometheusClient, PrometheusError, QueryValue as Values};
use sources::prometheus::config::AdapterConfig;
use sources::prometheus::lint::{ExplainedMetric, Explanation, RuleSelection, explain, parse_series};
use sources::prometheus::mapper::{GroupResource, RestMapper};
use sources::prometheus::query::{CustomQueryArgs, ObjectFilter};
use sources::prometheus::registry::Series;
use sources::prometheus::rule::{RuleFamily, Rules};

use super::prometheus::read;
use super::query_targets::QueryTargets;
use crate::failure::{CommandResult, Failure};
use crate::output::{self, Format};

/// How far back series discovery looks.
const SERIES_LOOKBACK: Duration = Duration::from_mins(10);
/// The timeout of a query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(30);
/// How many series and values are shown per rule.
const MAX_SHOWN_SERIES_PER_RULE: usize = 8;

/// Show what rules discover, and the exact PromQL they become
///
/// For each rule: which series it asks Prometheus for, which metric each becomes, of which resources, under which URL it is
/// served, and the query behind it. Without a Prometheus, series are taken from --series, or guessed from the rule; with one
/// they are real, and values are shown.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll metrics explain rules.yaml
  plimsoll metrics explain rules.yaml --rule 2 --series 'http_requests_total{namespace,pod,code}'
  plimsoll metrics explain rules.yaml --metric http_requests_per_second -n shop \\
    --prometheus-url http://localhost:9090")]
pub(super) struct ExplainArgs {
    /// The file; - is standard input.
    config: PathBuf,
    /// Which rule: its number, rules[2], externalRules[0], its seriesQuery or its name.as; without it, all.
    #[arg(long, value_name = "RULE", default_value = "")]
    rule: String,
    /// Only this metric.
    #[arg(long, value_name = "NAME")]
    metric: Option<String>,
    /// A series to try, as name or name{label,label}; may be given several times.
    #[arg(long, value_name = "SERIES")]
    series: Vec<String>,
    /// Namespace of the queries for values.
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// As --compat of the server.
    #[arg(long, value_parser = ["better", "strict"], default_value = "better")]
    compat: String,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    targets: QueryTargets,
}

/// The current values by index of the metric and of the query; or why there are none.
type CurrentValues = Vec<((usize, usize), Result<Vec<String>, PrometheusError>)>;

/// One explained rule with its current values.
struct ExplainedRule {
    explanation: Explanation,
    /// How many series Prometheus has for it; none without a Prometheus.
    series: Option<u64>,
    values: CurrentValues,
}

pub(super) fn run(args: &ExplainArgs) -> CommandResult {
    let (_, config) = read(&args.config)?;
    crate::live::run(async move {
        let mapper = args.targets.some_mapper(&config).await?;
        let prometheus = args.targets.prometheus()?;
        let explained = explain_rules(args, &config, &mapper, prometheus.as_ref()).await?;
        if explained.is_empty() {
            return Err(none(args, &config));
        }
        match args.output {
            Format::Json | Format::Yaml => {
                let all: Vec<Value> = explained.iter().map(value).collect();
                output::value(args.output, &all)
            }
            Format::Table | Format::Wide => output::text_out(&text(&explained)),
        }
    })
}

fn none(args: &ExplainArgs, config: &AdapterConfig) -> Failure {
    let file = args.config.display();
    if config.rules.is_empty() && config.external_rules.is_empty() {
        return Failure::input(format!("{file} has no rules and no externalRules: nothing to explain"));
    }
    let metric = match &args.metric {
        Some(name) => format!("metric {name}"),
        None if args.rule.is_empty() => "metric".to_owned(),
        None => {
            let rule = &args.rule;
            return Failure::input(format!("{file} has no rule {rule}; without --rule, all are explained"));
        }
    };
    Failure::input(format!(
        "no {metric} comes of the rules of {file}\n  remedy: name a series with --series, or a Prometheus with \
         --prometheus-url"
    ))
}

/// The configuration with copies of one rule in the place of all others, which may be broken; none unless one rule is selected.
fn only(config: &AdapterConfig, selection: &RuleSelection) -> Option<AdapterConfig> {
    let RuleSelection::At(family, index) = selection else { return None };
    let rules = match family {
        RuleFamily::Custom => &config.rules,
        RuleFamily::External => &config.external_rules,
    };
    let copies = vec![rules.get(*index)?.clone(); index + 1];
    let (rules, external_rules) = match family {
        RuleFamily::Custom => (copies, Vec::new()),
        RuleFamily::External => (Vec::new(), copies),
    };
    Some(AdapterConfig { rules, external_rules, resource_rules: None })
}

async fn explain_rules(
    args: &ExplainArgs,
    config: &AdapterConfig,
    mapper: &RestMapper,
    prometheus: Option<&PrometheusClient>,
) -> Result<Vec<ExplainedRule>, Failure> {
    let compat = if args.compat == "strict" { Compat::Strict } else { Compat::Better };
    let wrong = |error: sources::prometheus::config::ConfigError| {
        let place = error.rule.map(|rule| format!("{}[{rule}]: ", error.stage)).unwrap_or_default();
        Failure::input(format!("{}: {place}{error}", args.config.display()))
    };
    let selection = RuleSelection::parse(&args.rule);
    let reduced = only(config, &selection);
    let config = reduced.as_ref().unwrap_or(config);
    let rules = Rules::compile(config, mapper, compat).map_err(wrong)?;
    let chosen = explain(config, mapper, compat, &selection, &[]).map_err(wrong)?;
    let mut all = Vec::new();
    for Explanation { section, rule, .. } in chosen {
        let family = if section == "rules" { RuleFamily::Custom } else { RuleFamily::External };
        let Some(selector) = rules.get(family, rule).map(|rule| rule.selector.clone()) else { continue };
        let (series, count) = match prometheus {
            Some(prometheus) => {
                let now = Timestamp::now();
                let found =
                    prometheus.series(&selector, now - SERIES_LOOKBACK, now).await.map_err(|error| {
                        Failure::Outside(format!(
                            "failed to ask Prometheus: {error}\n  remedy: {}",
                            error.remedy()
                        ))
                    })?;
                (found.shapes, Some(found.series))
            }
            None => (guessed(args, &selector), None),
        };
        let one =
            explain(config, mapper, compat, &RuleSelection::At(family, rule), &series).map_err(wrong)?;
        let Some(mut explanation) = one.into_iter().next() else { continue };
        if let Some(wanted) = &args.metric {
            explanation.metrics.retain(|found| found.metric.as_ref() == Some(wanted));
            if explanation.metrics.is_empty() {
                continue;
            }
        }
        let mut explained = ExplainedRule { explanation, series: count, values: Vec::new() };
        if let Some(prometheus) = prometheus {
            explained.values = values(args, &explained.explanation, &rules, family, mapper, prometheus).await;
        }
        all.push(explained);
    }
    Ok(all)
}

/// The series that a selector matches, or those that the user names.
fn guessed(args: &ExplainArgs, selector: &str) -> Vec<Series> {
    if !args.series.is_empty() {
        return args.series.iter().map(|text| parse_series(text)).collect();
    }
    let name = selector.split('{').next().unwrap_or_default().trim();
    let quoted = selector.split_once("__name__=\"").and_then(|(_, rest)| rest.split('"').next());
    let known = Some(name).filter(|name| !name.is_empty()).or(quoted).or(args.metric.as_deref());
    known.map(|name| Series { name: Arc::from(name), labels: Vec::new() }).into_iter().collect()
}

/// The current values of the queries.
async fn values(
    args: &ExplainArgs,
    explanation: &Explanation,
    rules: &Rules,
    family: RuleFamily,
    mapper: &RestMapper,
    prometheus: &PrometheusClient,
) -> CurrentValues {
    let Some(rule) = rules.get(family, explanation.rule) else { return Vec::new() };
    let everything = Selector::everything();
    let mut all = Vec::new();
    for (at, found) in explanation
        .metrics
        .iter()
        .enumerate()
        .filter(|(_, found)| found.metric.is_some())
        .take(MAX_SHOWN_SERIES_PER_RULE)
    {
        for place in 0..found.examples.len() {
            let query = match found.resources.get(place) {
                Some(resource) => {
                    let query_args = CustomQueryArgs {
                        resource: "",
                        namespace: resource.namespaced.then_some(args.namespace.as_str()),
                        objects: ObjectFilter::Any,
                        metric: "",
                        series: &everything,
                    };
                    let of = GroupResource::parse(&resource.resource);
                    rule.custom_query(mapper, &found.series, &of, &query_args).map(|query| query.text)
                }
                None => rule.external_query(mapper, &found.series, &args.namespace, &everything),
            };
            let Ok(query) = query else { continue };
            let reply = prometheus.query(&query, Timestamp::now(), QUERY_TIMEOUT).await;
            all.push(((at, place), reply.map(|reply| shown(&reply.result))));
        }
    }
    all
}

fn with_remedy(error: &PrometheusError) -> String {
    format!("{error}; {}", error.remedy())
}

fn shown(values: &Values) -> Vec<String> {
    let samples = match values {
        Values::Vector(samples) => samples.as_deref().unwrap_or_default(),
        Values::Scalar(sample) => std::slice::from_ref(sample),
        Values::Matrix => &[],
    };
    let number = |value: Option<f64>| value.map_or_else(|| "no number".to_owned(), |value| value.to_string());
    let label = |(name, value): &(Arc<str>, Box<str>)| format!("{name}=\"{value}\"");
    let line = |sample: &sources::prometheus::client::VectorSample| {
        let labels: Vec<String> = sample.labels.iter().map(label).collect();
        format!("{{{}}} {}", labels.join(","), number(sample.value))
    };
    samples.iter().map(line).collect()
}

fn text(all: &[ExplainedRule]) -> String {
    let mut text = String::new();
    for ExplainedRule { explanation, series, values } in all {
        let found = series.map(|count| format!(" ({count} series)")).unwrap_or_default();
        let _ = writeln!(
            text,
            "{}[{}]\n  asks      {}{found}",
            explanation.section, explanation.rule, explanation.discovery_request
        );
        if explanation.metrics.is_empty() {
            let _ = writeln!(text, "  finds     nothing to show; name a series with --series");
        }
        for (at, metric) in explanation.metrics.iter().enumerate().take(MAX_SHOWN_SERIES_PER_RULE) {
            one(&mut text, metric, |place| {
                values.iter().find(|(key, _)| *key == (at, place)).map(|(_, values)| values)
            });
        }
        if explanation.metrics.len() > MAX_SHOWN_SERIES_PER_RULE {
            let _ =
                writeln!(text, "  and {} more series", explanation.metrics.len() - MAX_SHOWN_SERIES_PER_RULE);
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn one<'a>(
    text: &mut String,
    found: &ExplainedMetric,
    values: impl Fn(usize) -> Option<&'a Result<Vec<String>, PrometheusError>>,
) {
    let Some(metric) = &found.metric else {
        let _ = writeln!(text, "  series    {}: left out by seriesFilters or name.matches", found.series);
        return;
    };
    let _ = writeln!(text, "  series    {}\n  metric    {metric}", found.series);
    for resource in &found.resources {
        let scope = if resource.namespaced { "in a namespace" } else { "without a namespace" };
        let _ = writeln!(text, "  label     {} names {} ({scope})", resource.label, resource.resource);
    }
    if !found.other_labels.is_empty() {
        let _ = writeln!(text, "  labels    {} name no resource", found.other_labels.join(", "));
    }
    if found.examples.is_empty() {
        let _ = writeln!(
            text,
            "  served    nowhere: no label names a resource; add resources.overrides or resources.template"
        );
    }
    for (place, question) in found.examples.iter().enumerate() {
        let _ = writeln!(text, "  GET       {}", question.path);
        match &question.query {
            Ok(query) => {
                let _ = writeln!(text, "  query     {query}");
            }
            Err(why) => {
                let _ = writeln!(text, "  fails     {why}");
            }
        }
        match values(place) {
            Some(Ok(samples)) if samples.is_empty() => {
                let _ = writeln!(text, "  values    none at the moment");
            }
            Some(Ok(samples)) => {
                for sample in samples.iter().take(MAX_SHOWN_SERIES_PER_RULE) {
                    let _ = writeln!(text, "  value     {sample}");
                }
            }
            Some(Err(error)) => {
                let _ = writeln!(text, "  fails     {}", with_remedy(error));
            }
            None => {}
        }
    }
}

fn value(explained: &ExplainedRule) -> Value {
    let ExplainedRule { explanation, series, values } = explained;
    let metric = |(at, found): (usize, &ExplainedMetric)| {
        let question = |(place, question): (usize, &sources::prometheus::lint::ExampleQuery)| {
            let values = values.iter().find(|(key, _)| *key == (at, place)).map(|(_, values)| values);
            json!({"path": question.path, "query": question.query.as_ref().ok(), "error": question.query.as_ref().err().map(ToString::to_string),
                "values": values.and_then(|values| values.as_ref().ok()), "valuesError": values.and_then(|v| v.as_ref().err()).map(with_remedy)})
        };
        let resources: Vec<Value> = found
            .resources
            .iter()
            .map(|of| json!({"label": of.label, "resource": of.resource, "namespaced": of.namespaced}))
            .collect();
        json!({"series": found.series, "metric": found.metric, "resources": resources, "otherLabels": found.other_labels,
            "questions": found.examples.iter().enumerate().map(question).collect::<Vec<_>>()})
    };
    json!({"rule": format!("{}[{}]", explanation.section, explanation.rule), "asks": explanation.discovery_request, "seriesFound": series,
        "metrics": explanation.metrics.iter().enumerate().map(metric).collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use sources::prometheus::config::RuleConfig;

    use super::*;

    #[test]
    fn one_rule_is_explained_although_another_is_broken() {
        let rule = |query: &str| RuleConfig {
            series_query: "up".into(),
            metrics_query: query.into(),
            ..RuleConfig::default()
        };
        let config =
            AdapterConfig { rules: vec![rule("<<"), rule("sum(<<.Series>>)")], ..AdapterConfig::default() };
        let compile =
            |config: &AdapterConfig| Rules::compile(config, &RestMapper::default(), Compat::Better).is_ok();
        assert!(!compile(&config));
        let second = only(&config, &RuleSelection::parse("1")).unwrap();
        assert!(compile(&second));
        assert_eq!(second.rules[1], config.rules[1], "it keeps its number");
        assert!(!compile(&only(&config, &RuleSelection::parse("rules[0]")).unwrap()));
        assert!(only(&config, &RuleSelection::parse("")).is_none());
        assert!(only(&config, &RuleSelection::parse("7")).is_none());
    }
}
