//! The parser. Precedence follows the table in docs/spec/keda.md 4.5.

mod calls;
mod literals;

use std::sync::Arc;

use super::NamePlaces;
use super::error::FormulaError;
use super::lexer::{self, Token, TokenKind};
use super::syntax::{Binary, Form, Id, Pointer, Tree, Unary};
use super::value::Value;

/// Maximum nesting of expressions while parsing.
const MAX_NESTING: usize = 200;

/// Parses a formula; `names` hide functions of the same name.
pub(super) fn parse(source: &str, names: &NamePlaces<'_>) -> Result<Tree, FormulaError> {
    let tokens = lexer::tokens(source).map_err(|error| error.shown_in(source))?;
    let mut parser =
        Parser { tokens: &tokens, next: 0, tree: Tree::default(), names, predicates: 0, depth: 0 };
    parser.whole().map_err(|error| error.shown_in(source))?;
    Ok(parser.tree)
}

struct Parser<'a> {
    tokens: &'a [Token<'a>],
    next: usize,
    tree: Tree,
    names: &'a NamePlaces<'a>,
    /// Nesting depth of predicates.
    predicates: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn whole(&mut self) -> Result<(), FormulaError> {
        let root = self.sequence()?;
        if *self.token() != TokenKind::End {
            return Err(self.unexpected());
        }
        self.tree.root = root;
        Ok(())
    }

    /// `a; b; c`: the last counts. A semicolon may follow it only at the end of the formula.
    fn sequence(&mut self) -> Result<Id, FormulaError> {
        let at = self.at();
        let mut items = vec![self.expression(0)?];
        while self.takes(";") && *self.token() != TokenKind::End {
            items.push(self.expression(0)?);
        }
        match items.as_slice() {
            [only] => Ok(*only),
            _ => self.add(at, Form::Sequence(items.into())),
        }
    }

    /// Parses an expression with operators of at least the precedence `least`.
    fn expression(&mut self, least: u16) -> Result<Id, FormulaError> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(FormulaError::new(self.at(), "formula is nested too deeply"));
        }
        let parsed = self.expression_within(least);
        self.depth -= 1;
        parsed
    }

    fn expression_within(&mut self, least: u16) -> Result<Id, FormulaError> {
        if least == 0 {
            if self.is_sign("let") {
                return self.declaration();
            }
            if self.is_sign("if") {
                return self.conditional();
            }
        }
        let mut left = self.primary()?;
        let mut previous = None;
        while let TokenKind::Sign(sign) = *self.token() {
            let at = self.at();
            if sign == "|" && least == 0 {
                self.advance();
                left = self.piped(left)?;
                previous = None;
                continue;
            }
            let negated = sign == "not";
            let sign = match self.token_after() {
                TokenKind::Sign(next) if negated => *next,
                _ => sign,
            };
            let Some((operator, binding)) = Binary::of(sign).filter(|(_, binding)| *binding >= least) else {
                break;
            };
            if negated && !operator.can_be_negated() {
                break;
            }
            self.advance();
            if negated {
                self.advance();
            }
            if previous == Some(Binary::Coalesce) && operator != Binary::Coalesce {
                let text = format!(
                    "Operator ({sign}) and coalesce expressions (??) cannot be mixed. Wrap either by parentheses."
                );
                return Err(FormulaError::new(at, text));
            }
            left = if operator.is_chained() {
                self.comparison(left, operator, at, binding)?
            } else {
                let right = self.expression(if operator == Binary::Power { binding } else { binding + 1 })?;
                self.add(at, Form::Binary(operator, left, right))?
            };
            if negated {
                left = self.add(at, Form::Unary(Unary::Not, left))?;
            }
            previous = Some(operator);
        }
        if least == 0 { self.choice(left) } else { Ok(left) }
    }

    /// `1 < a < 5` means `1 < a and a < 5`.
    fn comparison(&mut self, left: Id, operator: Binary, at: u32, binding: u16) -> Result<Id, FormulaError> {
        let (mut left, mut operator, mut at) = (left, operator, at);
        let mut all = None;
        loop {
            let right = self.expression(binding + 1)?;
            let this = self.add(at, Form::Binary(operator, left, right))?;
            let joined = match all {
                None => this,
                Some(before) => self.add(at, Form::Binary(Binary::And, before, this))?,
            };
            let next = match self.token() {
                TokenKind::Sign(sign) => {
                    Binary::of(sign).map(|(next, _)| next).filter(|next| next.is_chained())
                }
                _ => None,
            };
            let Some(next) = next else {
                return Ok(joined);
            };
            (left, operator, at, all) = (right, next, self.at(), Some(joined));
            self.advance();
        }
    }

    /// `condition ? yes : no` and `value ?: other`.
    fn choice(&mut self, condition: Id) -> Result<Id, FormulaError> {
        let mut condition = condition;
        while self.is_sign("?") {
            self.advance();
            let yes = if self.is_sign(":") { condition } else { self.expression(0)? };
            self.expect(":")?;
            let no = self.expression(0)?;
            let at = self.tree.node(condition).at;
            condition = self.add(at, Form::Choice { condition, yes, no })?;
        }
        Ok(condition)
    }

    /// `if condition { yes } else { no }`.
    fn conditional(&mut self) -> Result<Id, FormulaError> {
        self.advance();
        let condition = self.expression(0)?;
        let yes = self.block()?;
        self.expect("else")?;
        let no = if self.is_sign("if") { self.expression(0)? } else { self.block()? };
        let at = self.tree.node(condition).at;
        self.add(at, Form::Choice { condition, yes, no })
    }

    fn block(&mut self) -> Result<Id, FormulaError> {
        self.expect_bracket('{')?;
        let inner = self.sequence()?;
        self.expect_bracket('}')?;
        Ok(inner)
    }

    /// `let name = value; body`.
    fn declaration(&mut self) -> Result<Id, FormulaError> {
        let at = self.at();
        self.advance();
        let name_at = self.at();
        let name = self.name()?;
        self.expect("=")?;
        let value = self.expression(0)?;
        self.expect(";")?;
        let body = self.sequence()?;
        let slot = self.tree.locals;
        self.tree.locals += 1;
        self.add(at, Form::Let { name: name.into(), name_at, value, body, slot })
    }

    fn primary(&mut self) -> Result<Id, FormulaError> {
        let at = self.at();
        match self.token() {
            TokenKind::Sign(sign) => {
                if let Some((operator, binding)) = Unary::of(sign) {
                    self.advance();
                    let operand = self.expression(binding)?;
                    let node = self.add(at, Form::Unary(operator, operand))?;
                    return self.postfix(node);
                }
                if *sign == "." && self.predicates > 0 {
                    let item = self.add(at, Form::Pointer(Pointer::Item))?;
                    return self.postfix(item);
                }
                Err(self.unexpected())
            }
            TokenKind::Bracket('(') => {
                self.advance();
                let inner = self.sequence()?;
                self.expect_bracket(')')?;
                self.postfix(inner)
            }
            TokenKind::Pointer(name) if self.predicates > 0 => {
                let pointer = match *name {
                    "" => Pointer::Item,
                    "acc" => Pointer::Accumulator,
                    "index" => Pointer::Index,
                    other => return Err(FormulaError::new(at, format!("unknown pointer #{other}"))),
                };
                self.advance();
                let node = self.add(at, Form::Pointer(pointer))?;
                self.postfix(node)
            }
            _ => {
                let node = self.secondary()?;
                self.postfix(node)
            }
        }
    }

    fn secondary(&mut self) -> Result<Id, FormulaError> {
        let at = self.at();
        match self.token() {
            TokenKind::Name(name) => {
                let name = *name;
                self.advance();
                match name {
                    "true" => self.add(at, Form::Constant(Value::Bool(true))),
                    "false" => self.add(at, Form::Constant(Value::Bool(false))),
                    "nil" => self.add(at, Form::Constant(Value::Nil)),
                    _ if self.is_bracket('(') => self.call(name, at, None),
                    _ => self.add(at, Form::Name(name.into())),
                }
            }
            TokenKind::Number(digits) => {
                self.advance();
                let value = literals::number(digits).map_err(|why| FormulaError::new(self.at(), why))?;
                self.add(at, Form::Constant(value))
            }
            TokenKind::Text(text) => {
                let text: Arc<str> = text.as_str().into();
                self.advance();
                self.add(at, Form::Constant(Value::Text(text)))
            }
            TokenKind::Bracket('[') => self.array(),
            TokenKind::Bracket('{') => self.map(),
            _ => Err(self.unexpected()),
        }
    }

    fn add(&mut self, at: u32, form: Form) -> Result<Id, FormulaError> {
        let full = self.tree.len() >= super::syntax::MAX_NODES;
        self.tree.add(at, form).ok_or_else(|| {
            let text =
                if full { "formula exceeds maximum allowed nodes" } else { "formula is nested too deeply" };
            FormulaError::new(at, text)
        })
    }

    fn token(&self) -> &'a TokenKind<'a> {
        self.tokens.get(self.next).map_or(&TokenKind::End, |token| &token.kind)
    }

    fn token_after(&self) -> &'a TokenKind<'a> {
        self.tokens.get(self.next + 1).map_or(&TokenKind::End, |token| &token.kind)
    }

    fn at(&self) -> u32 {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |token| token.at)
    }

    fn advance(&mut self) {
        self.next += 1;
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.token(), TokenKind::Sign(found) if *found == sign)
    }

    fn is_bracket(&self, bracket: char) -> bool {
        *self.token() == TokenKind::Bracket(bracket)
    }

    fn takes(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), FormulaError> {
        if self.takes(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_bracket(&mut self, bracket: char) -> Result<(), FormulaError> {
        if !self.is_bracket(bracket) {
            return Err(self.unexpected());
        }
        self.advance();
        Ok(())
    }

    fn name(&mut self) -> Result<&'a str, FormulaError> {
        let TokenKind::Name(name) = self.token() else {
            return Err(self.unexpected());
        };
        self.advance();
        Ok(name)
    }

    fn unexpected(&self) -> FormulaError {
        FormulaError::new(self.at(), format!("unexpected token {}", self.token().shown()))
    }
}
