//! Pods, and which autoscalers select them.

use api::selector::Selector;

use crate::key::Key;

/// All pods, and for each autoscaler those that its selector matches, kept up to date as pods come and go.
#[derive(Debug, Default)]
pub struct Pods {}

impl Pods {
    /// A pod was created or has changed.
    pub fn apply(&mut self, pod: &api::pod::Pod) {
        let _ = pod;
        todo!()
    }

    /// A pod is gone.
    pub fn remove(&mut self, namespace: &str, name: &str) {
        let _ = (namespace, name);
        todo!()
    }

    /// A list begins: what is not applied until [`Pods::listed`] is gone.
    pub fn listing(&mut self) {
        todo!()
    }

    /// The list is complete.
    pub fn listed(&mut self) {
        todo!()
    }

    /// Makes an autoscaler known. Until [`Pods::select`], it selects nothing.
    pub fn register(&mut self, key: &Key) {
        let _ = key;
        todo!()
    }

    /// Notes the selector of an autoscaler that is known.
    pub fn select(&mut self, key: &Key, selector: &Selector) {
        let _ = (key, selector);
        todo!()
    }

    /// Forgets an autoscaler.
    pub fn forget(&mut self, key: &Key) {
        let _ = key;
        todo!()
    }

    /// The pods that an autoscaler selects, in an order that does not change by itself.
    pub fn selected(&self, key: &Key) -> Vec<engine::Pod> {
        let _ = key;
        todo!()
    }

    /// All autoscalers that share a pod with this one, itself included, sorted; empty if it shares none.
    pub fn sharing(&self, key: &Key) -> Vec<Key> {
        let _ = key;
        todo!()
    }

    /// How many pods there are.
    pub fn len(&self) -> usize {
        todo!()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
