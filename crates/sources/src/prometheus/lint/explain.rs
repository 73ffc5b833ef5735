//! Explains a rule: its discovery request, the metrics it produces, and example queries.

use std::sync::Arc;

use api::provider::Compat;
use api::selector::Selector;

use crate::prometheus::config::{AdapterConfig, ConfigError, ConfigSection};
use crate::prometheus::mapper::{GroupResource, RestMapper};
use crate::prometheus::query::{CustomQueryArgs, ObjectFilter, QueryBuildError};
use crate::prometheus::registry::Series;
use crate::prometheus::rule::{Rule, RuleFamily, Rules};

/// Selection of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RuleSelection {
    /// All rules.
    #[default]
    All,
    /// One rule by section and index.
    At(RuleFamily, usize),
    /// Rules with this selector or this `as`.
    Named(String),
}

impl RuleSelection {
    /// Parses `3`, `rules[3]`, `externalRules[0]`, or any text.
    pub fn parse(text: &str) -> Self {
        let index = |text: &str| text.strip_suffix(']').unwrap_or(text).parse::<usize>().ok();
        let at = [
            ("externalRules[", RuleFamily::External),
            ("rules[", RuleFamily::Custom),
            ("", RuleFamily::Custom),
        ]
        .into_iter()
        .find_map(|(prefix, family)| Some(Self::At(family, index(text.strip_prefix(prefix)?)?)));
        match text {
            "" => Self::All,
            text => at.unwrap_or_else(|| Self::Named(text.to_owned())),
        }
    }

    fn includes(&self, family: RuleFamily, index: usize, rule: &Rule) -> bool {
        match self {
            Self::All => true,
            Self::At(own, location) => (*own, *location) == (family, index),
            Self::Named(name) => *rule.selector == **name || rule.naming.layout() == name,
        }
    }
}

/// Explanation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// `rules` or `externalRules`.
    pub section: &'static str,
    /// Index in the section.
    pub rule: usize,
    /// Discovery request.
    pub discovery_request: String,
    /// Result for each series.
    pub metrics: Vec<ExplainedMetric>,
}

/// Result for a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedMetric {
    /// Name of the series.
    pub series: String,
    /// Metric name; `None` if the rule rejects the series.
    pub metric: Option<String>,
    /// Resources of the metric.
    pub resources: Vec<ExplainedResource>,
    /// Labels that do not name a resource.
    pub other_labels: Vec<String>,
    /// Example requests with their queries.
    pub examples: Vec<ExampleQuery>,
}

/// A label that names objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedResource {
    /// The label.
    pub label: String,
    /// `resource.group`.
    pub resource: String,
    /// Whether it is queried in a namespace.
    pub namespaced: bool,
}

/// An example request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExampleQuery {
    /// Request path.
    pub path: String,
    /// PromQL, or why there is none.
    pub query: Result<String, QueryBuildError>,
}

/// Parses a series as written by a user: `name` or `name{label="value",other}`.
pub fn parse_series(text: &str) -> Series {
    let (name, rest) = text.split_once('{').unwrap_or((text, ""));
    let mut labels = Vec::new();
    let mut quoted = false;
    let parts = rest.trim_end().trim_end_matches('}').split(|c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    });
    for part in parts {
        let label = part.split(['=', '!', '~']).next().unwrap_or_default().trim();
        if !label.is_empty() {
            labels.push(Arc::from(label));
        }
    }
    Series { name: name.trim().into(), labels }
}

/// Explains the selected rules for these series. A series without labels gets those that the rule expects.
pub fn explain(
    config: &AdapterConfig,
    mapper: &RestMapper,
    compat: Compat,
    choice: &RuleSelection,
    series: &[Series],
) -> Result<Vec<Explanation>, ConfigError> {
    let rules = Rules::compile(config, mapper, compat)?;
    let mut explanations = Vec::new();
    for (family, section) in
        [(RuleFamily::Custom, ConfigSection::Rules), (RuleFamily::External, ConfigSection::ExternalRules)]
    {
        for (index, rule) in rules.of(family).iter().enumerate() {
            if choice.includes(family, index, rule) {
                let explained = series.iter().map(|one| metric(rule, family, mapper, compat, one));
                explanations.push(Explanation {
                    section: section.name(),
                    rule: index,
                    discovery_request: format!("/api/v1/series?match[]={}", rule.selector),
                    metrics: explained.collect(),
                });
            }
        }
    }
    Ok(explanations)
}

fn metric(
    rule: &Rule,
    family: RuleFamily,
    mapper: &RestMapper,
    compat: Compat,
    series: &Series,
) -> ExplainedMetric {
    let labels = if series.labels.is_empty() { usual_labels(rule, mapper) } else { series.labels.clone() };
    let mut explained = ExplainedMetric {
        series: series.name.to_string(),
        metric: rule.metric(&series.name),
        resources: Vec::new(),
        other_labels: Vec::new(),
        examples: Vec::new(),
    };
    let Some(metric) = explained.metric.clone() else { return explained };
    let everything = Selector::everything();
    if family == RuleFamily::External {
        explained.other_labels = labels.iter().map(ToString::to_string).collect();
        let query = rule.external_query(mapper, &series.name, "default", &everything);
        let path = format!("/apis/external.metrics.k8s.io/v1beta1/namespaces/default/{metric}");
        explained.examples.push(ExampleQuery { path, query });
        return explained;
    }
    for label in labels {
        let Some(known) = rule.labels.resource_of(&label, mapper) else {
            explained.other_labels.push(label.to_string());
            continue;
        };
        let resource = known.group_resource();
        let root = ["namespaces", "nodes", "persistentvolumes"].map(GroupResource::parse);
        let namespaced = if compat.is_strict() { !root.contains(&resource) } else { known.namespaced };
        let name = format!("my-{}", known.singular);
        let base = "/apis/custom.metrics.k8s.io/v1beta2";
        let path = match (namespaced, resource.to_string().as_str()) {
            (true, resource) => format!("{base}/namespaces/default/{resource}/{name}/{metric}"),
            (false, "namespaces") => format!("{base}/namespaces/{name}/metrics/{metric}"),
            (false, resource) => format!("{base}/{resource}/{name}/{metric}"),
        };
        let args = CustomQueryArgs {
            resource: "",
            namespace: namespaced.then_some("default"),
            objects: ObjectFilter::Named(&[&name]),
            metric: &metric,
            series: &everything,
        };
        let query = rule.custom_query(mapper, &series.name, &resource, &args).map(|query| query.text);
        explained.examples.push(ExampleQuery { path, query });
        let (label, resource) = (label.to_string(), resource.to_string());
        explained.resources.push(ExplainedResource { label, resource, namespaced });
    }
    explained
}

/// Labels of namespaces, pods and overrides.
fn usual_labels(rule: &Rule, mapper: &RestMapper) -> Vec<Arc<str>> {
    let usual = ["namespaces", "pods"].map(GroupResource::parse);
    let mut labels: Vec<Arc<str>> = rule.labels.overridden().map(Arc::from).collect();
    for resource in usual {
        if let Ok(label) = rule.labels.label_of(&resource, mapper)
            && !labels.iter().any(|own| **own == *label)
        {
            labels.push(label.into());
        }
    }
    labels
}
