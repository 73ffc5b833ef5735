//! Numbers, arrays and maps.

use std::num::IntErrorKind;

use super::Parser;
use crate::float::parse_float;
use crate::formula::error::{EvalError, FormulaError};
use crate::formula::lexer::TokenKind;
use crate::formula::syntax::{Form, Id};
use crate::formula::value::Value;

/// A number as written: an int unless it has a point or an exponent.
pub(super) fn number(digits: &str) -> Result<Value, EvalError> {
    let plain = digits.replace('_', "");
    let integer = |digits: &str, base| {
        i64::from_str_radix(digits, base).map(Value::Int).map_err(|error| {
            let why = match error.kind() {
                IntErrorKind::PosOverflow => "value out of range",
                _ => "invalid syntax",
            };
            format!("invalid integer literal: strconv.ParseInt: parsing {plain:?}: {why}").into()
        })
    };
    match plain.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => integer(plain.get(2..).unwrap_or_default(), 16),
        Some("0b") => integer(plain.get(2..).unwrap_or_default(), 2),
        Some("0o") => integer(plain.get(2..).unwrap_or_default(), 8),
        _ if plain.contains(['.', 'e', 'E']) => parse_float(&plain)
            .map(Value::Float)
            .map_err(|why| format!("invalid float literal: {why}").into()),
        _ => integer(&plain, 10),
    }
}

impl Parser<'_> {
    /// `[a, b]`; a comma may follow the last.
    pub(super) fn array(&mut self) -> Result<Id, FormulaError> {
        let at = self.at();
        self.expect_bracket('[')?;
        let mut items = Vec::new();
        while !self.is_bracket(']') {
            items.push(self.expression(0)?);
            if !self.is_bracket(']') {
                self.expect(",")?;
            }
        }
        self.expect_bracket(']')?;
        self.add(at, Form::Array(items.into()))
    }

    /// `{a: 1, 'b': 2, (c): 3}`; a comma may follow the last.
    pub(super) fn map(&mut self) -> Result<Id, FormulaError> {
        let at = self.at();
        self.expect_bracket('{')?;
        let mut pairs = Vec::new();
        while !self.is_bracket('}') {
            let key = self.key()?;
            self.expect(":")?;
            let value = self.expression(0)?;
            pairs.push((key, value));
            if !self.is_bracket('}') {
                self.expect(",")?;
            }
        }
        self.expect_bracket('}')?;
        self.add(at, Form::Map(pairs.into()))
    }

    fn key(&mut self) -> Result<Id, FormulaError> {
        let at = self.at();
        let text = match self.token() {
            TokenKind::Name(text) | TokenKind::Number(text) => (*text).to_owned(),
            TokenKind::Text(text) => text.clone(),
            TokenKind::Bracket('(') => return self.expression(0),
            other => {
                let text = format!(
                    "a map key must be a quoted string, a number, a identifier, or an expression enclosed in \
                     parentheses (unexpected token {})",
                    other.shown()
                );
                return Err(FormulaError::new(at, text));
            }
        };
        self.advance();
        self.add(at, Form::Constant(Value::Text(text.into())))
    }
}
