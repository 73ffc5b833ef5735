//! Interned templates of pods.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use engine::PodTemplate;
use engine::pod::{Container, ResourceList, Resources};

use crate::index::pool::{Id, Pool};

/// The templates of all pods.
#[derive(Debug, Default)]
pub(super) struct PodTemplates {
    pool: Pool<InternedTemplate>,
}

#[derive(Debug)]
struct InternedTemplate {
    template: Arc<PodTemplate>,
    pods: u32,
}

/// Hash and equality of a template.
struct TemplateIdentity<'a>(&'a PodTemplate);

impl PodTemplates {
    /// The interned template, with one more pod.
    pub(super) fn take(&mut self, template: PodTemplate) -> (Id, Arc<PodTemplate>) {
        let hash = self.pool.hash(TemplateIdentity(&template));
        let known = self.pool.find(hash, |known| *known.template == template);
        if let Some(id) = known
            && let Some(known) = self.pool.get_mut(id)
        {
            known.pods += 1;
            return (id, Arc::clone(&known.template));
        }
        let template = Arc::new(template);
        (self.pool.insert(hash, InternedTemplate { template: Arc::clone(&template), pods: 1 }), template)
    }

    /// The template has one pod less.
    pub(super) fn release(&mut self, id: Id) {
        let Some(known) = self.pool.get_mut(id) else { return };
        known.pods -= 1;
        if known.pods == 0 {
            self.pool.remove(id);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.pool.len()
    }
}

impl Hash for TemplateIdentity<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let PodTemplate { containers, init_containers, pod, overhead } = self.0;
        hash_containers(containers, state);
        hash_containers(init_containers, state);
        hash_resources(pod, state);
        hash_amounts(overhead, state);
    }
}

fn hash_containers(containers: &[Container], state: &mut impl Hasher) {
    containers.len().hash(state);
    for Container { name, restarts, resources } in containers {
        name.hash(state);
        restarts.hash(state);
        hash_resources(resources, state);
    }
}

fn hash_resources(Resources { requests, limits }: &Resources, state: &mut impl Hasher) {
    hash_amounts(requests, state);
    hash_amounts(limits, state);
}

fn hash_amounts(amounts: &ResourceList, state: &mut impl Hasher) {
    amounts.hash(state);
}
