//! Every family of exported metrics that the sources of the roles define, with its help text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::generate::scalers::cell;

const HEAD: &str = "<!-- Made by `cargo xtask generate` from the sources; do not edit. -->
# Exported metrics

Every family that `/metrics` of a role may have, with its help text. A family without a series is not exported. Labels and further explanations are in
[the controller](../controller.md#endpoints), [the metrics server](../metrics.md#exported-metrics) and [the operator](../operator.md). The metrics server also
exports `prometheus_adapter_prometheus_client_request_duration_seconds`, as prometheus-adapter does.

| name | type | role | help |
|---|---|---|---|
";
/// The macro that prefixes names of Kubernetes' HPA controller, and the prefix.
const KUBERNETES: (&str, &str) = ("kubernetes!(\"", "horizontal_pod_autoscaler_controller_");
/// The first line of a row in a table of counters.
const ROW: &str = "    (\n";
/// What precedes the name of a family, and the type that follows from it.
const DEFINITIONS: [(&str, &str); 7] = [
    ("\"counter\",", "counter"),
    ("\"gauge\",", "gauge"),
    ("\"histogram\",", "histogram"),
    ("Family::counters(", "counter"),
    ("Family::gauges(", "gauge"),
    ("Family::new(", "histogram"),
    (ROW, "counter"),
];
/// Folders, and the roles that export what is defined there.
const ROLES: [(&str, &str); 5] = [
    ("controllers/src/hpa/", "controller"),
    ("controllers/src/operator/", "operator"),
    ("controllers/src/metrics/", "metrics"),
    ("commands/operator/", "operator"),
    ("commands/metrics/", "metrics"),
];

/// A family as its definition has it.
#[derive(Debug, PartialEq, Eq)]
struct DefinedFamily {
    name: String,
    kind: &'static str,
    help: String,
}

/// The page.
pub(super) fn page(root: &Path) -> anyhow::Result<String> {
    let mut sources = Vec::new();
    collect(&root.join("crates"), &mut sources)?;
    sources.sort();
    let mut rows: BTreeMap<(&str, String), DefinedFamily> = BTreeMap::new();
    for path in sources {
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let path = path.to_string_lossy().into_owned();
        let role = ROLES.iter().find(|(folder, _)| path.contains(folder)).map_or("all", |(_, role)| *role);
        for family in families(&text) {
            rows.entry((role, family.name.clone())).or_insert(family);
        }
    }
    let mut page = HEAD.to_owned();
    for ((role, _), DefinedFamily { name, kind, help }) in &rows {
        let _ = writeln!(page, "| `{name}` | {kind} | {role} | {} |", cell(help));
    }
    Ok(page)
}

/// All Rust files of a folder, without tests.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !["tests", "benches", "examples", "testbed"].contains(&name) {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests.rs" {
            found.push(path);
        }
    }
    Ok(())
}

/// The families that a source file defines.
fn families(source: &str) -> Vec<DefinedFamily> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut found = Vec::new();
    for (before, kind) in DEFINITIONS {
        for (at, _) in source.match_indices(before) {
            let rest = source.get(at + before.len()..).unwrap_or_default();
            let Some((name, rest)) = family_name(source, rest.trim_start()) else { continue };
            let rest = rest.trim_start().strip_prefix(',').unwrap_or_default().trim_start();
            let help = if rest.starts_with("help") {
                let defined = source.get(..at).and_then(|above| above.rfind("let help ="));
                defined.and_then(|at| literal(source.get(at..)?.split_once('=')?.1.trim_start()))
            } else {
                literal(rest)
            };
            let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
                && (before != ROW || name.ends_with("_total"));
            if let Some((help, _)) = help.filter(|_| is_name) {
                found.push(DefinedFamily { name, kind, help });
            }
        }
    }
    found
}

/// The name at the beginning of a text: a literal, with the prefix of Kubernetes, or a constant of the file.
fn family_name<'a>(source: &str, rest: &'a str) -> Option<(String, &'a str)> {
    if let Some(inner) = rest.strip_prefix(KUBERNETES.0) {
        let (name, rest) = inner.split_once("\")")?;
        return Some((format!("{}{name}", KUBERNETES.1), rest));
    }
    if rest.starts_with('"') {
        return literal(rest);
    }
    let end = rest.find(|c: char| !c.is_ascii_uppercase() && c != '_')?;
    let (constant, rest) = rest.split_at(end);
    let definition = source.split_once(&format!("const {constant}: &str = "))?.1;
    Some((literal(definition)?.0, rest))
}

/// The string literal at the beginning of a text, and what follows it.
fn literal(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut chars = inner.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, inner.get(at + 1..)?)),
            // An escaped line break is followed by indentation; texts in tables have single spaces anyway.
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_found_in_sources() {
        let source = "const UP: &str = \"plimsoll_up\";
            let help = \"Whether it is up.\";
            writer.family(\"gauge\", UP, help);
            writer.family(
                \"counter\",
                \"plimsoll_a_total\",
                \"All \\\"a\\\", \\
                 and more.\",
            );
            x: Family::new(kubernetes!(\"time_seconds\"), \"Times.\", [], buckets),
    (
        \"plimsoll_b_total\",
        \"B.\", |x| x.b,
    ),
            page.family(\"counter\", name, help);
            write(\"gauge\", \"Not a name\", \"x\");\n";
        let found: Vec<(String, &str, String)> =
            families(source).into_iter().map(|one| (one.name, one.kind, cell(&one.help))).collect();
        let wanted = [
            ("plimsoll_a_total", "counter", "All \"a\", and more."),
            ("plimsoll_up", "gauge", "Whether it is up."),
            ("horizontal_pod_autoscaler_controller_time_seconds", "histogram", "Times."),
            ("plimsoll_b_total", "counter", "B."),
        ];
        assert_eq!(found, wanted.map(|(name, kind, help)| (name.to_owned(), kind, help.to_owned())));
    }
}
