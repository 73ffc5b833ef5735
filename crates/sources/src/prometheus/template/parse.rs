//! Tokens into trees.

use std::collections::BTreeMap;

use super::DEEPEST;
use super::functions::Function;
use super::lex::{Fault, Kind, Token};
use super::tree::{Branch, List, Node, Operand, Pipe};

/// All templates of a text by name; its own under the name given.
pub(super) fn bodies(name: &str, tokens: Vec<Token>) -> Result<BTreeMap<String, List>, Fault> {
    let mut parser = Parser { tokens, at: 0, line: 1, depth: 0, bodies: BTreeMap::new() };
    let mut scope = Scope::new();
    let mut own = List::default();
    while parser.peek().is_some() {
        if let Stop::End | Stop::Else = parser.item(&mut own, &mut scope, true)? {
            return parser.fault("unexpected {{end}} or {{else}}");
        }
    }
    parser.define(name.to_owned(), own)?;
    Ok(parser.bodies)
}

/// Variables that are known, and whether a loop is open.
struct Scope {
    variables: Vec<String>,
    loops: usize,
}

impl Scope {
    fn new() -> Self {
        Self { variables: vec!["$".to_owned()], loops: 0 }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Stop {
    Not,
    End,
    Else,
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    line: usize,
    depth: usize,
    bodies: BTreeMap<String, List>,
}

impl Parser {
    fn fault<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err((self.line, message.into()))
    }

    fn next(&mut self) -> Result<Kind, Fault> {
        match self.tokens.get(self.at) {
            Some(token) => {
                self.line = token.line;
                self.at += 1;
                Ok(token.kind.clone())
            }
            None => self.fault("unexpected EOF"),
        }
    }

    fn next_word(&mut self) -> Result<Kind, Fault> {
        self.skip_space();
        self.next()
    }

    fn skip_space(&mut self) {
        while self.peek() == Some(&Kind::Space) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<&Kind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn peek_word(&mut self) -> Option<&Kind> {
        self.skip_space();
        self.peek()
    }

    fn unexpected<T>(&self, kind: &Kind, context: &str) -> Result<T, Fault> {
        let what = match kind {
            Kind::Text(_) => "text".to_owned(),
            Kind::Open => "{{".to_owned(),
            Kind::Close => "}}".to_owned(),
            Kind::Space => "space".to_owned(),
            Kind::Word(word) => format!("<{word}>"),
            Kind::Field(name) => format!("<.{name}>"),
            Kind::Variable(name) => format!("{name:?}"),
            Kind::Dot => "\".\"".to_owned(),
            Kind::String(text) => format!("{text:?}"),
            Kind::Number(_) => "number".to_owned(),
            Kind::Pipe => "\"|\"".to_owned(),
            Kind::Declare => "\":=\"".to_owned(),
            Kind::Assign => "\"=\"".to_owned(),
            Kind::Comma => "\",\"".to_owned(),
            Kind::LeftParen => "\"(\"".to_owned(),
            Kind::RightParen => "\")\"".to_owned(),
            Kind::Other(c) => format!("\"{c}\""),
        };
        self.fault(format!("unexpected {what} in {context}"))
    }

    fn close(&mut self, context: &str) -> Result<(), Fault> {
        match self.next_word()? {
            Kind::Close => Ok(()),
            other => self.unexpected(&other, context),
        }
    }

    fn define(&mut self, name: String, body: List) -> Result<(), Fault> {
        let empty =
            |list: &List| list.0.iter().all(|(_, node)| matches!(node, Node::Text(t) if t.trim().is_empty()));
        match self.bodies.get(&name) {
            Some(old) if !empty(old) && !empty(&body) => {
                return self.fault(format!("template: multiple definition of template {name:?}"));
            }
            Some(old) if !empty(old) => {}
            _ => drop(self.bodies.insert(name, body)),
        }
        Ok(())
    }

    fn deeper(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > DEEPEST { self.fault("template is nested too deeply") } else { Ok(()) }
    }

    /// Up to `end` or `else`.
    fn list(&mut self, scope: &mut Scope) -> Result<(List, Stop), Fault> {
        self.deeper()?;
        let mut list = List::default();
        loop {
            let stop = self.item(&mut list, scope, false)?;
            if stop != Stop::Not {
                self.depth -= 1;
                return Ok((list, stop));
            }
        }
    }

    fn item(&mut self, list: &mut List, scope: &mut Scope, top: bool) -> Result<Stop, Fault> {
        let kind = self.next()?;
        let line = self.line;
        match kind {
            Kind::Text(text) => list.0.push((line, Node::Text(text))),
            Kind::Open => {
                let word = match self.peek_word() {
                    Some(Kind::Word(word)) => word.clone(),
                    _ => String::new(),
                };
                return self.action(&word, list, scope, top, line);
            }
            other => return self.unexpected(&other, "input"),
        }
        Ok(Stop::Not)
    }

    fn action(
        &mut self,
        word: &str,
        list: &mut List,
        scope: &mut Scope,
        top: bool,
        line: usize,
    ) -> Result<Stop, Fault> {
        let keywords =
            ["end", "else", "if", "with", "range", "break", "continue", "template", "block", "define"];
        if keywords.contains(&word) {
            self.next_word()?;
        }
        let node = match word {
            "end" => {
                self.close("end")?;
                return Ok(Stop::End);
            }
            "else" => {
                let chained =
                    matches!(self.peek_word(), Some(Kind::Word(word)) if word == "if" || word == "with");
                if !chained {
                    self.close("else")?;
                }
                return Ok(Stop::Else);
            }
            "if" => Node::If(self.branch("if", scope)?),
            "with" => Node::With(self.branch("with", scope)?),
            "range" => Node::Range(self.branch("range", scope)?),
            "break" | "continue" => {
                self.close(word)?;
                if scope.loops == 0 {
                    return self.fault(format!("{{{{{word}}}}} outside {{{{range}}}}"));
                }
                if word == "break" { Node::Break } else { Node::Continue }
            }
            "template" => {
                let name = self.name("template clause")?;
                let pipe = match self.peek_word() {
                    Some(Kind::Close) => {
                        self.next()?;
                        None
                    }
                    _ => Some(self.pipe("template clause", &Kind::Close, scope)?),
                };
                Node::Template { name, pipe }
            }
            "block" => {
                let name = self.name("block clause")?;
                let pipe = self.pipe("block clause", &Kind::Close, scope)?;
                self.body(name.clone())?;
                Node::Template { name, pipe: Some(pipe) }
            }
            "define" if top => {
                let name = self.name("define clause")?;
                self.close("define clause")?;
                self.body(name)?;
                return Ok(Stop::Not);
            }
            "define" => return self.fault("unexpected {{define}}"),
            _ => Node::Action(self.pipe("command", &Kind::Close, scope)?),
        };
        list.0.push((line, node));
        Ok(Stop::Not)
    }

    fn name(&mut self, context: &str) -> Result<String, Fault> {
        match self.next_word()? {
            Kind::String(name) => Ok(name),
            other => self.unexpected(&other, context),
        }
    }

    /// A template of its own, up to its end.
    fn body(&mut self, name: String) -> Result<(), Fault> {
        let (body, stop) = self.list(&mut Scope::new())?;
        if stop != Stop::End {
            return self.fault("unexpected {{else}} in define clause");
        }
        self.define(name, body)
    }

    fn branch(&mut self, context: &str, scope: &mut Scope) -> Result<Branch, Fault> {
        let known = scope.variables.len();
        let pipe = self.pipe(context, &Kind::Close, scope)?;
        scope.loops += usize::from(context == "range");
        let (body, stop) = self.list(scope)?;
        scope.loops -= usize::from(context == "range");
        let mut otherwise = List::default();
        if stop == Stop::Else {
            let chained =
                matches!(self.peek_word(), Some(Kind::Word(word)) if word == context && context != "range");
            if chained {
                self.next_word()?;
                let line = self.line;
                self.deeper()?;
                let inner = self.branch(context, scope)?;
                self.depth -= 1;
                let node = if context == "if" { Node::If(inner) } else { Node::With(inner) };
                otherwise.0.push((line, node));
            } else if matches!(self.peek(), Some(Kind::Word(_))) {
                return self.fault(format!("unexpected word behind else of {context}"));
            } else {
                let (list, stop) = self.list(scope)?;
                if stop != Stop::End {
                    return self.fault("expected end; found {{else}}");
                }
                otherwise = list;
            }
        }
        scope.variables.truncate(known);
        Ok(Branch { pipe, body, otherwise })
    }

    fn pipe(&mut self, context: &str, end: &Kind, scope: &mut Scope) -> Result<Pipe, Fault> {
        let mut pipe = Pipe::default();
        loop {
            let before = self.at;
            let Some(Kind::Variable(name)) = self.peek_word().cloned() else { break };
            self.next()?;
            match self.peek_word() {
                Some(Kind::Declare | Kind::Assign) => {
                    pipe.assigns = self.next()? == Kind::Assign;
                    pipe.variables.push(name.clone());
                    scope.variables.push(name);
                    break;
                }
                Some(Kind::Comma) if context == "range" && pipe.variables.is_empty() => {
                    self.next()?;
                    pipe.variables.push(name.clone());
                    scope.variables.push(name);
                    if !matches!(self.peek_word(), Some(Kind::Variable(_))) {
                        return self.fault("range can only initialize variables");
                    }
                }
                Some(Kind::Comma) => return self.fault(format!("too many declarations in {context}")),
                _ if pipe.variables.is_empty() => {
                    self.at = before;
                    break;
                }
                _ => return self.fault("range can only initialize variables"),
            }
        }
        while self.peek_word() != Some(end) {
            let command = self.command(context, scope)?;
            pipe.commands.push(command);
        }
        self.next()?;
        self.check(&pipe, context)?;
        Ok(pipe)
    }

    fn check(&self, pipe: &Pipe, context: &str) -> Result<(), Fault> {
        if pipe.commands.is_empty() {
            return self.fault(format!("missing value for {context}"));
        }
        for (index, command) in pipe.commands.iter().enumerate().skip(1) {
            if let Some(
                Operand::Bool(_) | Operand::Dot | Operand::Nil | Operand::Number(_) | Operand::String(_),
            ) = command.first()
            {
                return self.fault(format!("non executable command in pipeline stage {}", index + 1));
            }
        }
        Ok(())
    }

    fn command(&mut self, context: &str, scope: &mut Scope) -> Result<Vec<Operand>, Fault> {
        let mut operands = Vec::new();
        loop {
            self.skip_space();
            if let Some(operand) = self.operand(scope)? {
                operands.push(operand);
            }
            match self.peek() {
                Some(Kind::Space) => {}
                Some(Kind::Close | Kind::RightParen) => break,
                Some(Kind::Pipe) => {
                    self.next()?;
                    if matches!(self.peek_word(), Some(Kind::Close | Kind::RightParen)) {
                        return self.fault(format!("missing value for {context}"));
                    }
                    break;
                }
                _ => {
                    let kind = self.next()?;
                    return self.unexpected(&kind, if operands.is_empty() { context } else { "operand" });
                }
            }
        }
        if operands.is_empty() { self.fault("empty command") } else { Ok(operands) }
    }

    /// A term and the fields behind it, or nothing if no term stands here.
    fn operand(&mut self, scope: &mut Scope) -> Result<Option<Operand>, Fault> {
        let before = self.at;
        let term = match self.next()? {
            Kind::Word(word) => match word.as_str() {
                "true" => Operand::Bool(true),
                "false" => Operand::Bool(false),
                "nil" => Operand::Nil,
                word => match Function::named(word) {
                    Some(function) => Operand::Function(function),
                    None => return self.fault(format!("function {word:?} not defined")),
                },
            },
            Kind::Dot => Operand::Dot,
            Kind::Variable(name) => {
                if !scope.variables.contains(&name) {
                    return self.fault(format!("undefined variable {name:?}"));
                }
                Operand::Variable(name, Vec::new())
            }
            Kind::Field(name) => Operand::Field(vec![name]),
            Kind::Number(number) => Operand::Number(number),
            Kind::String(text) => Operand::String(text),
            Kind::LeftParen => {
                self.deeper()?;
                let pipe = self.pipe("parenthesized pipeline", &Kind::RightParen, scope)?;
                self.depth -= 1;
                Operand::Pipe(pipe)
            }
            _ => {
                self.at = before;
                return Ok(None);
            }
        };
        let mut fields = Vec::new();
        while let Some(Kind::Field(name)) = self.peek() {
            fields.push(name.clone());
            self.at += 1;
        }
        if fields.is_empty() {
            return Ok(Some(term));
        }
        Ok(Some(match term {
            Operand::Field(mut names) => {
                names.append(&mut fields);
                Operand::Field(names)
            }
            Operand::Variable(name, _) => Operand::Variable(name, fields),
            Operand::Function(_) | Operand::Pipe(_) => Operand::Chain(Box::new(term), fields),
            _ => return self.fault("unexpected . after term"),
        }))
    }
}
