//! Converts text to trees.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle, Tag};

use super::scalar::{resolve, tagged};
use super::{Diagnostic, Document, Node, NodeKey, NodeValue, SourceFile, Span, keys, syntax};

/// Maximum size of a file.
const MAX_TEXT_BYTES: usize = 32 << 20;
/// Maximum number of values of one file, including those repeated by aliases.
const MAX_NODES: usize = 2_000_000;
/// Maximum number of values, and of further 64-byte units of text, that anchors and aliases may copy.
const MAX_ALIASED_VALUES: usize = 1_000_000;
/// Maximum nesting of lists and maps; serde_json has the same limit.
const MAX_DEPTH: usize = 128;

/// The namespace of `!!` tags.
const CORE_TAGS: &str = "tag:yaml.org,2002:";

/// Reads every document of a YAML or JSON text, skipping empty ones.
///
/// Aliases and merge keys are expanded within limits; an entry of a map wins over one merged into it.
pub fn parse(source: &SourceFile) -> Result<Vec<Document>, Diagnostic> {
    read(source, MAX_NODES, false)
}

/// As [`parse`], for a text from a server: it has at most so many values, because it must not take much memory, and keys such as `y` and
/// `no` are texts, because nobody here can quote them.
pub fn parse_within(source: &SourceFile, max_nodes: usize) -> Result<Vec<Document>, Diagnostic> {
    read(source, max_nodes, true)
}

fn read(source: &SourceFile, max_nodes: usize, any_key: bool) -> Result<Vec<Document>, Diagnostic> {
    if source.text.len() > MAX_TEXT_BYTES {
        return Err(Diagnostic::at(
            source,
            source.span(0, 0),
            "the file is too large: expected at most 32 MiB",
        ));
    }
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut builder = Builder {
        source,
        open: Vec::new(),
        anchors: HashMap::new(),
        root: None,
        nodes: 0,
        copied: 0,
        max_nodes,
        any_key,
    };
    let mut documents = Vec::new();
    for event in Parser::new_from_str_with_options(&source.text, options) {
        let (event, span) = event.map_err(|error| syntax::problem(source, &error))?;
        let tag = span.tag_span().map(|span| place(&span));
        builder.read(event, place(&span), tag)?;
        let root = if builder.open.is_empty() { builder.root.take() } else { None };
        if let Some(root) = root.filter(|root| root.value != NodeValue::Null) {
            documents.push(Document { source: source.clone(), root });
        }
    }
    Ok(documents)
}

fn place(span: &granit_parser::Span) -> Span {
    let std::ops::Range { start, end } = span.byte_range().unwrap_or_default();
    let line = u32::try_from(span.start.line()).unwrap_or(u32::MAX);
    let column = u32::try_from(span.start.col() + 1).unwrap_or(u32::MAX);
    Span { start, end: end.max(start), line, column }
}

struct Builder<'a> {
    source: &'a SourceFile,
    open: Vec<Frame>,
    anchors: HashMap<usize, Tree>,
    root: Option<Node>,
    nodes: usize,
    copied: usize,
    max_nodes: usize,
    /// Whether keys are texts whatever they mean as values.
    any_key: bool,
}

/// A list or map whose end has not been read.
struct Frame {
    tree: Tree,
    anchor: usize,
    block: bool,
    key: Option<NodeKey>,
    merged: Vec<(Span, Node)>,
    /// Position of a merge key (`<<`) whose value is being read.
    merge: Option<Span>,
}

/// A node with its size, for the limits.
#[derive(Clone)]
struct Tree {
    node: Node,
    nodes: usize,
    bytes: usize,
    depth: usize,
}

impl Builder<'_> {
    fn read(&mut self, event: Event<'_>, span: Span, tag_span: Option<Span>) -> Result<(), Diagnostic> {
        match event {
            Event::DocumentStart(..) => self.anchors.clear(),
            Event::Scalar(text, style, anchor, tag) => {
                if self.expects_key() {
                    let plain = style == ScalarStyle::Plain && tag.is_none();
                    return self.key(&text, plain, anchor, span);
                }
                let value = self.scalar(&text, style, tag.as_deref(), span, tag_span)?;
                let tree = Tree { node: Node { span, value }, nodes: 1, bytes: text.len(), depth: 0 };
                self.attach(tree, anchor)?;
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.open(NodeValue::Seq(Vec::new()), style, anchor, span, tag.as_deref().zip(tag_span))?;
            }
            Event::MappingStart(style, anchor, tag) => {
                self.open(NodeValue::Map(Vec::new()), style, anchor, span, tag.as_deref().zip(tag_span))?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span)?,
            Event::Alias(anchor) => self.alias(anchor, span)?,
            _ => {}
        }
        Ok(())
    }

    fn problem(&self, span: Span, message: impl AsRef<str>) -> Diagnostic {
        Diagnostic::at(self.source, span, message)
    }

    fn expects_key(&self) -> bool {
        self.open.last().is_some_and(|frame| {
            matches!(frame.tree.node.value, NodeValue::Map(_)) && frame.key.is_none() && frame.merge.is_none()
        })
    }

    fn key(&mut self, text: &str, plain: bool, anchor: usize, span: Span) -> Result<(), Diagnostic> {
        let Some(frame) = self.open.last_mut() else { return Ok(()) };
        if frame.block {
            keys::indented_by_spaces(self.source, span)?;
        }
        if plain && text == "<<" {
            frame.merge = Some(span);
            return Ok(());
        }
        if plain && !self.any_key {
            keys::is_text(self.source, text, span)?;
        }
        frame.key = Some(NodeKey { span, name: text.to_owned() });
        if anchor != 0 {
            let node = Node { span, value: NodeValue::String(text.to_owned()) };
            self.anchors.insert(anchor, Tree { node, nodes: 1, bytes: text.len(), depth: 0 });
        }
        Ok(())
    }

    fn scalar(
        &self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
        tag_span: Option<Span>,
    ) -> Result<NodeValue, Diagnostic> {
        let value = match tag {
            None if style == ScalarStyle::Plain => resolve(text),
            None => NodeValue::String(text.to_owned()),
            Some(tag) => match tag.suffix_in_namespace(CORE_TAGS) {
                Some(core) => tagged(&core, text).ok_or_else(|| {
                    self.problem(span, format!("the tag `{}` does not fit this value", tag.original()))
                })?,
                None if tag.original() == "!" => NodeValue::String(text.to_owned()),
                None => return Err(self.unknown_tag(tag, tag_span.unwrap_or(span))),
            },
        };
        match value {
            NodeValue::Float(float) if !float.is_finite() => {
                let problem = self.problem(span, format!("expected a finite number, found `{text}`"));
                Err(problem.with_hint(format!("quote it if a text is meant: \"{text}\"")))
            }
            value => Ok(value),
        }
    }

    fn unknown_tag(&self, tag: &Tag, span: Span) -> Diagnostic {
        self.problem(span, format!("unknown tag `{}`", tag.original()))
            .with_hint("an unquoted text cannot begin with `!`")
    }

    fn open(
        &mut self,
        value: NodeValue,
        style: StructureStyle,
        anchor: usize,
        span: Span,
        tag: Option<(&Tag, Span)>,
    ) -> Result<(), Diagnostic> {
        if self.expects_key() {
            return Err(self.problem(span, "expected a text as key, found a list or map"));
        }
        if let Some((tag, span)) = tag
            .filter(|(tag, _)| !matches!(tag.suffix_in_namespace(CORE_TAGS).as_deref(), Some("map" | "seq")))
        {
            return Err(self.unknown_tag(tag, span));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(self.problem(span, syntax::TOO_DEEP));
        }
        let tree = Tree { node: Node { span, value }, nodes: 1, bytes: 0, depth: 0 };
        let block = style == StructureStyle::Block;
        self.open.push(Frame { tree, anchor, block, key: None, merged: Vec::new(), merge: None });
        Ok(())
    }

    fn close(&mut self, span: Span) -> Result<(), Diagnostic> {
        let Some(mut frame) = self.open.pop() else { return Ok(()) };
        if let NodeValue::Map(entries) = &mut frame.tree.node.value {
            keys::unique(self.source, entries)?;
            keys::merge(self.source, entries, frame.merged)?;
        }
        let last = match &frame.tree.node.value {
            NodeValue::Map(entries) => entries.last().map(|(_, node)| node.span.end),
            NodeValue::Seq(items) => items.last().map(|node| node.span.end),
            _ => None,
        };
        // The parser ends a block where the next one begins, so the end of its last value is used.
        let end = if frame.block { last.unwrap_or(span.start) } else { span.end };
        frame.tree.node.span.end = end.max(frame.tree.node.span.start);
        self.attach(frame.tree, frame.anchor)
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Diagnostic> {
        let Some(tree) = self.anchors.get(&anchor) else {
            return Err(self.problem(span, "this alias stands inside the value it repeats"));
        };
        if self.expects_key() {
            let NodeValue::String(name) = &tree.node.value else {
                return Err(self.problem(span, "expected a text as key"));
            };
            let name = name.clone();
            self.copy(tree.nodes, name.len(), span)?;
            if let Some(frame) = self.open.last_mut() {
                frame.key = Some(NodeKey { span, name });
            }
            return Ok(());
        }
        let (nodes, bytes) = (tree.nodes, tree.bytes);
        self.copy(nodes, bytes, span)?;
        match self.anchors.get(&anchor).cloned() {
            Some(tree) => self.attach(tree, 0),
            None => Ok(()),
        }
    }

    fn copy(&mut self, nodes: usize, bytes: usize, span: Span) -> Result<(), Diagnostic> {
        self.copied += nodes + bytes / 64;
        if self.copied > MAX_ALIASED_VALUES {
            return Err(
                self.problem(span, "anchors and aliases repeat too much: expected at most a million values")
            );
        }
        Ok(())
    }

    /// Adds a complete value to its parent.
    fn attach(&mut self, tree: Tree, anchor: usize) -> Result<(), Diagnostic> {
        let span = tree.node.span;
        if self.open.len() + tree.depth > MAX_DEPTH {
            return Err(self.problem(span, syntax::TOO_DEEP));
        }
        self.nodes += 1;
        if self.nodes + self.copied > self.max_nodes {
            let most =
                if self.max_nodes == MAX_NODES { "two million".into() } else { self.max_nodes.to_string() };
            return Err(
                self.problem(span, format!("the file holds too much: expected at most {most} values"))
            );
        }
        if anchor != 0 {
            self.copy(tree.nodes, tree.bytes, span)?;
            self.anchors.insert(anchor, tree.clone());
        }
        let Some(frame) = self.open.last_mut() else {
            self.root = Some(tree.node);
            return Ok(());
        };
        frame.tree.nodes += tree.nodes;
        frame.tree.bytes += tree.bytes;
        let level = usize::from(frame.merge.is_none());
        frame.tree.depth = frame.tree.depth.max(tree.depth + level);
        match (&mut frame.tree.node.value, frame.key.take(), frame.merge.take()) {
            (NodeValue::Map(_), _, Some(span)) => frame.merged.push((span, tree.node)),
            (NodeValue::Map(entries), Some(key), None) => {
                frame.tree.bytes += key.name.len();
                entries.push((key, tree.node));
            }
            (NodeValue::Seq(items), ..) => items.push(tree.node),
            _ => {}
        }
        Ok(())
    }
}
