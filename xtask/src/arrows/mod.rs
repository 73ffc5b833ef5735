//! `cargo xtask arrows`: checks that dependencies between our crates follow docs/architecture.md, and that sibling
//! modules of a crate do not import each other in a cycle.

mod imports;
mod modules;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::ValueEnum;
use serde::Deserialize;

/// The crates of the workspace that each crate may use directly. A crate that is not listed fails the check.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("locks", &[]),
    ("quantity", &[]),
    ("engine", &["quantity"]),
    ("api", &["engine", "quantity"]),
    ("sim", &["api", "engine", "quantity"]),
    ("localkube", &["api", "locks", "quantity", "sim"]),
    ("runtime", &["locks"]),
    ("cluster", &["api", "engine", "locks", "quantity", "runtime"]),
    ("serve", &["api", "engine", "locks", "quantity", "runtime"]),
    ("sources", &["api", "locks", "quantity", "runtime"]),
    ("keda", &["api", "engine", "quantity"]),
    ("external-scaler", &[]),
    ("otlp", &["runtime", "sources"]),
    ("spool-scaler", &["external-scaler"]),
    ("scalers", &["api", "external-scaler", "locks", "quantity", "runtime", "sources"]),
    (
        "controllers",
        &["api", "cluster", "engine", "keda", "locks", "otlp", "quantity", "runtime", "scalers", "sources"],
    ),
    ("web-console", &[]),
    ("testbed", &["localkube", "locks"]),
    (
        "plimsoll-fuzz",
        &["api", "cluster", "engine", "keda", "quantity", "scalers", "serve", "sim", "sources"],
    ),
    (
        "plimsoll",
        &[
            "api",
            "cluster",
            "controllers",
            "engine",
            "external-scaler",
            "keda",
            "localkube",
            "locks",
            "otlp",
            "quantity",
            "runtime",
            "scalers",
            "serve",
            "sim",
            "sources",
            "web-console",
        ],
    ),
    (
        "xtask",
        &[
            "api",
            "cluster",
            "controllers",
            "engine",
            "external-scaler",
            "keda",
            "localkube",
            "locks",
            "quantity",
            "runtime",
            "scalers",
            "serve",
            "sim",
            "sources",
            "testbed",
        ],
    ),
];

/// Crates that a crate must not depend on, directly or indirectly.
const FORBIDDEN_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("runtime", &["hyper", "kube", "k8s-openapi", "axum", "rustls"]),
    ("quantity", &["jiff", "tokio", "hyper", "kube", "k8s-openapi"]),
    ("engine", &["tokio", "hyper", "kube", "kube-core", "k8s-openapi", "axum", "rustls"]),
    ("keda", &["tokio", "hyper", "kube", "kube-core", "k8s-openapi", "axum", "rustls"]),
    ("sim", &["tokio", "hyper", "kube", "axum", "rustls", "socket2", "mio"]),
];

/// Checks dependencies between crates, and imports between modules.
#[derive(clap::Args)]
pub(crate) struct ArrowsArgs {
    /// What an import cycle among sibling modules leads to.
    #[arg(long, value_enum, default_value_t = ModuleCycles::Deny)]
    modules: ModuleCycles,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModuleCycles {
    /// It is not looked for.
    Ignore,
    /// It is listed.
    Warn,
    /// It is listed, and the check fails.
    Deny,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<DependencyNode>,
}

#[derive(Deserialize)]
struct DependencyNode {
    id: String,
    deps: Vec<Dep>,
}

#[derive(Deserialize)]
struct Dep {
    pkg: String,
    dep_kinds: Vec<DepKind>,
}

#[derive(Deserialize)]
struct DepKind {
    kind: Option<String>,
}

pub(crate) fn run(args: &ArrowsArgs) -> anyhow::Result<ExitCode> {
    let problems = check(&metadata()?);
    for problem in &problems {
        eprintln!("error: {problem}");
    }
    println!("{} crates checked, {} forbidden dependencies", ALLOWED_DEPENDENCIES.len(), problems.len());
    let mut cycles = Vec::new();
    if args.modules != ModuleCycles::Ignore {
        cycles = modules::cycles()?;
        let level = if args.modules == ModuleCycles::Deny { "error" } else { "warning" };
        for cycle in &cycles {
            eprintln!("{level}: {cycle}");
        }
        println!("{} import cycles among sibling modules", cycles.len());
    }
    let failed = !problems.is_empty() || args.modules == ModuleCycles::Deny && !cycles.is_empty();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn metadata() -> anyhow::Result<Metadata> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo).args(["metadata", "--format-version", "1", "--locked"]).output()?;
    anyhow::ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("failed to read cargo metadata")
}

fn check(metadata: &Metadata) -> Vec<String> {
    let names: BTreeMap<&str, &str> =
        metadata.packages.iter().map(|p| (p.id.as_str(), p.name.as_str())).collect();
    let name = |id: &str| names.get(id).copied().unwrap_or_default().to_owned();
    // Dependencies of tests are not checked.
    let uses: BTreeMap<String, Vec<String>> = metadata
        .resolve
        .nodes
        .iter()
        .map(|node| {
            let shipped = node.deps.iter().filter(|d| d.dep_kinds.iter().any(|k| k.kind.is_none()));
            (name(&node.id), shipped.map(|d| name(&d.pkg)).collect())
        })
        .collect();
    let ours: BTreeSet<String> = metadata.workspace_members.iter().map(|id| name(id)).collect();
    let mut problems = Vec::new();
    for member in &ours {
        let Some((_, allowed)) = ALLOWED_DEPENDENCIES.iter().find(|(crate_name, _)| crate_name == member)
        else {
            problems.push(format!(
                "{member} is not listed: add it to ALLOWED_DEPENDENCIES in xtask/src/arrows/mod.rs"
            ));
            continue;
        };
        for used in uses.get(member).into_iter().flatten().filter(|used| ours.contains(*used)) {
            if !allowed.contains(&used.as_str()) {
                problems.push(format!("{member} uses {used}; it may use only {allowed:?}"));
            }
        }
    }
    for (member, never) in FORBIDDEN_DEPENDENCIES {
        let reached = reach(member, &uses);
        problems
            .extend(never.iter().filter(|n| reached.contains(**n)).map(|n| format!("{member} reaches {n}")));
    }
    problems
}

fn reach(from: &str, uses: &BTreeMap<String, Vec<String>>) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut todo = vec![from.to_owned()];
    while let Some(next) = todo.pop() {
        for used in uses.get(&next).into_iter().flatten() {
            if reached.insert(used.clone()) {
                todo.push(used.clone());
            }
        }
    }
    reached
}
