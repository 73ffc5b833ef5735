//! What discovery found: which metrics there are, of which series, by which rule.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api::provider::CustomMetric;

use super::mapper::{GroupResource, KnownResource, Mapper};
use super::rule::{Family, Rule, Rules};

/// What matters of a series: its name and the names of its labels. Values are never kept.
pub use super::client::Shape as Series;

/// Overwritten metrics that are named.
const MOST_SHADOWED: usize = 100;

/// Where a metric comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The series.
    pub series: Arc<str>,
    /// The rule, by its place in the file.
    pub rule: usize,
}

/// A metric that two rules claim; the later one has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shadowed {
    /// Which metrics it is among.
    pub family: Family,
    /// `resource.group`; empty for external metrics.
    pub resource: String,
    /// The metric.
    pub metric: Arc<str>,
    /// The rule that lost it.
    pub lost: usize,
    /// The rule that has it.
    pub by: usize,
}

/// All metrics known, custom and external.
///
/// Cheap to clone, so that it can be changed aside and put in place at once.
#[derive(Clone, Debug)]
pub struct Registry {
    custom: Section,
    external: Section,
}

/// Metrics of a family: what every rule found, and the index over all.
#[derive(Clone, Debug, Default)]
struct Section {
    found: Vec<Arc<Findings>>,
    index: Arc<Index>,
}

/// By resource and metric. External metrics stand under the empty resource.
type Findings = BTreeMap<GroupResource, Found>;

#[derive(Clone, Debug, Default)]
struct Found {
    namespaced: bool,
    metrics: HashMap<Arc<str>, Arc<str>>,
}

#[derive(Debug, Default)]
struct Index {
    resources: HashMap<GroupResource, (bool, HashMap<Arc<str>, Origin>)>,
    custom: Arc<Vec<CustomMetric>>,
    external: Arc<Vec<String>>,
    shadowed: Vec<Shadowed>,
}

impl Registry {
    /// Knows nothing yet.
    pub fn new(rules: &Rules) -> Self {
        let section =
            |family| Section { found: vec![Arc::default(); rules.of(family).len()], index: Arc::default() };
        Self { custom: section(Family::Custom), external: section(Family::External) }
    }

    /// From everything that was found, at once.
    pub fn build(rules: &Rules, mapper: &Mapper, found: &[(Arc<str>, Vec<Series>)]) -> Self {
        let mut registry = Self::new(rules);
        for family in [Family::Custom, Family::External] {
            registry.replace(rules, mapper, family, found);
        }
        registry
    }

    /// Forgets a family and takes what was found instead, as the adapter does.
    pub fn replace(
        &mut self,
        rules: &Rules,
        mapper: &Mapper,
        family: Family,
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

    /// Where a custom metric of a resource comes from, if it is asked for in the right scope.
    pub fn custom(&self, resource: &GroupResource, namespaced: bool, metric: &str) -> Option<&Origin> {
        let (own, metrics) = self.custom.index.resources.get(resource)?;
        if *own == namespaced { metrics.get(metric) } else { None }
    }

    /// Where an external metric comes from.
    pub fn external(&self, metric: &str) -> Option<&Origin> {
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

    /// Metrics that more than one rule claims; the first hundred of each family.
    pub fn shadowed(&self) -> impl Iterator<Item = &Shadowed> {
        self.custom.index.shadowed.iter().chain(&self.external.index.shadowed)
    }

    /// How many metrics a rule found.
    pub fn count(&self, family: Family, rule: usize) -> usize {
        let found = self.section(family).found.get(rule);
        found.map_or(0, |found| found.values().map(|found| found.metrics.len()).sum())
    }

    fn section(&self, family: Family) -> &Section {
        match family {
            Family::Custom => &self.custom,
            Family::External => &self.external,
        }
    }

    fn section_mut(&mut self, family: Family) -> &mut Section {
        match family {
            Family::Custom => &mut self.custom,
            Family::External => &mut self.external,
        }
    }
}

impl Section {
    /// Later rules win.
    fn reindex(&mut self, family: Family) {
        let mut index = Index::default();
        for (rule, found) in self.found.iter().enumerate() {
            for (resource, found) in found.iter() {
                let entry = index.resources.entry(resource.clone()).or_default();
                entry.0 = found.namespaced;
                entry.1.reserve(found.metrics.len());
                for (metric, series) in &found.metrics {
                    let origin = Origin { series: Arc::clone(series), rule };
                    let lost = entry.1.insert(Arc::clone(metric), origin);
                    if let Some(lost) = lost
                        && index.shadowed.len() < MOST_SHADOWED
                    {
                        let (resource, metric) = (resource.to_string(), Arc::clone(metric));
                        index.shadowed.push(Shadowed { family, resource, metric, lost: lost.rule, by: rule });
                    }
                }
            }
        }
        let names = index.resources.iter();
        match family {
            Family::Custom => {
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
            Family::External => {
                let mut metrics: Vec<String> =
                    names.flat_map(|(_, (_, metrics))| metrics.keys().map(ToString::to_string)).collect();
                metrics.sort_unstable();
                index.external = Arc::new(metrics);
            }
        }
        self.index = Arc::new(index);
    }
}

/// What a rule makes of series; a later one of the same metric wins.
fn findings(rule: &Rule, rules: &Rules, mapper: &Mapper, family: Family, series: &[Series]) -> Findings {
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
        if family == Family::External {
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

/// Whether metrics of a resource are asked for in a namespace. The adapter takes anything but three for namespaced.
fn is_namespaced(resource: &KnownResource, rules: &Rules) -> bool {
    if rules.compat().is_strict() {
        let without = ["namespaces", "nodes", "persistentvolumes"];
        return !(resource.group.is_empty() && without.contains(&resource.plural.as_str()));
    }
    resource.namespaced
}
