//! The name by which the program was started.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The server that is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replaced {
    /// metrics-server.
    Server,
    /// prometheus-adapter.
    Adapter,
    /// KEDA's operator.
    Operator,
}

/// The replaced server by whose name the program was started.
pub(crate) fn replaced() -> Option<Replaced> {
    let words: Vec<OsString> = std::env::args_os().take(2).collect();
    words.iter().find_map(|word| replaced_by(word))
}

pub(crate) fn replaced_by(program: &OsStr) -> Option<Replaced> {
    match stem(program) {
        "metrics-server" => Some(Replaced::Server),
        "adapter" | "prometheus-adapter" => Some(Replaced::Adapter),
        "keda" | "keda-operator" => Some(Replaced::Operator),
        _ => None,
    }
}

pub(crate) fn stem(program: &OsStr) -> &str {
    Path::new(program).file_stem().and_then(OsStr::to_str).unwrap_or_default()
}
