//! Conversion between the versions, with v2 in the middle (docs/spec/hpa.md 1.7 to 1.9).

pub mod annotations;
mod behavior;
mod flat;
#[cfg(test)]
mod tests;
mod v1;
mod v2beta1;
mod v2beta2;

pub use v1::{v1_to_v2, v2_to_v1};
pub use v2beta1::{v2_to_v2beta1, v2beta1_to_v2};
pub use v2beta2::{v2_to_v2beta2, v2beta2_to_v2};

use super::KIND;
use super::v2::{self, HorizontalPodAutoscaler};

/// Why an object cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// An annotation of v2beta2 that must hold a quantity does not.
    #[error("failed to parse annotation {}: {source}", crate::gotext::quote(.key))]
    Annotation {
        /// The annotation's key.
        key: &'static str,
        /// What is wrong with its value.
        source: quantity::ParseError,
    },
}

/// v2 as it is stored and served: annotations that carry fields of other versions are never seen through it.
pub fn v2_to_v2(mut object: HorizontalPodAutoscaler) -> HorizontalPodAutoscaler {
    KIND.clone_into(&mut object.kind);
    v2::API_VERSION.clone_into(&mut object.api_version);
    annotations::strip(&mut object.metadata.annotations);
    object
}
