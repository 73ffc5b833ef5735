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
};
