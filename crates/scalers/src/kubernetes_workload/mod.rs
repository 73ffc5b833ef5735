//! kubernetes-workload: the number of pods that match a selector.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use api::selector::Selector;

use crate::backends::{Cluster, PodView};
use crate::prelude::*;

/// The scaler type `kubernetes-workload`.
pub const TYPE: ScalerType = ScalerType {
    name: "kubernetes-workload",
    about: "How many pods of the same namespace a label selector takes.",
    display: "kubernetesWorkloadScaler",
    parameters: Parameters::PARAMETERS,
    build,
    unit: |_| "pods",
    samples: &[Sample::offline(&[("podSelector", "app=a"), ("value", "5")], &[])],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of kubernetes-workload.
    pub struct Parameters of "error parsing kubernetes workload metadata" {
        /// Label selector of the pods, e.g. `app=shop,tier in (web, api)`. Finished pods do not count.
        selector: String = "podSelector" in [Metadata], required;
        /// Target number of these pods per replica; greater than 0 unless the trigger is part of a formula, which has its own target.
        value: f64 = "value" in [Metadata], default "0";
        /// The trigger is active above this number of pods.
        activation: f64 = "activationValue" in [Metadata], default "0";
        /// Counts the nodes that run these pods instead of the pods.
        by_node: bool = "groupByNode" in [Metadata], default "false";
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        if self.value <= 0.0 && !trigger.feeds_formula {
            return Err("value must be a float greater than 0".into());
        }
        Ok(())
    }
}

struct Workload {
    spec: MetricSpec,
    namespace: String,
    selector: Selector,
    activation: f64,
    by_node: bool,
    cluster: Arc<dyn Cluster>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    const PREFIX: &str = "error parsing kubernetes workload metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    let selector = Selector::parse(&parameters.selector)
        .map_err(|error| scaler_error!("{PREFIX}: error parsing pod selector: {error}"))?;
    let namespace = trigger.owner.namespace.clone();
    Ok(Arc::new(Workload {
        spec: external(trigger, &format!("workload-{namespace}"), milli(parameters.value)),
        namespace,
        selector,
        activation: parameters.activation,
        by_node: parameters.by_node,
        cluster: Arc::clone(&backends.cluster),
    }))
}

/// The number of pods, or of the nodes that run them.
fn count(pods: &[PodView], by_node: bool) -> usize {
    let alive = pods.iter().filter(|pod| !["Succeeded", "Failed"].contains(&&*pod.phase));
    if by_node { alive.map(|pod| &*pod.node).collect::<BTreeSet<_>>().len() } else { alive.count() }
}

impl Scaler for Workload {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(vec![self.spec.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            let pods = self.cluster.pods(&self.namespace, &self.selector).await;
            let pods = pods.map_err(|error| error.inside("error inspecting kubernetes workload"))?;
            let count = count(&pods, self.by_node) as f64;
            Ok(Reading::one(metric, milli(count), count > self.activation))
        })
    }
}
