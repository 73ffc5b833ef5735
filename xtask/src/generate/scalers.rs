//! The reference pages of the scalers, from their parameters.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use ::scalers::parameters::{KedaProfile, Parameter, ParameterSource};
use ::scalers::table::{SCALER_TYPES, ScalerType, WakeMode};
use anyhow::{Context as _, anyhow};
use api::yaml::{self, SourceFile};
use serde_json::Value;

/// `docs/scalers/`: one page per scaler, and the list of all.
pub(super) fn files(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let tested = TestedTypes::read(&root.join(SCRIPTS))?;
    let mut files = vec![("docs/scalers/README.md".to_owned(), list(&tested))];
    files
        .extend(SCALER_TYPES.iter().map(|scaler| (format!("docs/scalers/{}.md", scaler.name), page(scaler))));
    Ok(files)
}

const GENERATED_NOTICE: &str = "<!-- Made by `cargo xtask generate` from crates/scalers; do not edit. -->\n";

/// Scripts that query servers with KEDA's scalers and ours, one per server.
const SCRIPTS: &str = "crates/testbed/tests/scalers/same_server";

/// The types that other tests query on real servers: those that read the cluster itself, and those that push.
const TESTED_ELSEWHERE: [&str; 4] = ["cpu", "external-push", "kubernetes-workload", "memory"];

/// The types that scripts query.
#[derive(Default)]
struct TestedTypes {
    on_servers: BTreeSet<String>,
    on_emulators: BTreeSet<String>,
}

impl TestedTypes {
    fn read(folder: &Path) -> anyhow::Result<Self> {
        let mut tested = Self::default();
        tested.on_servers.extend(TESTED_ELSEWHERE.map(str::to_owned));
        let entries =
            std::fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                let text = std::fs::read_to_string(&path)
                    .with_context(|| format!("failed to read {}", path.display()))?;
                tested.add(&path.display().to_string(), &text)?;
            }
        }
        Ok(tested)
    }

    fn add(&mut self, name: &str, text: &str) -> anyhow::Result<()> {
        let documents = yaml::parse(&SourceFile::new(name, text))
            .map_err(|problem| anyhow!("{}", problem.render(false)))?;
        let script = documents.first().map(|document| document.root.to_json()).unwrap_or_default();
        let steps = script.get("steps").and_then(Value::as_array).into_iter().flatten();
        let types = steps.filter_map(|step| step.get("type")).chain(script.pointer("/trigger/type"));
        let is = |kind: &str| script.pointer(&format!("/server/{kind}")) == Some(&Value::Bool(true));
        if is("stand_in") {
            return Ok(());
        }
        let known = if is("emulator") { &mut self.on_emulators } else { &mut self.on_servers };
        known.extend(types.filter_map(Value::as_str).map(str::to_owned));
        Ok(())
    }

    fn of(&self, name: &str) -> &'static str {
        match name {
            name if self.on_servers.contains(name) => "a real server",
            name if self.on_emulators.contains(name) => "an emulator",
            "cron" => "no source",
            _ => "a stand-in",
        }
    }
}

// Writing to a string cannot fail.

fn list(tested: &TestedTypes) -> String {
    let mut out = format!(
        "{GENERATED_NOTICE}# Scalers\n\nWhat may stand in `type` of a trigger:\n\n| type | measures | tested with |\n|---|---|---|\n"
    );
    for scaler in SCALER_TYPES.iter() {
        let tested = tested.of(scaler.name);
        let _ = writeln!(out, "| [`{0}`]({0}.md) | {1} | {tested} |", scaler.name, cell(scaler.about));
    }
    out.push_str(
        "\nAn emulator is a server of another project that answers as the original does (moto, Azurite, MongoDB Java Server, \
         fake-gcs-server). A stand-in is a server in the test that was written from the published protocol and checks the requests. \
         Try a trigger that met no real server with `plimsoll scalers check FILE` before you depend on it. `make test-scalers` asks \
         servers, emulators and some stand-ins with KEDA's own scalers, too, and compares the answers.\n",
    );
    out.push_str(NOTES);
    out
}

/// Notes that apply to all parameters.
const NOTES: &str = "
Parameters are read from these sources; each page says which of them, and in which order:

- *metadata*: `metadata` of the trigger;
- *environment*: `metadata` names, by the key with `FromEnv` after it, a variable of the target's container;
- *authentication*: a parameter of the TriggerAuthentication that the trigger refers to.

A value that is empty, or nothing but blanks, counts as missing. Numbers are written as in JSON (`5`, `2.5`, `1e3`); durations
as `30s`, `5m` or a number of milliseconds; lists with commas; pairs as `key=value,key=value`.
";

fn page(scaler: &ScalerType) -> String {
    let mut out = format!("{GENERATED_NOTICE}# {}\n\n{}\n", scaler.name, scaler.about);
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

/// A text that is escaped for a table.
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
        "number" | "number or null" | "whole number" => "5",
        "duration" => "30s",
        "true or false" => "true",
        _ => one.one_of.first().copied().unwrap_or("…"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_say_which_types_have_met_a_server() {
        let mut tested = TestedTypes::default();
        let server =
            "server: {run: a}\ntrigger: {type: redis}\nsteps:\n- {type: redis-streams}\n- {state: b}\n";
        tested.add("server", server).unwrap();
        tested.add("emulator", "server: {emulator: true}\ntrigger: {type: mongodb}\nsteps: []\n").unwrap();
        tested.add("stand-in", "server: {stand_in: true}\ntrigger: {type: mssql}\nsteps: []\n").unwrap();
        let found = ["redis", "redis-streams", "mongodb", "cron", "mssql"].map(|name| tested.of(name));
        assert_eq!(found, ["a real server", "a real server", "an emulator", "no source", "a stand-in"]);
        assert!(tested.add("broken", "a: [").is_err());
    }
}
