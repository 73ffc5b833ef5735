//! Registry of discovered metrics: their series and rules.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api::provider::CustomMetric;

use super::mapper::{GroupResource, KnownResource, RestMapper};
use super::rule::{Rule, RuleFamily, Rules};

/// Shape of a series: its name and label names, without values.
pub use super::client::SeriesShape as Series;

/// Maximum number of reported shadowed metrics per family.
const MAX_REPORTED_SHADOWED: usize = 100;

/// Origin of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricSource {
    /// The series.
    pub series: Arc<str>,
    /// Index of the rule in its section.
    pub rule: usize,
}

/// A metric produced by two rules; the later rule wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowedMetric {
    /// Family of the metric.
    pub family: RuleFamily,
    /// `resource.group`; empty for external metrics.
    pub resource: String,
    /// The metric.
    pub metric: Arc<str>,
    /// Index of the overridden rule.
    pub lost: usize,
    /// Index of the winning rule.
    pub by: usize,
}

/// All known custom and external metrics.
///
/// Cheap to clone, so that an updated copy can replace it atomically.
#[derive(Clone, Debug)]
pub struct Registry {
    custom: MetricSection,
    external: MetricSection,
}

/// Metrics of a family: results per rule, and the index over all.
#[derive(Clone, Debug, Default)]
struct MetricSection {
    found: Vec<Arc<Findings>>,
    index: Arc<MetricIndex>,
}

/// Metrics by resource; external metrics use the empty resource.
type Findings = BTreeMap<GroupResource, FoundMetrics>;

#[derive(Clone, Debug, Default)]
struct FoundMetrics {
    namespaced: bool,
    metrics: HashMap<Arc<str>, Arc<str>>,
}

#[derive(Debug, Default)]
struct MetricIndex {
    resources: HashMap<GroupResource, (bool, HashMap<Arc<str>, MetricSource>)>,
    custom: Arc<Vec<CustomMetric>>,
    external: Arc<Vec<String>>,
    shadowed: Vec<ShadowedMetric>,
}

impl Registry {
    /// An empty registry.
    pub fn new(rules: &Rules) -> Self {
        let section = |family| MetricSection {
            found: vec![Arc::default(); rules.of(family).len()],
            index: Arc::default(),
        };
        Self { custom: section(RuleFamily::Custom), external: section(RuleFamily::External) }
    }

    /// Builds a registry from discovered series.
    pub fn build(rules: &Rules, mapper: &RestMapper, found: &[(Arc<str>, Vec<Series>)]) -> Self {
        let mut registry = Self::new(rules);
        for family in [RuleFamily::Custom, RuleFamily::External] {
            registry.replace(rules, mapper, family, found);
        }
        registry
    }

    /// Replaces the metrics of a family, as prometheus-adapter does.
    pub fn replace(
        &mut self,
        rules: &Rules,
        mapper: &RestMapper,
        family: RuleFamily,
        found: &[(Arc<str>, Vec<Series>)],
    ) {
        let by_selector: HashMap<&str, &[Series]> =
            found.iter().map(|(selector, series)| (&**selector, series.as_slice())).collect();
        let section = self.section_mut(family);
        section.found = rules
            .of(family)
            .iter()
            .map(|rule| {
                let series = by_selector.get(&*rule.selector).copied().unwrap_or_default();
                Arc::new(findings(rule, rules, mapper, family, series))
            })
            .collect();
        section.reindex(family);
    }

    /// Origin of a custom metric of a resource, if the scope matches.
    pub fn custom(&self, resource: &GroupResource, namespaced: bool, metric: &str) -> Option<&MetricSource> {
        let (own, metrics) = self.custom.index.resources.get(resource)?;
        if *own == namespaced { metrics.get(metric) } else { None }
    }

    /// Origin of an external metric.
    pub fn external(&self, metric: &str) -> Option<&MetricSource> {
        self.external.index.resources.get(&GroupResource::default())?.1.get(metric)
    }

    /// All custom metrics, ascending by resource and name.
    pub fn custom_metrics(&self) -> Arc<Vec<CustomMetric>> {
        Arc::clone(&self.custom.index.custom)
    }

    /// All external metrics, ascending.
    pub fn external_metrics(&self) -> Arc<Vec<String>> {
        Arc::clone(&self.external.index.external)
    }

    /// Metrics produced by more than one rule; the first hundred of each family.
    pub fn shadowed(&self) -> impl Iterator<Item = &ShadowedMetric> {
        self.custom.index.shadowed.iter().chain(&self.external.index.shadowed)
    }

    /// Number of metrics of a rule.
    pub fn count(&self, family: RuleFamily, rule: usize) -> usize {
        let found = self.section(family).found.get(rule);
        found.map_or(0, |found| found.values().map(|found| found.metrics.len()).sum())
    }

    fn section(&self, family: RuleFamily) -> &MetricSection {
        match family {
            RuleFamily::Custom => &self.custom,
            RuleFamily::External => &self.external,
        }
    }

    fn section_mut(&mut self, family: RuleFamily) -> &mut MetricSection {
        match family {
            RuleFamily::Custom => &mut self.custom,
            RuleFamily::External => &mut self.external,
        }
    }
}

impl MetricSection {
    /// Rebuilds the index; later rules win.
    fn reindex(&mut self, family: RuleFamily) {
        let mut index = MetricIndex::default();
        for (rule, found) in self.found.iter().enumerate() {
            for (resource, found) in found.iter() {
                let entry = index.resources.entry(resource.clone()).or_default();
                entry.0 = found.namespaced;
                entry.1.reserve(found.metrics.len());
                for (metric, series) in &found.metrics {
                    let origin = MetricSource { series: Arc::clone(series), rule };
                    let lost = entry.1.insert(Arc::clone(metric), origin);
                    if let Some(lost) = lost
                        && index.shadowed.len() < MAX_REPORTED_SHADOWED
                    {
                        let (resource, metric) = (resource.to_string(), Arc::clone(metric));
                        index.shadowed.push(ShadowedMetric {
                            family,
                            resource,
                            metric,
                            lost: lost.rule,
                            by: rule,
                        });
                    }
                }
            }
        }
        let names = index.resources.iter();
        match family {
            RuleFamily::Custom => {
                let mut metrics: Vec<CustomMetric> = names
                    .flat_map(|(resource, (namespaced, metrics))| {
                        let (resource, namespaced) = (resource.to_string(), *namespaced);
                        metrics.keys().map(move |metric| CustomMetric {
                            resource: resource.clone(),
                            namespaced,
                            metric: metric.to_string(),
                        })
                    })
                    .collect();
                metrics.sort_unstable();
                index.custom = Arc::new(metrics);
            }
            RuleFamily::External => {
                let mut metrics: Vec<String> =
                    names.flat_map(|(_, (_, metrics))| metrics.keys().map(ToString::to_string)).collect();
                metrics.sort_unstable();
                index.external = Arc::new(metrics);
            }
        }
        self.index = Arc::new(index);
    }
}

/// Metrics that a rule produces from series; the last series of a metric wins.
fn findings(
    rule: &Rule,
    rules: &Rules,
    mapper: &RestMapper,
    family: RuleFamily,
    series: &[Series],
) -> Findings {
    let mut found = Findings::new();
    let mut resources: HashMap<&str, Option<&KnownResource>> = HashMap::new();
    for one in series {
        let Some(metric) = rule.metric(&one.name) else { continue };
        let metric: Arc<str> = metric.into();
        let mut add = |resource: GroupResource, namespaced: bool| {
            let entry = found.entry(resource).or_default();
            entry.namespaced = namespaced;
            entry.metrics.insert(Arc::clone(&metric), Arc::clone(&one.name));
        };
        if family == RuleFamily::External {
            add(GroupResource::default(), true);
            continue;
        }
        for label in &one.labels {
            let resource = resources.entry(label).or_insert_with(|| rule.labels.resource_of(label, mapper));
            if let Some(resource) = resource {
                add(resource.group_resource(), is_namespaced(resource, rules));
            }
        }
    }
    found
}

/// Whether metrics of a resource are queried in a namespace. prometheus-adapter treats every resource except three as
/// namespaced.
fn is_namespaced(resource: &KnownResource, rules: &Rules) -> bool {
    if rules.compat().is_strict() {
        let without = ["namespaces", "nodes", "persistentvolumes"];
        return !(resource.group.is_empty() && without.contains(&resource.plural.as_str()));
    }
    resource.namespaced
}
