//! Finds texts in their places, and collects what is wrong with them.

use api::gotext::quote;

use super::value::{QueryValues, Value};
use super::{Parameter, Place};
use crate::{Error, Trigger};

/// Parameters that are declared together.
pub trait Group: Sized {
    /// What there is.
    const PARAMETERS: &'static [Parameter];

    /// Reads all; what is wrong is left with the reader.
    fn fill(reader: &mut Reader<'_>) -> Self;
}

/// Reads the parameters of one trigger.
pub struct Reader<'a> {
    trigger: &'a Trigger,
    problems: Vec<String>,
}

impl Reader<'_> {
    /// Reads a group, or says all that is wrong, a line each.
    pub fn read<G: Group>(trigger: &Trigger, prefix: Option<&str>) -> Result<G, Error> {
        let mut reader = Reader { trigger, problems: Vec::new() };
        let read = G::fill(&mut reader);
        if reader.problems.is_empty() {
            return Ok(read);
        }
        let error = Error::new(reader.problems.join("\n"));
        Err(match prefix {
            Some(prefix) => error.inside(prefix),
            None => error,
        })
    }

    /// Reads one parameter. If it is missing or wrong, it is empty.
    pub fn value<T: Value>(&mut self, parameter: &Parameter) -> T {
        let text = match (find(parameter, self.trigger), parameter.default) {
            (Some(_), _) if parameter.removed.is_some() => {
                let why = parameter.removed.unwrap_or_default();
                self.problems.push(format!("scaler {} info: {why}", self.trigger.type_));
                return T::default();
            }
            (Some(text), _) | (None, Some(text)) => text,
            (None, None) => {
                if parameter.required {
                    let places: Vec<_> = parameter.places.iter().map(|place| place.name()).collect();
                    let name = quote(&parameter.name());
                    let places = places.join(" ");
                    self.problems.push(format!("missing required parameter {name} in [{places}]"));
                }
                return T::default();
            }
        };
        match T::parse(text, parameter.separator) {
            Err(why) => {
                let name = quote(&parameter.name());
                let (text, why) = match shown(text) {
                    // Credentials are given so.
                    _ if T::KIND == QueryValues::KIND => ("(not shown)".to_owned(), why),
                    // What is wrong with it is said of what is shown of it.
                    Some(head) => {
                        let why = T::parse(&head, parameter.separator).err();
                        (quote(&head), why.unwrap_or_else(|| "it is too long".to_owned()))
                    }
                    None => (quote(text), why),
                };
                self.problems.push(format!("unable to set param {name} value {text}: {why}"));
                T::default()
            }
            Ok(value) => {
                self.problems.extend(among(parameter, text));
                value
            }
        }
    }

    /// Asks a check that needs several parameters at once.
    pub fn check<G>(&mut self, group: &mut G, check: impl Fn(&mut G, &Trigger) -> Result<(), String>) {
        self.problems.extend(check(group, self.trigger).err());
    }
}

/// So much of a wrong value is repeated.
const SHOWN: usize = 200;

/// The beginning of a value that is too long to be repeated.
fn shown(text: &str) -> Option<String> {
    let (end, _) = text.char_indices().nth(SHOWN)?;
    Some(format!("{}…", text.get(..end).unwrap_or_default()))
}

/// What is wrong with a value of which only some are allowed.
fn among(parameter: &Parameter, text: &str) -> Option<String> {
    let Parameter { one_of, only_one_of, .. } = parameter;
    // Of lists each item counts; KEDA takes everything for a list here.
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

/// The text of a parameter: of the first place that has one, in the order of its keys.
pub(super) fn find<'a>(parameter: &Parameter, trigger: &'a Trigger) -> Option<&'a str> {
    let places = parameter.places.iter();
    places.flat_map(|place| parameter.keys.iter().map(move |key| (place, *key))).find_map(|(place, key)| {
        let text = match place {
            Place::Metadata => trigger.metadata.get(key),
            Place::Authentication => trigger.auth.get(key),
            Place::Environment => {
                let variable = trigger.metadata.get(&format!("{key}FromEnv"))?;
                trigger.environment.get(variable)
            }
        };
        text.map(|text| text.trim()).filter(|text| !text.is_empty())
    })
}
