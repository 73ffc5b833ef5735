//! The report and the plans as text.

use std::fmt::Write as _;

use api::table::Table;

use super::installed::InstalledProgram;
use super::plan::SwitchPlan;
use super::problem::{MigrationProblem, SwitchImpact};
use super::report::MigrationReport;
use crate::live::page::{Page, Paint};

/// How many problems are shown of one kind and field.
const MAX_SHOWN_OBJECTS: usize = 5;
/// The plans do not know the registry.
const IMAGE_NOTE: &str = "# If Plimsoll is not installed yet, the first helm command also names your image:\n\
     #   --set image.repository=REGISTRY/plimsoll --set image.tag=TAG   (docs/installation.md)\n\n";

pub(super) fn report(report: &MigrationReport, page: Page) -> String {
    let mut text = String::new();
    let mut installed = Table::new(["Installed", "Namespace", "Name", "Version", "Replicas"]);
    for InstalledProgram { program, namespace, name, version, replicas, .. } in &report.installed {
        let replicas = replicas.map_or_else(|| "-".to_owned(), |count| count.to_string());
        let cells = [program.title(), namespace.as_str(), name.as_str(), version.as_str()].map(str::to_owned);
        installed.rows.push(cells.into_iter().chain([replicas]).collect());
    }
    if installed.rows.is_empty() {
        text.push_str("Nothing that Plimsoll replaces was recognized.\n");
    } else {
        text.push_str(&page.table(&installed));
    }
    let mut apis = Table::new(["API", "Served by", "Service", "Available"]);
    for api in &report.apis {
        let available = if api.available { "yes" } else { "no" };
        apis.rows.push(
            [api.name.as_str(), api.owner_title(), api.service.as_str(), available].map(str::to_owned).into(),
        );
    }
    if !apis.rows.is_empty() {
        let _ = write!(text, "\n{}", page.table(&apis));
    }
    let counts: Vec<String> = report.objects.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    if !counts.is_empty() {
        let _ = writeln!(text, "\nObjects: {}", counts.join(", "));
    }
    if let Some(holder) = &report.controller_manager_lease {
        let _ = writeln!(text, "Kubernetes' HPA controller: kube-controller-manager, lease held by {holder}");
    }
    if !report.changes.is_empty() {
        text.push_str("\nA switch would change:\n");
        report.changes.iter().for_each(|change| text.push_str(&format!("  {change}\n")));
    }
    problems(&mut text, page, &report.problems);
    for unread in &report.unread {
        let _ = writeln!(text, "{} not read: {unread}", page.paint(Paint::Yellow, "?"));
    }
    let breaking = report.problems.iter().filter(|problem| problem.impact == SwitchImpact::Breaks).count();
    let line = match (breaking, report.unread.is_empty()) {
        (0, true) => "nothing would break".to_owned(),
        (0, false) => "nothing that was read would break".to_owned(),
        (1, _) => "1 problem would break something".to_owned(),
        (count, _) => format!("{count} problems would break something"),
    };
    let _ = writeln!(text, "\n{line}; the commands: plimsoll migrate plan");
    text
}

/// Equal problems of several objects are shown once.
fn problems(text: &mut String, page: Page, all: &[MigrationProblem]) {
    let mut groups: Vec<(&MigrationProblem, Vec<&str>)> = Vec::new();
    for problem in all {
        let same = |known: &MigrationProblem| {
            (known.impact, known.from, &known.field, &known.message)
                == (problem.impact, problem.from, &problem.field, &problem.message)
        };
        match groups.iter_mut().find(|(known, _)| same(known)) {
            Some((_, objects)) => objects.push(problem.object.as_str()),
            None => groups.push((problem, vec![problem.object.as_str()])),
        }
    }
    if !groups.is_empty() {
        text.push('\n');
    }
    for (MigrationProblem { impact, from, field, message, remedy, .. }, objects) in groups {
        let mark = match impact {
            SwitchImpact::Breaks => page.paint(Paint::Red, "✗"),
            SwitchImpact::Differs => page.paint(Paint::Yellow, "!"),
        };
        let shown: Vec<&str> = objects.iter().take(MAX_SHOWN_OBJECTS).copied().collect();
        let more = objects.len().saturating_sub(MAX_SHOWN_OBJECTS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        // Objects of tenants must not control the terminal.
        let line = format!("{}: {}{more}: {field}: {message}", from.title(), shown.join(", "));
        let _ = writeln!(text, "{mark} {}", line.replace(char::is_control, " "));
        let _ = writeln!(text, "    remedy: {}", remedy.replace(char::is_control, " "));
    }
}

/// The plans as a script with comments; with `back`, the way back.
pub(super) fn plans(plans: &[SwitchPlan], back: bool) -> String {
    let mut text = String::new();
    let mut plans: Vec<&SwitchPlan> = plans.iter().collect();
    if back {
        plans.reverse();
    } else if !plans.is_empty() {
        text.push_str(IMAGE_NOTE);
    }
    for plan in plans {
        let direction = if back { "Back to" } else { "From" };
        let _ = writeln!(text, "# {direction} {}", plan.from.title());
        let mut steps: Vec<_> = plan.steps.iter().collect();
        if back {
            steps.reverse();
            steps.retain(|step| !step.back.is_empty());
        }
        for (index, step) in steps.iter().enumerate() {
            let title = if back { format!("undo: {}", step.title) } else { step.title.clone() };
            let _ = writeln!(text, "\n# {}. {title}", index + 1);
            let commands = if back { &step.back } else { &step.commands };
            for command in commands {
                text.push_str(&format!("{command}\n"));
            }
            if !back && !step.back.is_empty() {
                text.push_str("#    back:\n");
                step.back.iter().for_each(|command| text.push_str(&format!("#    {command}\n")));
            }
        }
        text.push('\n');
    }
    text
}
