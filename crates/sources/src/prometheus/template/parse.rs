//! Parser.

use std::collections::BTreeMap;

use super::MAX_DEPTH;
use super::functions::Function;
use super::lex::{TemplateFault, Token, TokenKind};
use super::tree::{Branch, NodeList, Operand, Pipe, TemplateNode};

/// Parses all templates of a text by name; the main template has the given name.
pub(super) fn bodies(name: &str, tokens: Vec<Token>) -> Result<BTreeMap<String, NodeList>, TemplateFault> {
    let mut parser = Parser { tokens, at: 0, line: 1, depth: 0, bodies: BTreeMap::new() };
    let mut scope = VariableScope::new();
    let mut own = NodeList::default();
    while parser.peek().is_some() {
        if let ListEnd::End | ListEnd::Else = parser.item(&mut own, &mut scope, true)? {
            return parser.fault("unexpected {{end}} or {{else}}");
        }
    }
    parser.define(name.to_owned(), own)?;
    Ok(parser.bodies)
}

/// Known variables, and the number of open loops.
struct VariableScope {
    variables: Vec<String>,
    loops: usize,
}

impl VariableScope {
    fn new() -> Self {
        Self { variables: vec!["$".to_owned()], loops: 0 }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum ListEnd {
    Not,
    End,
    Else,
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    line: usize,
    depth: usize,
    bodies: BTreeMap<String, NodeList>,
}

impl Parser {
    fn fault<T>(&self, message: impl Into<String>) -> Result<T, TemplateFault> {
        Err((self.line, message.into()))
    }

    fn next(&mut self) -> Result<TokenKind, TemplateFault> {
        match self.tokens.get(self.at) {
            Some(token) => {
                self.line = token.line;
                self.at += 1;
                Ok(token.kind.clone())
            }
            None => self.fault("unexpected EOF"),
        }
    }

    fn next_word(&mut self) -> Result<TokenKind, TemplateFault> {
        self.skip_space();
        self.next()
    }

    fn skip_space(&mut self) {
        while self.peek() == Some(&TokenKind::Space) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<&TokenKind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn peek_word(&mut self) -> Option<&TokenKind> {
        self.skip_space();
        self.peek()
    }

    fn unexpected<T>(&self, kind: &TokenKind, context: &str) -> Result<T, TemplateFault> {
        let what = match kind {
            TokenKind::Text(_) => "text".to_owned(),
            TokenKind::Open => "{{".to_owned(),
            TokenKind::Close => "}}".to_owned(),
            TokenKind::Space => "space".to_owned(),
            TokenKind::Word(word) => format!("<{word}>"),
            TokenKind::Field(name) => format!("<.{name}>"),
            TokenKind::Variable(name) => format!("{name:?}"),
            TokenKind::Dot => "\".\"".to_owned(),
            TokenKind::String(text) => format!("{text:?}"),
            TokenKind::Number(_) => "number".to_owned(),
            TokenKind::Pipe => "\"|\"".to_owned(),
            TokenKind::Declare => "\":=\"".to_owned(),
            TokenKind::Assign => "\"=\"".to_owned(),
            TokenKind::Comma => "\",\"".to_owned(),
            TokenKind::LeftParen => "\"(\"".to_owned(),
            TokenKind::RightParen => "\")\"".to_owned(),
            TokenKind::Other(c) => format!("\"{c}\""),
        };
        self.fault(format!("unexpected {what} in {context}"))
    }

    fn close(&mut self, context: &str) -> Result<(), TemplateFault> {
        match self.next_word()? {
            TokenKind::Close => Ok(()),
            other => self.unexpected(&other, context),
        }
    }

    fn define(&mut self, name: String, body: NodeList) -> Result<(), TemplateFault> {
        let empty = |list: &NodeList| {
            list.0.iter().all(|(_, node)| matches!(node, TemplateNode::Text(t) if t.trim().is_empty()))
        };
        match self.bodies.get(&name) {
            Some(old) if !empty(old) && !empty(&body) => {
                return self.fault(format!("template: multiple definition of template {name:?}"));
            }
            Some(old) if !empty(old) => {}
            _ => drop(self.bodies.insert(name, body)),
        }
        Ok(())
    }

    fn deeper(&mut self) -> Result<(), TemplateFault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { self.fault("template is nested too deeply") } else { Ok(()) }
    }

    /// Parses up to `end` or `else`.
    fn list(&mut self, scope: &mut VariableScope) -> Result<(NodeList, ListEnd), TemplateFault> {
        self.deeper()?;
        let mut list = NodeList::default();
        loop {
            let stop = self.item(&mut list, scope, false)?;
            if stop != ListEnd::Not {
                self.depth -= 1;
                return Ok((list, stop));
            }
        }
    }

    fn item(
        &mut self,
        list: &mut NodeList,
        scope: &mut VariableScope,
        top: bool,
    ) -> Result<ListEnd, TemplateFault> {
        let kind = self.next()?;
        let line = self.line;
        match kind {
            TokenKind::Text(text) => list.0.push((line, TemplateNode::Text(text))),
            TokenKind::Open => {
                let word = match self.peek_word() {
                    Some(TokenKind::Word(word)) => word.clone(),
                    _ => String::new(),
                };
                return self.action(&word, list, scope, top, line);
            }
            other => return self.unexpected(&other, "input"),
        }
        Ok(ListEnd::Not)
    }

    fn action(
        &mut self,
        word: &str,
        list: &mut NodeList,
        scope: &mut VariableScope,
        top: bool,
        line: usize,
    ) -> Result<ListEnd, TemplateFault> {
        let keywords =
            ["end", "else", "if", "with", "range", "break", "continue", "template", "block", "define"];
        if keywords.contains(&word) {
            self.next_word()?;
        }
        let node = match word {
            "end" => {
                self.close("end")?;
                return Ok(ListEnd::End);
            }
            "else" => {
                let chained =
                    matches!(self.peek_word(), Some(TokenKind::Word(word)) if word == "if" || word == "with");
                if !chained {
                    self.close("else")?;
                }
                return Ok(ListEnd::Else);
            }
            "if" => TemplateNode::If(self.branch("if", scope)?),
            "with" => TemplateNode::With(self.branch("with", scope)?),
            "range" => TemplateNode::Range(self.branch("range", scope)?),
            "break" | "continue" => {
                self.close(word)?;
                if scope.loops == 0 {
                    return self.fault(format!("{{{{{word}}}}} outside {{{{range}}}}"));
                }
                if word == "break" { TemplateNode::Break } else { TemplateNode::Continue }
            }
            "template" => {
                let name = self.name("template clause")?;
                let pipe = match self.peek_word() {
                    Some(TokenKind::Close) => {
                        self.next()?;
                        None
                    }
                    _ => Some(self.pipe("template clause", &TokenKind::Close, scope)?),
                };
                TemplateNode::Template { name, pipe }
            }
            "block" => {
                let name = self.name("block clause")?;
                let pipe = self.pipe("block clause", &TokenKind::Close, scope)?;
                self.body(name.clone())?;
                TemplateNode::Template { name, pipe: Some(pipe) }
            }
            "define" if top => {
                let name = self.name("define clause")?;
                self.close("define clause")?;
                self.body(name)?;
                return Ok(ListEnd::Not);
            }
            "define" => return self.fault("unexpected {{define}}"),
            _ => TemplateNode::Action(self.pipe("command", &TokenKind::Close, scope)?),
        };
        list.0.push((line, node));
        Ok(ListEnd::Not)
    }

    fn name(&mut self, context: &str) -> Result<String, TemplateFault> {
        match self.next_word()? {
            TokenKind::String(name) => Ok(name),
            other => self.unexpected(&other, context),
        }
    }

    /// Parses the body of a nested template.
    fn body(&mut self, name: String) -> Result<(), TemplateFault> {
        let (body, stop) = self.list(&mut VariableScope::new())?;
        if stop != ListEnd::End {
            return self.fault("unexpected {{else}} in define clause");
        }
        self.define(name, body)
    }

    fn branch(&mut self, context: &str, scope: &mut VariableScope) -> Result<Branch, TemplateFault> {
        let known = scope.variables.len();
        let pipe = self.pipe(context, &TokenKind::Close, scope)?;
        scope.loops += usize::from(context == "range");
        let (body, stop) = self.list(scope)?;
        scope.loops -= usize::from(context == "range");
        let mut otherwise = NodeList::default();
        if stop == ListEnd::Else {
            let chained = matches!(self.peek_word(), Some(TokenKind::Word(word)) if word == context && context != "range");
            if chained {
                self.next_word()?;
                let line = self.line;
                self.deeper()?;
                let inner = self.branch(context, scope)?;
                self.depth -= 1;
                let node = if context == "if" { TemplateNode::If(inner) } else { TemplateNode::With(inner) };
                otherwise.0.push((line, node));
            } else if matches!(self.peek(), Some(TokenKind::Word(_))) {
                return self.fault(format!("unexpected word behind else of {context}"));
            } else {
                let (list, stop) = self.list(scope)?;
                if stop != ListEnd::End {
                    return self.fault("expected end; found {{else}}");
                }
                otherwise = list;
            }
        }
        scope.variables.truncate(known);
        Ok(Branch { pipe, body, otherwise })
    }

    fn pipe(
        &mut self,
        context: &str,
        end: &TokenKind,
        scope: &mut VariableScope,
    ) -> Result<Pipe, TemplateFault> {
        let mut pipe = Pipe::default();
        loop {
            let before = self.at;
            let Some(TokenKind::Variable(name)) = self.peek_word().cloned() else { break };
            self.next()?;
            match self.peek_word() {
                Some(TokenKind::Declare | TokenKind::Assign) => {
                    pipe.assigns = self.next()? == TokenKind::Assign;
                    pipe.variables.push(name.clone());
                    scope.variables.push(name);
                    break;
                }
                Some(TokenKind::Comma) if context == "range" && pipe.variables.is_empty() => {
                    self.next()?;
                    pipe.variables.push(name.clone());
                    scope.variables.push(name);
                    if !matches!(self.peek_word(), Some(TokenKind::Variable(_))) {
                        return self.fault("range can only initialize variables");
                    }
                }
                Some(TokenKind::Comma) => return self.fault(format!("too many declarations in {context}")),
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

    fn check(&self, pipe: &Pipe, context: &str) -> Result<(), TemplateFault> {
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

    fn command(&mut self, context: &str, scope: &mut VariableScope) -> Result<Vec<Operand>, TemplateFault> {
        let mut operands = Vec::new();
        loop {
            self.skip_space();
            if let Some(operand) = self.operand(scope)? {
                operands.push(operand);
            }
            match self.peek() {
                Some(TokenKind::Space) => {}
                Some(TokenKind::Close | TokenKind::RightParen) => break,
                Some(TokenKind::Pipe) => {
                    // As in Go, a pipeline may end with `|`.
                    self.next()?;
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

    /// Parses a term and its fields; `None` if there is no term.
    fn operand(&mut self, scope: &mut VariableScope) -> Result<Option<Operand>, TemplateFault> {
        let before = self.at;
        let term = match self.next()? {
            TokenKind::Word(word) => match word.as_str() {
                "true" => Operand::Bool(true),
                "false" => Operand::Bool(false),
                "nil" => Operand::Nil,
                word => match Function::named(word) {
                    Some(function) => Operand::Function(function),
                    None => return self.fault(format!("function {word:?} not defined")),
                },
            },
            TokenKind::Dot => Operand::Dot,
            TokenKind::Variable(name) => {
                if !scope.variables.contains(&name) {
                    return self.fault(format!("undefined variable {name:?}"));
                }
                Operand::Variable(name, Vec::new())
            }
            TokenKind::Field(name) => Operand::Field(vec![name]),
            TokenKind::Number(number) => Operand::Number(number),
            TokenKind::String(text) => Operand::String(text),
            TokenKind::LeftParen => {
                self.deeper()?;
                let pipe = self.pipe("parenthesized pipeline", &TokenKind::RightParen, scope)?;
                self.depth -= 1;
                Operand::Pipe(pipe)
            }
            _ => {
                self.at = before;
                return Ok(None);
            }
        };
        let mut fields = Vec::new();
        while let Some(TokenKind::Field(name)) = self.peek() {
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
