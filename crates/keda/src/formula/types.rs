//! Static types of the checker.

use std::fmt;
use std::rc::Rc;

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    /// Unknown.
    Any,
    Nil,
    Bool,
    Int,
    Float,
    Text,
    /// An array of this.
    Array(Rc<Self>),
    /// A map with string keys.
    Map,
    /// The result of `groupBy`: any key, arrays of this type.
    Groups(Rc<Self>),
    /// `$env`.
    All,
    Span,
    Time,
    Zone,
    /// A function that is not called.
    Function,
}

impl Type {
    /// An array of anything.
    pub(super) fn array() -> Self {
        Self::Array(Rc::new(Self::Any))
    }

    pub(super) fn is_any(&self) -> bool {
        *self == Self::Any
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Float)
    }

    /// Whether values of the two types can be compared for equality.
    pub(super) fn is_comparable_with(&self, other: &Self) -> bool {
        let is_array = |t: &Self| matches!(t, Self::Array(_));
        let is_map = |t: &Self| matches!(t, Self::Map | Self::Groups(_) | Self::All);
        self == other
            || matches!(self, Self::Any | Self::Nil)
            || matches!(other, Self::Any | Self::Nil)
            || (self.is_number() && other.is_number())
            || (is_array(self) && is_array(other))
            || (is_map(self) && is_map(other))
    }

    /// The type of two branches: the common type, or unknown.
    pub(super) fn either(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nil, known) | (known, Self::Nil) => known,
            (a, b) if a == b => a,
            (Self::Array(_), Self::Array(_)) => Self::array(),
            _ => Self::Any,
        }
    }

    /// The item type; `None` if it is not an array.
    pub(super) fn item(&self) -> Option<Self> {
        match self {
            Self::Array(item) => Some((**item).clone()),
            Self::Any => Some(Self::Any),
            _ => None,
        }
    }
}

/// Its name in Go.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "unknown",
            Self::Nil => "nil",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Float => "float64",
            Self::Text => "string",
            Self::Array(_) => "[]interface {}",
            Self::Map | Self::All => "map[string]interface {}",
            Self::Groups(_) => "map[interface {}][]interface {}",
            Self::Span => "time.Duration",
            Self::Time => "time.Time",
            Self::Zone => "*time.Location",
            Self::Function => "func(...interface {}) (interface {}, error)",
        })
    }
}
