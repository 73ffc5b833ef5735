#![allow(clippy::unwrap_used)]

use api::provider::Compat;

use super::*;
use crate::prometheus::config::AdapterConfig;
use crate::prometheus::rule::tests::mapper;

fn rules(text: &str, compat: Compat) -> Rules {
    Rules::compile(&AdapterConfig::parse(text).unwrap(), &mapper(), compat).unwrap()
}

fn series(name: &str, labels: &[&str]) -> Series {
    Series { name: name.into(), labels: labels.iter().map(|label| Arc::from(*label)).collect() }
}

fn known(registry: &Registry) -> Vec<String> {
    let shown = |metric: &CustomMetric| {
        format!("{}/{}{}", metric.resource, metric.metric, if metric.namespaced { "" } else { " (root)" })
    };
    registry.custom_metrics().iter().map(shown).collect()
}

const TWO: &str = "
rules:
- {seriesQuery: a, resources: {template: <<.Resource>>}, name: {as: m}}
- {seriesQuery: b, resources: {template: <<.Resource>>}, name: {as: m}}
externalRules:
- {seriesQuery: b}
";

#[test]
fn last_rule_and_last_series_win() {
    let rules = rules(TWO, Compat::Better);
    let found = [
        ("a".into(), vec![series("x", &["pod"]), series("y", &["pod", "namespace", "code"])]),
        ("b".into(), vec![series("z", &["pod"])]),
    ];
    let registry = Registry::build(&rules, &mapper(), &found);
    assert_eq!(known(&registry), ["namespaces/m (root)", "pods/m"]);
    let pods = registry.custom(&GroupResource::parse("pods"), true, "m").unwrap();
    assert_eq!((&*pods.series, pods.rule), ("z", 1));
    let namespaces = registry.custom(&GroupResource::parse("namespaces"), false, "m").unwrap();
    assert_eq!((&*namespaces.series, namespaces.rule), ("y", 0));
    assert!(registry.custom(&GroupResource::parse("pods"), false, "m").is_none());
    assert_eq!(*registry.external_metrics(), ["z"]);
    assert_eq!([0, 1].map(|rule| registry.count(RuleFamily::Custom, rule)), [2, 1]);
    let shadowed: Vec<_> = registry.shadowed().map(|s| (s.resource.as_str(), s.lost, s.by)).collect();
    assert_eq!(shadowed, [("pods", 0, 1)]);
}

#[test]
fn scope_comes_from_the_resource() {
    let text =
        "rules: [{seriesQuery: a, resources: {overrides: {w: {group: example.com, resource: widget}}}}]";
    let found = [("a".into(), vec![series("x", &["w"])])];
    for (compat, expected) in
        [(Compat::Better, "widgets.example.com/x (root)"), (Compat::Strict, "widgets.example.com/x")]
    {
        let rules = rules(text, compat);
        assert_eq!(known(&Registry::build(&rules, &mapper(), &found)), [expected]);
    }
}
