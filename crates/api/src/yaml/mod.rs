//! Strict reader for the YAML (and JSON) files of users: text to a tree with source positions, and from there to types.
//! [`parse`] is the entry point.
//!
//! Reasons for an own reader on top of `granit-parser`, a YAML event parser:
//!
//! - Every problem of a file is reported, with line, column, field path, excerpt and hint. Serde stops at the first error.
//! - Plain scalars follow YAML 1.1 as `sigs.k8s.io/yaml` does, so that a file means the same to `kubectl`.
//! - Aliases, depth and size are bounded.
//!
//! `serde-saphyr` 2.0, a serde deserializer on the same parser, was tried instead. Of a file with an invalid number and a
//! misspelt field it reports only the number. It resolves plain scalars by the target type, so it accepts the label
//! `version: 1.10`, which `kubectl` reads as a number and the API server rejects.

mod bytes;
mod decode;
mod document;
mod keys;
mod nearest;
mod node;
mod parse;
mod path;
mod printable;
mod problem;
mod scalar;
mod source;
mod syntax;
#[cfg(test)]
mod tests;
mod write;

pub use document::Document;
pub use nearest::nearest;
pub use node::{Node, NodeKey, NodeValue};
pub use parse::{parse, parse_within};
pub use problem::{Diagnostic, UnknownField};
pub use source::{SourceFile, Span};
pub use write::{to_folded_yaml, to_yaml};
