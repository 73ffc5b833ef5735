//! Draws the full-screen view.

use engine::explain::{clock, plural, zone_name};
use jiff::Timestamp;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::terminal::Frame;

use super::super::view::{TopColumns, problem_lines, row_paint};
use super::chart;
use super::state::{AutoscalerDetails, TopPage, TopState};
use crate::live::page::{Page, Paint, cut, wrap};

/// Lines of the chart, without its times.
const CHART_HEIGHT: usize = 8;

/// The keys and commands.
const HELP: &str = "\
enter          one autoscaler: its chart, and why it has this count
esc            back; in the list: without a filter
/              show only lines that contain a text
p  a           problems by cause; all autoscalers
j k  ↓ ↑       down, up; space and PgUp by pages; g and G to the ends
:sort ORDER    pressure, name or replicas
:hpa :so :sj   only HPAs, ScaledObjects or ScaledJobs; :autoscaler, :all
q  :q  Ctrl-C  quit";

/// A line of the screen.
struct ScreenLine {
    text: String,
    paint: Paint,
    is_selected: bool,
}

impl ScreenLine {
    fn new(paint: Paint, text: impl Into<String>) -> Self {
        Self { text: text.into(), paint, is_selected: false }
    }
}

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut TopState, colour: bool, now: Timestamp) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut lines = head(state, width, now);
    let room = height.saturating_sub(lines.len() + 1);
    state.page_rows = room.saturating_sub(1).max(1);
    let mut body = body(state, width, room, now);
    body.truncate(room);
    body.resize_with(room, || ScreenLine::new(Paint::Plain, ""));
    lines.extend(body);
    lines.push(foot(state, width));
    let buffer = frame.buffer_mut();
    for (line, y) in lines.iter().zip(area.y..area.bottom()) {
        buffer.set_stringn(area.x, y, &line.text, width, style(line, colour));
    }
}

fn style(line: &ScreenLine, colour: bool) -> Style {
    let style = match line.paint {
        Paint::Bold => Style::new().add_modifier(Modifier::BOLD),
        Paint::Dim => Style::new().add_modifier(Modifier::DIM),
        Paint::Yellow if colour => Style::new().fg(Color::Yellow),
        Paint::Red if colour => Style::new().fg(Color::Red),
        Paint::Plain | Paint::Yellow | Paint::Red => Style::new(),
    };
    if line.is_selected { style.add_modifier(Modifier::REVERSED) } else { style }
}

/// The first line, and what keeps the view from being live.
fn head(state: &TopState, width: usize, now: Timestamp) -> Vec<ScreenLine> {
    let count = state.overview.autoscalers.len();
    let problems = match state.overview.problems.len() {
        0 => String::new(),
        problems => format!(" · {}", plural(problems, "problem")),
    };
    let left = format!("{} in {}{problems}", plural(count, "autoscaler"), state.place);
    let right = format!("{} {}", clock(now), zone_name(now));
    let gap = width.saturating_sub(left.chars().count());
    let mut lines = vec![ScreenLine::new(Paint::Dim, format!("{left}{right:>gap$}"))];
    if let Some(lost) = &state.lost {
        let age = api::age::since(Some(state.overview.at), now);
        let first = lost.lines().next().unwrap_or_default();
        lines.push(ScreenLine::new(Paint::Red, cut(&format!("{first} (below: {age} old)"), width)));
    }
    if let Some(note) = &state.overview.note {
        lines.push(ScreenLine::new(Paint::Yellow, cut(note, width)));
    }
    lines.push(ScreenLine::new(Paint::Plain, ""));
    lines
}

/// The last line: what is typed, the answer to a command, or the keys.
fn foot(state: &TopState, width: usize) -> ScreenLine {
    if let Some(input) = &state.input {
        return ScreenLine::new(Paint::Bold, format!("{}{}▏", input.prompt, input.text));
    }
    if let Some(notice) = &state.notice {
        return ScreenLine::new(Paint::Yellow, cut(notice, width));
    }
    let keys = match state.page {
        TopPage::List if !state.filter.is_empty() => {
            return ScreenLine::new(
                Paint::Dim,
                cut(&format!("/{} · esc shows all · enter why", state.filter), width),
            );
        }
        TopPage::List => "enter why · / filter · p problems · : command · ? keys · q quit",
        TopPage::Details | TopPage::Problems => "j k scroll · esc back · ? keys · q quit",
        TopPage::Help => "esc back · q quit",
    };
    ScreenLine::new(Paint::Dim, cut(keys, width))
}

fn body(state: &mut TopState, width: usize, room: usize, now: Timestamp) -> Vec<ScreenLine> {
    let page = Page { width: Some(width), colour: false };
    let lines = match state.page {
        TopPage::List => return list(state, page, room),
        TopPage::Problems => problems(state, page),
        TopPage::Details => details(state.details.as_ref(), page, now),
        TopPage::Help => HELP.lines().map(|line| ScreenLine::new(Paint::Plain, line)).collect(),
    };
    state.scroll = state.scroll.min(lines.len().saturating_sub(room));
    lines.into_iter().skip(state.scroll).collect()
}

/// The heading and the lines around the selected one.
fn list(state: &TopState, page: Page, room: usize) -> Vec<ScreenLine> {
    let visible = state.visible();
    if visible.is_empty() {
        let text = if state.filter.is_empty() {
            "no autoscaler here; -A looks in all namespaces"
        } else {
            "no line contains this text; esc shows all"
        };
        return vec![ScreenLine::new(Paint::Plain, text)];
    }
    let columns = TopColumns { namespace: state.all_namespaces };
    let table = columns.table(visible.iter().copied(), true);
    // The metric is named in most decisions too; the autoscaler's name is nowhere else.
    let table = if page.has_room(&table) { table } else { columns.table(visible.iter().copied(), false) };
    let selected = state.selected_row();
    let rows = room.saturating_sub(1).max(1);
    let above = (selected + 1).saturating_sub(rows);
    let mut lines = Vec::new();
    for line in page.single_lines(&table) {
        match line.row {
            None => lines.push(ScreenLine::new(Paint::Bold, line.text)),
            Some(row) if row < above => {}
            Some(row) => {
                let paint = visible.get(row).map_or(Paint::Plain, |line| row_paint(line.state));
                let mut line = ScreenLine::new(paint, line.text);
                line.is_selected = row == selected;
                if line.is_selected {
                    line.text = format!("{:<width$}", line.text, width = page.width.unwrap_or(0));
                }
                lines.push(line);
            }
        }
    }
    lines
}

fn problems(state: &TopState, page: Page) -> Vec<ScreenLine> {
    if state.overview.problems.is_empty() {
        return vec![ScreenLine::new(Paint::Plain, "no problem is known")];
    }
    let mut lines = Vec::new();
    for problem in &state.overview.problems {
        for (index, text) in problem_lines(problem, page).into_iter().enumerate() {
            lines.push(ScreenLine::new(
                if index == 0 { row_paint(problem.grade) } else { Paint::Plain },
                text,
            ));
        }
        lines.push(ScreenLine::new(Paint::Plain, ""));
    }
    lines
}

fn details(details: Option<&AutoscalerDetails>, page: Page, now: Timestamp) -> Vec<ScreenLine> {
    let width = page.width.unwrap_or(usize::MAX);
    let Some(details) = details else { return vec![ScreenLine::new(Paint::Dim, "reading …")] };
    let plain = |text: String| ScreenLine::new(Paint::Plain, text);
    let why = match &details.why {
        Ok(explanation) => page.explanation(explanation),
        Err(error) => {
            let title = ScreenLine::new(Paint::Bold, format!("{}/{}", details.namespace, details.name));
            return std::iter::once(title)
                .chain(wrap(&error.to_string(), width).into_iter().map(plain))
                .collect();
        }
    };
    // The headline, which may be wrapped, ends at the first empty line.
    let headline = why.lines().take_while(|line| !line.is_empty()).count();
    let mut lines: Vec<ScreenLine> = why.lines().map(|line| plain(line.to_owned())).collect();
    lines.iter_mut().take(headline).for_each(|line| line.paint = Paint::Bold);
    let mut chart = chart::lines(&details.points, &details.trends, now, width, CHART_HEIGHT);
    if !chart.is_empty() {
        chart.insert(0, String::new());
    }
    drop(lines.splice(headline..headline, chart.into_iter().map(plain)));
    lines
}
