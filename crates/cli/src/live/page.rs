//! Text that fits its terminal. What goes to a file or a pipe is never cut or wrapped.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use api::table::Table;
use engine::explain::Explanation;

use crate::failure::use_colour;

/// If the last column would be narrower than this, it is printed on separate lines.
const MIN_LAST_COLUMN_WIDTH: usize = 24;
/// The minimum width of a column.
const MIN_COLUMN_WIDTH: usize = 9;
const COLUMN_GAP: usize = 3;

/// How text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Columns of the terminal; none if it is not one.
    pub(crate) width: Option<usize>,
    /// Whether to use colour.
    pub(crate) colour: bool,
}

/// Colours, for what needs attention only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    Plain,
    Bold,
    Dim,
    Yellow,
    Red,
}

/// A line, and which row of the table it belongs to; none is the heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageLine {
    pub(crate) row: Option<usize>,
    pub(crate) text: String,
}

impl Page {
    /// Standard output.
    pub(crate) fn stdout() -> Self {
        let out = std::io::stdout();
        let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        Self { width: width.filter(|width| *width >= 20 && out.is_terminal()), colour: use_colour(&out) }
    }

    /// A painted text.
    pub(crate) fn paint(self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Yellow => "33",
            Paint::Red => "31",
            Paint::Plain => return text.to_owned(),
        };
        if self.colour && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// An explanation: a headline that stands apart, and the line that decided.
    pub(crate) fn explanation(self, explanation: &Explanation) -> String {
        let Some(width) = self.width else {
            let text = explanation.to_string();
            let (headline, rest) = text.split_once('\n').unwrap_or((&text, ""));
            return format!("{headline}\n\n{rest}");
        };
        let mut text = String::new();
        for line in wrap(&explanation.headline, width) {
            text += &self.paint(Paint::Bold, &line);
            text.push('\n');
        }
        text.push('\n');
        let labels = explanation.rows.iter().map(|r| length(&r.label)).max().unwrap_or(0).max(9) + 2;
        for row in &explanation.rows {
            let room = width.saturating_sub(labels).max(MIN_COLUMN_WIDTH);
            let mut lines = wrap(&row.text, room);
            if row.decided {
                mark(&mut lines, room);
            }
            for (index, line) in lines.iter().enumerate() {
                let label = if index == 0 { row.label.as_str() } else { "" };
                let paint = if row.decided { Paint::Bold } else { Paint::Plain };
                text += self.paint(paint, &format!("{label:<labels$}{line}")).trim_end();
                text.push('\n');
            }
        }
        text
    }

    /// Whether all columns of a table fit, with room for the last one.
    pub(crate) fn has_room(self, table: &Table) -> bool {
        self.width.is_none_or(|width| taken(&natural(table), COLUMN_GAP) + MIN_LAST_COLUMN_WIDTH <= width)
    }

    /// A table. In a terminal that is too narrow the last column is wrapped, and others are cut.
    pub(crate) fn table(self, table: &Table) -> String {
        self.lines(table).into_iter().fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "{}", line.text);
            text
        })
    }

    /// The lines of a table.
    fn lines(self, table: &Table) -> Vec<PageLine> {
        self.lines_by(table, Layout::wrapping)
    }

    /// The lines of a table that has one for each row: in a terminal that is too narrow, texts are cut.
    pub(crate) fn single_lines(self, table: &Table) -> Vec<PageLine> {
        self.lines_by(table, Layout::cutting)
    }

    fn lines_by<'a>(
        self,
        table: &'a Table,
        layout: impl Fn(&'a Table, usize) -> Layout<'a>,
    ) -> Vec<PageLine> {
        let plain = table.to_string();
        let row = |index: usize| index.checked_sub(1);
        match self.width {
            Some(width) if plain.lines().any(|line| length(line) > width) => layout(table, width).lines(),
            _ => plain
                .lines()
                .enumerate()
                .map(|(i, text)| PageLine { row: row(i), text: text.to_owned() })
                .collect(),
        }
    }
}

/// A table that must be made to fit.
struct Layout<'a> {
    table: &'a Table,
    /// Widths of all columns but the last.
    columns: Vec<usize>,
    gap: usize,
    last: Last,
}

/// Where the last column is, and how wide.
#[derive(Clone, Copy)]
enum Last {
    /// In the row of the others, on as many lines as it needs.
    Wrapped(usize),
    /// In the row of the others, on one line.
    Cut(usize),
    /// Below the others.
    Below(usize),
}

impl<'a> Layout<'a> {
    fn wrapping(table: &'a Table, width: usize) -> Self {
        let mut columns = natural(table);
        let room = width.saturating_sub(taken(&columns, COLUMN_GAP));
        if room >= MIN_LAST_COLUMN_WIDTH {
            return Self { table, columns, gap: COLUMN_GAP, last: Last::Wrapped(room) };
        }
        // First spaces are removed, then the longest texts are cut.
        let gap = COLUMN_GAP - 1;
        squeeze(table, &mut columns, gap, width + gap);
        Self { table, columns, gap, last: Last::Below(width.saturating_sub(2).max(MIN_COLUMN_WIDTH)) }
    }

    fn cutting(table: &'a Table, width: usize) -> Self {
        let mut columns = natural(table);
        let gap = COLUMN_GAP - 1;
        squeeze(table, &mut columns, gap, width.saturating_sub(MIN_LAST_COLUMN_WIDTH));
        let room = width.saturating_sub(taken(&columns, gap));
        Self { table, columns, gap, last: Last::Cut(room) }
    }

    fn lines(&self) -> Vec<PageLine> {
        let titles: Vec<String> = self.table.columns.iter().map(|title| title.to_uppercase()).collect();
        let mut lines = Vec::new();
        self.row(&mut lines, None, &titles);
        for (index, row) in self.table.rows.iter().enumerate() {
            self.row(&mut lines, Some(index), row);
        }
        lines
    }

    fn row(&self, lines: &mut Vec<PageLine>, row: Option<usize>, cells: &[String]) {
        let mut text = String::new();
        for (width, cell) in self.columns.iter().zip(cells) {
            let cell = cut(cell, *width);
            let padding = width + self.gap - length(&cell);
            text += &cell;
            text.extend(std::iter::repeat_n(' ', padding));
        }
        let last = cells.get(self.columns.len()).map_or("", String::as_str);
        let mut push_line = |text: &str| lines.push(PageLine { row, text: text.trim_end().to_owned() });
        match self.last {
            Last::Cut(room) => push_line(&format!("{text}{}", cut(last, room))),
            Last::Wrapped(room) => {
                let indent = length(&text);
                for (index, part) in wrap(last, room).iter().enumerate() {
                    let before = if index == 0 { text.clone() } else { " ".repeat(indent) };
                    push_line(&format!("{before}{part}"));
                }
            }
            // The separate lines need no heading.
            Last::Below(_) if row.is_none() || matches!(last, "" | "-") => push_line(&text),
            Last::Below(room) => {
                push_line(&text);
                for part in wrap(last, room) {
                    push_line(&format!("  {part}"));
                }
            }
        }
    }
}

/// The widths that all columns but the last would like to have.
fn natural(table: &Table) -> Vec<usize> {
    let count = table.columns.len().saturating_sub(1);
    let width = |column: usize| {
        let cells = table.rows.iter().filter_map(|row| row.get(column)).map(|cell| length(cell));
        let title = table.columns.get(column).map_or(0, |title| length(title));
        cells.max().unwrap_or(0).max(title)
    };
    (0..count).map(width).collect()
}

fn taken(columns: &[usize], gap: usize) -> usize {
    columns.iter().map(|width| width + gap).sum()
}

/// Narrows the widest columns until all fit or have their minimum. Names are cut last: users type them.
fn squeeze(table: &Table, columns: &mut [usize], gap: usize, width: usize) {
    let names = table.columns.iter().position(|title| title == "Name" || title == "Object");
    let mut first = names.map_or(0, |at| at + 1).min(columns.len());
    while taken(columns, gap) > width {
        let rest = columns.iter_mut().skip(first);
        match rest.max_by_key(|width| **width).filter(|widest| **widest > MIN_COLUMN_WIDTH) {
            Some(widest) => *widest -= 1,
            None if first > 0 => first = 0,
            None => return,
        }
    }
}

/// How many columns a text takes.
pub(crate) fn length(text: &str) -> usize {
    text.chars().count()
}

/// Marks what decided, on the last line or, if there is no room, below it.
fn mark(lines: &mut Vec<String>, room: usize) {
    const DECIDING_MARK: &str = "← this decided";
    match lines.last_mut() {
        Some(last) if length(last) + 2 + length(DECIDING_MARK) <= room => {
            last.push_str("  ");
            last.push_str(DECIDING_MARK);
        }
        _ => lines.push(DECIDING_MARK.to_owned()),
    }
}

/// A text of at most `width` columns.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Lines of at most `width` columns, broken between words where that can be; always at least one.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut gap = String::new();
    for part in text.split_inclusive(' ') {
        let word = part.trim_end_matches(' ');
        if !line.is_empty() && length(&line) + length(&gap) + length(word) > width {
            lines.push(std::mem::take(&mut line));
            gap.clear();
        }
        line += &std::mem::take(&mut gap);
        line += word;
        gap.extend(std::iter::repeat_n(' ', part.len() - word.len()));
        while length(&line) > width {
            let rest = line.chars().skip(width).collect();
            lines.push(line.chars().take(width).collect());
            line = rest;
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests;
