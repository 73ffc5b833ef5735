//! Paths as Kubernetes writes them in its validation errors.

use std::fmt::{self, Write as _};

use super::problem::shortened;

/// One step of a written path.
pub(super) enum Step<'a> {
    /// `.name`
    Key(&'a str),
    /// `[0]` or `[name]`
    Bracket(&'a str),
}

/// The path from the root to a node. Each link is in the stack frame of its parent.
pub(super) enum Trail<'a> {
    Root,
    Key(&'a Trail<'a>, &'a str),
    Index(&'a Trail<'a>, usize),
}

/// Splits a path. Brackets can contain any text except a closing bracket.
pub(super) fn steps(path: &str) -> impl Iterator<Item = Step<'_>> {
    let mut rest = path;
    std::iter::from_fn(move || {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(inside) = rest.strip_prefix('[') {
            let (name, after) = inside.split_once(']').unwrap_or((inside, ""));
            rest = after;
            return Some(Step::Bracket(name.trim_matches('"')));
        }
        let (name, after) = rest.split_at_checked(rest.find(['.', '[']).unwrap_or(rest.len()))?;
        rest = after;
        (!name.is_empty()).then_some(Step::Key(name))
    })
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trail::Root => Ok(()),
            Trail::Index(parent, index) => write!(f, "{parent}[{index}]"),
            Trail::Key(parent, name) => {
                let shown = shortened(name);
                let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
                if name.is_empty() || !name.chars().all(word) {
                    return write!(f, "{parent}[{shown}]");
                }
                write!(f, "{parent}")?;
                if !matches!(parent, Trail::Root) {
                    f.write_char('.')?;
                }
                write!(f, "{shown}")
            }
        }
    }
}
