//! The door through which every file a user hands us enters: strict YAML (and JSON, which is YAML)
//! into a tree that remembers where each value was written, and from there into types.

mod decode;
mod document;
mod keys;
mod nearest;
mod node;
mod parse;
mod path;
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
pub use parse::parse;
pub use problem::Diagnostic;
pub use source::{SourceFile, Span};
pub use write::to_yaml;
