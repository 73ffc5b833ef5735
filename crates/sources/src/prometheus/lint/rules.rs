//! Rules of custom and external metrics.

use super::{FindingCollector, Severity, promql};
use crate::prometheus::config::{AdapterConfig, ConfigSection, RuleConfig, SeriesFilter};
use crate::prometheus::mapper::{GroupResource, KnownResource, RestMapper};
use crate::prometheus::names::{GoRegex, MetricNaming, NamingError, SeriesNameFilter};
use crate::prometheus::rule::{MappingError, ResourceLabels};
use crate::prometheus::template::{QueryArgs, Template};

use Severity::{Error, Note, Warning};

pub(super) fn check(config: &AdapterConfig, mapper: &RestMapper, report: &mut FindingCollector<'_>) {
    for (section, rules) in
        [(ConfigSection::Rules, &config.rules), (ConfigSection::ExternalRules, &config.external_rules)]
    {
        for (index, rule) in rules.iter().enumerate() {
            let mut rule_check = RuleCheck { section, index, rule, mapper, report };
            rule_check.series();
            rule_check.names();
            rule_check.resources();
            rule_check.query();
            rule_check.duplicates(rules);
        }
    }
}

struct RuleCheck<'a, 'r, 'd> {
    section: ConfigSection,
    index: usize,
    rule: &'a RuleConfig,
    mapper: &'a RestMapper,
    report: &'r mut FindingCollector<'d>,
}

impl RuleCheck<'_, '_, '_> {
    fn add_finding(
        &mut self,
        severity: Severity,
        key: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.report.add(severity, self.section, Some(self.index), key, message).remedy(remedy);
    }

    fn is_external(&self) -> bool {
        self.section == ConfigSection::ExternalRules
    }

    fn series(&mut self) {
        let selector = &self.rule.series_query;
        if let Err(why) = promql::check_selector(selector) {
            let message = format!("Prometheus will refuse this selector: {why}");
            self.add_finding(
                Error,
                "seriesQuery",
                message,
                "write it as name{label=\"value\"} or {__name__=~\"^prefix_\"}",
            );
        } else if promql::selects_everything(selector) {
            self.add_finding(
                Warning,
                "seriesQuery",
                "the selector names no metric, so Prometheus looks through nearly all its series at every discovery",
                "name the metrics: {__name__=~\"^http_.*\",namespace!=\"\"}",
            );
        }
        for (index, filter) in self.rule.series_filters.iter().enumerate() {
            if let Err(why) = SeriesNameFilter::new(filter) {
                self.add_finding(
                    Error,
                    &format!("seriesFilters[{index}]"),
                    why.to_string(),
                    "give one valid expression: is or isNot",
                );
            }
        }
    }

    fn names(&mut self) {
        let name = &self.rule.name;
        let naming = match MetricNaming::new(name) {
            Ok(naming) => naming,
            Err(NamingError::NoLayout) => {
                let message =
                    "the expression has several groups, and nothing says how to put the name together";
                return self.add_finding(Error, "name.matches", message, "add `as`, such as \"${1}_${2}\"");
            }
            Err(NamingError::Pattern(why)) => {
                return self.add_finding(
                    Error,
                    "name.matches",
                    why.to_string(),
                    "write it in the syntax of RE2 (Go)",
                );
            }
        };
        for reference in naming.empty_references() {
            let number: String = reference.chars().take_while(char::is_ascii_digit).collect();
            let message = format!(
                "`${reference}` means the group `{reference}`, which there is not: it becomes nothing"
            );
            let remedy = match (number.is_empty(), reference.len() > number.len()) {
                (false, true) => {
                    let rest = reference.get(number.len()..).unwrap_or_default();
                    format!("write ${{{number}}}{rest}")
                }
                _ => format!("add a group to `matches`, or leave out `${reference}`"),
            };
            self.add_finding(Warning, "name.as", message, remedy);
        }
        let groups = GoRegex::new(&name.matches).map_or(0, |pattern| pattern.groups());
        let whole = name.matches.starts_with('^') && name.matches.ends_with('$')
            || name.matches.starts_with(".*") && name.matches.ends_with(".*");
        if !name.matches.is_empty() && groups == 0 && !whole && naming.layout().contains("$0") {
            let message =
                "only what the expression matches becomes the name, not the whole name of the series";
            self.add_finding(
                Warning,
                "name.matches",
                message,
                "anchor it and use a group, such as ^(.*)_total$",
            );
        }
        if naming.layout().contains('/') {
            let message = "a metric with a slash in its name cannot be queried";
            self.add_finding(Warning, "name.as", message, "use another character");
        }
    }

    fn resources(&mut self) {
        let mapping = &self.rule.resources;
        let labels = match ResourceLabels::new(mapping, self.mapper) {
            Ok(labels) => labels,
            Err(why) => {
                let key = match why {
                    MappingError::Override { .. } => "resources.overrides",
                    MappingError::Template { .. } | MappingError::Inverse { .. } => "resources.template",
                };
                return self.add_finding(
                    Error,
                    key,
                    why.to_string(),
                    "name resources of the cluster, and templates with <<.Resource>>",
                );
            }
        };
        let namespaces = GroupResource { group: String::new(), resource: "namespaces".to_owned() };
        let without_namespace = labels.label_of(&namespaces, self.mapper).is_err();
        if self.is_external() {
            if mapping.namespaced.unwrap_or(true) && without_namespace {
                self.add_finding(
                    Error,
                    "resources",
                    "queries are restricted to their namespace, but no label names the namespace: all of them fail",
                    "set resources.namespaced to false, or add overrides: {namespace: {resource: namespace}}",
                );
            }
        } else {
            if mapping.namespaced == Some(false) {
                let message = "`namespaced` means nothing in rules of custom metrics";
                self.add_finding(
                    Warning,
                    "resources.namespaced",
                    message,
                    "remove it; the scope is that of the resource",
                );
            }
            if labels.is_empty() {
                let message = "no label names an object, so the rule finds no metric";
                self.add_finding(
                    Error,
                    "resources",
                    message,
                    "add resources.overrides or resources.template",
                );
            }
            let namespaced = mapping.overrides.iter().any(|(_, written)| {
                self.mapper.find(&written.group, &written.resource).is_some_and(|known| known.namespaced)
            });
            if mapping.template.is_empty() && without_namespace && namespaced {
                self.add_finding(
                    Error,
                    "resources.overrides",
                    "objects in namespaces are named, but no label names the namespace: all queries fail",
                    "add overrides: {namespace: {resource: namespace}}",
                );
            }
        }
        self.overrides();
        if mapping.template.contains(".Group") {
            self.add_finding(
                Note,
                "resources.template",
                "groups with a dot (networking.k8s.io) are never found by a template, since dots become underscores",
                "name such resources by overrides",
            );
        }
        self.delimiters("resources.template", &mapping.template);
    }

    fn overrides(&mut self) {
        let resolved: Vec<(&String, Option<GroupResource>)> = self
            .rule
            .resources
            .overrides
            .iter()
            .map(|(label, written)| {
                let known = self.mapper.find(&written.group, &written.resource);
                (label, known.map(KnownResource::group_resource))
            })
            .collect();
        for (index, (label, resource)) in resolved.iter().enumerate() {
            let first = resolved.iter().take(index).find(|(_, own)| own.is_some() && own == resource);
            if let (Some((other, _)), Some(resource)) = (first, resource) {
                let message = format!("`{other}` and `{label}` both name {resource}; queries use `{other}`");
                let key = format!("resources.overrides[{label}]");
                self.add_finding(
                    Warning,
                    &key,
                    message,
                    "keep one of them: the adapter takes either by chance",
                );
            }
        }
    }

    fn query(&mut self) {
        let text = &self.rule.metrics_query;
        if text.is_empty() {
            return self.add_finding(
                Error,
                "metricsQuery",
                "there is no query, so all queries fail",
                "add metricsQuery",
            );
        }
        let template = match Template::parse("metrics-query", text) {
            Ok(template) => template,
            Err(why) => {
                return self.add_finding(
                    Error,
                    "metricsQuery",
                    why.to_string(),
                    "correct the template between << and >>",
                );
            }
        };
        self.delimiters("metricsQuery", text);
        for field in template.unknown_fields() {
            let remedy = match field.as_str() {
                "LabelMatchersByName" => "use <<index .LabelValuesByName \"label\">>",
                _ => "use .Series, .LabelMatchers, .LabelValuesByName, .GroupBy or .GroupBySlice",
            };
            self.add_finding(
                Error,
                "metricsQuery",
                format!("there is no field `.{field}`: all queries fail"),
                remedy,
            );
        }
        let grouped = template.uses("GroupBy") || template.uses("GroupBySlice");
        if self.is_external() && grouped {
            let message = "`.GroupBy` is empty for external metrics: all series become one value";
            self.add_finding(
                Note,
                "metricsQuery",
                message,
                "name the labels to keep, or leave out `by (<<.GroupBy>>)`",
            );
        }
        let literal = self.rule.resources.overrides.iter().any(|(label, _)| text.contains(label.as_str()));
        if !self.is_external() && !grouped && !literal && aggregates(text) {
            let message = "the query loses the label that names the object";
            self.add_finding(Warning, "metricsQuery", message, "aggregate by (<<.GroupBy>>)");
        }
        if !template.uses("LabelMatchers") && !template.uses("LabelValuesByName") {
            let message =
                "the query does not depend on the request: every object and namespace gets the same answer";
            let severity = if self.is_external() { Note } else { Warning };
            self.add_finding(severity, "metricsQuery", message, "select series by {<<.LabelMatchers>>}");
        }
        self.example(&template);
    }

    /// Checks the query of an example request.
    fn example(&mut self, template: &Template) {
        let args = example_args(self.is_external());
        let result = match template.query(&args) {
            Ok(query) => {
                promql::check(&query).map_err(|why| format!("the query `{query}` is not PromQL: {why}"))
            }
            Err(_) if !template.unknown_fields().is_empty() => Ok(()),
            Err(why) => Err(format!("the template fails: {why}")),
        };
        if let Err(why) = result {
            self.add_finding(
                Error,
                "metricsQuery",
                why,
                "look at brackets, quotes and what the template prints",
            );
        }
    }

    fn delimiters(&mut self, key: &str, text: &str) {
        if text.contains("{{") {
            let message = "`{{` means nothing here and is sent to Prometheus as it is";
            self.add_finding(Warning, key, message, "templates stand between << and >>");
        }
    }

    fn duplicates(&mut self, rules: &[RuleConfig]) {
        let (own, index) = (self.rule, self.index);
        let claims = |rule: &RuleConfig| -> (String, Vec<SeriesFilter>, String, String) {
            let name = &rule.name;
            (rule.series_query.clone(), rule.series_filters.clone(), name.matches.clone(), name.as_.clone())
        };
        let fixed = |rule: &RuleConfig| !rule.name.as_.is_empty() && !rule.name.as_.contains('$');
        let same = rules.iter().take(index).position(|other| {
            claims(other) == claims(own) && other.resources == own.resources
                || fixed(own) && other.name.as_ == own.name.as_
        });
        if let Some(other) = same {
            let message = format!(
                "yields the same names as {}[{other}]; where both find a metric, this one wins",
                self.section
            );
            self.add_finding(Warning, "", message, "give one of them another name, or remove it");
        }
    }
}

fn example_args(external: bool) -> QueryArgs {
    let labels = if external {
        vec![("namespace", "default")]
    } else {
        vec![("namespace", "default"), ("pod", "web-0")]
    };
    let groups: Vec<String> = if external { Vec::new() } else { vec!["pod".to_owned()] };
    QueryArgs {
        series: "series".to_owned(),
        label_matchers: labels.iter().map(|(k, v)| format!("{k}=\"{v}\"")).collect::<Vec<_>>().join(","),
        label_values_by_name: labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        group_by: groups.join(","),
        group_by_slice: groups,
    }
}

/// Whether a query has an aggregation.
fn aggregates(text: &str) -> bool {
    let operators = [
        "sum",
        "avg",
        "min",
        "max",
        "count",
        "group",
        "stddev",
        "stdvar",
        "quantile",
        "topk",
        "bottomk",
        "count_values",
    ];
    let words = text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
    words.into_iter().any(|word| operators.contains(&word))
}
