//! Pages that must be complete: `docs/SUMMARY.md` lists every page, `docs/events.md` every reason of an event, and
//! `docs/runbooks.md` every alert of the chart.

use std::path::Path;

use super::TrackedFile;

const SUMMARY: &str = "docs/SUMMARY.md";
const EVENTS: &str = "docs/events.md";
const RUNBOOKS: &str = "docs/runbooks.md";
/// The pages of triggers, which `make docs` lists below the page of all.
const TRIGGERS: &str = "docs/scalers";
/// The code before the reason of an event.
const EVENT_CONSTRUCTORS: [&str; 2] = ["Event::normal(", "Event::warning("];

/// What is missing on the pages; `alerts` are the rules of the chart.
pub(super) fn missing_entries(files: &[TrackedFile], alerts: &str) -> Vec<String> {
    let text = |page: &str| {
        files.iter().find(|file| file.path == Path::new(page)).map_or("", |file| file.text.as_str())
    };
    let mut problems = unlisted_pages(files, text(SUMMARY));
    problems.extend(unknown_reasons(files, text(EVENTS)));
    problems.extend(alerts_without_runbook(alerts, text(RUNBOOKS)));
    problems
}

fn unlisted_pages(files: &[TrackedFile], summary: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for path in files.iter().map(|file| file.path.as_path()) {
        let Ok(page) = path.strip_prefix("docs") else { continue };
        let is_of_trigger = path.parent() == Some(Path::new(TRIGGERS)) && !path.ends_with("README.md");
        if path == Path::new(SUMMARY) || is_of_trigger {
            continue;
        }
        if !summary.contains(&format!("({})", page.display())) {
            problems.push(format!("{}: {SUMMARY} does not list it", path.display()));
        }
    }
    problems
}

fn unknown_reasons(files: &[TrackedFile], events: &str) -> Vec<String> {
    let is_source = |file: &&TrackedFile| {
        let parts: Vec<&str> = file.path.iter().filter_map(|part| part.to_str()).collect();
        parts.contains(&"src")
            && !parts.contains(&"tests")
            && !parts.contains(&"tests.rs")
            && !parts.contains(&"xtask")
    };
    let mut problems = Vec::new();
    for file in files.iter().filter(is_source) {
        let source = file.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for constructor in EVENT_CONSTRUCTORS {
            for rest in source.split(constructor).skip(1) {
                // A reason that is not a literal cannot be seen.
                let Some(reason) =
                    rest.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next())
                else {
                    continue;
                };
                if !events.contains(&format!("`{reason}`")) {
                    problems
                        .push(format!("{}: {EVENTS} does not name the reason {reason}", file.path.display()));
                }
            }
        }
    }
    problems
}

fn alerts_without_runbook(alerts: &str, runbooks: &str) -> Vec<String> {
    let names = alerts.lines().filter_map(|line| line.trim_start().strip_prefix("- alert: "));
    let mut problems = Vec::new();
    for name in names {
        if !runbooks.lines().any(|line| line.strip_prefix("## ") == Some(name)) {
            problems.push(format!("{RUNBOOKS} has no section {name}, which is an alert of the chart"));
        }
        if !alerts.contains(&format!("/{RUNBOOKS}#{}\n", name.to_lowercase())) {
            problems.push(format!("the alert {name} has no runbook_url to its section of {RUNBOOKS}"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const ALERTS: &str = "- alert: A\n  runbook_url: https://x/docs/runbooks.md#a\n";

    fn problems(summary: &str, events: &str, runbooks: &str) -> Vec<String> {
        let file = |path: &str, text: &str| TrackedFile { path: PathBuf::from(path), text: text.to_owned() };
        let files = [
            file(SUMMARY, summary),
            file(EVENTS, events),
            file(RUNBOOKS, runbooks),
            file("docs/scalers/README.md", ""),
            file("docs/scalers/cron.md", ""),
            file("README.md", ""),
            file("crates/a/src/b.rs", "Event::normal(\n    \"Seen\", x); Event::warning(reason, y)"),
            file("crates/a/src/tests.rs", "Event::normal(\"Test\", x)"),
        ];
        missing_entries(&files, ALERTS)
    }

    #[test]
    fn complete_pages_have_no_problem() {
        let summary = "[a](events.md) [b](runbooks.md) [c](scalers/README.md)";
        assert_eq!(problems(summary, "| `Seen` |", "## A\n"), Vec::<String>::new());
    }

    #[test]
    fn missing_entries_are_named() {
        let found = problems("[a](events.md) [b](runbooks.md)", "", "## B\n");
        assert_eq!(
            found,
            [
                "docs/scalers/README.md: docs/SUMMARY.md does not list it",
                "crates/a/src/b.rs: docs/events.md does not name the reason Seen",
                "docs/runbooks.md has no section A, which is an alert of the chart",
            ]
        );
    }
}
