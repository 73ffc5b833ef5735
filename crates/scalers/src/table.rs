//! The table of all scaler types.

pub mod sample;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use api::keda::KedaProfile;
use api::map::StringMap;
use api::yaml::nearest as nearest_word;

use crate::backends::Backends;
use crate::parameters::Parameter;
use crate::{Scaler, ScalerError, Trigger};
use sample::Sample;
/// A scaler type: everything that is specific to it.
pub struct ScalerType {
    /// The name in `type` of a trigger.
    pub name: &'static str,
    /// What it measures, in one sentence.
    pub about: &'static str,
    /// The value of the label `scaler` in Prometheus metrics for triggers without a name; dashboards filter on it.
    pub display: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Whether it is a push scaler.
    pub push: bool,
    /// When its source may wake an object before its next poll.
    pub wakes: WakeMode,
    /// The first release of KEDA that has it.
    pub since: KedaProfile,
    /// Returns the unit of its values for `plimsoll why`, given the metadata of a trigger; empty if it is unknown.
    pub unit: fn(&StringMap) -> &str,
    /// Builds a scaler without connecting.
    pub build: BuildScaler,
    /// Valid triggers, which tests vary one parameter at a time; at least one.
    pub samples: &'static [Sample],
}

/// When a source may wake an object before its next poll ([`Scaler::wake`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeMode {
    /// It cannot.
    Never,
    /// If the object has the annotation `plimsoll.dev/wake`.
    Annotated,
    /// Always, because KEDA does so as well.
    Always,
}

impl ScalerType {
    /// Values of the fields that most types do not set.
    pub const DEFAULT: Self = Self {
        name: "",
        about: "",
        display: "",
        parameters: &[],
        push: false,
        wakes: WakeMode::Never,
        since: KedaProfile::V2_20,
        unit: |_| "",
        build: |trigger, _| Err(scaler_error!("{} cannot be built", trigger.type_)),
        samples: &[],
    };
}

/// Builds the scaler of a trigger.
pub type BuildScaler = fn(&Trigger, &Backends) -> Result<Arc<dyn Scaler>, ScalerError>;

/// All scaler types, sorted by name.
pub static SCALER_TYPES: LazyLock<Vec<&'static ScalerType>> = LazyLock::new(|| {
    let mut types = crate::TYPES.to_vec();
    #[cfg(test)]
    types.push(&crate::example_queue::TYPE);
    types.sort_by_key(|scaler| scaler.name);
    types
});

/// The scaler type with this name.
pub fn find(name: &str) -> Option<&'static ScalerType> {
    SCALER_TYPES.iter().copied().find(|scaler| scaler.name == name)
}

/// The scaler type with the most similar name.
pub fn nearest(name: &str) -> Option<&'static ScalerType> {
    nearest_word(name, SCALER_TYPES.iter().map(|scaler| scaler.name)).and_then(find)
}

/// Builds the scaler of a trigger. The error for unknown types is `no scaler found for type: X`, with the most similar name.
pub fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    let is_served = |scaler: &&ScalerType| !backends.compat.is_strict() || trigger.profile >= scaler.since;
    if let Some(scaler) = find(&trigger.type_).filter(is_served) {
        return (scaler.build)(trigger, backends);
    }
    let mut text = format!("no scaler found for type: {}", trigger.type_);
    if !backends.compat.is_strict()
        && let Some(meant) = nearest(&trigger.type_)
    {
        text.push_str(&format!("; did you mean {}?", meant.name));
    }
    Err(ScalerError::new(text))
}
