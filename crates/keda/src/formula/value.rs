//! Values of formulas.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Zoned;
use jiff::tz::TimeZone;

use super::error::EvalError;
use super::text;

/// Maximum size of a value, including nested values.
pub(super) const MAX_VALUE_SIZE: u64 = 1_000_000;

/// Maximum nesting of arrays and maps.
const MAX_VALUE_DEPTH: u16 = 100;

/// One value.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Nothing.
    #[default]
    Nil,
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A text.
    Text(Arc<str>),
    /// An array.
    Array(Arc<List>),
    /// A map.
    Map(Arc<Map>),
    /// A duration in nanoseconds.
    Span(i64),
    /// A time with a time zone.
    Time(Arc<Zoned>),
    /// A time zone.
    Zone(TimeZone),
}

/// Items with their total size and depth.
#[derive(Debug)]
pub struct List {
    items: Vec<Value>,
    size: u64,
    depth: u16,
}

/// Entries by key.
#[derive(Debug)]
pub struct Map {
    entries: BTreeMap<Key, Value>,
    size: u64,
    depth: u16,
    /// Whether all keys are strings.
    by_text: bool,
    /// Whether missing keys are empty arrays, as in groups.
    of_arrays: bool,
}

/// The key of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Nil,
    Bool(bool),
    Int(i64),
    /// The bits of a float.
    Float(u64),
    Text(Arc<str>),
}

/// The error of a value that is too large or too deep.
pub(super) fn too_large() -> EvalError {
    "memory budget exceeded".into()
}

impl Value {
    /// An array, unless it is too large.
    pub(super) fn array(items: Vec<Self>) -> Result<Self, EvalError> {
        let size = items.iter().fold(1, |sum: u64, item| sum.saturating_add(item.size()));
        let depth = 1 + items.iter().map(Self::depth).max().unwrap_or(0);
        if size > MAX_VALUE_SIZE || depth > MAX_VALUE_DEPTH {
            return Err(too_large());
        }
        Ok(Self::Array(Arc::new(List { items, size, depth })))
    }

    /// A text.
    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// Its size including nested values.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64 + 1,
            Self::Array(list) => list.size,
            Self::Map(map) => map.size,
            _ => 1,
        }
    }

    fn depth(&self) -> u16 {
        match self {
            Self::Array(list) => list.depth,
            Self::Map(map) => map.depth,
            _ => 0,
        }
    }

    /// The name of its type in Go, for error messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::Array(_) => "[]interface {}",
            Self::Map(_) => "map[string]interface {}",
            Self::Span(_) => "time.Duration",
            Self::Time(_) => "time.Time",
            Self::Zone(_) => "*time.Location",
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Int(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// The value as an index: expr cuts off floats whose type is not known when the formula is compiled.
    pub(super) fn index(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            Self::Float(number) if number.is_finite() => Some(*number as i64),
            _ => None,
        }
    }

    /// Whether two values are the same; ints and floats are compared as numbers.
    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nil, Self::Nil) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) | (Self::Span(a), Self::Span(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => {
                a.items.len() == b.items.len() && a.items.iter().zip(&b.items).all(|(a, b)| a.equals(b))
            }
            (Self::Map(a), Self::Map(b)) => {
                a.entries.len() == b.entries.len()
                    && a.entries.iter().zip(&b.entries).all(|((j, a), (k, b))| j == k && a.equals(b))
            }
            (Self::Time(a), Self::Time(b)) => a.timestamp() == b.timestamp(),
            (Self::Zone(a), Self::Zone(b)) => a == b,
            _ => match (self.number(), other.number()) {
                (Some(a), Some(b)) => a == b,
                _ => false,
            },
        }
    }
}

impl List {
    /// The items.
    pub fn items(&self) -> &[Value] {
        &self.items
    }
}

impl Map {
    /// A map, unless it is too large.
    pub(super) fn new(entries: BTreeMap<Key, Value>) -> Result<Self, EvalError> {
        let sizes = entries.iter().map(|(key, value)| key.size() + value.size());
        let size = sizes.fold(1, u64::saturating_add);
        let depth = 1 + entries.values().map(Value::depth).max().unwrap_or(0);
        if size > MAX_VALUE_SIZE || depth > MAX_VALUE_DEPTH {
            return Err(too_large());
        }
        let by_text = entries.keys().all(|key| matches!(key, Key::Text(_)));
        Ok(Self { entries, size, depth, by_text, of_arrays: false })
    }

    /// A map with keys of any type, in which missing keys are empty arrays.
    pub(super) fn groups(entries: BTreeMap<Key, Value>) -> Result<Self, EvalError> {
        Ok(Self { by_text: false, of_arrays: true, ..Self::new(entries)? })
    }

    /// The entries in the order of their keys.
    pub(super) fn entries(&self) -> &BTreeMap<Key, Value> {
        &self.entries
    }

    /// The value of a key; nil (or an empty array) if it is missing.
    pub(super) fn fetch(&self, key: &Value) -> Result<Value, EvalError> {
        let found = match Key::of(key) {
            Some(Key::Text(text)) => self.entries.get(&Key::Text(text)),
            Some(key) if !self.by_text || self.entries.is_empty() => self.entries.get(&key),
            _ => return Err(format!("cannot use {} as type string in map index", key.type_name()).into()),
        };
        match found {
            Some(value) => Ok(value.clone()),
            None if self.of_arrays => Value::array(Vec::new()),
            None => Ok(Value::Nil),
        }
    }

    /// The value of a string key.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries.get(&Key::Text(name.into()))
    }
}

impl Key {
    pub(super) fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Nil => Self::Nil,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Int(number) => Self::Int(*number),
            // Positive and negative zero are the same key.
            Value::Float(number) => Self::Float((number + 0.0).to_bits()),
            Value::Text(text) => Self::Text(text.clone()),
            _ => return None,
        })
    }

    pub(super) fn value(&self) -> Value {
        match self {
            Self::Nil => Value::Nil,
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Int(number) => Value::Int(*number),
            Self::Float(bits) => Value::Float(f64::from_bits(*bits)),
            Self::Text(text) => Value::Text(text.clone()),
        }
    }

    fn size(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64 + 1,
            _ => 1,
        }
    }
}

/// As Go prints it with `%v`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => f.write_str("<nil>"),
            Self::Bool(flag) => write!(f, "{flag}"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Float(number) => f.write_str(&text::float(*number)),
            Self::Text(text) => f.write_str(text),
            Self::Array(list) => {
                f.write_str("[")?;
                for (index, item) in list.items.iter().enumerate() {
                    let gap = if index == 0 { "" } else { " " };
                    write!(f, "{gap}{item}")?;
                }
                f.write_str("]")
            }
            Self::Map(map) => {
                f.write_str("map[")?;
                for (index, (key, value)) in map.entries.iter().enumerate() {
                    let gap = if index == 0 { "" } else { " " };
                    write!(f, "{gap}{}:{value}", key.value())?;
                }
                f.write_str("]")
            }
            Self::Span(nanoseconds) => f.write_str(&text::span_text(*nanoseconds)),
            Self::Time(time) => write!(f, "{}", time.strftime("%Y-%m-%d %H:%M:%S %z %Z")),
            Self::Zone(zone) => f.write_str(zone.iana_name().unwrap_or("UTC")),
        }
    }
}
