//! Follows the steps of a GJSON path through a tree.

use serde_json::Value;

use super::json::{Step, TooMuchWork, WorkBudget, fits};

/// A value of a tree: parts of an owned value are moved, and of a borrowed one, which other paths need too, only what a path finds
/// is copied.
pub(super) trait TreeNode: Sized {
    fn value(&self) -> &Value;
    fn member(self, name: &str) -> Option<Self>;
    fn nth_member(self, at: usize) -> Option<Self>;
    fn item(self, at: usize) -> Option<Self>;
    /// All items of a list.
    fn items(self) -> Vec<Self>;
    fn into_value(self) -> Value;
}

impl TreeNode for Value {
    fn value(&self) -> &Value {
        self
    }

    fn member(self, name: &str) -> Option<Self> {
        match self {
            Self::Object(mut members) => members.swap_remove(name),
            _ => None,
        }
    }

    fn nth_member(self, at: usize) -> Option<Self> {
        match self {
            Self::Object(members) => members.into_iter().nth(at).map(|(_, value)| value),
            _ => None,
        }
    }

    fn item(self, at: usize) -> Option<Self> {
        self.items().into_iter().nth(at)
    }

    fn items(self) -> Vec<Self> {
        match self {
            Self::Array(items) => items,
            _ => Vec::new(),
        }
    }

    fn into_value(self) -> Value {
        self
    }
}

impl TreeNode for &Value {
    fn value(&self) -> &Value {
        self
    }

    fn member(self, name: &str) -> Option<Self> {
        self.as_object()?.get(name)
    }

    fn nth_member(self, at: usize) -> Option<Self> {
        self.as_object()?.values().nth(at)
    }

    fn item(self, at: usize) -> Option<Self> {
        self.as_array()?.get(at)
    }

    fn items(self) -> Vec<Self> {
        self.as_array().map(|items| items.iter().collect()).unwrap_or_default()
    }

    fn into_value(self) -> Value {
        self.clone()
    }
}

/// The value at the end of a path. Its parts are different parts of the tree, so that it is not larger than the tree.
pub(super) fn follow<N: TreeNode>(
    node: N,
    steps: &[Step],
    work: &WorkBudget,
) -> Result<Option<Value>, TooMuchWork> {
    let Some((step, rest)) = steps.split_first() else { return Ok(Some(node.into_value())) };
    work.spend(1)?;
    let next = match (step, node.value()) {
        (Step::Name(name), Value::Object(_)) => node.member(name),
        (Step::Name(name), Value::Array(_)) => name.parse::<usize>().ok().and_then(|at| node.item(at)),
        (Step::Pattern(pattern), Value::Object(members)) => {
            let mut found = None;
            for (at, name) in members.keys().enumerate() {
                if fits(pattern.as_bytes(), name.as_bytes(), work)? {
                    found = Some(at);
                    break;
                }
            }
            found.and_then(|at| node.nth_member(at))
        }
        (Step::Each, Value::Array(items)) if rest.is_empty() => return Ok(Some(items.len().into())),
        (Step::Each, Value::Array(_)) => return each(node.items(), rest, work),
        (Step::Query(query), Value::Array(_)) => {
            let mut matching = Vec::new();
            for item in node.items() {
                if query.matches(item.value(), work)? {
                    if !query.all {
                        return follow(item, rest, work);
                    }
                    matching.push(item);
                }
            }
            return match rest {
                _ if !query.all => Ok(None),
                [Step::Each] => Ok(Some(matching.len().into())),
                rest => each(matching, rest, work),
            };
        }
        _ => None,
    };
    next.map_or(Ok(None), |next| follow(next, rest, work))
}

/// The ends of a path through each item that has them.
fn each<N: TreeNode>(items: Vec<N>, rest: &[Step], work: &WorkBudget) -> Result<Option<Value>, TooMuchWork> {
    let mut found = Vec::new();
    for item in items {
        found.extend(follow(item, rest, work)?);
    }
    Ok(Some(Value::Array(found)))
}
