//! The formula language, compatible with expr 1.17 (docs/spec/keda.md 4.5).
//!
//! ```text
//! text ─► lexer ─► parser ─► check ─► Program ─► evaluate ─► Value
//!         tokens   nodes     types    kept       many times
//! ```
//!
//! [`Program`] is the only entry point. The language is implemented here because the crate `expr-lang` 2.1, which was tried,
//! disagreed with Go's expr on 3 of 59 formulas: it splits names that begin with `not`, which are legal trigger names, it
//! rejects double unary operators, and its errors are not those that KEDA's admission returns.
//!
//! Functions and operators fail with a message; the evaluator adds the position and makes a [`FormulaError`] of both.
//!
//! Formulas come from users and run on every poll, so everything is bounded: the length, the number and the
//! depth of nodes, and the steps and memory of each run.

mod budget;
mod catalog;
mod check;
mod dates;
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

use std::collections::HashMap;
use std::sync::Arc;

pub use budget::EvaluationContext;
pub use error::FormulaError;
pub use value::{Map, Value};

/// A validated formula that can be run many times.
#[derive(Clone, Debug)]
pub struct Program {
    tree: Arc<syntax::Tree>,
    names: Arc<[String]>,
    source: Arc<str>,
}

/// The places of names. They are indexed, because there may be ten thousand, and a formula may use as many.
type NamePlaces<'a> = HashMap<&'a str, usize>;

impl Program {
    /// Parses and checks a formula in which each of `names` is a float (or nil at run time).
    pub fn compile(source: &str, names: &[String]) -> Result<Self, FormulaError> {
        // The first of equal names counts.
        let places: NamePlaces<'_> =
            names.iter().enumerate().rev().map(|(place, name)| (name.as_str(), place)).collect();
        let mut tree = parser::parse(source, &places)?;
        check::check(&mut tree, &places).map_err(|error| error.shown_in(source))?;
        Ok(Self { tree: Arc::new(tree), names: names.into(), source: source.into() })
    }

    /// Runs the formula. `values` are the values of the names it was compiled with, in order.
    pub fn run(&self, values: &[Value], moment: EvaluationContext) -> Result<Value, FormulaError> {
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
