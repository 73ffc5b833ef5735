//! Builtin functions: one table of signatures, and one file per kind with implementations.

mod aggregates;
mod bits;
mod dates;
mod json;
mod lists;
mod maps;
mod numbers;
mod strings;
mod times;

pub(super) use dates::span_text;
pub(super) use lists::{is_descending, sort_by_keys};
pub(super) use times::{between, later, method, method_type};

use super::evaluate::Run;
use super::types::Type;
use super::value::Value;

/// A function without a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Abs,
    BitAnd,
    BitNand,
    BitNot,
    BitOr,
    BitShl,
    BitShr,
    BitUshr,
    BitXor,
    Ceil,
    Concat,
    Date,
    Duration,
    First,
    Flatten,
    Float,
    Floor,
    FromBase64,
    FromJson,
    FromPairs,
    Get,
    HasPrefix,
    HasSuffix,
    IndexOf,
    Int,
    Join,
    Keys,
    Last,
    LastIndexOf,
    Len,
    Lower,
    Max,
    Mean,
    Median,
    Min,
    Now,
    Repeat,
    Replace,
    Reverse,
    Round,
    Sort,
    Split,
    SplitAfter,
    String,
    Take,
    Timezone,
    ToBase64,
    ToJson,
    ToPairs,
    Trim,
    TrimPrefix,
    TrimSuffix,
    Type,
    Uniq,
    Upper,
    Values,
}

/// A predicate function over the items of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Each {
    All,
    Any,
    Count,
    Filter,
    Find,
    FindIndex,
    FindLast,
    FindLastIndex,
    GroupBy,
    Map,
    None,
    One,
    Reduce,
    SortBy,
    Sum,
}

/// Type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    Anything,
    Number,
    /// Convertible to a number.
    Numeric,
    Int,
    Text,
    Array,
    Map,
    /// Anything with a length.
    Sized,
    /// Anything with members.
    Members,
    /// Numbers, or arrays of them.
    Numbers,
}

/// Result type of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Give {
    Anything,
    Bool,
    Int,
    Float,
    Text,
    Array,
    Texts,
    Map,
    Span,
    Time,
    Zone,
    /// The same as its first argument.
    Same,
}

/// One line of the table.
struct Signature {
    name: &'static str,
    function: Function,
    /// Parameter types; the last one repeats for variadic functions.
    wants: &'static [Want],
    /// Minimum number of arguments.
    least: usize,
    /// Maximum number of arguments.
    most: usize,
    give: Give,
}

const fn line(
    name: &'static str,
    function: Function,
    wants: &'static [Want],
    least: usize,
    give: Give,
) -> Signature {
    Signature { name, function, wants, least, most: wants.len(), give }
}

const fn open(
    name: &'static str,
    function: Function,
    wants: &'static [Want],
    least: usize,
    give: Give,
) -> Signature {
    Signature { name, function, wants, least, most: usize::MAX, give }
}

#[rustfmt::skip]
const SIGNATURES: &[Signature] = &[
    line("abs", Function::Abs, &[Want::Number], 1, Give::Same),
    line("bitand", Function::BitAnd, &[Want::Int, Want::Int], 2, Give::Int),
    line("bitnand", Function::BitNand, &[Want::Int, Want::Int], 2, Give::Int),
    line("bitnot", Function::BitNot, &[Want::Int], 1, Give::Int),
    line("bitor", Function::BitOr, &[Want::Int, Want::Int], 2, Give::Int),
    line("bitshl", Function::BitShl, &[Want::Int, Want::Int], 2, Give::Int),
    line("bitshr", Function::BitShr, &[Want::Int, Want::Int], 2, Give::Int),
    line("bitushr", Function::BitUshr, &[Want::Int, Want::Int], 2, Give::Int),
    line("bitxor", Function::BitXor, &[Want::Int, Want::Int], 2, Give::Int),
    line("ceil", Function::Ceil, &[Want::Number], 1, Give::Float),
    open("concat", Function::Concat, &[Want::Array], 1, Give::Array),
    line("date", Function::Date, &[Want::Text, Want::Text, Want::Text], 1, Give::Time),
    line("duration", Function::Duration, &[Want::Text], 1, Give::Span),
    line("first", Function::First, &[Want::Array], 1, Give::Anything),
    line("flatten", Function::Flatten, &[Want::Array], 1, Give::Array),
    line("float", Function::Float, &[Want::Numeric], 1, Give::Float),
    line("floor", Function::Floor, &[Want::Number], 1, Give::Float),
    line("fromBase64", Function::FromBase64, &[Want::Text], 1, Give::Text),
    line("fromJSON", Function::FromJson, &[Want::Text], 1, Give::Anything),
    line("fromPairs", Function::FromPairs, &[Want::Array], 1, Give::Map),
    line("get", Function::Get, &[Want::Members, Want::Anything], 2, Give::Anything),
    line("hasPrefix", Function::HasPrefix, &[Want::Text, Want::Text], 2, Give::Bool),
    line("hasSuffix", Function::HasSuffix, &[Want::Text, Want::Text], 2, Give::Bool),
    line("indexOf", Function::IndexOf, &[Want::Text, Want::Text], 2, Give::Int),
    line("int", Function::Int, &[Want::Numeric], 1, Give::Int),
    line("join", Function::Join, &[Want::Array, Want::Text], 1, Give::Text),
    line("keys", Function::Keys, &[Want::Map], 1, Give::Array),
    line("last", Function::Last, &[Want::Array], 1, Give::Anything),
    line("lastIndexOf", Function::LastIndexOf, &[Want::Text, Want::Text], 2, Give::Int),
    line("len", Function::Len, &[Want::Sized], 1, Give::Int),
    line("lower", Function::Lower, &[Want::Text], 1, Give::Text),
    open("max", Function::Max, &[Want::Numbers], 1, Give::Same),
    open("mean", Function::Mean, &[Want::Numbers], 1, Give::Same),
    open("median", Function::Median, &[Want::Numbers], 1, Give::Same),
    open("min", Function::Min, &[Want::Numbers], 1, Give::Same),
    line("now", Function::Now, &[], 0, Give::Time),
    line("repeat", Function::Repeat, &[Want::Text, Want::Int], 2, Give::Text),
    line("replace", Function::Replace, &[Want::Text, Want::Text, Want::Text, Want::Int], 3, Give::Text),
    line("reverse", Function::Reverse, &[Want::Array], 1, Give::Array),
    line("round", Function::Round, &[Want::Number], 1, Give::Float),
    line("sort", Function::Sort, &[Want::Array, Want::Text], 1, Give::Array),
    line("split", Function::Split, &[Want::Text, Want::Text, Want::Int], 2, Give::Texts),
    line("splitAfter", Function::SplitAfter, &[Want::Text, Want::Text, Want::Int], 2, Give::Texts),
    line("string", Function::String, &[Want::Anything], 1, Give::Text),
    line("take", Function::Take, &[Want::Array, Want::Int], 2, Give::Array),
    line("timezone", Function::Timezone, &[Want::Text], 1, Give::Zone),
    line("toBase64", Function::ToBase64, &[Want::Text], 1, Give::Text),
    line("toJSON", Function::ToJson, &[Want::Anything], 1, Give::Text),
    line("toPairs", Function::ToPairs, &[Want::Map], 1, Give::Array),
    line("trim", Function::Trim, &[Want::Text, Want::Text], 1, Give::Text),
    line("trimPrefix", Function::TrimPrefix, &[Want::Text, Want::Text], 2, Give::Text),
    line("trimSuffix", Function::TrimSuffix, &[Want::Text, Want::Text], 2, Give::Text),
    line("type", Function::Type, &[Want::Anything], 1, Give::Text),
    line("uniq", Function::Uniq, &[Want::Array], 1, Give::Array),
    line("upper", Function::Upper, &[Want::Text], 1, Give::Text),
    line("values", Function::Values, &[Want::Map], 1, Give::Array),
];

const PREDICATE_FUNCTIONS: [(&str, Each); 15] = [
    ("all", Each::All),
    ("any", Each::Any),
    ("count", Each::Count),
    ("filter", Each::Filter),
    ("find", Each::Find),
    ("findIndex", Each::FindIndex),
    ("findLast", Each::FindLast),
    ("findLastIndex", Each::FindLastIndex),
    ("groupBy", Each::GroupBy),
    ("map", Each::Map),
    ("none", Each::None),
    ("one", Each::One),
    ("reduce", Each::Reduce),
    ("sortBy", Each::SortBy),
    ("sum", Each::Sum),
];

/// Whether there is a function with this name.
pub(super) fn is_known(name: &str) -> bool {
    Function::named(name).is_some() || Each::named(name).is_some()
}

impl Each {
    /// The function with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        PREDICATE_FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, each)| *each)
    }

    pub(super) fn name(self) -> &'static str {
        PREDICATE_FUNCTIONS.iter().find(|(_, each)| *each == self).map_or("", |(name, _)| *name)
    }

    /// Whether the predicate may be left out.
    pub(super) fn can_do_without(self) -> bool {
        matches!(self, Self::Count | Self::Sum)
    }

    /// Whether a third argument is allowed: an initial value or an order.
    pub(super) fn takes_more(self) -> bool {
        matches!(self, Self::Reduce | Self::SortBy)
    }

    /// Whether the predicate must be boolean.
    pub(super) fn asks(self) -> bool {
        !matches!(self, Self::GroupBy | Self::Map | Self::Reduce | Self::SortBy | Self::Sum)
    }
}

impl Function {
    /// The function with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        SIGNATURES.iter().find(|line| line.name == name).map(|line| line.function)
    }

    fn signature(self) -> Option<&'static Signature> {
        SIGNATURES.iter().find(|line| line.function == self)
    }

    /// The function's name.
    pub(super) fn name(self) -> &'static str {
        self.signature().map_or("", |line| line.name)
    }

    /// The result type for these argument types, or why the call is invalid.
    pub(super) fn check(self, types: &[Type]) -> Result<Type, String> {
        let Some(Signature { name, wants, least, most, give, .. }) = self.signature() else {
            return Err("no such function".to_owned());
        };
        let count = types.len();
        if count < *least && *most == usize::MAX {
            return Err(format!("not enough arguments to call {name}"));
        }
        if count < *least || count > *most {
            return Err(format!("invalid number of arguments (expected {}, got {count})", wants.len()));
        }
        for (index, given) in types.iter().enumerate() {
            let want = wants.get(index).or(wants.last()).copied().unwrap_or(Want::Anything);
            if want == Want::Numbers && (given.is_any() || matches!(given, Type::Array(_))) {
                // Item types are checked at run time, as in expr.
                return Ok(Type::Any);
            }
            if !want.allows(given) {
                let shown = if *given == Type::Nil { "%!s(<nil>)".to_owned() } else { given.to_string() };
                return Err(format!("invalid argument for {name} (type {shown})"));
            }
        }
        Ok(match give {
            Give::Anything => Type::Any,
            Give::Bool => Type::Bool,
            Give::Int => Type::Int,
            Give::Float => Type::Float,
            Give::Text => Type::Text,
            Give::Array => Type::array(),
            Give::Texts => Type::Array(Type::Text.into()),
            Give::Map => Type::Map,
            Give::Span => Type::Span,
            Give::Time => Type::Time,
            Give::Zone => Type::Zone,
            Give::Same => types.first().cloned().unwrap_or(Type::Any),
        })
    }

    /// Calls it.
    pub(super) fn call(self, arguments: &[Value], run: &mut Run<'_>) -> Result<Value, String> {
        use Function as F;
        let given = Given { name: self, arguments };
        match self {
            F::Abs | F::Ceil | F::Floor | F::Round | F::Int | F::Float | F::String | F::Type | F::Len => {
                numbers::call(self, &given, run)
            }
            F::Max | F::Min | F::Mean | F::Median => aggregates::call(self, arguments, run),
            F::BitAnd
            | F::BitNand
            | F::BitNot
            | F::BitOr
            | F::BitShl
            | F::BitShr
            | F::BitUshr
            | F::BitXor => bits::call(self, &given),
            F::Trim
            | F::TrimPrefix
            | F::TrimSuffix
            | F::Upper
            | F::Lower
            | F::Split
            | F::SplitAfter
            | F::Replace
            | F::Repeat
            | F::Join
            | F::IndexOf
            | F::LastIndexOf
            | F::HasPrefix
            | F::HasSuffix
            | F::ToBase64
            | F::FromBase64 => strings::call(self, &given, run),
            F::First | F::Last | F::Take | F::Reverse | F::Uniq | F::Concat | F::Flatten | F::Sort => {
                lists::call(self, &given, run)
            }
            F::Get | F::Keys | F::Values | F::ToPairs | F::FromPairs => maps::call(self, &given, run),
            F::ToJson | F::FromJson => json::call(self, &given, run),
            F::Now | F::Duration | F::Date | F::Timezone => times::call(self, &given, run),
        }
    }
}

impl Want {
    fn allows(self, given: &Type) -> bool {
        let is_map = matches!(given, Type::Map | Type::Groups(_) | Type::All);
        let is_array = matches!(given, Type::Array(_));
        given.is_any()
            || match self {
                Self::Anything => true,
                Self::Number | Self::Numbers => given.is_number(),
                Self::Numeric => given.is_number() || matches!(given, Type::Text | Type::Span),
                Self::Int => *given == Type::Int,
                Self::Text => *given == Type::Text,
                Self::Array => is_array,
                Self::Map => is_map,
                Self::Members => is_array || is_map || matches!(given, Type::Text | Type::Nil),
                Self::Sized => is_array || is_map || *given == Type::Text,
            }
    }
}

/// The arguments of a call, consumed one by one.
struct Given<'a> {
    name: Function,
    arguments: &'a [Value],
}

impl Given<'_> {
    fn refused(&self, value: &Value) -> String {
        format!("invalid argument for {} (type {})", self.name.name(), value.type_name())
    }

    fn value(&self, index: usize) -> &Value {
        self.arguments.get(index).unwrap_or(&Value::Nil)
    }

    fn is_given(&self, index: usize) -> bool {
        index < self.arguments.len()
    }

    fn text(&self, index: usize) -> Result<&str, String> {
        match self.value(index) {
            Value::Text(text) => Ok(text),
            other => Err(self.refused(other)),
        }
    }

    fn int(&self, index: usize) -> Result<i64, String> {
        match self.value(index) {
            Value::Int(number) => Ok(*number),
            other => Err(self.refused(other)),
        }
    }

    fn items(&self, index: usize) -> Result<&[Value], String> {
        match self.value(index) {
            Value::Array(list) => Ok(list.items()),
            other => Err(self.refused(other)),
        }
    }

    fn map(&self, index: usize) -> Result<&super::value::Map, String> {
        match self.value(index) {
            Value::Map(map) => Ok(map),
            other => Err(self.refused(other)),
        }
    }
}
