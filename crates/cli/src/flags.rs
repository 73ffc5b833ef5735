//! Flags of the replaced servers, defined by tables. They behave as Go's flags: the last value wins; lists add
//! up; `--name` alone means true; `_` equals `-`.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::path::PathBuf;

use api::time::parse_go_duration;
use clap::builder::PossibleValuesParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use jiff::SignedDuration;

use crate::failure::Failure;

/// The flags of a command.
pub(crate) trait Table: Clone + Default + Send + Sync + 'static {
    const FLAGS: &'static [Flag];
}

/// A flag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag {
    pub(crate) group: Group,
    pub(crate) name: &'static str,
    pub(crate) short: Option<char>,
    pub(crate) kind: Kind,
    /// The default as text; empty if there is none.
    pub(crate) default: &'static str,
    pub(crate) effect: FlagEffect,
    /// What it does, or why it is ignored.
    pub(crate) about: &'static str,
}

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Text,
    File,
    Number,
    Float,
    /// As Go writes it: `1m30s`.
    Duration,
    Choice(&'static [&'static str]),
    /// Separated by commas, and several times.
    List,
    /// Several times, each as it is.
    Repeated,
}

/// Whether a flag has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlagEffect {
    Acts,
    /// It is accepted and ignored, so that manifests work unchanged.
    Nothing,
}

/// The origin and topic of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Own,
    Kubelet,
    Adapter,
    Operator,
    Serving,
    Authentication,
    Authorization,
    Generic,
    Audit,
    Features,
    Logging,
}

/// The given flags of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags<T>(HashMap<&'static str, Vec<String>>, PhantomData<T>);

impl Group {
    /// The heading in the help.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Own => "Options",
            Self::Kubelet => "Kubelets (as metrics-server)",
            Self::Adapter => "Prometheus (as prometheus-adapter)",
            Self::Operator => "Operator (as KEDA)",
            Self::Serving => "Serving",
            Self::Authentication => "Authentication",
            Self::Authorization => "Authorization",
            Self::Generic => "Generic server",
            Self::Audit => "Audit",
            Self::Features => "Features",
            Self::Logging => "Logging",
        }
    }
}

impl Flag {
    /// The flag for clap.
    pub(crate) fn arg(&self) -> Arg {
        let mut arg = Arg::new(self.name).long(self.name).help_heading(self.group.heading());
        arg = match self.short {
            Some(letter) => arg.short(letter),
            None => arg,
        };
        arg = match self.kind {
            // For booleans, Go accepts a value only after an equals sign.
            Kind::Bool => {
                arg.num_args(0..=1).require_equals(true).default_missing_value("true").value_name("BOOL")
            }
            Kind::Choice(words) => arg.value_parser(PossibleValuesParser::new(words)).value_name("WORD"),
            Kind::Duration => arg.value_name("DURATION"),
            Kind::File => arg.value_name("FILE"),
            Kind::Number | Kind::Float => arg.value_name("NUMBER").allow_negative_numbers(true),
            Kind::List => arg.value_name("A,B,…"),
            Kind::Text | Kind::Repeated => arg.value_name("TEXT"),
        };
        let default = match self.default {
            "" => String::new(),
            default => format!(" [{default}]"),
        };
        // Flags without effect are many, and listed in the documentation.
        arg.action(ArgAction::Append)
            .help(format!("{}{default}", self.about))
            .hide(self.effect == FlagEffect::Nothing)
    }

    /// Why a value is invalid.
    pub(crate) fn check(&self, value: &str) -> Result<(), String> {
        let wrong = |wanted: &str| Err(format!("--{}={value}: {wanted}", self.name));
        match self.kind {
            Kind::Bool if go_bool(value).is_none() => wrong("write true or false"),
            Kind::Number if value.parse::<i64>().is_err() => wrong("write a whole number"),
            Kind::Float if value.parse::<f64>().is_err() => wrong("write a number"),
            Kind::Duration if parse_go_duration(value).is_none() => {
                wrong("write a duration such as 15s or 1m30s")
            }
            _ => Ok(()),
        }
    }
}

/// A flag with an effect.
pub(crate) const fn acts(
    group: Group,
    name: &'static str,
    kind: Kind,
    default: &'static str,
    about: &'static str,
) -> Flag {
    Flag { group, name, short: None, kind, default, effect: FlagEffect::Acts, about }
}

/// A flag that is accepted and ignored, and why.
pub(crate) const fn idle(
    group: Group,
    name: &'static str,
    kind: Kind,
    default: &'static str,
    why: &'static str,
) -> Flag {
    Flag { group, name, short: None, kind, default, effect: FlagEffect::Nothing, about: why }
}

/// Go's words for true and false.
pub(crate) fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

impl<T: Table> Flags<T> {
    /// The given flags with all their values.
    fn of(matches: &ArgMatches) -> Result<Self, String> {
        let mut given = HashMap::new();
        for flag in T::FLAGS {
            if matches.value_source(flag.name) != Some(ValueSource::CommandLine) {
                continue;
            }
            let values: Vec<String> = matches.get_many(flag.name).into_iter().flatten().cloned().collect();
            values.iter().try_for_each(|value| flag.check(value))?;
            given.insert(flag.name, values);
        }
        Ok(Self(given, PhantomData))
    }

    /// Whether a flag was given.
    pub(crate) fn given(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Given flags that are ignored although their value differs from the default.
    pub(crate) fn idle(&self) -> Vec<&'static str> {
        let differs = |flag: &&Flag| {
            self.0.get(flag.name).is_some_and(|values| values.iter().any(|v| v != flag.default))
        };
        T::FLAGS
            .iter()
            .filter(|flag| flag.effect == FlagEffect::Nothing)
            .filter(differs)
            .map(|flag| flag.name)
            .collect()
    }

    /// The last value, or the default; empty if there is none.
    pub(crate) fn text(&self, name: &str) -> Result<&str, Failure> {
        let flag = T::FLAGS.iter().find(|flag| flag.name == name);
        let flag = flag.ok_or_else(|| Failure::input(format!("there is no flag --{name}")))?;
        Ok(self.0.get(name).and_then(|values| values.last()).map_or(flag.default, String::as_str))
    }

    /// A file, if one was named.
    pub(crate) fn file(&self, name: &str) -> Result<Option<PathBuf>, Failure> {
        Ok(Some(self.text(name)?).filter(|path| !path.is_empty()).map(PathBuf::from))
    }

    pub(crate) fn bool(&self, name: &str) -> Result<bool, Failure> {
        self.read(name, go_bool)
    }

    pub(crate) fn number(&self, name: &str) -> Result<i64, Failure> {
        self.read(name, |text| text.parse().ok())
    }

    pub(crate) fn float(&self, name: &str) -> Result<f64, Failure> {
        self.read(name, |text| text.parse().ok())
    }

    pub(crate) fn duration(&self, name: &str) -> Result<SignedDuration, Failure> {
        self.read(name, parse_go_duration)
    }

    fn read<V>(&self, name: &str, parse: impl FnOnce(&str) -> Option<V>) -> Result<V, Failure> {
        let text = self.text(name)?;
        parse(text).ok_or_else(|| Failure::input(format!("--{name}={text} cannot be read")))
    }

    /// All values of a list.
    pub(crate) fn list(&self, name: &str) -> Result<Vec<String>, Failure> {
        let default = self.text(name)?;
        let given = self.0.get(name).map(Vec::as_slice);
        let words = |text: &str| text.split(',').map(|word| word.trim().to_owned()).collect::<Vec<_>>();
        let all =
            given.map_or_else(|| words(default), |given| given.iter().flat_map(|text| words(text)).collect());
        Ok(all.into_iter().filter(|word| !word.is_empty()).collect())
    }

    /// All values of a flag that may be given several times.
    pub(crate) fn repeated(&self, name: &str) -> Result<Vec<String>, Failure> {
        self.text(name)?;
        Ok(self.0.get(name).cloned().unwrap_or_default())
    }
}

impl<T: Table> clap::FromArgMatches for Flags<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::of(matches)
            .map_err(|error| clap::Error::raw(clap::error::ErrorKind::ValueValidation, format!("{error}\n")))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<T: Table> clap::Args for Flags<T> {
    fn augment_args(command: Command) -> Command {
        T::FLAGS.iter().fold(command, |command, flag| command.arg(flag.arg()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Normalizes a word of the command line: Go reads `--log_dir` as `--log-dir`.
pub(crate) fn normal(word: &str) -> String {
    match word.strip_prefix("--") {
        Some(rest) => {
            let (name, value) = rest.split_at(rest.find('=').unwrap_or(rest.len()));
            format!("--{}{value}", name.replace('_', "-"))
        }
        None => word.to_owned(),
    }
}
