//! The flags of `plimsoll run`: those of the roles that have an effect. A flag that several roles have is given once.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use crate::commands::controller::ControllerArgs;
use crate::commands::{metrics, operator};
use crate::failure::Failure;

/// A role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Role {
    /// As `plimsoll controller`.
    Controller,
    /// As `plimsoll metrics`.
    Metrics,
    /// As `plimsoll operator`.
    Operator,
}

/// Flags that mean something else in each role: the role, the name there, the name here.
const PREFIXED: &[(Role, &str, &str)] = &[
    (Role::Controller, "config", "controller-config"),
    (Role::Metrics, "config", "metrics-config"),
    (Role::Controller, "record", "controller-record"),
    (Role::Operator, "record", "operator-record"),
];

/// Flags that are not those of a role here: of logs, which are those of the process, and other names of shared flags.
const LEFT_OUT: &[&str] = &[
    "cert-dir",
    "lister-kubeconfig",
    "log-format",
    "log-level",
    "logging-format",
    "v",
    "version",
    "zap-encoder",
    "zap-log-level",
];

/// Shared flags whose defaults are not those of the roles, with their help.
const OWN_DEFAULTS: &[(&str, &str, &str)] = &[
    ("secure-port", "6443", "Port of the one TLS server; 0 is any free one [6443]"),
    ("cert-secret-name", "plimsoll-certs", "Name of the Secret of --enable-cert-rotation [plimsoll-certs]"),
    (
        "leader-elect",
        "true",
        "Use leader election, with one lease per role [true; false for a controller that writes nothing]",
    ),
    (
        "health-probe-bind-address",
        ":8081",
        "/healthz, /livez and /readyz of all roles without TLS; 0: on --secure-port only [:8081]",
    ),
];

/// A flag, and the roles that have it.
pub(super) struct RunFlag {
    arg: Arg,
    /// Its name here.
    pub(super) name: String,
    /// Its name in the roles.
    role_name: String,
    pub(super) roles: Vec<Role>,
}

/// A flag of the command line.
#[derive(Clone, Debug)]
struct RoleFlag {
    name: String,
    role_name: String,
    roles: Vec<Role>,
    values: Vec<OsString>,
}

/// The flags of the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoleFlags(Vec<RoleFlag>);

impl Role {
    pub(super) const ALL: [Self; 3] = [Self::Controller, Self::Metrics, Self::Operator];

    /// Its name in flags, health checks and exported metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::Metrics => "metrics",
            Self::Operator => "operator",
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::Controller => "Controller",
            Self::Metrics => "Metrics",
            Self::Operator => "Operator",
        }
    }

    /// The command of the role alone.
    fn command(self) -> Command {
        let command = Command::new(self.name());
        match self {
            Self::Controller => ControllerArgs::augment_args(command),
            Self::Metrics => metrics::flags::MetricsFlags::augment_args(command),
            Self::Operator => operator::flags::OperatorFlags::augment_args(command),
        }
    }
}

/// All flags, without those that have no effect.
pub(super) fn table() -> Vec<RunFlag> {
    let mut flags: Vec<RunFlag> = Vec::new();
    for role in Role::ALL {
        let command = role.command();
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let Some(role_name) = arg.get_long().filter(|name| !LEFT_OUT.contains(name)) else { continue };
            let prefixed = PREFIXED.iter().find(|(of, name, _)| *of == role && *name == role_name);
            if prefixed.is_none()
                && let Some(known) = flags.iter_mut().find(|flag| flag.name == role_name)
            {
                known.roles.push(role);
                continue;
            }
            let (arg, name) = match prefixed {
                Some((_, _, name)) => (arg.clone().id(*name).long(*name), *name),
                None => (arg.clone(), role_name),
            };
            let (name, role_name) = (name.to_owned(), role_name.to_owned());
            flags.push(RunFlag { arg, name, role_name, roles: vec![role] });
        }
    }
    flags.into_iter().map(described).collect()
}

/// Names that stand for another flag in each role.
fn ambiguous_names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = PREFIXED.iter().map(|(_, name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The flag under its heading in the help.
fn described(flag: RunFlag) -> RunFlag {
    let heading = match flag.roles.as_slice() {
        [only] => only.heading(),
        _ => "Shared by the roles",
    };
    let arg = flag.arg.help_heading(heading);
    let own = OWN_DEFAULTS.iter().find(|(name, ..)| *name == flag.name);
    let arg = match own {
        Some((_, _, help)) => arg.help(*help).long_help(*help),
        None => arg,
    };
    RunFlag { arg, ..flag }
}

impl RoleFlags {
    /// The last value of a shared flag, or its default here; none if it has neither.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let given = self.0.iter().find(|flag| flag.name == name).and_then(|flag| flag.values.last());
        let default = OWN_DEFAULTS.iter().find(|(own, ..)| *own == name).map(|(_, default, _)| *default);
        given.map(|value| value.to_string_lossy().into_owned()).or_else(|| default.map(str::to_owned))
    }

    /// Whether a flag was given.
    pub(super) fn is_given(&self, name: &str) -> bool {
        self.0.iter().any(|flag| flag.name == name)
    }

    /// A file, if one was named.
    pub(super) fn file(&self, name: &str) -> Option<PathBuf> {
        let given = self.0.iter().find(|flag| flag.name == name).and_then(|flag| flag.values.last());
        given.map(PathBuf::from)
    }

    /// Refuses flags of roles that do not run.
    pub(super) fn check(&self, roles: &[Role]) -> Result<(), Failure> {
        let unused = self.0.iter().find(|flag| !flag.roles.iter().any(|role| roles.contains(role)));
        match unused {
            Some(RoleFlag { name, roles, .. }) => {
                let names: Vec<&str> = roles.iter().map(|role| role.name()).collect();
                let names = names.join(" or ");
                Err(Failure::input(format!(
                    "--{name} is a flag of the role {names}, which --roles leaves out"
                )))
            }
            None => Ok(()),
        }
    }

    /// The arguments of a role, as its own command reads them.
    pub(super) fn of_role<T: FromArgMatches>(&self, role: Role) -> Result<T, Failure> {
        let command = role.command();
        let mut words = vec![OsString::from(role.name())];
        for flag in self.0.iter().filter(|flag| flag.roles.contains(&role)) {
            words.extend(flag.values.iter().map(|value| word(&flag.role_name, value)));
        }
        for (name, default, _) in OWN_DEFAULTS {
            // A controller that acts is elected by default, and one in shadow mode must write nothing, also no lease.
            let is_own_choice = role == Role::Controller && *name == "leader-elect";
            let has = command.get_arguments().any(|arg| !arg.is_hide_set() && arg.get_long() == Some(*name));
            if has && !is_own_choice && !self.is_given(name) {
                words.push(word(name, OsStr::new(*default)));
            }
        }
        let matches = command.try_get_matches_from(words);
        matches.and_then(|matches| T::from_arg_matches(&matches)).map_err(|error| {
            let text = error.to_string();
            Failure::input(text.strip_prefix("error: ").unwrap_or(&text).trim_end())
        })
    }
}

/// `--name=value`.
fn word(name: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(format!("--{name}="));
    word.push(value);
    word
}

impl FromArgMatches for RoleFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        for name in ambiguous_names() {
            if matches.value_source(name) == Some(ValueSource::CommandLine) {
                let of_name = PREFIXED.iter().filter(|(_, of, _)| *of == name);
                let own: Vec<String> = of_name.map(|(_, _, own)| format!("--{own}")).collect();
                let own = own.join(" or ");
                let text = format!("--{name} means something else in each role: write {own}\n");
                return Err(clap::Error::raw(ErrorKind::UnknownArgument, text));
            }
        }
        let given = table().into_iter().filter_map(|flag| {
            let RunFlag { arg, name, role_name, roles } = flag;
            let id = arg.get_id().as_str();
            if matches.value_source(id) != Some(ValueSource::CommandLine) {
                return None;
            }
            let values = matches.get_raw(id)?.map(OsStr::to_owned).collect();
            Some(RoleFlag { name, role_name, roles, values })
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for RoleFlags {
    fn augment_args(command: Command) -> Command {
        let command = table().into_iter().fold(command, |command, flag| command.arg(flag.arg));
        // Taken, so that the error can say what to write instead.
        ambiguous_names()
            .into_iter()
            .fold(command, |command, name| command.arg(Arg::new(name).long(name).num_args(0..=1).hide(true)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
