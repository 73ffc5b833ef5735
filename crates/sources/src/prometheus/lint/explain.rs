//! What a rule does: what it asks, what it finds, what it answers.

use std::sync::Arc;

use api::provider::Compat;
use api::selector::Selector;

use crate::prometheus::config::{Config, ConfigError, Stage};
use crate::prometheus::mapper::{GroupResource, Mapper};
use crate::prometheus::query::{CustomAsk, Objects};
use crate::prometheus::registry::Series;
use crate::prometheus::rule::{Family, Rule, Rules};

/// Which rules are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// All of them.
    #[default]
    All,
    /// One, by section and place.
    At(Family, usize),
    /// Those with this selector, or this name in `as`.
    Named(String),
}

impl Choice {
    /// From `3`, `rules[3]`, `externalRules[0]`, or any text.
    pub fn parse(text: &str) -> Self {
        let index = |text: &str| text.strip_suffix(']').unwrap_or(text).parse::<usize>().ok();
        let at = [("externalRules[", Family::External), ("rules[", Family::Custom), ("", Family::Custom)]
            .into_iter()
            .find_map(|(prefix, family)| Some(Self::At(family, index(text.strip_prefix(prefix)?)?)));
        match text {
            "" => Self::All,
            text => at.unwrap_or_else(|| Self::Named(text.to_owned())),
        }
    }

    fn includes(&self, family: Family, index: usize, rule: &Rule) -> bool {
        match self {
            Self::All => true,
            Self::At(own, place) => (*own, *place) == (family, index),
            Self::Named(name) => *rule.selector == **name || rule.naming.layout() == name,
        }
    }
}

/// What a rule does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// `rules` or `externalRules`.
    pub section: &'static str,
    /// Place in the section, counted from 0.
    pub rule: usize,
    /// What discovery asks Prometheus for.
    pub asks: String,
    /// What becomes of each series.
    pub metrics: Vec<ExplainedMetric>,
}

/// What becomes of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedMetric {
    /// Name of the series.
    pub series: String,
    /// Name of the metric; none if the rule does not want the series.
    pub metric: Option<String>,
    /// Resources it is a metric of.
    pub resources: Vec<ExplainedResource>,
    /// Labels that name no resource.
    pub other_labels: Vec<String>,
    /// How it can be asked for, and what is asked then.
    pub questions: Vec<Question>,
}

/// A label that names objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedResource {
    /// The label.
    pub label: String,
    /// `resource.group`.
    pub resource: String,
    /// Whether it is asked for in a namespace.
    pub namespaced: bool,
}

/// An example of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Path of the request.
    pub path: String,
    /// PromQL, or why there is none.
    pub query: Result<String, String>,
}

/// A series as people write one: `name` or `name{label="value",other}`.
pub fn sample(text: &str) -> Series {
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

/// Explains the rules chosen for these series. A series without labels is given those that the rule looks for.
pub fn explain(
    config: &Config,
    mapper: &Mapper,
    compat: Compat,
    choice: &Choice,
    series: &[Series],
) -> Result<Vec<Explanation>, ConfigError> {
    let rules = Rules::compile(config, mapper, compat)?;
    let mut explanations = Vec::new();
    for (family, section) in [(Family::Custom, Stage::Rules), (Family::External, Stage::ExternalRules)] {
        for (index, rule) in rules.of(family).iter().enumerate() {
            if choice.includes(family, index, rule) {
                let explained = series.iter().map(|one| metric(rule, family, mapper, compat, one));
                explanations.push(Explanation {
                    section: section.name(),
                    rule: index,
                    asks: format!("/api/v1/series?match[]={}", rule.selector),
                    metrics: explained.collect(),
                });
            }
        }
    }
    Ok(explanations)
}

fn metric(rule: &Rule, family: Family, mapper: &Mapper, compat: Compat, series: &Series) -> ExplainedMetric {
    let labels = if series.labels.is_empty() { usual_labels(rule, mapper) } else { series.labels.clone() };
    let mut explained = ExplainedMetric {
        series: series.name.to_string(),
        metric: rule.metric(&series.name),
        resources: Vec::new(),
        other_labels: Vec::new(),
        questions: Vec::new(),
    };
    let Some(metric) = explained.metric.clone() else { return explained };
    let everything = Selector::everything();
    if family == Family::External {
        explained.other_labels = labels.iter().map(ToString::to_string).collect();
        let query = rule.external_query(mapper, &series.name, "default", &everything);
        let path = format!("/apis/external.metrics.k8s.io/v1beta1/namespaces/default/{metric}");
        explained.questions.push(Question { path, query });
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
        let ask = CustomAsk {
            resource: "",
            namespace: namespaced.then_some("default"),
            objects: Objects::Named(&[&name]),
            metric: &metric,
            series: &everything,
        };
        let query = rule.custom_query(mapper, &series.name, &resource, &ask).map(|query| query.text);
        explained.questions.push(Question { path, query });
        let (label, resource) = (label.to_string(), resource.to_string());
        explained.resources.push(ExplainedResource { label, resource, namespaced });
    }
    explained
}

/// The labels of namespaces and pods, and those of overrides.
fn usual_labels(rule: &Rule, mapper: &Mapper) -> Vec<Arc<str>> {
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
