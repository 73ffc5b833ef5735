//! One document of a file.

use serde::de::DeserializeOwned;

use super::{Diagnostic, Node, NodeValue, SourceFile, Span};

/// One document and the source it came from.
#[derive(Debug, Clone)]
pub struct Document {
    /// The source.
    pub source: SourceFile,
    /// The content.
    pub root: Node,
}

impl Document {
    /// Reads the document as a `T`; see [`Node::decode`].
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Vec<Diagnostic>> {
        self.root.decode(&self.source)
    }

    /// Reads what can be read of the document as a `T`; see [`Node::decode_partial`].
    pub fn decode_partial<T: DeserializeOwned>(&self) -> (Option<T>, Vec<Diagnostic>) {
        self.root.decode_partial(&self.source)
    }

    /// Reads what can be read of the document as a `T`, ignoring unknown fields; see [`Node::decode_partial`].
    pub fn decode_partial_lenient<T: DeserializeOwned>(&self) -> (Option<T>, Vec<Diagnostic>) {
        self.root.decode_partial_lenient(&self.source)
    }

    /// Reads the document as a `T`, ignoring unknown fields.
    pub fn decode_lenient<T: DeserializeOwned>(&self) -> Result<T, Vec<Diagnostic>> {
        self.root.decode_lenient(&self.source)
    }

    /// The position of a path such as `spec.metrics[0]`, or for its nearest parent that exists.
    pub fn locate(&self, path: &str) -> Span {
        self.root.locate(path)
    }

    /// A problem at a path, for checks made after decoding; the message is shown as it is.
    pub fn problem(&self, path: &str, message: impl AsRef<str>) -> Diagnostic {
        Diagnostic::at(&self.source, self.locate(path), message)
    }

    /// The items of a `kind: List` as separate documents; any other document unchanged.
    pub fn into_items(mut self) -> Vec<Self> {
        let list = self.root.get("kind").and_then(Node::as_str) == Some("List");
        if list && let NodeValue::Map(entries) = &mut self.root.value {
            let items =
                entries.iter_mut().find(|(key, _)| key.name == "items").map(|(_, node)| &mut node.value);
            if let Some(NodeValue::Seq(items)) = items {
                let items = std::mem::take(items);
                return items.into_iter().map(|root| Self { source: self.source.clone(), root }).collect();
            }
        }
        vec![self]
    }
}
