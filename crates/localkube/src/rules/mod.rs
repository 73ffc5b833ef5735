//! What the API server does to objects of each kind beside storing them: what it fills in, what it refuses, what a
//! writer cannot change. One file per kind or family of kinds; the table of kinds names the rules of each.

pub mod account;
pub mod apiservice;
pub mod autoscaler;
pub mod config;
pub mod event;
mod faults;
pub mod lease;
pub mod namespace;
pub mod node;
pub mod pod;
pub mod service;
mod shape;
pub mod webhook;
pub mod workloads;

use api::field::FieldError;
use serde_json::Value;

/// The rules of one kind. Objects come in the version of the request, with types already checked and unknown fields
/// already dropped.
#[derive(Debug)]
pub struct Rules {
    /// Fills in what was left out. Applied to what clients send, before everything else.
    pub default: fn(&mut Value, version: &str),
    /// Prepares a new object: what only the server may set. A status that clients cannot set is already dropped.
    pub create: fn(&mut Value),
    /// Prepares a changed object, given the stored one: keeps what this request cannot change. The status is already
    /// kept (or, in a change of the status alone, everything else).
    pub update: fn(&mut Value, &Value),
    /// What is wrong with a new object, `metadata` aside.
    pub validate: fn(&Value) -> Vec<FieldError>,
    /// What is wrong with a changed object, given the stored one, `metadata` aside.
    pub validate_update: fn(&Value, &Value) -> Vec<FieldError>,
    /// What is wrong with a changed status, given the stored object.
    pub validate_status: fn(&Value, &Value) -> Vec<FieldError>,
    /// What is wrong with a name.
    pub name: fn(&str) -> Vec<String>,
}

/// No rules beyond those of all objects.
pub const NONE: Rules = Rules {
    default: |_, _| {},
    create: |_| {},
    update: |_, _| {},
    validate: |_| Vec::new(),
    validate_update: |_, _| Vec::new(),
    validate_status: |_, _| Vec::new(),
    name: api::names::subdomain_faults,
};
