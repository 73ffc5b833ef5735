//! Lexer.

use super::number::{self, Number};

const OPEN_DELIMITER: &str = "<<";
const CLOSE_DELIMITER: &str = ">>";
/// Bytes of `-` and the space behind it.
const TRIM_MARKER_BYTES: usize = 2;
/// Bytes of `/*`, and of `*/`.
const COMMENT_MARKER_BYTES: usize = 2;

/// Line and message of an error.
pub(super) type TemplateFault = (usize, String);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// Text between actions.
    Text(String),
    Open,
    Close,
    Space,
    /// Keyword or function name.
    Word(String),
    /// `.Name`
    Field(String),
    /// `$` or `$name`
    Variable(String),
    Dot,
    String(String),
    Number(Number),
    Pipe,
    Declare,
    Assign,
    Comma,
    LeftParen,
    RightParen,
    /// Any other printable character.
    Other(char),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) line: usize,
    pub(super) kind: TokenKind,
}

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, TemplateFault> {
    let mut lexer = Lexer { rest: text, line: 1, tokens: Vec::new() };
    let mut trim = false;
    while let Some(at) = lexer.rest.find(OPEN_DELIMITER) {
        let (before, behind) = lexer.rest.split_at(at);
        let inside = behind.strip_prefix(OPEN_DELIMITER).unwrap_or_default();
        let trimmed = inside.strip_prefix('-').filter(|inside| inside.starts_with(is_space));
        lexer.text(before, trim, trimmed.is_some());
        lexer.advance(OPEN_DELIMITER.len() + if trimmed.is_some() { TRIM_MARKER_BYTES } else { 0 });
        trim = lexer.action()?;
    }
    lexer.text(lexer.rest, trim, false);
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    tokens: Vec<Token>,
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

impl Lexer<'_> {
    fn advance(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.line += passed.matches('\n').count();
        self.rest = rest;
    }

    fn push(&mut self, kind: TokenKind, bytes: usize) {
        self.tokens.push(Token { line: self.line, kind });
        self.advance(bytes);
    }

    fn fault<T>(&self, message: impl Into<String>) -> Result<T, TemplateFault> {
        Err((self.line, message.into()))
    }

    fn text(&mut self, text: &str, trim_start: bool, trim_end: bool) {
        let kept = if trim_start { text.trim_start_matches(is_space) } else { text };
        let kept = if trim_end { kept.trim_end_matches(is_space) } else { kept };
        if !kept.is_empty() {
            self.tokens.push(Token { line: self.line, kind: TokenKind::Text(kept.to_owned()) });
        }
        self.advance(text.len());
    }

    /// Length of the closing delimiter here, and whether the following white space is trimmed.
    fn closing(&self) -> Option<(usize, bool)> {
        if self.rest.starts_with(CLOSE_DELIMITER) {
            return Some((CLOSE_DELIMITER.len(), false));
        }
        let trimmed = self.rest.strip_prefix(is_space)?.strip_prefix('-')?.starts_with(CLOSE_DELIMITER);
        trimmed.then_some((CLOSE_DELIMITER.len() + 2, true))
    }

    /// Lexes an action; whether the following text is trimmed.
    fn action(&mut self) -> Result<bool, TemplateFault> {
        // Only a trim marker may precede a comment.
        if self.rest.starts_with("/*") {
            return self.comment();
        }
        self.push(TokenKind::Open, 0);
        let mut open = 0_usize;
        loop {
            if let Some((bytes, trim)) = self.closing() {
                if open > 0 {
                    return self.fault("unclosed left paren");
                }
                self.push(TokenKind::Close, bytes);
                return Ok(trim);
            }
            let Some(first) = self.rest.chars().next() else { return self.fault("unclosed action") };
            match first {
                c if is_space(c) => self.space(),
                '(' => {
                    open += 1;
                    self.push(TokenKind::LeftParen, 1);
                }
                ')' if open == 0 => return self.fault("unexpected right paren"),
                ')' => {
                    open -= 1;
                    self.push(TokenKind::RightParen, 1);
                }
                '=' => self.push(TokenKind::Assign, 1),
                ':' if self.rest.starts_with(":=") => self.push(TokenKind::Declare, 2),
                ':' => return self.fault("expected :="),
                '|' => self.push(TokenKind::Pipe, 1),
                ',' => self.push(TokenKind::Comma, 1),
                '"' | '`' | '\'' => self.quoted(first)?,
                '$' => self.name(1)?,
                '.' if !self.rest.chars().nth(1).is_some_and(|c| c.is_ascii_digit()) => self.name(1)?,
                c if c.is_ascii_digit() || matches!(c, '.' | '+' | '-') => self.number()?,
                c if is_word(c) => self.name(0)?,
                c if c.is_ascii() && !c.is_ascii_control() => self.push(TokenKind::Other(c), 1),
                c => return self.fault(format!("unrecognized character in action: {c:?}")),
            }
        }
    }

    fn comment(&mut self) -> Result<bool, TemplateFault> {
        // The opening marker does not overlap the closing one: `/*/` is not closed.
        self.advance(COMMENT_MARKER_BYTES);
        let Some(end) = self.rest.find("*/") else { return self.fault("unclosed comment") };
        self.advance(end + COMMENT_MARKER_BYTES);
        let Some((bytes, trim)) = self.closing() else {
            return self.fault("comment ends before closing delimiter");
        };
        self.advance(bytes);
        Ok(trim)
    }

    /// White space, without the space of a closing trim marker.
    fn space(&mut self) {
        let mut bytes = 1;
        while self.rest.get(bytes..).is_some_and(|rest| rest.starts_with(is_space)) {
            bytes += 1;
        }
        let trims = self.rest.get(bytes..).and_then(|rest| rest.strip_prefix('-'));
        if trims.is_some_and(|rest| rest.starts_with(CLOSE_DELIMITER)) {
            bytes -= 1;
        }
        self.push(TokenKind::Space, bytes);
    }

    /// A word, or a name after a dot or dollar sign.
    fn name(&mut self, sigil: usize) -> Result<(), TemplateFault> {
        let (sign, behind) = self.rest.split_at_checked(sigil).unwrap_or_default();
        let end = behind.find(|c| !is_word(c)).unwrap_or(behind.len());
        let (name, behind) = behind.split_at(end);
        let ends = behind.is_empty()
            || behind.starts_with(|c| is_space(c) || matches!(c, '.' | ',' | '|' | ':' | ')' | '('))
            || behind.starts_with(CLOSE_DELIMITER);
        if let (false, Some(bad)) = (ends, behind.chars().next()) {
            return self.fault(format!("bad character {bad:?}"));
        }
        let kind = match (sign, name) {
            (".", "") => TokenKind::Dot,
            (".", name) => TokenKind::Field(name.to_owned()),
            ("$", name) => TokenKind::Variable(format!("${name}")),
            (_, name) => TokenKind::Word(name.to_owned()),
        };
        self.push(kind, sigil + end);
        Ok(())
    }

    fn number(&mut self) -> Result<(), TemplateFault> {
        let bytes = number::scan(self.rest);
        let (text, behind) = self.rest.split_at_checked(bytes).unwrap_or_default();
        let whole = !behind.starts_with(is_word);
        match number::parse(text).filter(|_| whole) {
            Some(number) => self.push(TokenKind::Number(number), bytes),
            None => return self.fault(format!("bad number syntax: {text:?}")),
        }
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), TemplateFault> {
        let mut escaped = false;
        let end = self.rest.char_indices().skip(1).find_map(|(at, c)| {
            let ends = c == quote && !escaped || c == '\n' && quote != '`';
            escaped = c == '\\' && !escaped && quote != '`';
            ends.then_some((at, c))
        });
        let Some((end, _)) = end.filter(|(_, c)| *c == quote) else {
            return self.fault(if quote == '\'' {
                "unterminated character constant"
            } else {
                "unterminated quoted string"
            });
        };
        let inner = self.rest.get(1..end).unwrap_or_default();
        let kind = match quote {
            '`' => Some(TokenKind::String(inner.replace('\r', ""))),
            '"' => number::unescape(inner).map(TokenKind::String),
            _ => number::character(inner).map(|c| TokenKind::Number(Number::Int(i64::from(u32::from(c))))),
        };
        match kind {
            Some(kind) => self.push(kind, end + 1),
            None => return self.fault("invalid syntax in quoted text"),
        }
        Ok(())
    }
}
