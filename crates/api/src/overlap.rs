//! Which autoscalers select the same pods (docs/spec/hpa.md 7.4).

use std::collections::BTreeMap;

use crate::selector::Selector;

/// The selectors of all autoscalers, by namespace and name.
#[derive(Clone, Debug, Default)]
pub struct SelectorRegistry {
    namespaces: BTreeMap<String, BTreeMap<String, Selector>>,
}

impl SelectorRegistry {
    /// Adds an autoscaler. It selects nothing until its selector is set.
    pub fn register(&mut self, namespace: &str, name: &str) {
        let names = self.namespaces.entry(namespace.to_owned()).or_default();
        names.entry(name.to_owned()).or_insert_with(Selector::nothing);
    }

    /// Sets the selector of a registered autoscaler.
    pub fn select(&mut self, namespace: &str, name: &str, selector: Selector) {
        if let Some(known) = self.namespaces.get_mut(namespace).and_then(|names| names.get_mut(name)) {
            *known = selector;
        }
    }

    /// Removes an autoscaler.
    pub fn remove(&mut self, namespace: &str, name: &str) {
        if let Some(names) = self.namespaces.get_mut(namespace) {
            names.remove(name);
        }
    }

    /// The keys of autoscalers that select at least one of the pods with these labels, sorted.
    pub fn selecting<'a>(
        &self,
        namespace: &str,
        pods: &(impl Iterator<Item = &'a BTreeMap<String, String>> + Clone),
    ) -> Vec<String> {
        let names = self.namespaces.get(namespace).into_iter().flatten();
        let selecting = names.filter(|(_, selector)| pods.clone().any(|labels| selector.matches_map(labels)));
        selecting.map(|(name, _)| format!("{namespace}/{name}")).collect()
    }
}
