//! The language of formulas, as expr 1.17 reads it (docs/spec/keda.md 4.5).
//!
//! ```text
//! text ─► lexer ─► parser ─► check ─► Program ─► evaluate ─► Value
//!         words    nodes     types    kept       many times
//! ```
//!
//! A formula comes from a user and is run for ever, so everything about it is bounded: its length, the number and the
//! depth of its nodes, and in each run the steps and the memory it may take.

mod check;
mod error;
mod evaluate;
mod functions;
mod lexer;
mod operators;
mod parser;
mod syntax;
#[cfg(test)]
mod tests;
mod text;
mod types;
mod value;

use std::sync::Arc;

pub use error::Error;
pub use evaluate::Moment;
pub use value::{Map, Value};

/// A formula that was checked and can be run many times.
#[derive(Clone, Debug)]
pub struct Program {
    tree: Arc<syntax::Tree>,
    names: Arc<[String]>,
    source: Arc<str>,
}

impl Program {
    /// Reads and checks a formula in which each of `names` is a float (or nil when it is run).
    pub fn compile(source: &str, names: &[String]) -> Result<Self, Error> {
        let mut tree = parser::parse(source, names)?;
        check::check(&mut tree, names).map_err(|error| error.shown_in(source))?;
        Ok(Self { tree: Arc::new(tree), names: names.into(), source: source.into() })
    }

    /// Runs it. `values` stand for the names it was compiled with, in that order.
    pub fn run(&self, values: &[Value], moment: Moment) -> Result<Value, Error> {
        evaluate::run(&self.tree, &self.names, values, moment).map_err(|error| error.shown_in(&self.source))
    }

    /// The names it was compiled with.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The formula's text.
    pub fn source(&self) -> &str {
        &self.source
    }
}
