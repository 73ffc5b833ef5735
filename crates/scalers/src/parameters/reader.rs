//! Reads parameters from their sources and collects errors.

use api::gotext::quote;

use super::value::{ParameterValue, QueryValues};
use super::{Parameter, ParameterSource};
use crate::{ParseError, ScalerError, Trigger};

/// A group of parameters.
pub trait ParameterGroup: Sized {
    /// The parameters of the group.
    const PARAMETERS: &'static [Parameter];

    /// Reads all parameters; the reader collects errors.
    fn fill(reader: &mut ParameterReader<'_>) -> Self;
}

/// Reads the parameters of one trigger.
pub struct ParameterReader<'a> {
    trigger: &'a Trigger,
    problems: Vec<ParameterProblem>,
}

/// What is wrong with the parameters of a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterProblem {
    /// The message of KEDA.
    pub message: String,
    /// The parameter; none if it is about several.
    pub parameter: Option<&'static str>,
    /// Where a missing parameter can be given; empty if it is not missing.
    pub missing_from: &'static [ParameterSource],
}

/// All problems of the parameters of a trigger, one per line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(|problem| &*problem.message).collect::<Vec<_>>().join("\n"))]
pub struct InvalidParameters(pub Vec<ParameterProblem>);

impl ParameterProblem {
    fn of(parameter: &Parameter, message: String) -> Self {
        Self { message, parameter: parameter.keys.first().copied(), missing_from: &[] }
    }
}

impl From<ParseError> for ParameterProblem {
    fn from(error: ParseError) -> Self {
        Self { parameter: error.parameter(), message: error.into(), missing_from: &[] }
    }
}

impl ParameterReader<'_> {
    /// Reads a group, or reports all errors, one per line.
    pub fn read<G: ParameterGroup>(trigger: &Trigger, prefix: Option<&str>) -> Result<G, ScalerError> {
        let (read, problems) = Self::problems(trigger);
        if problems.is_empty() {
            return Ok(read);
        }
        let invalid = InvalidParameters(problems);
        let error = ScalerError::caused_by(invalid.to_string(), invalid);
        Err(match prefix {
            Some(prefix) => error.inside(prefix),
            None => error,
        })
    }

    /// Reads a group with all errors, one each.
    pub(super) fn problems<G: ParameterGroup>(trigger: &Trigger) -> (G, Vec<ParameterProblem>) {
        let mut reader = ParameterReader { trigger, problems: Vec::new() };
        let read = G::fill(&mut reader);
        (read, reader.problems)
    }

    /// Reads one parameter; the default of the type if it is missing or invalid.
    pub fn value<T: ParameterValue>(&mut self, parameter: &Parameter) -> T {
        let text = match (find(parameter, self.trigger), parameter.default) {
            (Some(_), _) if parameter.removed_from(self.trigger.profile).is_some() => {
                let why = parameter.removed.unwrap_or_default();
                let message = format!("scaler {} info: {why}", self.trigger.type_);
                self.problems.push(ParameterProblem::of(parameter, message));
                return T::default();
            }
            (Some(text), _) | (None, Some(text)) => text,
            (None, None) => {
                if parameter.required {
                    let sources: Vec<_> = parameter.sources.iter().map(|source| source.name()).collect();
                    let name = quote(&parameter.name());
                    let sources = sources.join(" ");
                    let message = format!("missing required parameter {name} in [{sources}]");
                    let missing_from = parameter.sources;
                    self.problems
                        .push(ParameterProblem { missing_from, ..ParameterProblem::of(parameter, message) });
                }
                return T::default();
            }
        };
        // As in KEDA, a value that is not allowed is not read: checks over several parameters see an empty one.
        if let Some(message) = among(parameter, text) {
            self.problems.push(ParameterProblem::of(parameter, message));
            return T::default();
        }
        match T::parse(text, parameter.separator) {
            Err(why) => {
                let name = quote(&parameter.name());
                let (text, why) = match shown(text) {
                    // Query strings may contain credentials.
                    _ if T::KIND == QueryValues::KIND => ("(not shown)".to_owned(), why),
                    // The error is about the shortened value, which the message quotes.
                    Some(head) => {
                        let why = T::parse(&head, parameter.separator).err();
                        (quote(&head), why.unwrap_or_else(|| "it is too long".into()))
                    }
                    None => (quote(text), why),
                };
                let message = format!("unable to set param {name} value {text}: {why}");
                self.problems.push(ParameterProblem::of(parameter, message));
                T::default()
            }
            Ok(value) => value,
        }
    }

    /// Runs a check over several parameters.
    pub fn check<G>(&mut self, group: &mut G, check: impl Fn(&mut G, &Trigger) -> Result<(), ParseError>) {
        self.problems.extend(check(group, self.trigger).err().map(ParameterProblem::from));
    }
}

/// Maximum length in characters of a value quoted in an error.
const MAX_QUOTED_CHARS: usize = 200;

/// The beginning of a value that is too long to be quoted.
fn shown(text: &str) -> Option<String> {
    let (end, _) = text.char_indices().nth(MAX_QUOTED_CHARS)?;
    Some(format!("{}…", text.get(..end).unwrap_or_default()))
}

/// The error of a value that is not one of the allowed values.
fn among(parameter: &Parameter, text: &str) -> Option<String> {
    let Parameter { one_of, only_one_of, .. } = parameter;
    // Each item of a list is checked; KEDA treats every value as a list here.
    let items: Vec<&str> = text.split(parameter.separator).map(str::trim).collect();
    let wrong = |must: &str, list: &[&str]| {
        let name = quote(&parameter.name());
        let text = quote(shown(text).as_deref().unwrap_or(text));
        Some(format!("parameter {name} value {text} {must} [{}]", list.join(" ")))
    };
    if !one_of.is_empty() && items.iter().any(|item| !one_of.contains(item)) {
        return wrong("must be one of", one_of);
    }
    if items.iter().filter(|item| only_one_of.contains(item)).count() > 1 {
        return wrong("must contain only one of", only_one_of);
    }
    None
}

/// The text of a parameter, from the first source and key that has one.
pub(super) fn find<'a>(parameter: &Parameter, trigger: &'a Trigger) -> Option<&'a str> {
    if parameter.since > trigger.profile {
        return None;
    }
    let sources = parameter.sources.iter();
    sources.flat_map(|source| parameter.keys.iter().map(move |key| (source, *key))).find_map(
        |(source, key)| {
            let text = match source {
                ParameterSource::Metadata => trigger.metadata.get(key),
                ParameterSource::Authentication => trigger.auth.get(key),
                ParameterSource::Environment => {
                    let variable = trigger.metadata.get(&format!("{key}FromEnv"))?;
                    trigger.environment.get(variable)
                }
            };
            text.map(|text| text.trim()).filter(|text| !text.is_empty())
        },
    )
}
