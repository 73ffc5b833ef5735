//! The syntax tree. Nodes are stored in one list and refer to each other by index, so that only the walk over them is
//! recursive, bounded by [`MAX_DEPTH`].

use std::sync::Arc;

use regex::Regex;

use super::catalog::{Each, Function};
use super::value::Value;

/// Maximum number of nodes, the same as in expr.
pub(super) const MAX_NODES: usize = 10_000;

/// Maximum depth of the tree.
pub(super) const MAX_DEPTH: u16 = 250;

/// Index of a node.
pub(super) type Id = u32;

/// A whole formula.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    pub(super) root: Id,
    /// Number of variables declared by `let`.
    pub(super) locals: usize,
}

/// One node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) form: Form,
    /// Its position in the source.
    pub(super) at: u32,
    /// Depth of the subtree.
    pub(super) depth: u16,
}

/// The form of a node.
#[derive(Debug)]
pub(super) enum Form {
    /// A literal.
    Constant(Value),
    /// A name; the check replaces it by one of the next four.
    Name(Arc<str>),
    /// A trigger.
    Variable(usize),
    /// A variable declared by `let`.
    Local(usize),
    /// `$env`: all triggers.
    All,
    /// A function that is not called.
    Function,
    /// `#`, `#acc`, `#index`.
    Pointer(Pointer),
    /// One operand.
    Unary(Unary, Id),
    /// Two operands.
    Binary(Binary, Id, Id),
    /// `matches` with a constant pattern.
    Matches(Id, Box<Regex>),
    /// The end of a chain with `?.` in it.
    Chain(Id),
    /// `base.name`, `base[key]`.
    Member { base: Id, key: Id, optional: bool },
    /// `base[from:to]`.
    Slice { base: Id, from: Option<Id>, to: Option<Id> },
    /// `base.name(…)`.
    Method { base: Id, name: Arc<str>, arguments: Box<[Id]>, optional: bool },
    /// A call of something that is no function.
    Call { callee: Id },
    /// A call of a function.
    Apply { function: Function, arguments: Box<[Id]> },
    /// A call of a function that takes a predicate.
    Each { each: Each, array: Id, predicate: Option<Id>, extra: Option<Id> },
    /// `condition ? yes : no`.
    Choice { condition: Id, yes: Id, no: Id },
    /// `let name = value; body`.
    Let { name: Arc<str>, name_at: u32, value: Id, body: Id, slot: usize },
    /// `a; b`: the last counts.
    Sequence(Box<[Id]>),
    /// `[a, b]`.
    Array(Box<[Id]>),
    /// `{a: b}`.
    Map(Box<[(Id, Id)]>),
}

/// The current item of a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    Item,
    Accumulator,
    Index,
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    Minus,
    Plus,
}

/// Operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    Greater,
    AtMost,
    AtLeast,
    In,
    Matches,
    Contains,
    StartsWith,
    EndsWith,
    Range,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Coalesce,
}

/// Symbols and precedences of operators with two operands (docs/spec/keda.md 4.5). The first symbol of an operator is the one in
/// error messages.
const BINARY_OPERATORS: [(&str, Binary, u16); 24] = [
    ("or", Binary::Or, 10),
    ("||", Binary::Or, 10),
    ("and", Binary::And, 15),
    ("&&", Binary::And, 15),
    ("==", Binary::Equal, 20),
    ("!=", Binary::Unequal, 20),
    ("<", Binary::Less, 20),
    (">", Binary::Greater, 20),
    ("<=", Binary::AtMost, 20),
    (">=", Binary::AtLeast, 20),
    ("in", Binary::In, 20),
    ("matches", Binary::Matches, 20),
    ("contains", Binary::Contains, 20),
    ("startsWith", Binary::StartsWith, 20),
    ("endsWith", Binary::EndsWith, 20),
    ("..", Binary::Range, 25),
    ("+", Binary::Add, 30),
    ("-", Binary::Subtract, 30),
    ("*", Binary::Multiply, 60),
    ("/", Binary::Divide, 60),
    ("%", Binary::Modulo, 60),
    ("**", Binary::Power, 100),
    ("^", Binary::Power, 100),
    ("??", Binary::Coalesce, 500),
];

impl Binary {
    /// The operator with this symbol, and its precedence.
    pub(super) fn of(sign: &str) -> Option<(Self, u16)> {
        BINARY_OPERATORS
            .iter()
            .find(|(known, ..)| *known == sign)
            .map(|(_, operator, power)| (*operator, *power))
    }

    /// The symbol in error messages.
    pub(super) fn sign(self) -> &'static str {
        BINARY_OPERATORS.iter().find(|(_, operator, _)| *operator == self).map_or("", |(sign, ..)| *sign)
    }

    /// Whether it can be chained: `1 < a < 5`.
    pub(super) fn is_chained(self) -> bool {
        matches!(self, Self::Less | Self::Greater | Self::AtMost | Self::AtLeast)
    }

    /// Whether `not` may stand before it.
    pub(super) fn can_be_negated(self) -> bool {
        matches!(self, Self::In | Self::Matches | Self::Contains | Self::StartsWith | Self::EndsWith)
    }
}

impl Unary {
    /// The operator with this symbol, and its precedence.
    pub(super) fn of(sign: &str) -> Option<(Self, u16)> {
        Some(match sign {
            "not" | "!" => (Self::Not, 50),
            "-" => (Self::Minus, 90),
            "+" => (Self::Plus, 90),
            _ => return None,
        })
    }

    /// The symbol in error messages.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Not => "not",
            Self::Minus => "-",
            Self::Plus => "+",
        }
    }
}

static NOTHING: Node = Node { form: Form::Constant(Value::Nil), at: 0, depth: 0 };

impl Tree {
    /// The node with this number.
    pub(super) fn node(&self, id: Id) -> &Node {
        self.nodes.get(id as usize).unwrap_or(&NOTHING)
    }

    /// Replaces the form of a node.
    pub(super) fn replace(&mut self, id: Id, form: Form) {
        if let Some(node) = self.nodes.get_mut(id as usize) {
            node.form = form;
        }
    }

    /// Adds a node; `None` if the tree becomes too large or too deep.
    pub(super) fn add(&mut self, at: u32, form: Form) -> Option<Id> {
        let depth = 1 + form.children(|id| self.node(id).depth);
        if self.nodes.len() >= MAX_NODES || depth > MAX_DEPTH {
            return None;
        }
        self.nodes.push(Node { form, at, depth });
        Some(self.nodes.len() as Id - 1)
    }

    /// How many nodes there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }
}

impl Form {
    /// The maximum of `depth` over all children.
    fn children(&self, depth: impl Fn(Id) -> u16) -> u16 {
        let most = |ids: &[Id]| ids.iter().map(|id| depth(*id)).max().unwrap_or(0);
        let some = |id: &Option<Id>| id.map_or(0, &depth);
        match self {
            Self::Constant(_)
            | Self::Name(_)
            | Self::Variable(_)
            | Self::Local(_)
            | Self::All
            | Self::Function
            | Self::Pointer(_) => 0,
            Self::Unary(_, id) | Self::Matches(id, _) | Self::Chain(id) | Self::Call { callee: id } => {
                depth(*id)
            }
            Self::Binary(_, left, right) => depth(*left).max(depth(*right)),
            Self::Member { base, key, .. } => depth(*base).max(depth(*key)),
            Self::Slice { base, from, to } => depth(*base).max(some(from)).max(some(to)),
            Self::Method { base, arguments, .. } => depth(*base).max(most(arguments)),
            Self::Apply { arguments, .. } => most(arguments),
            Self::Each { array, predicate, extra, .. } => depth(*array).max(some(predicate)).max(some(extra)),
            Self::Choice { condition, yes, no } => depth(*condition).max(depth(*yes)).max(depth(*no)),
            Self::Let { value, body, .. } => depth(*value).max(depth(*body)),
            Self::Sequence(items) | Self::Array(items) => most(items),
            Self::Map(pairs) => {
                pairs.iter().map(|(key, value)| depth(*key).max(depth(*value))).max().unwrap_or(0)
            }
        }
    }
}
