//! Defaulting, validation and preparation of objects by kind. One file per kind or family of kinds; the table of kinds
//! refers to them.

pub mod account;
pub mod apiservice;
pub mod autoscaler;
pub mod config;
pub mod event;
pub(crate) mod faults;
mod json;
pub mod lease;
pub mod namespace;
pub mod node;
pub mod pod;
pub mod service;
pub mod webhook;
pub mod workloads;

use api::autoscaling::FeatureGates;
use api::field::FieldError;
use serde_json::Value;

/// The rules of a kind. Objects are in the version of the request, with types checked and unknown fields dropped.
#[derive(Debug)]
pub struct Rules {
    /// Applies defaults to what clients send, before everything else.
    pub default: fn(&mut Value, version: &str),
    /// Prepares a new object: sets what only the server may set. A status is already dropped where clients cannot set
    /// it.
    pub create: fn(&mut Value),
    /// Prepares a changed object: restores from the stored one what this request cannot change. The status is already
    /// restored (or, for a status update, everything else).
    pub update: fn(&mut Value, &Value),
    /// Validates a new object except its metadata.
    pub validate: fn(&Value) -> Vec<FieldError>,
    /// Validates a changed object except its metadata, given the stored one.
    pub validate_update: fn(&Value, &Value) -> Vec<FieldError>,
    /// Validates a changed status, given the stored object.
    pub validate_status: fn(&Value, &Value) -> Vec<FieldError>,
    /// Returns the errors of a name.
    pub name: fn(&str) -> Vec<String>,
    /// The rules that depend on the release of Kubernetes, of a kind that has such rules.
    pub gated: Option<&'static GatedRules>,
}

/// Rules of a kind that depend on the release of Kubernetes and its feature gates. They take the place of those of [`Rules`].
#[derive(Debug)]
pub struct GatedRules {
    /// Drops fields that the release does not have, and applies defaults that only some releases have.
    pub adapt: fn(&mut Value, FeatureGates),
    /// Validates a new object except its metadata.
    pub validate: fn(&Value, FeatureGates) -> Vec<FieldError>,
    /// Validates a changed object except its metadata, given the stored one.
    pub validate_update: fn(&Value, &Value, FeatureGates) -> Vec<FieldError>,
    /// Validates a changed status, given the stored object.
    pub validate_status: fn(&Value, &Value, FeatureGates) -> Vec<FieldError>,
    /// Whether `metadata.generation` counts changes of the spec.
    pub counts_generation: fn(FeatureGates) -> bool,
    /// Whether the specs of two objects differ, so that the generation changes.
    pub spec_differs: fn(&Value, &Value) -> bool,
}

impl Rules {
    /// Applies defaults to what clients send, in a version of the kind.
    pub fn complete(&self, object: &mut Value, version: &str, gates: FeatureGates) {
        (self.default)(object, version);
        if let Some(gated) = self.gated {
            (gated.adapt)(object, gates);
        }
    }

    /// The errors of a new object except those of its metadata.
    pub fn faults(&self, new: &Value, gates: FeatureGates) -> Vec<FieldError> {
        match self.gated {
            Some(gated) => (gated.validate)(new, gates),
            None => (self.validate)(new),
        }
    }

    /// The errors of a changed object, or of its status, except those of its metadata.
    pub fn update_faults(
        &self,
        new: &Value,
        old: &Value,
        status_only: bool,
        gates: FeatureGates,
    ) -> Vec<FieldError> {
        match (self.gated, status_only) {
            (Some(gated), false) => (gated.validate_update)(new, old, gates),
            (Some(gated), true) => (gated.validate_status)(new, old, gates),
            (None, false) => (self.validate_update)(new, old),
            (None, true) => (self.validate_status)(new, old),
        }
    }
}

/// No rules for the kind itself.
pub const NONE: Rules = Rules {
    default: |_, _| {},
    create: |_| {},
    update: |_, _| {},
    validate: |_| Vec::new(),
    validate_update: |_, _| Vec::new(),
    validate_status: |_, _| Vec::new(),
    name: api::names::subdomain_faults,
    gated: None,
};
