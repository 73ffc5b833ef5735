//! Trees into types: a serde deserializer that knows where it is.

mod access;
mod cursor;
mod fault;

use std::cell::RefCell;

use serde::de::DeserializeOwned;

use self::cursor::Cursor;
use super::path::Trail;
use super::{Node, Problem, Source};

/// Problems reported for one document.
const MOST: usize = 1000;

/// What happens to fields that a type does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    Refused,
    Ignored,
}

/// What one decoding shares among its cursors.
struct Context<'a> {
    source: &'a Source,
    unknown: Unknown,
    problems: RefCell<Vec<Problem>>,
}

/// Reads a node as a `T`, or says everything that is wrong with it.
pub(super) fn decode<T: DeserializeOwned>(
    node: &Node,
    source: &Source,
    unknown: Unknown,
) -> Result<T, Vec<Problem>> {
    let context = Context { source, unknown, problems: RefCell::default() };
    let cursor = Cursor { context: &context, node, key: None, trail: &Trail::Root };
    let result = T::deserialize(cursor).map_err(|fault| cursor.blame(fault));
    let mut problems = context.problems.into_inner();
    match result {
        Ok(value) if problems.is_empty() => return Ok(value),
        Ok(_) => {}
        Err(fault) => problems.extend(fault.into_problem(&problems)),
    }
    problems.sort_by_key(|problem| problem.span);
    Err(problems)
}
