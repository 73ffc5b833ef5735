//! The grammar of label selector texts, with the Kubernetes error texts.

use super::lexer::{Token, TokenKind, tokens};
use super::{InvalidRequirement, Operator, Requirement, key_fault};
use crate::field::FieldError;

/// Why a text is not a label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorParseError {
    /// A requirement begins or ends with something unexpected.
    #[error("found '{found}', expected: {expected}")]
    Unexpected {
        /// The token met.
        found: String,
        /// What could stand there.
        expected: &'static str,
    },
    /// A requirement is malformed.
    #[error("unable to parse requirement: {0}")]
    Requirement(#[from] RequirementError),
}

/// Why one requirement in a text is malformed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    /// A token stands where it cannot.
    #[error("found '{found}', expected: {expected}")]
    Unexpected {
        /// The token met.
        found: String,
        /// What could stand there.
        expected: &'static str,
    },
    /// `in` or `notin` is not followed by a list. (Kubernetes writes no comma here.)
    #[error("found '{found}' expected: '('")]
    NoList {
        /// The token met.
        found: String,
    },
    /// The key is not a label key.
    #[error("{0}")]
    Key(FieldError),
    /// The values do not suit the key or the operator.
    #[error(transparent)]
    Invalid(#[from] InvalidRequirement),
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorParseError> {
    let unexpected = |token: Token<'_>, expected| SelectorParseError::Unexpected {
        found: token.text.to_owned(),
        expected,
    };
    let mut parser = Parser { tokens: tokens(text), at: 0 };
    let mut requirements = Vec::new();
    if parser.peek().kind == TokenKind::End {
        return Ok(requirements);
    }
    if !parser.at_requirement() {
        return Err(unexpected(parser.peek(), "!, identifier, or 'end of string'"));
    }
    loop {
        requirements.push(parser.requirement()?);
        let separator = parser.take();
        match separator.kind {
            TokenKind::End => return Ok(requirements),
            TokenKind::Comma if parser.at_requirement() => {}
            TokenKind::Comma => return Err(unexpected(parser.peek(), "identifier after ','")),
            _ => return Err(unexpected(separator, "',' or 'end of string'")),
        }
    }
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.at).copied().unwrap_or(Token { kind: TokenKind::End, text: "" })
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn at_requirement(&self) -> bool {
        self.peek().is_word() || self.peek().kind == TokenKind::Not
    }

    fn requirement(&mut self) -> Result<Requirement, RequirementError> {
        let negated = self.peek().kind == TokenKind::Not;
        if negated {
            self.take();
        }
        let key = self.take();
        if !key.is_word() {
            return Err(unexpected(key, "identifier"));
        }
        // The key is validated before the operator is parsed. Its error has no path, as in Kubernetes.
        if let Some(fault) = key_fault("<nil>", key.text) {
            return Err(RequirementError::Key(fault));
        }
        let (operator, values) = if negated {
            (Operator::DoesNotExist, Vec::new())
        } else if matches!(self.peek().kind, TokenKind::End | TokenKind::Comma) {
            (Operator::Exists, Vec::new())
        } else {
            let operator = self.operator()?;
            let values = match operator {
                Operator::In | Operator::NotIn => self.list()?,
                _ => vec![self.exact_value()?],
            };
            (operator, values)
        };
        Ok(Requirement::new(key.text, operator, values)?)
    }

    fn operator(&mut self) -> Result<Operator, RequirementError> {
        let token = self.take();
        Ok(match token.kind {
            TokenKind::In => Operator::In,
            TokenKind::NotIn => Operator::NotIn,
            TokenKind::Equals => Operator::Equals,
            TokenKind::DoubleEquals => Operator::DoubleEquals,
            TokenKind::NotEquals => Operator::NotEquals,
            TokenKind::Greater => Operator::GreaterThan,
            TokenKind::Less => Operator::LessThan,
            _ => return Err(unexpected(token, "in, notin, =, ==, !=, gt, lt")),
        })
    }

    /// The value after `=` and its like; nothing there means the empty value.
    fn exact_value(&mut self) -> Result<String, RequirementError> {
        if matches!(self.peek().kind, TokenKind::End | TokenKind::Comma) {
            return Ok(String::new());
        }
        let token = self.take();
        if token.is_word() { Ok(token.text.to_owned()) } else { Err(unexpected(token, "identifier")) }
    }

    /// The values of a set, sorted; empty places between commas mean the empty value.
    fn list(&mut self) -> Result<Vec<String>, RequirementError> {
        let open = self.take();
        if open.kind != TokenKind::Open {
            return Err(RequirementError::NoList { found: open.text.to_owned() });
        }
        let first = self.peek();
        let mut values = match first.kind {
            TokenKind::Close => vec![String::new()],
            TokenKind::Comma => self.list_items()?,
            _ if first.is_word() => self.list_items()?,
            _ => return Err(unexpected(first, "',', ')' or identifier")),
        };
        self.take();
        // Kubernetes keeps a set here, so faults below name the place in sorted order.
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }

    /// Stops before the closing parenthesis.
    fn list_items(&mut self) -> Result<Vec<String>, RequirementError> {
        let mut values = Vec::new();
        loop {
            let token = self.take();
            let next = self.peek();
            if token.is_word() {
                values.push(token.text.to_owned());
                match next.kind {
                    TokenKind::Comma => {}
                    TokenKind::Close => return Ok(values),
                    _ => return Err(unexpected(next, "',' or ')'")),
                }
            } else if token.kind == TokenKind::Comma {
                if values.is_empty() {
                    values.push(String::new());
                }
                match next.kind {
                    TokenKind::Close => {
                        values.push(String::new());
                        return Ok(values);
                    }
                    TokenKind::Comma => values.push(String::new()),
                    _ => {}
                }
            } else {
                return Err(unexpected(token, "',', or identifier"));
            }
        }
    }
}

fn unexpected(token: Token<'_>, expected: &'static str) -> RequirementError {
    RequirementError::Unexpected { found: token.text.to_owned(), expected }
}
