//! An overview as text that fits a terminal.

use api::table::Table;

use super::overview::{AutoscalerLine, Overview};
use super::problem::{Grade, Problem};
use crate::live::page::{Page, Paint, cut, wrap};

/// Causes that are shown.
const MAX_CAUSES: usize = 5;
/// Lines that one text of a problem may take.
const MAX_TEXT_LINES: usize = 3;
/// Names that are shown of those with one cause.
const MAX_NAMES: usize = 3;

/// Which columns there are.
#[derive(Clone, Copy)]
pub(crate) struct TopColumns {
    pub(crate) namespace: bool,
}

impl TopColumns {
    /// The whole text in so many lines at most.
    pub(crate) fn text(self, overview: &Overview, page: Page, height: usize) -> String {
        let mut lines = Vec::new();
        if let Some(note) = &overview.note {
            lines.extend(wrap(note, page.width.unwrap_or(usize::MAX)));
        }
        let shown = overview.problems.iter().take(MAX_CAUSES);
        let mut problems: Vec<Vec<String>> = shown.map(|problem| problem_lines(problem, page)).collect();
        // Half of the screen is for the autoscalers.
        if problems.iter().map(Vec::len).sum::<usize>() > height / 2 {
            for lines in &mut problems {
                lines.truncate(1);
            }
        }
        lines.extend(problems.concat());
        if let Some(more) = overview.problems.len().checked_sub(MAX_CAUSES).filter(|more| *more > 0) {
            lines.push(format!("and {more} more causes; -o json shows them all"));
        }
        if !lines.is_empty() {
            lines.push(String::new());
        }
        if overview.autoscalers.is_empty() {
            lines.push("no autoscaler here; -A looks in all namespaces".to_owned());
        }
        // The metric is named in most decisions too; the autoscaler's name is nowhere else.
        let table = self.table(&overview.autoscalers, true);
        let table = if page.has_room(&table) { table } else { self.table(&overview.autoscalers, false) };
        let room = height.saturating_sub(lines.len());
        let rows = page.single_lines(&table);
        let hidden = rows.len().saturating_sub(room);
        let kept = if hidden > 0 { room.saturating_sub(1) } else { rows.len() };
        for line in rows.iter().take(kept) {
            let paint = match line.row.and_then(|row| overview.autoscalers.get(row)) {
                None => Paint::Bold,
                Some(line) => row_paint(line.state),
            };
            lines.push(page.paint(paint, &line.text));
        }
        if hidden > 0 {
            let last = rows.iter().take(kept).filter_map(|line| line.row).max().map_or(0, |row| row + 1);
            let rest = overview.autoscalers.len().saturating_sub(last);
            lines.push(page.paint(Paint::Dim, &format!("… and {rest} more")));
        }
        lines.join("\n") + "\n"
    }

    /// The table, with or without the column of metrics.
    pub(super) fn table<'a>(
        self,
        lines: impl IntoIterator<Item = &'a AutoscalerLine>,
        metrics: bool,
    ) -> Table {
        let mut titles = Vec::new();
        titles.extend(self.namespace.then_some("Namespace"));
        titles.extend(["Name", "Pressure"]);
        titles.extend(metrics.then_some("Metrics"));
        titles.extend(["Replicas", "Last decision"]);
        let mut table = Table::new(titles);
        for line in lines {
            let mut row = Vec::new();
            row.extend(self.namespace.then(|| line.namespace.clone()));
            row.extend([
                line.name.clone(),
                line.pressure.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}×")),
            ]);
            row.extend(metrics.then(|| line.metrics.clone()));
            let replicas = line.replicas.map_or_else(|| "-".to_owned(), |count| count.to_string());
            row.extend([format!("{replicas} of {}–{}", line.min, line.max), line.decision.clone()]);
            table.rows.push(row);
        }
        table
    }
}

/// The colour of an autoscaler or a problem of this severity.
pub(super) fn row_paint(grade: Grade) -> Paint {
    match grade {
        Grade::Failing => Paint::Red,
        Grade::AtMax | Grade::Partial => Paint::Yellow,
        Grade::Paused => Paint::Dim,
        Grade::Fine => Paint::Plain,
    }
}

/// A problem: its cause and who has it, the message, the remedy.
pub(super) fn problem_lines(problem: &Problem, page: Page) -> Vec<String> {
    let count = problem.autoscalers.len();
    let names: Vec<&str> = problem.autoscalers.iter().take(MAX_NAMES).map(String::as_str).collect();
    let more = if count > MAX_NAMES { format!(" and {} more", count - MAX_NAMES) } else { String::new() };
    let who = match (count, problem.grade) {
        (1, Grade::Failing) => "1 autoscaler holds".to_owned(),
        (1, Grade::AtMax) => "1 autoscaler is at max".to_owned(),
        (1, _) => "1 autoscaler decides without it".to_owned(),
        (n, Grade::AtMax) => format!("{n} autoscalers are at max"),
        (n, _) => format!("{n} autoscalers {}", problem.effect),
    };
    let paint = if problem.grade == Grade::Failing { Paint::Red } else { Paint::Yellow };
    let headline = format!("✗ {}: {who} ({}{more})", problem.cause, names.join(", "));
    let mut lines: Vec<String> =
        indented(page, "", &headline).iter().map(|line| page.paint(paint, line)).collect();
    if !problem.detail.is_empty() {
        lines.extend(indented(page, "  ", &problem.detail));
    }
    if !problem.remedy.is_empty() {
        lines.extend(indented(page, "  ", &format!("remedy: {}", problem.remedy)));
    }
    lines
}

/// Wraps a text to a few lines: the end of an error is the most important part.
fn indented(page: Page, indent: &str, text: &str) -> Vec<String> {
    let Some(width) = page.width else { return vec![format!("{indent}{text}")] };
    let mut lines = wrap(text, width.saturating_sub(indent.len()));
    if lines.len() > MAX_TEXT_LINES {
        lines.truncate(MAX_TEXT_LINES);
        if let Some(last) = lines.last_mut() {
            *last = cut(&format!("{last} …"), width.saturating_sub(indent.len()));
        }
    }
    lines.iter().map(|line| format!("{indent}{line}")).collect()
}
