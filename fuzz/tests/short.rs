//! Runs every target for `FUZZ_SECONDS` seconds (default 2), or with `FUZZ_INPUTS` mutated inputs if this is set. `FUZZ_SEED` is the seed
//! of the random numbers (default 1).

use std::time::Duration;

use plimsoll_fuzz::TARGETS;
use plimsoll_fuzz::driver::{self, RunLimit};

fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(or)
}

fn short(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target of this name");
    let limit = match number("FUZZ_INPUTS", 0) {
        0 => RunLimit::Time(Duration::from_secs(number("FUZZ_SECONDS", 2))),
        inputs => RunLimit::Inputs(inputs),
    };
    driver::drive(target, limit, number("FUZZ_SEED", 1));
}

#[test]
fn quantity() {
    short("quantity");
}

#[test]
fn selector() {
    short("selector");
}

#[test]
fn text() {
    short("text");
}

#[test]
fn hpa() {
    short("hpa");
}

#[test]
fn step() {
    short("step");
}

#[test]
fn state_snapshot() {
    short("state_snapshot");
}

#[test]
fn passes() {
    short("passes");
}

#[test]
fn scenario() {
    short("scenario");
}

#[test]
fn kubelet() {
    short("kubelet");
}

#[test]
fn adapter_config() {
    short("adapter_config");
}

#[test]
fn formula() {
    short("formula");
}

#[test]
fn gjson() {
    short("gjson");
}

#[test]
fn formats() {
    short("formats");
}

#[test]
fn responses() {
    short("responses");
}

#[test]
fn amqp() {
    short("amqp");
}

#[test]
fn redis() {
    short("redis");
}

#[test]
fn connection_string() {
    short("connection_string");
}

#[test]
fn admission() {
    short("admission");
}

#[test]
fn requests() {
    short("requests");
}

#[test]
fn watch() {
    short("watch");
}

#[test]
fn samples_page() {
    short("samples_page");
}

#[test]
fn wire() {
    short("wire");
}
