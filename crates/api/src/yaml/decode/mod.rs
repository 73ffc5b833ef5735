//! Trees into types: a serde deserializer that knows where it is.

mod access;
mod cursor;
mod fault;
mod words;

use std::cell::RefCell;

use serde::de::DeserializeOwned;

use self::cursor::Cursor;
use self::fault::Fault;
use super::path::Trail;
use super::{Diagnostic, Node, NodeValue, SourceFile};

/// Problems reported for one document.
const MOST: usize = 1000;
/// Times a document is read to find what else is wrong with it.
const ROUNDS: usize = 20;

/// What happens to fields that a type does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    Refused,
    Ignored,
}

/// What one decoding shares among its cursors.
struct Context<'a> {
    source: &'a SourceFile,
    unknown: Unknown,
    problems: RefCell<Vec<Diagnostic>>,
    /// The addresses of nodes that are known to be wrong.
    faulty: RefCell<Vec<usize>>,
}

/// Reads a node as a `T`, or says everything that is wrong with it.
///
/// Serde stops at the first error, so the document is read again without the node that caused it.
pub(super) fn decode<T: DeserializeOwned>(
    node: &Node,
    source: &SourceFile,
    unknown: Unknown,
) -> Result<T, Vec<Diagnostic>> {
    let context = Context { source, unknown, problems: RefCell::default(), faulty: RefCell::default() };
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        let cursor = Cursor { context: &context, node, key: None, trail: &Trail::Root };
        let result = T::deserialize(cursor).map_err(|fault| cursor.blame(fault));
        for problem in context.problems.take() {
            if !found.contains(&problem) {
                found.push(problem);
            }
        }
        let fault = match result {
            Ok(value) if found.is_empty() => return Ok(value),
            Ok(_) | Err(Fault::Floating(_)) => break,
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
    Err(found)
}

fn address(node: &Node) -> usize {
    std::ptr::from_ref(node).addr()
}

impl Context<'_> {
    fn is_faulty(&self, node: &Node) -> bool {
        self.faulty.borrow().contains(&address(node))
    }

    /// Whether something that was left out can be the cause of an error at this node.
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
