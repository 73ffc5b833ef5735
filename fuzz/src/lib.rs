//! Fuzz targets: no input panics, and none hangs.
//!
//! Each target is a plain function over bytes. Two drivers call it: libFuzzer, which follows coverage (`make fuzz`), and
//! a small driver of our own, which needs only a stable compiler (`make fuzz-short`, [`driver`]).

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "the driver measures how long an input takes")]

pub mod driver;
pub mod mutate;
pub mod targets;

/// A fuzz target: a function over bytes, and where its seeds are.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the target, which is also the name of the folder of its seeds.
    pub name: &'static str,
    /// The function that a driver calls with each input.
    pub run: fn(&[u8]),
    /// Whether the files in `examples/` are seeds too.
    pub examples: bool,
}

/// All targets.
pub const TARGETS: [Target; 22] = [
    Target { name: "quantity", run: targets::quantity::run, examples: false },
    Target { name: "selector", run: targets::selector::run, examples: false },
    Target { name: "text", run: targets::text::run, examples: true },
    Target { name: "hpa", run: targets::hpa::run, examples: true },
    Target { name: "step", run: targets::step::run, examples: false },
    Target { name: "state_snapshot", run: targets::state_snapshot::run, examples: false },
    Target { name: "passes", run: targets::passes::run, examples: false },
    Target { name: "scenario", run: targets::scenario::run, examples: true },
    Target { name: "kubelet", run: targets::kubelet::run, examples: false },
    Target { name: "adapter_config", run: targets::adapter_config::run, examples: false },
    Target { name: "formula", run: targets::formula::run, examples: false },
    Target { name: "gjson", run: targets::gjson::run, examples: false },
    Target { name: "formats", run: targets::formats::run, examples: false },
    Target { name: "responses", run: targets::responses::run, examples: false },
    Target { name: "amqp", run: targets::amqp::run, examples: false },
    Target { name: "redis", run: targets::redis::run, examples: false },
    Target { name: "connection_string", run: targets::connection_string::run, examples: false },
    Target { name: "admission", run: targets::admission::run, examples: false },
    Target { name: "requests", run: targets::requests::run, examples: false },
    Target { name: "watch", run: targets::watch::run, examples: false },
    Target { name: "wire", run: targets::wire::run, examples: false },
    Target { name: "samples_page", run: targets::samples_page::run, examples: false },
];
