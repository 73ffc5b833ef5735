//! Builder of a description: indented lines whose cells are aligned at the end.

use crate::map::StringMap;
use crate::table::{align, visible};

const MAX_ANNOTATION_BYTES: usize = 140;
const HIDDEN_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

#[derive(Default)]
pub(super) struct Page {
    finished: String,
    text: String,
}

impl Page {
    /// One line, indented by two spaces per level; tabs separate its cells.
    pub(super) fn line(&mut self, level: usize, text: &str) {
        self.text.extend(std::iter::repeat_n("  ", level));
        self.text.push_str(&visible(text));
        self.text.push('\n');
    }

    pub(super) fn field(&mut self, name: &str, value: &str) {
        self.line(0, &format!("{name}:\t{value}"));
    }

    /// What follows is aligned on its own.
    pub(super) fn new_columns(&mut self) {
        self.finished.push_str(&align(&std::mem::take(&mut self.text), 0, 2));
    }

    pub(super) fn finish(mut self) -> String {
        self.new_columns();
        self.finished
    }

    pub(super) fn labels(&mut self, labels: &StringMap) {
        self.entries("Labels", labels.iter().map(|(key, value)| format!("{key}={value}")));
    }

    /// Long annotations stand under their key, cut off.
    pub(super) fn annotations(&mut self, annotations: &StringMap) {
        let shown = annotations.iter().filter(|(key, _)| *key != HIDDEN_ANNOTATION);
        let entries = shown.map(|(key, value)| {
            let value = value.strip_suffix('\n').unwrap_or(value);
            if value.len() + key.len() + 2 <= MAX_ANNOTATION_BYTES && !value.contains('\n') {
                return format!("{key}: {value}");
            }
            let lines: Vec<String> =
                value.split('\n').map(|line| format!("\n\t  {}", shortened(line))).collect();
            format!("{key}:{}", lines.concat())
        });
        self.entries("Annotations", entries);
    }

    fn entries(&mut self, name: &str, entries: impl Iterator<Item = String>) {
        let entries: Vec<String> = entries.collect();
        let text = if entries.is_empty() { "<none>".to_owned() } else { entries.join("\n\t") };
        self.field(name, &text);
    }
}

fn shortened(line: &str) -> String {
    let end = line.floor_char_boundary(MAX_ANNOTATION_BYTES - 2);
    match line.get(..end) {
        Some(start) if end < line.len() => format!("{start}..."),
        _ => line.to_owned(),
    }
}
