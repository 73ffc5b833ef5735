//! Flags and variables of the replaced programs that are unknown or have no effect here.

use engine::KubernetesVersion;

use super::Peer;
use super::installed::{InstalledProgram, Program};
use super::problem::{MigrationProblem, SwitchImpact};
use crate::commands::metrics::flags::FLAGS as METRICS_FLAGS;
use crate::commands::operator::IDLE_VARIABLES;
use crate::commands::operator::flags::FLAGS as OPERATOR_FLAGS;
use crate::flags::{Flag, FlagEffect, Kind, normal};

/// Files that every program gets by itself, or that the plan takes over.
const OWN_FILES: [&str; 4] = ["config", "kubeconfig", "tls-cert-file", "tls-private-key-file"];
/// Flags without effect that every installation has.
const USUAL_FLAGS: [&str; 2] = ["cert-dir", "zap-time-encoding"];
/// Flags of kube-controller-manager that concern HPAs.
const HPA_PREFIX: &str = "--horizontal-pod-autoscaler-";
/// Gates that set all gates of their stage.
const ALL_GATES: [&str; 2] = ["AllAlpha", "AllBeta"];

/// A flag of a command line.
pub(super) struct GivenFlag {
    /// What the flag is here; none if it is not known.
    pub(super) flag: Option<&'static Flag>,
    pub(super) name: String,
    pub(super) value: String,
}

/// The flags of a command line, as Go reads them.
pub(super) fn given(table: &'static [Flag], words: &[String]) -> Vec<GivenFlag> {
    let mut found = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let word = normal(word);
        let Some(bare) = word.strip_prefix('-') else { continue };
        let bare = bare.strip_prefix('-').unwrap_or(bare);
        let (name, value) = bare.split_once('=').map_or((bare, None), |(name, value)| (name, Some(value)));
        let is_meant =
            |flag: &&Flag| flag.name == name || flag.short.is_some_and(|short| name == short.to_string());
        let flag = table.iter().find(is_meant);
        let value = match (value, flag) {
            (Some(value), _) => value.to_owned(),
            (None, Some(Flag { kind: Kind::Bool, .. })) => "true".to_owned(),
            (None, Some(_)) => words.next().cloned().unwrap_or_default(),
            (None, None) => String::new(),
        };
        found.push(GivenFlag { flag, name: name.to_owned(), value });
    }
    found
}

/// Checks the command line and the variables of a program.
pub(super) fn check(program: &InstalledProgram) -> Vec<MigrationProblem> {
    match program.program {
        Program::MetricsServer => of_flags(program, Peer::MetricsServer, METRICS_FLAGS),
        Program::PrometheusAdapter => of_flags(program, Peer::PrometheusAdapter, METRICS_FLAGS),
        Program::KedaOperator => {
            let mut found = of_flags(program, Peer::Keda, OPERATOR_FLAGS);
            found.extend(idle_variables(program));
            found.extend(variable_sources(program));
            found
        }
        Program::ControllerManager => hpa_flags(program),
        // The operator serves their APIs with flags of its own.
        Program::KedaMetricsAdapter | Program::KedaWebhooks | Program::Plimsoll => Vec::new(),
    }
}

fn of_flags(program: &InstalledProgram, from: Peer, table: &'static [Flag]) -> Vec<MigrationProblem> {
    let problem = |impact, field: String, message: String, remedy: String| MigrationProblem {
        impact,
        from,
        object: program.shown(),
        field,
        message,
        remedy,
    };
    let mut found = Vec::new();
    for GivenFlag { flag, name, value } in given(table, &program.arguments) {
        let Some(flag) = flag else {
            let remedy = "leave it out, and check what it was for".to_owned();
            found.push(problem(
                SwitchImpact::Breaks,
                format!("--{name}"),
                "Plimsoll has no such flag".into(),
                remedy,
            ));
            continue;
        };
        let field = format!("--{}", flag.name);
        if let Some(wrong) = invalid(flag, &value) {
            found.push(problem(SwitchImpact::Breaks, field, wrong, "correct the value".into()));
        } else if flag.effect == FlagEffect::Nothing
            && value != flag.default
            && !USUAL_FLAGS.contains(&flag.name)
        {
            let message = format!("has no effect here: {}", flag.about);
            found.push(problem(SwitchImpact::Differs, field, message, "leave it out".into()));
        } else if flag.kind == Kind::File && is_mounted(flag, &value) {
            let message = format!("names a file of its pods: {value}");
            let remedy =
                "mount it into the pods of Plimsoll, too: extraVolumes and extraVolumeMounts of the role"
                    .into();
            found.push(problem(SwitchImpact::Differs, field, message, remedy));
        }
    }
    found
}

/// Why a value cannot be used.
fn invalid(flag: &Flag, value: &str) -> Option<String> {
    match flag.kind {
        Kind::Choice(words) if !words.contains(&value) => {
            Some(format!("{value:?} is none of {}", words.join(", ")))
        }
        _ => flag.check(value).err(),
    }
}

fn is_mounted(flag: &Flag, value: &str) -> bool {
    !value.is_empty()
        && !OWN_FILES.contains(&flag.name)
        && !value.starts_with("/var/run/secrets/kubernetes.io/")
}

fn idle_variables(program: &InstalledProgram) -> Vec<MigrationProblem> {
    let idle = program.variables.iter().filter(|name| IDLE_VARIABLES.contains(&name.as_str()));
    idle.map(|name| MigrationProblem {
        impact: SwitchImpact::Differs,
        from: Peer::Keda,
        object: program.shown(),
        field: name.clone(),
        message: "this variable has no effect here".into(),
        remedy: "leave it out (docs/operator.md)".into(),
    })
    .collect()
}

/// Sources of variables, which the chart does not have.
fn variable_sources(program: &InstalledProgram) -> Vec<MigrationProblem> {
    let sources = program.env_from();
    sources
        .into_iter()
        .map(|source| MigrationProblem {
            impact: SwitchImpact::Differs,
            from: Peer::Keda,
            object: program.shown(),
            field: "envFrom".into(),
            message: format!("the variables of {source} are not taken over"),
            remedy: "list those that you need in operator.env".into(),
        })
        .collect()
}

/// Flags of kube-controller-manager for HPAs, each as one word. Of its feature gates these are the ones that change decisions.
pub(super) fn hpa_arguments(program: &InstalledProgram) -> Vec<String> {
    let mut found = Vec::new();
    let mut words = program.arguments.iter().peekable();
    while let Some(word) = words.next() {
        if !word.starts_with(HPA_PREFIX) {
            continue;
        }
        // Without an equals sign, the value is the next word, unless that is a flag: older releases have a boolean one.
        let value = if word.contains('=') { None } else { words.next_if(|next| !next.starts_with("--")) };
        found.push(value.map_or_else(|| word.clone(), |value| format!("{word}={value}")));
    }
    let is_known = |name: &str| {
        let mut gates = KubernetesVersion::ALL.iter().flat_map(|version| version.profile().feature_gates);
        ALL_GATES.contains(&name) || gates.any(|gate| gate.name == name)
    };
    let given = program.flag("feature-gates").unwrap_or_default().split(',');
    let gates: Vec<&str> =
        given.filter(|gate| is_known(gate.split('=').next().unwrap_or_default())).collect();
    if !gates.is_empty() {
        found.push(format!("--feature-gates={}", gates.join(",")));
    }
    found
}

/// Flags for HPAs, which the controller must be given, too.
fn hpa_flags(program: &InstalledProgram) -> Vec<MigrationProblem> {
    hpa_arguments(program)
        .into_iter()
        .map(|word| MigrationProblem {
            impact: SwitchImpact::Differs,
            from: Peer::Hpa,
            object: program.shown(),
            field: word.split('=').next().unwrap_or_default().to_owned(),
            message: format!("the controller must be given it, too: {word}"),
            // Each --set of a list replaces the one before it.
            remedy: "list all of them in controller.extraArgs, as `plimsoll migrate plan --from hpa` does"
                .into(),
        })
        .collect()
}
