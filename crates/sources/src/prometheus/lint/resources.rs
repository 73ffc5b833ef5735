//! Rules of resource metrics.

use super::{FindingCollector, Severity, promql};
use crate::prometheus::config::{ConfigSection, ResourceRule, ResourceRules};
use crate::prometheus::mapper::{GroupResource, RestMapper};
use crate::prometheus::query::ObjectFilter;
use crate::prometheus::rule::{ResourceLabels, ResourceQuery};
use crate::prometheus::template::Template;

use Severity::{Error, Warning};

pub(super) fn check(rules: &ResourceRules, mapper: &RestMapper, report: &mut FindingCollector<'_>) {
    for (name, rule) in [("cpu", &rules.cpu), ("memory", &rules.memory)] {
        one(name, rule, mapper, report);
    }
    if rules.window.is_zero() {
        let message = "no window is given, so values are said to be measured over no time at all";
        report
            .add(Severity::Warning, ConfigSection::ResourceRules, None, "window", message)
            .remedy("add window: 5m, the time of the rate in the queries");
    }
}

fn one(name: &str, rule: &ResourceRule, mapper: &RestMapper, report: &mut FindingCollector<'_>) {
    let mut report_problem = |severity: Severity, key: &str, message: String, remedy: &str| {
        report
            .add(severity, ConfigSection::ResourceRules, None, &format!("{name}.{key}"), message)
            .remedy(remedy);
    };
    let labels = match ResourceLabels::new(&rule.resources, mapper) {
        Ok(labels) => labels,
        Err(why) => {
            return report_problem(Error, "resources", why.to_string(), "name resources of the cluster");
        }
    };
    for resource in ["namespaces", "pods", "nodes"] {
        let wanted = GroupResource { group: String::new(), resource: resource.to_owned() };
        if labels.label_of(&wanted, mapper).is_err() {
            let message = format!("no label names {resource}, so they cannot be queried");
            report_problem(Error, "resources", message, "add overrides for namespace, pod and node");
        }
    }
    if rule.container_label.is_empty() {
        let message = "no label names containers; `by (<<.GroupBy>>)` becomes `by (pod,)`".to_owned();
        report_problem(Error, "containerLabel", message, "add containerLabel: container");
    }
    let mut templates = Vec::new();
    for (key, text) in [("containerQuery", &rule.container_query), ("nodeQuery", &rule.node_query)] {
        if text.is_empty() {
            report_problem(
                Error,
                key,
                "there is no query, so nothing is answered".to_owned(),
                "add the query",
            );
            continue;
        }
        match Template::parse("metrics-query", text) {
            Err(why) => report_problem(Error, key, why.to_string(), "correct the template between << and >>"),
            Ok(template) => {
                for field in template.unknown_fields() {
                    let message = format!("there is no field `.{field}`: all queries fail");
                    report_problem(
                        Error,
                        key,
                        message,
                        "use .LabelMatchers, .LabelValuesByName, .GroupBy or .GroupBySlice",
                    );
                }
                if !template.uses("GroupBy") && !template.uses("GroupBySlice") {
                    let message = "the query loses the labels that name the object".to_owned();
                    report_problem(Warning, key, message, "aggregate by (<<.GroupBy>>)");
                }
                templates.push(template);
            }
        }
    }
    let [containers, nodes] = templates.as_slice() else { return };
    let query = ResourceQuery {
        containers: containers.clone(),
        nodes: nodes.clone(),
        labels,
        container_label: rule.container_label.clone(),
    };
    let objects = ObjectFilter::Named(&["web-0", "web-1"]);
    let examples = [
        ("containerQuery", query.containers_query(mapper, "default", &objects)),
        ("nodeQuery", query.nodes_query(mapper, &objects)),
    ];
    for (key, example) in examples {
        if let Ok(query) = example
            && let Err(why) = promql::check(&query.text)
        {
            let message = format!("the query `{}` is not PromQL: {why}", query.text);
            report_problem(Error, key, message, "look at brackets and quotes");
        }
    }
}
