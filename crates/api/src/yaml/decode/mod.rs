//! Converts trees to types: a serde deserializer that reports positions.

mod deserializer;
mod fault;
mod words;

use std::cell::RefCell;

use serde::de::DeserializeOwned;

use self::deserializer::NodeDeserializer;
use self::fault::Fault;
use super::path::Trail;
use super::{Diagnostic, Node, NodeValue, SourceFile};

/// Maximum number of reported problems per document.
const MAX_REPORTED_PROBLEMS: usize = 1000;
/// Maximum number of passes over a document to find further problems.
const MAX_DECODE_PASSES: usize = 20;

/// Treatment of fields that a type does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnknownFields {
    Rejected,
    Ignored,
}

/// State of one decoding.
struct Context<'a> {
    source: &'a SourceFile,
    unknown: UnknownFields,
    problems: RefCell<Vec<Diagnostic>>,
    /// Addresses of nodes with a known problem.
    faulty: RefCell<Vec<usize>>,
}

impl Node {
    /// Reads the node as a `T`; fields that `T` does not have are problems, and all of them are reported.
    ///
    /// Unknown fields of types with `#[serde(flatten)]` are not found, since serde does not report their fields.
    pub fn decode<T: DeserializeOwned>(&self, source: &SourceFile) -> Result<T, Vec<Diagnostic>> {
        decode(self, source, UnknownFields::Rejected)
    }

    /// Reads the parts of the node that can be read as a `T`, and reports the problems of the others. There is no value if too
    /// much is missing.
    pub fn decode_partial<T: DeserializeOwned>(&self, source: &SourceFile) -> (Option<T>, Vec<Diagnostic>) {
        decode_partial(self, source, UnknownFields::Rejected)
    }

    /// Like [`Node::decode_partial`], ignoring the fields that `T` does not have.
    pub fn decode_partial_lenient<T: DeserializeOwned>(
        &self,
        source: &SourceFile,
    ) -> (Option<T>, Vec<Diagnostic>) {
        decode_partial(self, source, UnknownFields::Ignored)
    }

    /// Reads the node as a `T`, ignoring the fields that `T` does not have.
    pub fn decode_lenient<T: DeserializeOwned>(&self, source: &SourceFile) -> Result<T, Vec<Diagnostic>> {
        decode(self, source, UnknownFields::Ignored)
    }
}

/// Decodes a node as a `T`, or reports all its problems.
fn decode<T: DeserializeOwned>(
    node: &Node,
    source: &SourceFile,
    unknown: UnknownFields,
) -> Result<T, Vec<Diagnostic>> {
    match decode_partial(node, source, unknown) {
        (Some(value), problems) if problems.is_empty() => Ok(value),
        (_, problems) => Err(problems),
    }
}

/// Decodes a node as a `T` without its faulty parts, and reports all problems. There is no value if a field without a default or
/// an item of a list is faulty: the positions of other items would be wrong.
///
/// Serde stops at the first error, so the document is decoded again without the node that caused it.
fn decode_partial<T: DeserializeOwned>(
    node: &Node,
    source: &SourceFile,
    unknown: UnknownFields,
) -> (Option<T>, Vec<Diagnostic>) {
    let context = Context { source, unknown, problems: RefCell::default(), faulty: RefCell::default() };
    let (mut found, mut partial) = (Vec::new(), None);
    for _ in 0..MAX_DECODE_PASSES {
        let cursor = NodeDeserializer { context: &context, node, key: None, trail: &Trail::Root };
        let result = T::deserialize(cursor).map_err(|fault| cursor.blame(fault));
        for problem in context.problems.take() {
            if !found.contains(&problem) {
                found.push(problem);
            }
        }
        let fault = match result {
            Ok(value) => {
                partial = (!context.lacks_item_of(node)).then_some(value);
                break;
            }
            Err(Fault::Floating(_)) => break,
            Err(Fault::Placed(fault)) => fault,
        };
        let culprit = fault.culprit;
        if !fault.follows(&found) {
            found.push(fault.problem);
        }
        if culprit == address(node) || context.faulty.borrow().contains(&culprit) {
            break;
        }
        context.faulty.borrow_mut().push(culprit);
    }
    found.sort_by_key(|problem| problem.span);
    (partial, found)
}

fn address(node: &Node) -> usize {
    std::ptr::from_ref(node).addr()
}

impl Context<'_> {
    fn is_faulty(&self, node: &Node) -> bool {
        self.faulty.borrow().contains(&address(node))
    }

    /// Whether an item of a list below this node was skipped.
    fn lacks_item_of(&self, node: &Node) -> bool {
        match &node.value {
            _ if self.faulty.borrow().is_empty() => false,
            NodeValue::Seq(items) => {
                items.iter().any(|item| self.is_faulty(item) || self.lacks_item_of(item))
            }
            NodeValue::Map(entries) => entries.iter().any(|(_, child)| self.lacks_item_of(child)),
            _ => false,
        }
    }

    /// Whether a skipped part of this node can be the cause of an error.
    fn lacks_part_of(&self, node: &Node) -> bool {
        let part = |child: &Node| self.is_faulty(child) || self.lacks_part_of(child);
        match &node.value {
            _ if self.faulty.borrow().is_empty() => false,
            NodeValue::Seq(items) => items.iter().any(part),
            NodeValue::Map(entries) => entries.iter().any(|(_, child)| part(child)),
            _ => false,
        }
    }
}
