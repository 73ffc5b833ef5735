//! kubernetes-resource: a number in a ConfigMap or Secret.

mod query;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::backends::{Backends, Cluster, Holder};
use crate::metric::{external, milli, target_type};
use crate::single::{Single, Source};
use crate::table::Type;
use crate::{Answer, Error, Scaler, Trigger};

/// kubernetes-resource.
pub const TYPE: Type = Type {
    name: "kubernetes-resource",
    about: "A number in a ConfigMap or Secret of the same namespace.",
    display: "kubernetesResourceScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What kubernetes-resource accepts.
    pub struct Parameters of "error parsing kubernetes resource metadata" {
        /// What holds the number.
        resource_kind: String = "resourceKind" in [Metadata], required, one_of ["ConfigMap", "Secret"];
        /// Its name.
        resource_name: String = "resourceName" in [Metadata], required;
        /// The key in its data.
        key: String = "key" in [Metadata], required;
        /// The number that one replica is for; more than 0 unless a formula has its own target.
        target_value: f64 = "targetValue" in [Metadata], required;
        /// The trigger is active above it.
        activation_target_value: f64 = "activationTargetValue" in [Metadata], default "0";
        /// What stands under the key.
        format: String = "format" in [Metadata], default "number", one_of ["number", "json", "yaml"];
        /// Where the number is in JSON (a path of GJSON) or YAML (names and numbers with dots between them).
        value_location: Option<String> = "valueLocation" in [Metadata];
        /// How the number is written.
        value_type: String = "valueType" in [Metadata], default "float64", one_of ["float64", "int64", "quantity"];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, trigger: &Trigger) -> Result<(), String> {
        if self.target_value <= 0.0 && !trigger.feeds_formula {
            return Err("targetValue must be a float greater than 0".to_owned());
        }
        match (&*self.format, &self.value_location) {
            (format @ ("json" | "yaml"), None) => {
                Err(format!("valueLocation is required for {format} format"))
            }
            ("number", Some(_)) => Err("valueLocation is only supported with json or yaml format".to_owned()),
            _ => Ok(()),
        }
    }
}

struct Resource {
    parameters: Parameters,
    namespace: String,
    cluster: Arc<dyn Cluster>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)
        .map_err(|error| error.inside("error parsing kubernetes resource metadata"))?;
    let Parameters { resource_kind, resource_name, key, target_value, .. } = &parameters;
    let name = format!("{}-{resource_name}-{key}", resource_kind.to_lowercase());
    let spec = external(trigger, &name, milli(*target_value));
    let activation = parameters.activation_target_value;
    let namespace = trigger.owner.namespace.clone();
    let source = Resource { parameters, namespace, cluster: Arc::clone(&backends.cluster) };
    Ok(Arc::new(Single { spec, activation, source }))
}

impl Source for Resource {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let Parameters { resource_kind, resource_name, key, .. } = &self.parameters;
            let holder = if resource_kind == "Secret" { Holder::Secret } else { Holder::ConfigMap };
            let place = format!("{resource_kind} {resource_name}, key {key}");
            let entry = self.cluster.entry(holder, &self.namespace, resource_name, key).await;
            let entry = entry.map_err(|error| Error::new(error).inside(&place))?;
            let bytes = entry.ok_or_else(|| Error::new("there is no such key").inside(&place))?;
            query::value(&bytes, &self.parameters).map_err(|error| error.inside(&place))
        })
    }
}
