//! Aligned columns of text, as kubectl prints them.

use std::fmt;

/// Rows under headings, separated by three spaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The headings; printed in capitals.
    pub columns: Vec<String>,
    /// The cells; a row may be shorter than the headings.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new<'a>(columns: impl IntoIterator<Item = &'a str>) -> Self {
        Self { columns: columns.into_iter().map(str::to_owned).collect(), rows: Vec::new() }
    }
}

impl fmt::Display for Table {
    /// Writes nothing if there are no rows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut text = self.columns.join("\t").to_uppercase();
        for row in &self.rows {
            text.push('\n');
            for (i, cell) in row.iter().take(self.columns.len()).enumerate() {
                if i > 0 {
                    text.push('\t');
                }
                text.push_str(&one_line(cell));
            }
        }
        text.push('\n');
        f.write_str(&align(&text, 6, 3))
    }
}

/// A cell ends at its first line break.
fn one_line(cell: &str) -> String {
    match cell.find(['\n', '\r', '\u{c}']) {
        Some(end) => format!("{}...", visible(cell.get(..end).unwrap_or_default())),
        None => visible(cell),
    }
}

/// Replaces terminal control characters.
pub(crate) fn visible(text: &str) -> String {
    text.replace('\u{1b}', "^[").replace('\r', "\\r")
}

/// Pads cells so that columns line up. A cell ends with a tab; a column is a run of consecutive lines that all have a
/// cell there, so a line without that cell starts a new column. Text after the last tab of a line belongs to no column.
pub fn align(text: &str, min_width: usize, padding: usize) -> String {
    let lines: Vec<Vec<&str>> =
        text.split(['\n', '\u{c}']).map(|line| line.split(['\t', '\u{b}']).collect()).collect();
    let mut widths: Vec<Vec<usize>> =
        lines.iter().map(|cells| vec![0; cells.len().saturating_sub(1)]).collect();
    let deepest = widths.iter().map(Vec::len).max().unwrap_or(0);
    for column in 0..deepest {
        let mut start = 0;
        while start < lines.len() {
            let run = widths.iter().skip(start).take_while(|widths| widths.len() > column).count();
            let cells = lines.iter().skip(start).take(run).filter_map(|cells| cells.get(column));
            let width = cells.map(|cell| cell.chars().count() + padding).max().unwrap_or(0).max(min_width);
            for slot in widths.iter_mut().skip(start).take(run).filter_map(|widths| widths.get_mut(column)) {
                *slot = width;
            }
            start += run + 1;
        }
    }
    let mut out = String::with_capacity(text.len() * 2);
    for (i, (cells, widths)) in lines.iter().zip(&widths).enumerate() {
        if i > 0 {
            out.push('\n');
        }
        for (column, cell) in cells.iter().enumerate() {
            out.push_str(cell);
            let width = widths.get(column).copied().unwrap_or(0);
            out.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count())));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["Name", "Age"]);
        table.rows.push(vec!["web".into(), "5d".into()]);
        table.rows.push(vec!["a-long-name".into(), "bad\nsecond".into()]);
        assert_eq!(table.to_string(), "NAME          AGE\nweb           5d\na-long-name   bad...\n");
        assert_eq!(Table::new(["Name"]).to_string(), "");
    }

    #[test]
    fn short_headings_have_a_minimum_width() {
        let table = Table { columns: vec!["a".into(), "b".into()], rows: vec![vec!["x".into(), "y".into()]] };
        assert_eq!(table.to_string(), "A     B\nx     y\n");
    }

    #[test]
    fn a_line_without_the_column_starts_a_new_one() {
        let text = "a\tb\nlonger\tc\nno tab\nx\ty\tz\nxx\ty\n\tend\n";
        assert_eq!(align(text, 0, 2), "a       b\nlonger  c\nno tab\nx   y  z\nxx  y\n    end\n");
    }

    #[test]
    fn width_counts_characters() {
        assert_eq!(align("é\tx\nab\ty", 0, 1), "é  x\nab y");
    }
}
