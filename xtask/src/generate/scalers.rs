//! The reference pages of the scalers, from their parameters.

use std::fmt::Write as _;

use ::scalers::parameters::{KedaProfile, Parameter, ParameterSource};
use ::scalers::table::{SCALER_TYPES, ScalerType, WakeMode};

/// `docs/scalers/`: one page per scaler, and the list of all.
pub(super) fn files() -> Vec<(String, String)> {
    let mut files = vec![("docs/scalers/README.md".to_owned(), list())];
    files
        .extend(SCALER_TYPES.iter().map(|scaler| (format!("docs/scalers/{}.md", scaler.name), page(scaler))));
    files
}

const MADE: &str = "<!-- Made by `cargo xtask generate` from crates/scalers; do not edit. -->\n";

/// The types whose tests query a real server: those of `crates/testbed/tests/scalers`, and those that read the cluster itself.
const REAL_SERVERS: [&str; 27] = [
    "activemq",
    "apache-kafka",
    "artemis-queue",
    "beanstalkd",
    "cassandra",
    "cpu",
    "elasticsearch",
    "etcd",
    "external",
    "external-push",
    "kafka",
    "kubernetes-workload",
    "memory",
    "metrics-api",
    "mysql",
    "nats-jetstream",
    "opensearch",
    "postgresql",
    "prometheus",
    "rabbitmq",
    "redis",
    "redis-cluster",
    "redis-cluster-streams",
    "redis-sentinel",
    "redis-sentinel-streams",
    "redis-streams",
    "selenium-grid",
];

/// The types whose tests query an emulator of another project.
const EMULATORS: [&str; 8] = [
    "aws-cloudwatch",
    "aws-dynamodb",
    "aws-dynamodb-streams",
    "aws-kinesis-stream",
    "aws-sqs-queue",
    "azure-blob",
    "azure-queue",
    "mongodb",
];

// Writing to a string cannot fail.

fn list() -> String {
    let mut out = format!(
        "{MADE}# Scalers\n\nWhat may stand in `type` of a trigger:\n\n| type | measures | tested with |\n|---|---|---|\n"
    );
    for scaler in SCALER_TYPES.iter() {
        let tested = match scaler.name {
            name if REAL_SERVERS.contains(&name) => "a real server",
            name if EMULATORS.contains(&name) => "an emulator",
            "cron" => "no source",
            _ => "a stand-in",
        };
        let _ = writeln!(out, "| [`{0}`]({0}.md) | {1} | {tested} |", scaler.name, cell(scaler.about));
    }
    out.push_str(
        "\nAn emulator is a server of another project that answers as the original does (moto, Azurite, MongoDB Java Server). \
         A stand-in is a server in the test that was written from the published protocol and checks the requests. Try a trigger that \
         met no real server with `plimsoll scalers check FILE` before you depend on it. `make test-scalers` asks servers and emulators \
         with KEDA's own scalers, too, and compares the answers.\n",
    );
    out.push_str(NOTES);
    out
}

/// What holds for all parameters.
const NOTES: &str = "
Parameters are read from these sources; each page says which of them, and in which order:

- *metadata*: `metadata` of the trigger;
- *environment*: `metadata` names, by the key with `FromEnv` after it, a variable of the target's container;
- *authentication*: a parameter of the TriggerAuthentication that the trigger refers to.

A value that is empty, or nothing but blanks, counts as missing. Numbers are written as in JSON (`5`, `2.5`, `1e3`); durations
as `30s`, `5m` or a number of milliseconds; lists with commas; pairs as `key=value,key=value`.
";

fn page(scaler: &ScalerType) -> String {
    let mut out = format!("{MADE}# {}\n\n{}\n", scaler.name, scaler.about);
    if scaler.since > KedaProfile::V2_20 {
        let _ = writeln!(out, "\nKEDA has it since release {}.", scaler.since);
    }
    if scaler.push {
        out.push_str("\nIt reports activity itself, in addition to being polled.\n");
    }
    match scaler.wakes {
        WakeMode::Never => {}
        WakeMode::Annotated => out.push_str(
            "\nWith the annotation `plimsoll.dev/wake: \"true\"` it wakes an idle object before its next poll \
             ([how](../operator.md#push)).\n",
        ),
        WakeMode::Always => {
            out.push_str("\nIt wakes an idle object before its next poll ([how](../operator.md#push)).\n");
        }
    }
    let is_here = |one: &&Parameter| one.removed_from(KedaProfile::V2_20).is_none();
    let here: Vec<&Parameter> = scaler.parameters.iter().filter(is_here).collect();
    let _ = write!(out, "\n```yaml\ntriggers:\n- type: {}\n", scaler.name);
    let needed: Vec<_> =
        here.iter().filter(|one| one.required && one.sources.contains(&ParameterSource::Metadata)).collect();
    if !needed.is_empty() {
        out.push_str("  metadata:\n");
    }
    for one in needed {
        let key = one.keys.first().copied().unwrap_or_default();
        let _ = writeln!(out, "    {key}: \"{}\"", example(one));
    }
    if here.iter().any(|one| one.sources == [ParameterSource::Authentication]) {
        out.push_str("  authenticationRef: # if it needs parameters that are only read from authentication\n    name: \"…\"\n");
    }
    out.push_str("```\n\n| parameter | kind | from | default | meaning |\n|---|---|---|---|---|\n");
    for one in here {
        let keys: Vec<String> = one.keys.iter().map(|key| format!("`{key}`")).collect();
        let sources: Vec<&str> = one.sources.iter().map(|source| called(*source)).collect();
        let default = match (one.default, one.required) {
            (_, true) => "**required**".to_owned(),
            (Some(default), false) => format!("`{default}`"),
            (None, false) => String::new(),
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {default} | {} |",
            keys.join(", "),
            one.kind,
            sources.join(", "),
            about(one)
        );
    }
    let gone: Vec<&Parameter> = scaler.parameters.iter().filter(|one| one.removed.is_some()).collect();
    if !gone.is_empty() {
        out.push_str("\nNo longer accepted:\n\n");
        for one in gone {
            let key = one.keys.first().copied().unwrap_or_default();
            let since = match one.removed_in {
                KedaProfile::V2_20 => String::new(),
                later @ KedaProfile::V2_21 => format!(" (since KEDA {later}, `--keda-profile`)"),
            };
            let _ = writeln!(out, "- `{key}`{since}: {}", one.removed.unwrap_or_default());
        }
    }
    out
}

fn about(one: &Parameter) -> String {
    let mut text = cell(one.about);
    if !one.one_of.is_empty() {
        let all: Vec<String> = one.one_of.iter().map(|item| format!("`{item}`")).collect();
        let _ = write!(text, " One of {}.", all.join(", "));
    }
    if !one.only_one_of.is_empty() {
        let all: Vec<String> = one.only_one_of.iter().map(|item| format!("`{item}`")).collect();
        let _ = write!(text, " Only one of {}.", all.join(", "));
    }
    if one.since > KedaProfile::V2_20 {
        let _ = write!(text, " Since KEDA {} (`--keda-profile`).", one.since);
    }
    if let Some(why) = one.deprecated {
        let _ = write!(text, " Deprecated: {}", cell(why));
    }
    text
}

/// A text as it may stand in a table.
pub(super) fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn called(source: ParameterSource) -> &'static str {
    match source {
        ParameterSource::Metadata => "metadata",
        ParameterSource::Environment => "environment",
        ParameterSource::Authentication => "authentication",
    }
}

fn example(one: &Parameter) -> &'static str {
    match one.kind {
        "number" | "whole number" => "5",
        "duration" => "30s",
        "true or false" => "true",
        _ => one.one_of.first().copied().unwrap_or("…"),
    }
}
