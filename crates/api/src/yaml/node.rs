//! The tree of a document.

use serde_json::Number;

use super::path::{self, Step};
use super::source::Span;

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its position; for an alias, that of the anchor.
    pub span: Span,
    /// The value.
    pub value: NodeValue,
}

/// The value of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeValue {
    /// `null`, `~`, or nothing at all.
    Null,
    /// `true`, `yes`, `on` and their opposites.
    Bool(bool),
    /// An integer that fits into 64 bits, signed or not.
    Int(i128),
    /// Any other finite number.
    Float(f64),
    /// A text.
    String(String),
    /// A list.
    Seq(Vec<Node>),
    /// A map, in the order it is written.
    Map(Vec<(NodeKey, Node)>),
}

/// The key of a map entry and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeKey {
    /// Its position.
    pub span: Span,
    /// The name.
    pub name: String,
}

impl Node {
    /// The same tree without positions.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            NodeValue::Null => Json::Null,
            NodeValue::Bool(truth) => Json::Bool(*truth),
            NodeValue::Int(integer) => Number::from_i128(*integer).map_or(Json::Null, Json::Number),
            NodeValue::Float(float) => Number::from_f64(*float).map_or(Json::Null, Json::Number),
            NodeValue::String(text) => Json::String(text.clone()),
            NodeValue::Seq(items) => items.iter().map(Node::to_json).collect(),
            NodeValue::Map(entries) => {
                entries.iter().map(|(key, node)| (key.name.clone(), node.to_json())).collect()
            }
        }
    }

    /// The node at a path such as `spec.metrics[0].resource` or `metadata.labels[app]`.
    pub fn get(&self, path: &str) -> Option<&Node> {
        path::steps(path).try_fold(self, |node, step| node.step(&step).map(|(_, child)| child))
    }

    /// The position of a path, or of its nearest parent that exists.
    pub fn locate(&self, path: &str) -> Span {
        let (mut key, mut node) = (None, self);
        for step in path::steps(path) {
            let Some(child) = node.step(&step) else { break };
            (key, node) = child;
        }
        node.place(key)
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            NodeValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// The position for problems of this node: the scalar itself, otherwise its key.
    pub(super) fn place(&self, key: Option<&NodeKey>) -> Span {
        let first = match &self.value {
            NodeValue::Map(entries) => entries.first().map(|(first, _)| first.span),
            NodeValue::Seq(items) => items.first().map(|first| first.place(None)),
            _ if self.span.start < self.span.end => return self.span,
            _ => None,
        };
        key.map(|key| key.span).or(first).unwrap_or(self.span)
    }

    /// The key of an entry of this map.
    pub(super) fn key(&self, name: &str) -> Option<&NodeKey> {
        self.step(&Step::Key(name))?.0
    }

    pub(super) fn step(&self, step: &Step<'_>) -> Option<(Option<&NodeKey>, &Node)> {
        match (&self.value, step) {
            (NodeValue::Map(entries), Step::Key(name) | Step::Bracket(name)) => {
                entries.iter().find(|(key, _)| key.name == *name).map(|(key, node)| (Some(key), node))
            }
            (NodeValue::Seq(items), Step::Bracket(index)) => {
                items.get(index.parse::<usize>().ok()?).map(|node| (None, node))
            }
            _ => None,
        }
    }
}
