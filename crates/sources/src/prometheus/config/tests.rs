#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Duration;

use super::*;

const SMALL: &str = "\
rules:
- seriesQuery: 'http_requests_total{namespace!=\"\"}'
  seriesFilters: [{isNot: ^x}]
  resources:
    template: <<.Resource>>
    overrides:
      ns: {resource: namespace}
      dep: {group: apps, resource: deployment}
    namespaced: no
  name: {matches: ^(.*)_total$, as: '${1}_rate'}
  metricsQuery: sum(<<.Series>>)
resourceRules:
  cpu: {containerLabel: container}
  window: 1h30m
";

#[test]
fn reads_every_key() {
    let config = AdapterConfig::parse(SMALL).unwrap();
    let rule = &config.rules[0];
    assert_eq!(rule.series_filters, [SeriesFilter { is: String::new(), is_not: "^x".to_owned() }]);
    assert_eq!(rule.resources.namespaced, Some(false));
    let overrides: Vec<String> = rule.resources.overrides.iter().map(|(l, r)| format!("{l}={r}")).collect();
    assert_eq!(overrides, ["ns=namespace", "dep=deployment.apps"]);
    assert_eq!(rule.name.as_, "${1}_rate");
    let resources = config.resource_rules.unwrap();
    assert_eq!(resources.cpu.container_label, "container");
    assert_eq!(resources.window, Duration::from_mins(90));
}

#[test]
fn errors_have_position_and_remedy() {
    for (text, expected) in [
        ("rulez: []", "line 1, column 1: unknown key `rulez` (did you mean `rules`?)"),
        (
            "rules:\n- seriesquery: x",
            "line 2, column 3: unknown key `seriesquery` (did you mean `seriesQuery`?)",
        ),
        ("rules: 5", "line 1, column 8: expected a list, found a number"),
        ("rules: [{resources: {namespaced: maybe}}]", "expected true or false, found a text"),
        ("resourceRules: {window: 5 minutes}", "unknown unit \" minutes\" in duration \"5 minutes\""),
        ("- a", "expected a map, found a list"),
    ] {
        let error = AdapterConfig::parse(text).unwrap_err();
        assert_eq!(error.stage, ConfigSection::Parse);
        assert!(error.message.starts_with("unable to parse metrics discovery config: "), "{}", error.message);
        assert!(error.message.contains(expected), "{}", error.message);
    }
}

#[test]
fn scalars_are_accepted_as_strings() {
    let config =
        AdapterConfig::parse("rules:\n- seriesQuery: 0x1F\n  metricsQuery: yes\n  name: {as: 1.50}").unwrap();
    let rule = &config.rules[0];
    assert_eq!([&*rule.series_query, &*rule.metrics_query, &*rule.name.as_], ["0x1F", "yes", "1.50"]);
}

#[test]
fn durations_use_prometheus_syntax() {
    for (text, millis) in [("0", 0), ("5m", 300_000), ("1y1w1d1h1m1s1ms", 32_230_861_001), ("1500ms", 1500)] {
        assert_eq!(duration::parse(text).unwrap(), Duration::from_millis(millis), "{text}");
    }
    for text in ["", "60", "1m1m", "30m1h", "-5m", "1.5m", "5M", "m", "300y", "99999999999999999999s"] {
        assert!(duration::parse(text).is_err(), "{text}");
    }
}
