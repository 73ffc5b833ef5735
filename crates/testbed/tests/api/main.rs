//! The behaviour of the API: each case runs on the real server and on localkube, and the responses are compared field by field.
//!
//! `PLIMSOLL_RECORD=1 cargo test -p testbed --test api` records the responses of the real server;
//! `PLIMSOLL_CASE=watch/ends` runs the cases with that in their name; `PLIMSOLL_KUBERNETES=1.37.1` runs all of them on that release.

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
mod release;
mod reviews;
mod selectors;
mod subresources;
mod tables;
mod update;
mod validation;
mod watch;
mod webhooks;
mod widgets;

use std::path::Path;

use testbed::Release;
use testbed::harness::{Case, Failure, Topic};

/// A test for each topic; its cases are in the module of the same name.
macro_rules! topics {
    ($($topic:ident),* $(,)?) => {
        $(
            #[test]
            fn $topic() -> Result<(), Failure> {
                check(stringify!($topic), $topic::CASES)
            }
        )*
    };
}

topics![
    create,
    read,
    update,
    patch_json,
    patch_merge,
    patch_strategic,
    apply,
    delete,
    finalizers,
    owners,
    watch,
    selectors,
    paging,
    subresources,
    defaults,
    validation,
    hpa,
    custom,
    discovery,
    tables,
    errors,
    reviews,
    webhooks,
    dry_run,
];

/// Cases of newer releases than the default.
#[test]
fn release() -> Result<(), Failure> {
    if chosen().kubernetes == Release::default().kubernetes {
        return Ok(());
    }
    check("release", release::CASES)
}

fn chosen() -> Release {
    Release::chosen().unwrap()
}

/// Each release has its own recording.
fn check(name: &'static str, cases: &'static [Case]) -> Result<(), Failure> {
    let release = chosen().kubernetes;
    let file = if release == Release::default().kubernetes {
        "api.jsonl.zst".to_owned()
    } else {
        format!("api-{release}.jsonl.zst")
    };
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/localkube").join(file);
    Topic { name, cases, recording }.check()
}
