//! How the API behaves: each case runs on the real server and on localkube, and their answers are compared field by field.
//!
//! `PLIMSOLL_RECORD=1 cargo test -p testbed --test api` writes down what the real server answers;
//! `PLIMSOLL_CASE=watch/ends` runs the cases with that in their name.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a case that finds no field where one must be has failed"
)]
#![allow(clippy::wildcard_imports, reason = "the objects are the words of every case")]

mod apply;
mod create;
mod custom;
mod defaults;
mod delete;
mod discovery;
mod dry_run;
mod errors;
mod finalizers;
mod hpa;
mod objects;
mod owners;
mod paging;
mod patch_json;
mod patch_merge;
mod patch_strategic;
mod read;
mod reviews;
mod selectors;
mod subresources;
mod tables;
mod update;
mod validation;
mod watch;
mod webhooks;

use std::path::Path;

use testbed::harness::{Case, Failure, Topic};

fn check(name: &'static str, cases: &'static [Case]) -> Result<(), Failure> {
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/localkube/api.jsonl.zst");
    Topic { name, cases, recording }.check()
}

#[test]
fn create() -> Result<(), Failure> {
    check("create", create::CASES)
}

#[test]
fn read() -> Result<(), Failure> {
    check("read", read::CASES)
}

#[test]
fn update() -> Result<(), Failure> {
    check("update", update::CASES)
}

#[test]
fn patch_json() -> Result<(), Failure> {
    check("patch_json", patch_json::CASES)
}

#[test]
fn patch_merge() -> Result<(), Failure> {
    check("patch_merge", patch_merge::CASES)
}

#[test]
fn patch_strategic() -> Result<(), Failure> {
    check("patch_strategic", patch_strategic::CASES)
}

#[test]
fn apply() -> Result<(), Failure> {
    check("apply", apply::CASES)
}

#[test]
fn delete() -> Result<(), Failure> {
    check("delete", delete::CASES)
}

#[test]
fn finalizers() -> Result<(), Failure> {
    check("finalizers", finalizers::CASES)
}

#[test]
fn owners() -> Result<(), Failure> {
    check("owners", owners::CASES)
}

#[test]
fn watch() -> Result<(), Failure> {
    check("watch", watch::CASES)
}

#[test]
fn selectors() -> Result<(), Failure> {
    check("selectors", selectors::CASES)
}

#[test]
fn paging() -> Result<(), Failure> {
    check("paging", paging::CASES)
}

#[test]
fn subresources() -> Result<(), Failure> {
    check("subresources", subresources::CASES)
}

#[test]
fn defaults() -> Result<(), Failure> {
    check("defaults", defaults::CASES)
}

#[test]
fn validation() -> Result<(), Failure> {
    check("validation", validation::CASES)
}

#[test]
fn hpa() -> Result<(), Failure> {
    check("hpa", hpa::CASES)
}

#[test]
fn custom() -> Result<(), Failure> {
    check("custom", custom::CASES)
}

#[test]
fn discovery() -> Result<(), Failure> {
    check("discovery", discovery::CASES)
}

#[test]
fn tables() -> Result<(), Failure> {
    check("tables", tables::CASES)
}

#[test]
fn errors() -> Result<(), Failure> {
    check("errors", errors::CASES)
}

#[test]
fn reviews() -> Result<(), Failure> {
    check("reviews", reviews::CASES)
}

#[test]
fn webhooks() -> Result<(), Failure> {
    check("webhooks", webhooks::CASES)
}

#[test]
fn dry_run() -> Result<(), Failure> {
    check("dry_run", dry_run::CASES)
}
