//! Parsing of calls, pipes and postfix operators: members, slices, methods.

use super::Parser;
use crate::formula::catalog::{Each, Function};
use crate::formula::error::FormulaError;
use crate::formula::lexer::TokenKind;
use crate::formula::syntax::{Form, Id};
use crate::formula::value::Value;

impl<'a> Parser<'a> {
    /// `value | name(…)` is `name(value, …)`. As in expr, no member or index may follow.
    pub(super) fn piped(&mut self, value: Id) -> Result<Id, FormulaError> {
        let at = self.at();
        let name = self.name()?;
        if !self.is_bracket('(') {
            return Err(self.unexpected());
        }
        self.call(name, at, Some(value))
    }

    /// `name(…)`, with the piped value as first argument, if any.
    pub(super) fn call(&mut self, name: &str, at: u32, first: Option<Id>) -> Result<Id, FormulaError> {
        let hidden = self.names.contains_key(name);
        if let Some(each) = Each::named(name).filter(|_| !hidden) {
            return self.each(each, at, first);
        }
        self.expect_bracket('(')?;
        let mut arguments: Vec<Id> = first.into_iter().collect();
        self.arguments(&mut arguments)?;
        match Function::named(name).filter(|_| !hidden) {
            Some(function) => {
                let arguments = arguments.into();
                self.add(at, Form::Apply { function, arguments })
            }
            None => {
                let callee = self.add(at, Form::Name(name.into()))?;
                self.add(at, Form::Call { callee })
            }
        }
    }

    /// `a, b)`; a comma may follow the last.
    fn arguments(&mut self, arguments: &mut Vec<Id>) -> Result<(), FormulaError> {
        while !self.is_bracket(')') {
            arguments.push(self.expression(0)?);
            if !self.is_bracket(')') {
                self.expect(",")?;
            }
        }
        self.expect_bracket(')')
    }

    /// A function that looks at each item: `filter(array, # > 1)`.
    fn each(&mut self, each: Each, at: u32, first: Option<Id>) -> Result<Id, FormulaError> {
        self.expect_bracket('(')?;
        let array = match first {
            Some(array) => array,
            None => self.expression(0)?,
        };
        let mut more = first.is_some() && !self.is_bracket(')');
        if first.is_none() {
            more = self.takes(",") && !self.is_bracket(')');
        }
        if !more && !each.has_optional_predicate() {
            return Err(self.unexpected());
        }
        let predicate = if more { Some(self.predicate()?) } else { None };
        let mut extra = None;
        if predicate.is_some() && self.takes(",") && !self.is_bracket(')') {
            if !each.takes_third_argument() {
                return Err(self.unexpected());
            }
            extra = Some(self.expression(0)?);
        }
        self.takes(",");
        self.expect_bracket(')')?;
        self.add(at, Form::Each { each, array, predicate, extra })
    }

    /// Braces around a predicate are optional.
    fn predicate(&mut self) -> Result<Id, FormulaError> {
        self.predicates += 1;
        let parsed = if self.is_bracket('{') { self.block() } else { self.expression(0) };
        self.predicates -= 1;
        parsed
    }

    /// Postfix operators. A chain with `?.` is nil as a whole if it reaches nil.
    pub(super) fn postfix(&mut self, start: Id) -> Result<Id, FormulaError> {
        let mut node = start;
        let mut has_optional = false;
        loop {
            let at = self.at();
            match self.token() {
                TokenKind::Sign(sign @ ("." | "?.")) => {
                    let optional = *sign == "?.";
                    has_optional |= optional;
                    self.advance();
                    node = if optional && self.is_bracket('[') {
                        self.indexed(node, true)?
                    } else {
                        self.member(node, optional)?
                    };
                }
                TokenKind::Bracket('[') => node = self.indexed(node, false)?,
                TokenKind::Bracket('(') => {
                    self.advance();
                    self.arguments(&mut Vec::new())?;
                    node = self.add(at, Form::Call { callee: node })?;
                }
                _ => break,
            }
        }
        if has_optional {
            let at = self.tree.node(node).at;
            node = self.add(at, Form::Chain(node))?;
        }
        Ok(node)
    }

    fn member(&mut self, base: Id, optional: bool) -> Result<Id, FormulaError> {
        let at = self.at();
        let name: &'a str = match self.token() {
            TokenKind::Name(name) => name,
            // Keywords are allowed as member names.
            TokenKind::Sign(word) if word.starts_with(char::is_alphabetic) => word,
            _ => return Err(self.unexpected()),
        };
        self.advance();
        if self.is_bracket('(') {
            self.advance();
            let mut arguments = Vec::new();
            self.arguments(&mut arguments)?;
            let arguments = arguments.into();
            return self.add(at, Form::Method { base, name: name.into(), arguments, optional });
        }
        let key = self.add(at, Form::Constant(Value::Text(name.into())))?;
        self.add(at, Form::Member { base, key, optional })
    }

    /// `[key]`, `[from:to]`.
    fn indexed(&mut self, base: Id, optional: bool) -> Result<Id, FormulaError> {
        let at = self.at();
        self.expect_bracket('[')?;
        let from = if self.is_sign(":") { None } else { Some(self.expression(0)?) };
        if self.takes(":") {
            let to = if self.is_bracket(']') { None } else { Some(self.expression(0)?) };
            self.expect_bracket(']')?;
            return self.add(at, Form::Slice { base, from, to });
        }
        self.expect_bracket(']')?;
        let Some(key) = from else {
            return Err(self.unexpected());
        };
        self.add(at, Form::Member { base, key, optional })
    }
}
