//! The catalog of builtin functions: names, signatures and result types.

use super::error::EvalError;
use super::types::Type;

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
enum ParameterType {
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
    Zone,
}

/// Result type of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResultType {
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
    parameters: &'static [ParameterType],
    /// Minimum number of arguments.
    least: usize,
    is_variadic: bool,
    result: ResultType,
}

/// Declares the functions and their signatures: name, parameter types, least number of arguments and result type. The last
/// parameter of a `Variadic` function repeats.
macro_rules! functions {
    ($($function:ident $name:literal ($($parameter:ident),* $(; $arity:ident)?) $least:literal -> $result:ident,)*) => {
        /// A function without a predicate.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Function { $($function),* }

        const SIGNATURES: &[Signature] = &[$(Signature {
            name: $name,
            function: Function::$function,
            parameters: &[$(ParameterType::$parameter),*],
            least: $least,
            is_variadic: [$(stringify!($arity),)? ""].len() > 1,
            result: ResultType::$result,
        }),*];
    };
}

functions! {
    Abs "abs" (Number) 1 -> Same,
    BitAnd "bitand" (Int, Int) 2 -> Int,
    BitNand "bitnand" (Int, Int) 2 -> Int,
    BitNot "bitnot" (Int) 1 -> Int,
    BitOr "bitor" (Int, Int) 2 -> Int,
    BitShl "bitshl" (Int, Int) 2 -> Int,
    BitShr "bitshr" (Int, Int) 2 -> Int,
    BitUshr "bitushr" (Int, Int) 2 -> Int,
    BitXor "bitxor" (Int, Int) 2 -> Int,
    Ceil "ceil" (Number) 1 -> Float,
    Concat "concat" (Array; Variadic) 1 -> Array,
    Date "date" (Text, Text, Text) 1 -> Time,
    Duration "duration" (Text) 1 -> Span,
    First "first" (Array) 1 -> Anything,
    Flatten "flatten" (Array) 1 -> Array,
    Float "float" (Numeric) 1 -> Float,
    Floor "floor" (Number) 1 -> Float,
    FromBase64 "fromBase64" (Text) 1 -> Text,
    FromJson "fromJSON" (Text) 1 -> Anything,
    FromPairs "fromPairs" (Array) 1 -> Map,
    Get "get" (Members, Anything) 2 -> Anything,
    HasPrefix "hasPrefix" (Text, Text) 2 -> Bool,
    HasSuffix "hasSuffix" (Text, Text) 2 -> Bool,
    IndexOf "indexOf" (Text, Text) 2 -> Int,
    Int "int" (Numeric) 1 -> Int,
    Join "join" (Array, Text) 1 -> Text,
    Keys "keys" (Map) 1 -> Array,
    Last "last" (Array) 1 -> Anything,
    LastIndexOf "lastIndexOf" (Text, Text) 2 -> Int,
    Len "len" (Sized) 1 -> Int,
    Lower "lower" (Text) 1 -> Text,
    Max "max" (Numbers; Variadic) 1 -> Same,
    Mean "mean" (Numbers; Variadic) 1 -> Same,
    Median "median" (Numbers; Variadic) 1 -> Same,
    Min "min" (Numbers; Variadic) 1 -> Same,
    Now "now" (Zone) 0 -> Time,
    Repeat "repeat" (Text, Int) 2 -> Text,
    Replace "replace" (Text, Text, Text, Int) 3 -> Text,
    Reverse "reverse" (Array) 1 -> Array,
    Round "round" (Number) 1 -> Float,
    Sort "sort" (Array, Text) 1 -> Array,
    Split "split" (Text, Text, Int) 2 -> Texts,
    SplitAfter "splitAfter" (Text, Text, Int) 2 -> Texts,
    String "string" (Anything) 1 -> Text,
    Take "take" (Array, Int) 2 -> Array,
    Timezone "timezone" (Text) 1 -> Zone,
    ToBase64 "toBase64" (Text) 1 -> Text,
    ToJson "toJSON" (Anything) 1 -> Text,
    ToPairs "toPairs" (Map) 1 -> Array,
    Trim "trim" (Text, Text) 1 -> Text,
    TrimPrefix "trimPrefix" (Text, Text) 1 -> Text,
    TrimSuffix "trimSuffix" (Text, Text) 1 -> Text,
    Type "type" (Anything) 1 -> Text,
    Uniq "uniq" (Array) 1 -> Array,
    Upper "upper" (Text) 1 -> Text,
    Values "values" (Map) 1 -> Array,
}

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
    pub(super) fn has_optional_predicate(self) -> bool {
        matches!(self, Self::Count | Self::Sum)
    }

    /// Whether a third argument is allowed: an initial value or an order.
    pub(super) fn takes_third_argument(self) -> bool {
        matches!(self, Self::Reduce | Self::SortBy)
    }

    /// Whether the predicate must be boolean.
    pub(super) fn needs_bool(self) -> bool {
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
    pub(super) fn check(self, types: &[Type]) -> Result<Type, EvalError> {
        let Some(Signature { name, parameters, least, is_variadic, result, .. }) = self.signature() else {
            return Err("no such function".into());
        };
        let count = types.len();
        if count < *least && *is_variadic {
            return Err(format!("not enough arguments to call {name}").into());
        }
        if count < *least || (count > parameters.len() && !is_variadic) {
            return Err(
                format!("invalid number of arguments (expected {}, got {count})", parameters.len()).into()
            );
        }
        for (index, given) in types.iter().enumerate() {
            let parameter =
                parameters.get(index).or(parameters.last()).copied().unwrap_or(ParameterType::Anything);
            if parameter == ParameterType::Numbers && (given.is_any() || matches!(given, Type::Array(_))) {
                // Item types are checked at run time, as in expr.
                return Ok(Type::Any);
            }
            if parameter == ParameterType::Zone && !parameter.allows(given) {
                // Only `now` has such a parameter, which expr does not count.
                return Err(format!("invalid number of arguments (expected 0, got {count})").into());
            }
            if !parameter.allows(given) {
                let shown = if *given == Type::Nil { "%!s(<nil>)".to_owned() } else { given.to_string() };
                return Err(format!("invalid argument for {name} (type {shown})").into());
            }
        }
        Ok(match result {
            ResultType::Anything => Type::Any,
            ResultType::Bool => Type::Bool,
            ResultType::Int => Type::Int,
            ResultType::Float => Type::Float,
            ResultType::Text => Type::Text,
            ResultType::Array => Type::array(),
            ResultType::Texts => Type::Array(Type::Text.into()),
            ResultType::Map => Type::Map,
            ResultType::Span => Type::Span,
            ResultType::Time => Type::Time,
            ResultType::Zone => Type::Zone,
            ResultType::Same => types.first().cloned().unwrap_or(Type::Any),
        })
    }
}

impl ParameterType {
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
                Self::Zone => *given == Type::Zone,
                Self::Array => is_array,
                Self::Map => is_map,
                Self::Members => is_array || is_map,
                Self::Sized => is_array || is_map || *given == Type::Text,
            }
    }
}
