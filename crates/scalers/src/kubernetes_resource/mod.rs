//! kubernetes-resource: a number in a ConfigMap or Secret.

mod query;
#[cfg(test)]
mod tests;

use crate::backends::{Cluster, ConfigSource};
use crate::prelude::*;

/// The scaler type `kubernetes-resource`.
pub const TYPE: ScalerType = ScalerType {
    name: "kubernetes-resource",
    about: "A number in a ConfigMap or Secret of the same namespace.",
    display: "kubernetesResourceScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::offline(
        &[("resourceKind", "ConfigMap"), ("resourceName", "c"), ("key", "k"), ("targetValue", "5")],
        &[],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of kubernetes-resource.
    pub struct Parameters of "error parsing kubernetes resource metadata: error parsing kubernetes resource metadata" {
        /// Kind of the object.
        resource_kind: String = "resourceKind" in [Metadata], required, one_of ["ConfigMap", "Secret"];
        /// Its name.
        resource_name: String = "resourceName" in [Metadata], required;
        /// The key in its data.
        key: String = "key" in [Metadata], required;
        /// Format of the value.
        format: String = "format" in [Metadata], default "number", one_of ["number", "json", "yaml"];
        /// Path of the number in JSON (GJSON syntax) or YAML (names and indexes separated by dots).
        value_location: Option<String> = "valueLocation" in [Metadata];
        /// Number format.
        value_type: String = "valueType" in [Metadata], default "float64", one_of ["float64", "int64", "quantity"];
        /// Target value per replica; greater than 0 unless the trigger is part of a formula, which has its own target.
        target_value: f64 = "targetValue" in [Metadata], required;
        /// The trigger is active above this value.
        activation_target_value: f64 = "activationTargetValue" in [Metadata], default "0";
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        if self.target_value <= 0.0 && !trigger.feeds_formula {
            return Err("targetValue must be a float greater than 0".into());
        }
        match (&*self.format, &self.value_location) {
            (format @ ("json" | "yaml"), None) => {
                Err(format!("valueLocation is required for {format} format").into())
            }
            ("number", Some(_)) => Err("valueLocation is only supported with json or yaml format".into()),
            _ => Ok(()),
        }
    }
}

struct KubernetesResourceSource {
    parameters: Parameters,
    namespace: String,
    cluster: Arc<dyn Cluster>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let Parameters { resource_kind, resource_name, key, target_value, .. } = &parameters;
    let name = format!("{}-{resource_name}-{key}", resource_kind.to_lowercase());
    let spec = external(trigger, &name, milli(*target_value));
    let activation = parameters.activation_target_value;
    let namespace = trigger.owner.namespace.clone();
    let source = KubernetesResourceSource { parameters, namespace, cluster: Arc::clone(&backends.cluster) };
    SingleMetricScaler::build(spec, activation, source)
}

impl ValueSource for KubernetesResourceSource {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { resource_kind, resource_name, key, .. } = &self.parameters;
            let holder =
                if resource_kind == "Secret" { ConfigSource::Secret } else { ConfigSource::ConfigMap };
            let source = format!("{resource_kind} {resource_name}, key {key}");
            let entry = self.cluster.entry(holder, &self.namespace, resource_name, key).await;
            let entry = entry.map_err(|error| error.inside(&source))?;
            let bytes = entry.ok_or_else(|| scaler_error!("there is no such key").inside(&source))?;
            query::value(&bytes, &self.parameters).map_err(|error| error.inside(&source))
        })
    }
}
