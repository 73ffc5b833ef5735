//! Builds the configuration from the YAML tree.
//!
//! serde is not used, because prometheus-adapter accepts any scalar as a string (`seriesQuery: 5`), with the text of
//! the file.

use std::time::Duration;

use api::yaml::{Diagnostic, Node, NodeKey, NodeValue, SourceFile, nearest};

use super::duration;
use super::{
    AdapterConfig, NameMapping, ResourceMapping, ResourceRule, ResourceRules, RuleConfig, SeriesFilter,
};
use crate::prometheus::mapper::GroupResource;

/// Maximum number of reported problems.
const MAX_REPORTED_PROBLEMS: usize = 20;

pub(super) struct ConfigReader<'a> {
    source: &'a SourceFile,
    path: Vec<String>,
    problems: Vec<Diagnostic>,
}

impl<'a> ConfigReader<'a> {
    pub(super) fn new(source: &'a SourceFile) -> Self {
        Self { source, path: Vec::new(), problems: Vec::new() }
    }

    pub(super) fn finish(self) -> Vec<Diagnostic> {
        self.problems
    }

    pub(super) fn config(&mut self, node: &Node) -> AdapterConfig {
        let mut config = AdapterConfig::default();
        self.map(node, &["rules", "externalRules", "resourceRules"], |reader, key, node| match key {
            "rules" => config.rules = reader.list(node, Self::rule),
            "externalRules" => config.external_rules = reader.list(node, Self::rule),
            _ => config.resource_rules = (node.value != NodeValue::Null).then(|| reader.resource_rules(node)),
        });
        config
    }

    fn rule(&mut self, node: &Node) -> RuleConfig {
        let mut rule = RuleConfig::default();
        let known = ["seriesQuery", "seriesFilters", "resources", "name", "metricsQuery"];
        self.map(node, &known, |reader, key, node| match key {
            "seriesQuery" => rule.series_query = reader.text(node),
            "seriesFilters" => rule.series_filters = reader.list(node, Self::filter),
            "resources" => rule.resources = reader.resources(node),
            "name" => rule.name = reader.name(node),
            _ => rule.metrics_query = reader.text(node),
        });
        rule
    }

    fn filter(&mut self, node: &Node) -> SeriesFilter {
        let mut filter = SeriesFilter::default();
        self.map(node, &["is", "isNot"], |reader, key, node| match key {
            "is" => filter.is = reader.text(node),
            _ => filter.is_not = reader.text(node),
        });
        filter
    }

    fn name(&mut self, node: &Node) -> NameMapping {
        let mut name = NameMapping::default();
        self.map(node, &["matches", "as"], |reader, key, node| match key {
            "matches" => name.matches = reader.text(node),
            _ => name.as_ = reader.text(node),
        });
        name
    }

    fn resources(&mut self, node: &Node) -> ResourceMapping {
        let mut resources = ResourceMapping::default();
        self.map(node, &["template", "overrides", "namespaced"], |reader, key, node| match key {
            "template" => resources.template = reader.text(node),
            "overrides" => {
                reader.entries(node, |reader, key, node| {
                    let resource = reader.group_resource(node);
                    resources.overrides.push((key.name.clone(), resource));
                });
            }
            _ => resources.namespaced = reader.truth(node),
        });
        resources
    }

    fn group_resource(&mut self, node: &Node) -> GroupResource {
        let mut resource = GroupResource::default();
        self.map(node, &["group", "resource"], |reader, key, node| match key {
            "group" => resource.group = reader.text(node),
            _ => resource.resource = reader.text(node),
        });
        resource
    }

    fn resource_rules(&mut self, node: &Node) -> ResourceRules {
        let mut rules = ResourceRules::default();
        self.map(node, &["cpu", "memory", "window"], |reader, key, node| match key {
            "cpu" => rules.cpu = reader.resource_rule(node),
            "memory" => rules.memory = reader.resource_rule(node),
            _ => rules.window = reader.duration(node),
        });
        rules
    }

    fn resource_rule(&mut self, node: &Node) -> ResourceRule {
        let mut rule = ResourceRule::default();
        let known = ["containerQuery", "nodeQuery", "resources", "containerLabel"];
        self.map(node, &known, |reader, key, node| match key {
            "containerQuery" => rule.container_query = reader.text(node),
            "nodeQuery" => rule.node_query = reader.text(node),
            "resources" => rule.resources = reader.resources(node),
            _ => rule.container_label = reader.text(node),
        });
        rule
    }

    fn map(&mut self, node: &Node, known: &[&str], mut each: impl FnMut(&mut Self, &str, &Node)) {
        self.entries(node, |reader, key, node| {
            if known.contains(&key.name.as_str()) {
                each(reader, &key.name, node);
                return;
            }
            let problem = Diagnostic::at(reader.source, key.span, format!("unknown key `{}`", key.name));
            let hint = match nearest(&key.name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("expected one of {}", known.join(", ")),
            };
            reader.report(problem.with_hint(hint));
        });
    }

    fn entries(&mut self, node: &Node, mut each: impl FnMut(&mut Self, &NodeKey, &Node)) {
        match &node.value {
            NodeValue::Null => {}
            NodeValue::Map(entries) => {
                for (key, node) in entries {
                    self.path.push(key.name.clone());
                    each(self, key, node);
                    self.path.pop();
                }
            }
            _ => self.expected("a map", node),
        }
    }

    fn list<T>(&mut self, node: &Node, each: fn(&mut Self, &Node) -> T) -> Vec<T> {
        match &node.value {
            NodeValue::Null => Vec::new(),
            NodeValue::Seq(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    self.path.push(format!("[{index}]"));
                    list.push(each(self, item));
                    self.path.pop();
                }
                list
            }
            _ => {
                self.expected("a list", node);
                Vec::new()
            }
        }
    }

    fn text(&mut self, node: &Node) -> String {
        match &node.value {
            NodeValue::Null => String::new(),
            NodeValue::String(text) => text.clone(),
            NodeValue::Bool(_) | NodeValue::Int(_) | NodeValue::Float(_) => {
                self.source.slice(node.span).trim().to_owned()
            }
            NodeValue::Seq(_) | NodeValue::Map(_) => {
                self.expected("a text", node);
                String::new()
            }
        }
    }

    fn truth(&mut self, node: &Node) -> Option<bool> {
        match &node.value {
            NodeValue::Null => None,
            NodeValue::Bool(truth) => Some(*truth),
            _ => {
                self.expected("true or false", node);
                None
            }
        }
    }

    fn duration(&mut self, node: &Node) -> Duration {
        if node.value == NodeValue::Null {
            return Duration::ZERO;
        }
        let text = self.text(node);
        duration::parse(&text).unwrap_or_else(|why| {
            let problem = Diagnostic::at(self.source, node.span, why.to_string());
            self.report(problem.with_hint("write it as Prometheus does, such as 5m or 1h30m"));
            Duration::ZERO
        })
    }

    fn expected(&mut self, what: &str, node: &Node) {
        let found = match &node.value {
            NodeValue::Null => "nothing",
            NodeValue::Bool(_) => "true or false",
            NodeValue::Int(_) | NodeValue::Float(_) => "a number",
            NodeValue::String(_) => "a text",
            NodeValue::Seq(_) => "a list",
            NodeValue::Map(_) => "a map",
        };
        let place = node.locate("");
        self.report(Diagnostic::at(self.source, place, format!("expected {what}, found {found}")));
    }

    fn report(&mut self, problem: Diagnostic) {
        if self.problems.len() < MAX_REPORTED_PROBLEMS {
            let path = self.path.join(".").replace(".[", "[");
            self.problems.push(problem.in_path(path));
        }
    }
}
