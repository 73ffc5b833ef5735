//! Runs every target for `FUZZ_SECONDS` seconds (default 3), from `FUZZ_SEED` (default 1).

use std::time::Duration;

use plimsoll_fuzz::{TARGETS, driver};

fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(or)
}

fn short(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target of this name");
    driver::drive(target, Duration::from_secs(number("FUZZ_SECONDS", 3)), number("FUZZ_SEED", 1));
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
fn memory() {
    short("memory");
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
