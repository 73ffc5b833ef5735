//! The texts that users see, by the call that contains a string literal. Where the call is ambiguous, the text is included, because a person
//! reads the list.

use std::collections::BTreeSet;

use super::gates::gates;
use super::go_text::{Token, tokens};

/// The kind of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TextKind {
    /// A reason or note of an event.
    Event,
    /// A reason or message of a condition.
    Condition,
    /// A name, help text or label of an exported metric.
    Metric,
    /// A command line flag or its help text.
    Flag,
    /// An environment variable.
    Variable,
    /// A feature gate.
    FeatureGate,
    /// A JSON field of an API type.
    Field,
    /// A parameter of a trigger.
    Parameter,
    /// The text of an error.
    Error,
    /// Something else.
    Other,
}

impl TextKind {
    /// All kinds, in the order of the report.
    pub(super) const ALL: [Self; 10] = [
        Self::Event,
        Self::Condition,
        Self::Metric,
        Self::Flag,
        Self::Variable,
        Self::FeatureGate,
        Self::Field,
        Self::Parameter,
        Self::Error,
        Self::Other,
    ];

    /// The heading of its list.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Event => "events",
            Self::Condition => "conditions",
            Self::Metric => "metrics",
            Self::Flag => "flags",
            Self::Variable => "environment variables",
            Self::FeatureGate => "feature gates",
            Self::Field => "fields of API types",
            Self::Parameter => "parameters of triggers",
            Self::Error => "errors",
            Self::Other => "other texts",
        }
    }
}

/// The texts of a Go file.
pub(super) fn texts(path: &str, source: &str) -> BTreeSet<(TextKind, String)> {
    let tokens = joined(tokens(source));
    let mut found = BTreeSet::new();
    if is_of_gates(path) {
        found.extend(gates(&tokens).into_iter().map(|gate| (TextKind::FeatureGate, gate)));
    }
    // The last type that was declared.
    let mut owner = "";
    // The open parentheses: the name of the call, and whether it is a call.
    let mut calls: Vec<Option<String>> = Vec::new();
    let mut previous: Option<&Token> = None;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Word(word) if word == "struct" => {
                if let Some([Token::Word(declares), Token::Word(name)]) =
                    at.checked_sub(2).and_then(|start| tokens.get(start..at))
                    && declares == "type"
                {
                    owner = name;
                }
            }
            Token::Sign('(') => calls.push(match previous {
                Some(Token::Word(name)) => Some(name.clone()),
                _ => None,
            }),
            Token::Sign(')') => drop(calls.pop()),
            Token::Text(text) => found.extend(classify(path, &calls, owner, text)),
            _ => {}
        }
        previous = Some(token);
    }
    found
}

/// Joins literals that are concatenated with `+`.
fn joined(tokens: Vec<Token>) -> Vec<Token> {
    let mut all: Vec<Token> = Vec::with_capacity(tokens.len());
    for token in tokens {
        if let (Token::Text(next), [.., Token::Text(text), Token::Sign('+')]) = (&token, all.as_mut_slice()) {
            text.push_str(next);
            all.pop();
        } else {
            all.push(token);
        }
    }
    all
}

/// Whether a file is the table of feature gates.
fn is_of_gates(path: &str) -> bool {
    path.contains("pkg/features")
}

fn classify(path: &str, calls: &[Option<String>], owner: &str, text: &str) -> Vec<(TextKind, String)> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    if text.contains("json:\"") || text.contains("keda:\"") {
        return struct_tags(owner, text);
    }
    let kind = calls.iter().rev().flatten().find_map(|name| kind_of_call(name));
    let kind = match kind {
        Some(CallKind::Visible(kind)) => kind,
        Some(CallKind::Hidden) => return Vec::new(),
        None if is_variable(text) => TextKind::Variable,
        None if path.contains("eventreason") || path.ends_with("events.go") => TextKind::Event,
        None if path.contains("metricscollector") || path.contains("/monitor/") => TextKind::Metric,
        // Names of feature gates are in their own list.
        None if is_of_gates(path) => return Vec::new(),
        None => TextKind::Other,
    };
    // Users do not see whether an error is wrapped.
    vec![(kind, text.replace("%w", "%v"))]
}

/// Whether a text is written like the name of an environment variable, which is often a constant.
fn is_variable(text: &str) -> bool {
    let is_upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    text.contains('_') && text.starts_with(|c: char| c.is_ascii_uppercase()) && text.chars().all(is_upper)
}

/// The use of a call's arguments.
enum CallKind {
    /// Users see them.
    Visible(TextKind),
    /// Users do not see them: texts of the log, and paths of imports.
    Hidden,
}

/// The use of a call's arguments; none for most calls.
fn kind_of_call(name: &str) -> Option<CallKind> {
    let is_any = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    let kind = match name {
        "Errorf" | "New" | "Wrap" | "Wrapf" | "Invalid" | "Required" | "Forbidden" => TextKind::Error,
        "Getenv" | "LookupEnv" => TextKind::Variable,
        "import" | "Info" | "Infof" | "InfoS" | "Error" | "ErrorS" | "Debug" | "Warningf" | "Warning"
        | "V" => {
            return Some(CallKind::Hidden);
        }
        _ if is_any(&["Condition"]) => TextKind::Condition,
        _ if is_any(&["Eventf", "Event", "Emit"]) => TextKind::Event,
        _ if name.ends_with("Var") || name.ends_with("VarP") => TextKind::Flag,
        _ if is_any(&["OsEnv", "EnvVar"]) => TextKind::Variable,
        _ if name.starts_with("New") && is_any(&["Counter", "Gauge", "Histogram", "Summary", "Desc"]) => {
            TextKind::Metric
        }
        _ => return None,
    };
    Some(CallKind::Visible(kind))
}

/// The names in a struct tag of a type: the JSON field and the parameter of a trigger.
fn struct_tags(owner: &str, text: &str) -> Vec<(TextKind, String)> {
    let value = |key: &str| {
        let (_, rest) = text.split_once(&format!("{key}:\""))?;
        Some(rest.split('"').next().unwrap_or_default().to_owned())
    };
    let field = value("json").and_then(|tag| Some(tag.split(',').next()?.to_owned()));
    let field = field
        .filter(|name| !name.is_empty() && name != "-")
        .map(|name| (TextKind::Field, format!("{owner}.{name}")));
    let parameter = value("keda").map(|tag| (TextKind::Parameter, tag));
    field.into_iter().chain(parameter).collect()
}
