//! The lexer.

use super::error::FormulaError;
use super::text;

/// Longest formula that is read.
const MAX_FORMULA_BYTES: usize = 64 * 1024;

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind<'a> {
    /// A name.
    Name(&'a str),
    /// A number, as written.
    Number(&'a str),
    /// A string, unquoted and unescaped.
    Text(String),
    /// `#`, `#acc` or `#index`: the name after the mark.
    Pointer(&'a str),
    /// An operator, including keywords such as `in`.
    Sign(&'static str),
    /// A bracket or brace.
    Bracket(char),
    /// The end.
    End,
}

/// A token and its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) at: u32,
}

impl TokenKind<'_> {
    /// Its name in error messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Name(name) => format!("Identifier({name:?})"),
            Self::Number(digits) => format!("Number({digits:?})"),
            Self::Text(text) => format!("String({text:?})"),
            Self::Pointer(_) => "Operator(\"#\")".to_owned(),
            Self::Sign(sign) => format!("Operator({sign:?})"),
            Self::Bracket(bracket) => format!("Bracket(\"{bracket}\")"),
            Self::End => "EOF".to_owned(),
        }
    }
}

/// Keywords that are operators.
const KEYWORD_OPERATORS: [&str; 11] =
    ["not", "in", "and", "or", "matches", "contains", "startsWith", "endsWith", "let", "if", "else"];

/// Operators, longer ones first.
const OPERATORS: [&str; 27] = [
    "**", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "..", "::", "+", "-", "*", "/", "%", "^", "<", ">",
    "!", "|", "?", ":", ".", ",", ";", "=",
];

/// Splits a formula into tokens; the last is [`TokenKind::End`].
pub(super) fn tokens(source: &str) -> Result<Vec<Token<'_>>, FormulaError> {
    if source.len() > MAX_FORMULA_BYTES {
        return Err(FormulaError::whole(format!("formula is longer than {MAX_FORMULA_BYTES} bytes")));
    }
    let mut lexer = Lexer { rest: source, at: 0, tokens: Vec::new() };
    while lexer.skip_blanks()? {
        let (at, kind) = (lexer.at, lexer.token()?);
        lexer.tokens.push(Token { kind, at });
    }
    // The position of the end is the last character.
    let at = lexer.at.saturating_sub(1);
    lexer.tokens.push(Token { kind: TokenKind::End, at });
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    rest: &'a str,
    at: u32,
    tokens: Vec<Token<'a>>,
}

impl<'a> Lexer<'a> {
    /// Skips blanks and comments; false at the end.
    fn skip_blanks(&mut self) -> Result<bool, FormulaError> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.take(blank);
            if self.rest.starts_with("//") {
                let line = self.rest.find('\n').unwrap_or(self.rest.len());
                self.take(line);
            } else if self.rest.starts_with("/*") {
                let Some(end) = self.rest.find("*/") else {
                    return Err(FormulaError::new(self.at, "unclosed comment"));
                };
                self.take(end + 2);
            } else {
                return Ok(!self.rest.is_empty());
            }
        }
    }

    /// Consumes this number of bytes, which end at a character boundary.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        self.at += taken.chars().count() as u32;
        taken
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        self.take(end)
    }

    /// The next token.
    fn token(&mut self) -> Result<TokenKind<'a>, FormulaError> {
        let mut ahead = self.rest.chars();
        let (first, second) = (ahead.next().unwrap_or_default(), ahead.next());
        match first {
            '\'' | '"' | '`' => self.quoted(first),
            '0'..='9' => self.number(),
            '.' if second.is_some_and(|c| c.is_ascii_digit()) => self.number(),
            '#' => {
                self.take(1);
                Ok(TokenKind::Pointer(self.take_while(is_part)))
            }
            '(' | ')' | '[' | ']' | '{' | '}' => {
                self.take(1);
                Ok(TokenKind::Bracket(first))
            }
            c if is_part(c) => {
                let name = self.take_while(is_part);
                let sign = KEYWORD_OPERATORS.iter().find(|keyword| **keyword == name);
                Ok(sign.map_or(TokenKind::Name(name), |sign| TokenKind::Sign(sign)))
            }
            _ => match OPERATORS.iter().find(|sign| self.rest.starts_with(**sign)) {
                Some(sign) => {
                    self.take(sign.len());
                    Ok(TokenKind::Sign(sign))
                }
                None => {
                    let text = format!("unrecognized character: U+{:04X} '{first}'", first as u32);
                    Err(FormulaError::new(self.at, text))
                }
            },
        }
    }

    /// Digits with `_` among them; `1..3` is a range and no float.
    fn number(&mut self) -> Result<TokenKind<'a>, FormulaError> {
        let (start, at) = (self.rest, self.at);
        let is_prefixed =
            |prefix: &str| start.get(..2).is_some_and(|found| found.eq_ignore_ascii_case(prefix));
        if is_prefixed("0x") || is_prefixed("0b") || is_prefixed("0o") {
            let is_hex = is_prefixed("0x");
            self.take(2);
            self.take_while(|c| c == '_' || if is_hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() });
        } else {
            self.take_while(is_digit);
            if self.rest.starts_with('.') && !self.rest.starts_with("..") {
                self.take(1);
                self.take_while(is_digit);
            }
            if self.rest.starts_with(['e', 'E']) {
                self.take(1);
                if self.rest.starts_with(['+', '-']) {
                    self.take(1);
                }
                self.take_while(is_digit);
            }
        }
        let length = start.len() - self.rest.len();
        let digits = start.get(..length).unwrap_or_default();
        if let Some(next) = self.rest.chars().next().filter(|c| is_part(*c)) {
            return Err(FormulaError::new(at, format!("bad number syntax: \"{digits}{next}\"")));
        }
        Ok(TokenKind::Number(digits))
    }

    fn quoted(&mut self, quote: char) -> Result<TokenKind<'a>, FormulaError> {
        let at = self.at;
        let inner = self.rest.get(1..).unwrap_or_default();
        let mut escaped = false;
        let end = inner.find(|c| {
            let is_end = c == quote && !escaped;
            escaped = c == '\\' && !escaped && quote != '`';
            is_end
        });
        let Some(end) = end else {
            return Err(FormulaError::new(at + self.rest.chars().count() as u32, "literal not terminated"));
        };
        let raw = inner.get(..end).unwrap_or_default();
        self.take(end + 2);
        if quote == '`' {
            return Ok(TokenKind::Text(raw.to_owned()));
        }
        text::unescaped(raw).map(TokenKind::Text).map_err(|why| FormulaError::new(at, why))
    }
}

fn is_digit(c: char) -> bool {
    c == '_' || c.is_ascii_digit()
}

/// Whether a name may contain it.
fn is_part(c: char) -> bool {
    c == '_' || c == '$' || c.is_alphanumeric()
}
