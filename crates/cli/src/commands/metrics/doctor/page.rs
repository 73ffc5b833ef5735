//! Findings as text: one line per group, and below it problems by cause, with a remedy.

use std::fmt::Write as _;

use api::reports::{
    BackendReport, MetricsReport, ProblemSeverity, ReportedProblem, ResourceReport, ServerReport,
};
use engine::explain::plural;
use jiff::Timestamp;

use super::finding::{Findings, GroupFinding, GroupServer};
use crate::live::page::{Page, Paint};

/// Width of the groups' names.
const GROUP_NAME_WIDTH: usize = 25;
/// How many names are shown per cause.
const MAX_NAMES_PER_CAUSE: usize = 4;

pub(super) fn text(findings: &Findings, page: Page, now: Timestamp) -> String {
    let mut text = String::new();
    for group in &findings.groups {
        let report = findings.report.as_ref().filter(|_| group.served_by == GroupServer::Plimsoll);
        let _ = writeln!(text, "{:<GROUP_NAME_WIDTH$}{}", group.group, headline(group, findings, report));
        group.problems.iter().for_each(|problem| write_problem(&mut text, page, problem, "", now));
        match (group.group, report) {
            ("metrics.k8s.io", Some(ServerReport { resource: Some(found), .. })) => {
                found
                    .node_problems
                    .iter()
                    .for_each(|problem| write_problem(&mut text, page, problem, "node", now));
                found
                    .pod_problems
                    .iter()
                    .for_each(|problem| write_problem(&mut text, page, problem, "pod", now));
            }
            ("custom.metrics.k8s.io", Some(ServerReport { custom: Some(found), .. }))
            | ("external.metrics.k8s.io", Some(ServerReport { external: Some(found), .. })) => {
                found
                    .rule_problems
                    .iter()
                    .for_each(|problem| write_problem(&mut text, page, problem, "rule", now));
            }
            _ => {}
        }
        if !group.advice.is_empty() {
            let _ = writeln!(text, "  {} {}", page.paint(Paint::Dim, "·"), group.advice);
        }
    }
    if let Some(report) = &findings.report {
        behind(&mut text, page, report, now);
    }
    findings.problems.iter().for_each(|problem| write_problem(&mut text, page, problem, "", now));
    for unknown in &findings.unknown {
        let _ = writeln!(text, "{} {unknown}", page.paint(Paint::Yellow, "?"));
    }
    text
}

/// The server of a group, and its state.
fn headline(group: &GroupFinding, findings: &Findings, report: Option<&ServerReport>) -> String {
    match (group.served_by, &group.service) {
        (GroupServer::Nobody, _) => "not served".to_owned(),
        (GroupServer::Other, service) => {
            format!(
                "served by {}",
                service.as_ref().map(super::finding::Reference::shown).unwrap_or_default()
            )
        }
        (GroupServer::Operator, _) => "served by plimsoll's operator, for ScaledObjects".to_owned(),
        (GroupServer::Plimsoll, _) => {
            let replicas = findings.ready_replicas.filter(|count| *count > 1);
            let replicas = replicas.map(|count| format!(" ({count} replicas)")).unwrap_or_default();
            let served_metrics = report.map(|report| served_metrics(group.group, report)).unwrap_or_default();
            format!("served by plimsoll{replicas}{served_metrics}")
        }
    }
}

fn served_metrics(group: &str, report: &ServerReport) -> String {
    match (group, &report.resource, &report.custom, &report.external) {
        ("metrics.k8s.io", Some(found), _, _) => resource(found),
        ("custom.metrics.k8s.io", _, Some(found), _) | ("external.metrics.k8s.io", _, _, Some(found)) => {
            metrics(found, report)
        }
        _ => ", which does not serve it: give it --config with rules for it, or --upstreams, or remove the APIService".to_owned(),
    }
}

fn resource(found: &ResourceReport) -> String {
    let ResourceReport { nodes, fresh_nodes, pods, served_pods, source, .. } = found;
    let from = if source == "prometheus" { " from prometheus" } else { "" };
    if source == "prometheus" && *nodes == 0 {
        return from.to_owned();
    }
    format!("{from}, {fresh_nodes} of {nodes} nodes fresh, {served_pods} of {pods} running pods have metrics")
}

fn metrics(found: &MetricsReport, report: &ServerReport) -> String {
    let places: Vec<&str> = report.prometheus.iter().map(|backend| bare(&backend.address)).collect();
    let upstreams = match report.upstreams.len() {
        0 => String::new(),
        _ => format!(
            "{}{}",
            if places.is_empty() { "" } else { " and " },
            plural(report.upstreams.len() as u64, "upstream")
        ),
    };
    let from = if places.is_empty() && upstreams.is_empty() {
        String::new()
    } else {
        format!(" from {}{upstreams}", places.join(", "))
    };
    format!("{from}, {}", plural(found.metrics, "metric"))
}

/// Upstreams and sources with problems; the others are counted.
fn behind(text: &mut String, page: Page, report: &ServerReport, now: Timestamp) {
    for (what, backends) in [("prometheus", &report.prometheus), ("upstream", &report.upstreams)] {
        for backend in backends.iter().filter(|backend| !backend.healthy) {
            let name = if backend.name.is_empty() { String::new() } else { format!(" {}", backend.name) };
            let label = format!("{what}{name}");
            let last = backend.last_good.map_or("; it never answered".to_owned(), |at| {
                format!("; last good {} ago", api::age::since(Some(at), now))
            });
            let _ = writeln!(
                text,
                "{label:<24} {} {}: {}{last}",
                page.paint(Paint::Red, "✗"),
                bare(&backend.address),
                because(backend)
            );
            if !backend.remedy.is_empty() {
                let _ = writeln!(text, "{:25}  remedy: {}", "", backend.remedy);
            }
        }
    }
    let lost: Vec<&str> =
        report.replicas.iter().filter(|replica| !replica.alive).map(|r| r.name.as_str()).collect();
    if !lost.is_empty() {
        let _ = writeln!(
            text,
            "{:<24} {} no response from {}; the others scrape its nodes",
            "replicas",
            page.paint(Paint::Yellow, "!"),
            lost.join(", ")
        );
    }
    report.problems.iter().for_each(|problem| write_problem(text, page, problem, "", now));
}

fn because(backend: &BackendReport) -> &str {
    if backend.error.is_empty() { "it does not answer" } else { &backend.error }
}

/// One problem: objects, cause, duration and remedy.
fn write_problem(text: &mut String, page: Page, problem: &ReportedProblem, what: &str, now: Timestamp) {
    let mark = match problem.grade {
        ProblemSeverity::Error => page.paint(Paint::Red, "✗"),
        ProblemSeverity::Warning => page.paint(Paint::Yellow, "!"),
    };
    let indent = if what.is_empty() {
        let _ = writeln!(text, "  {mark} {}{}", problem.cause, lasting(problem, now));
        4
    } else {
        let count = plural(problem.count, what);
        let _ = writeln!(
            text,
            "  {mark} {count:<9} {}   {}{}",
            names(problem),
            problem.cause,
            lasting(problem, now)
        );
        4 + count.len().max(9) + 1
    };
    if !problem.remedy.is_empty() {
        let _ = writeln!(text, "{:indent$}remedy: {}", "", problem.remedy);
    }
}

fn names(problem: &ReportedProblem) -> String {
    let shown: Vec<&str> = problem.names.iter().take(MAX_NAMES_PER_CAUSE).map(String::as_str).collect();
    let more = problem.count.saturating_sub(shown.len() as u64);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

fn lasting(problem: &ReportedProblem, now: Timestamp) -> String {
    let times =
        if problem.times > 1 { format!(" ({} times in a row)", problem.times) } else { String::new() };
    let last = problem.last_good.map(|at| format!("; last good {} ago", api::age::since(Some(at), now)));
    let since = || problem.since.map(|at| format!("; for {}", api::age::since(Some(at), now)));
    format!("{times}{}", last.or_else(since).unwrap_or_default())
}

/// An address without scheme and slash.
fn bare(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.trim_end_matches('/')
}
