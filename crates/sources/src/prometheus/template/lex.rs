//! Text into tokens.

use super::number::{self, Number};

const OPEN: &str = "<<";
const CLOSE: &str = ">>";

/// A line, and what is wrong there.
pub(super) type Fault = (usize, String);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// Text between actions.
    Text(String),
    Open,
    Close,
    Space,
    /// Keyword or name of a function.
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
    /// Anything else that is printable.
    Other(char),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) line: usize,
    pub(super) kind: Kind,
}

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    let mut lexer = Lexer { rest: text, line: 1, tokens: Vec::new() };
    let mut trim = false;
    while let Some(at) = lexer.rest.find(OPEN) {
        let (before, behind) = lexer.rest.split_at(at);
        let inside = behind.strip_prefix(OPEN).unwrap_or_default();
        let trimmed = inside.strip_prefix('-').filter(|inside| inside.starts_with(is_space));
        lexer.text(before, trim, trimmed.is_some());
        lexer.advance(OPEN.len() + usize::from(trimmed.is_some()));
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

    fn push(&mut self, kind: Kind, bytes: usize) {
        self.tokens.push(Token { line: self.line, kind });
        self.advance(bytes);
    }

    fn fault<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err((self.line, message.into()))
    }

    fn text(&mut self, text: &str, trim_start: bool, trim_end: bool) {
        let kept = if trim_start { text.trim_start_matches(is_space) } else { text };
        let kept = if trim_end { kept.trim_end_matches(is_space) } else { kept };
        if !kept.is_empty() {
            self.tokens.push(Token { line: self.line, kind: Kind::Text(kept.to_owned()) });
        }
        self.advance(text.len());
    }

    /// How many bytes close the action here, and whether spaces behind are trimmed.
    fn closing(&self) -> Option<(usize, bool)> {
        if self.rest.starts_with(CLOSE) {
            return Some((CLOSE.len(), false));
        }
        let trimmed = self.rest.strip_prefix(is_space)?.strip_prefix('-')?.starts_with(CLOSE);
        trimmed.then_some((CLOSE.len() + 2, true))
    }

    /// Reads up to the end of the action; whether the text behind is trimmed.
    fn action(&mut self) -> Result<bool, Fault> {
        let comment = self.rest.trim_start_matches(is_space);
        // Only a trim marker may stand between the delimiter and a comment.
        if comment.starts_with("/*") && (comment.len() == self.rest.len() || self.rest.starts_with(is_space))
        {
            self.advance(self.rest.len() - comment.len());
            return self.comment();
        }
        self.push(Kind::Open, 0);
        let mut open = 0_usize;
        loop {
            if let Some((bytes, trim)) = self.closing() {
                if open > 0 {
                    return self.fault("unclosed left paren");
                }
                self.push(Kind::Close, bytes);
                return Ok(trim);
            }
            let Some(first) = self.rest.chars().next() else { return self.fault("unclosed action") };
            match first {
                c if is_space(c) => self.space(),
                '(' => {
                    open += 1;
                    self.push(Kind::LeftParen, 1);
                }
                ')' if open == 0 => return self.fault("unexpected right paren"),
                ')' => {
                    open -= 1;
                    self.push(Kind::RightParen, 1);
                }
                '=' => self.push(Kind::Assign, 1),
                ':' if self.rest.starts_with(":=") => self.push(Kind::Declare, 2),
                ':' => return self.fault("expected :="),
                '|' => self.push(Kind::Pipe, 1),
                ',' => self.push(Kind::Comma, 1),
                '"' | '`' | '\'' => self.quoted(first)?,
                '$' => self.name(1)?,
                '.' if !self.rest.chars().nth(1).is_some_and(|c| c.is_ascii_digit()) => self.name(1)?,
                c if c.is_ascii_digit() || matches!(c, '.' | '+' | '-') => self.number()?,
                c if is_word(c) => self.name(0)?,
                c if c.is_ascii() && !c.is_ascii_control() => self.push(Kind::Other(c), 1),
                c => return self.fault(format!("unrecognized character in action: {c:?}")),
            }
        }
    }

    fn comment(&mut self) -> Result<bool, Fault> {
        let Some(end) = self.rest.find("*/") else { return self.fault("unclosed comment") };
        self.advance(end + 2);
        let Some((bytes, trim)) = self.closing() else {
            return self.fault("comment ends before closing delimiter");
        };
        self.advance(bytes);
        Ok(trim)
    }

    /// Several spaces, but for one that belongs to a closing delimiter.
    fn space(&mut self) {
        let mut bytes = 1;
        while self.rest.get(bytes..).is_some_and(|rest| rest.starts_with(is_space)) {
            bytes += 1;
        }
        let trims = self.rest.get(bytes..).and_then(|rest| rest.strip_prefix('-'));
        if trims.is_some_and(|rest| rest.starts_with(CLOSE)) {
            bytes -= 1;
        }
        self.push(Kind::Space, bytes);
    }

    /// A word, or a name behind a dot or dollar.
    fn name(&mut self, sigil: usize) -> Result<(), Fault> {
        let (sign, behind) = self.rest.split_at_checked(sigil).unwrap_or_default();
        let end = behind.find(|c| !is_word(c)).unwrap_or(behind.len());
        let (name, behind) = behind.split_at(end);
        let ends = behind.is_empty()
            || behind.starts_with(|c| is_space(c) || matches!(c, '.' | ',' | '|' | ':' | ')' | '('))
            || behind.starts_with(CLOSE);
        if let (false, Some(bad)) = (ends, behind.chars().next()) {
            return self.fault(format!("bad character {bad:?}"));
        }
        let kind = match (sign, name) {
            (".", "") => Kind::Dot,
            (".", name) => Kind::Field(name.to_owned()),
            ("$", name) => Kind::Variable(format!("${name}")),
            (_, name) => Kind::Word(name.to_owned()),
        };
        self.push(kind, sigil + end);
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        let bytes = number::scan(self.rest);
        let (text, behind) = self.rest.split_at_checked(bytes).unwrap_or_default();
        let whole = !behind.starts_with(is_word);
        match number::parse(text).filter(|_| whole) {
            Some(number) => self.push(Kind::Number(number), bytes),
            None => return self.fault(format!("bad number syntax: {text:?}")),
        }
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), Fault> {
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
            '`' => Some(Kind::String(inner.replace('\r', ""))),
            '"' => number::unescape(inner).map(Kind::String),
            _ => number::character(inner).map(|c| Kind::Number(Number::Int(i64::from(u32::from(c))))),
        };
        match kind {
            Some(kind) => self.push(kind, end + 1),
            None => return self.fault("invalid syntax in quoted text"),
        }
        Ok(())
    }
}
