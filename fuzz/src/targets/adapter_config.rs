//! Rule files of prometheus-adapter: they are parsed, linted, explained and used for discovery and queries.

use std::sync::Arc;

use api::provider::Compat;
use api::selector::Selector;
use sources::prometheus::config::AdapterConfig;
use sources::prometheus::lint::{RuleSelection, assumed_mapper, explain, lint, parse_series};
use sources::prometheus::query::{self, CustomQueryArgs, ObjectFilter};
use sources::prometheus::registry::{Registry, Series};
use sources::prometheus::rule::Rules;

/// The input is a rule file. After a line `%%` come series, one per line.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (file, samples) = text.split_once("\n%%\n").unwrap_or((&text, "up{namespace=\"a\",pod=\"b\"}"));
    let findings = lint(file, None);
    let Ok(config) = AdapterConfig::parse(file) else {
        assert!(!findings.is_empty(), "lint reports a file that cannot be parsed");
        return;
    };
    let mapper = assumed_mapper(&config);
    let series: Vec<Series> = samples.lines().take(8).map(parse_series).collect();
    for compat in [Compat::Better, Compat::Strict] {
        let _ = explain(&config, &mapper, compat, &RuleSelection::All, &series);
        let Ok(rules) = Rules::compile(&config, &mapper, compat) else { continue };
        let found: Vec<(Arc<str>, Vec<Series>)> =
            rules.selectors().into_iter().take(8).map(|selector| (selector, series.clone())).collect();
        let registry = Registry::build(&rules, &mapper, &found);
        let selector = Selector::parse("a in (b,c),!d,e=f").unwrap_or_default();
        for metric in registry.custom_metrics().iter().take(16) {
            let args = CustomQueryArgs {
                resource: &metric.resource,
                namespace: metric.namespaced.then_some("n"),
                objects: ObjectFilter::Named(&["x", "y"]),
                metric: &metric.metric,
                series: &selector,
            };
            let _ = query::custom(&rules, &registry, &mapper, &args);
        }
        for metric in registry.external_metrics().iter().take(16) {
            let _ = query::external(&rules, &registry, &mapper, "n", metric, &selector);
        }
    }
}
