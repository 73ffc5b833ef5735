//! The report as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::changes::{FileChange, ModuleChanges, TextChanges};
use super::releases::{Module, package_of};
use super::texts::TextKind;

/// The maximum length of a text in characters.
const MAX_TEXT_CHARS: usize = 240;

/// Changed files by package, changed texts by kind, and the vectors to record again. `with_others` also lists texts without a kind.
pub(super) fn text(modules: &[(&Module, ModuleChanges)], with_others: bool) -> String {
    let mut out = String::new();
    for (module, changes) in modules {
        files(&mut out, module, changes);
    }
    for kind in TextKind::ALL.into_iter().filter(|kind| with_others || *kind != TextKind::Other) {
        let found = modules.iter().filter_map(|(_, changes)| changes.texts.get(&kind));
        texts(&mut out, kind.title(), found);
    }
    texts(&mut out, "fields of resource definitions", modules.iter().map(|(_, changes)| &changes.fields));
    vectors(&mut out, modules);
    out
}

fn files(out: &mut String, module: &Module, changes: &ModuleChanges) {
    let mut by_package: BTreeMap<&str, Vec<(&String, &FileChange)>> = BTreeMap::new();
    for (path, change) in &changes.files {
        let folder = package_of(module.packages, path).map_or("", |package| package.folder);
        by_package.entry(folder).or_default().push((path, change));
    }
    let _ = writeln!(out, "## {}: {} changed files", module.path, changes.files.len());
    for (folder, files) in by_package {
        let _ = writeln!(out, "\n{folder}");
        for (path, change) in files {
            let name = path.strip_prefix(folder).unwrap_or(path).trim_start_matches('/');
            let _ = match change {
                FileChange::Added => writeln!(out, "  + {name}"),
                FileChange::Removed => writeln!(out, "  - {name}"),
                FileChange::Changed { added, removed } => writeln!(out, "  ~ {name} (+{added} -{removed})"),
            };
        }
    }
    out.push('\n');
}

fn texts<'a>(out: &mut String, title: &str, changes: impl Iterator<Item = &'a TextChanges>) {
    let mut lines = BTreeSet::new();
    for change in changes {
        lines.extend(change.removed.iter().map(|text| format!("  - {}", shown(text))));
        lines.extend(change.added.iter().map(|text| format!("  + {}", shown(text))));
    }
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "## {title}: {}", lines.len());
    for line in lines {
        let _ = writeln!(out, "{line}");
    }
    out.push('\n');
}

/// A text on one line, truncated.
fn shown(text: &str) -> String {
    let line = text.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'");
    match line.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

fn vectors(out: &mut String, modules: &[(&Module, ModuleChanges)]) {
    let mut sets: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (module, changes) in modules {
        for package in changes.files.keys().filter_map(|path| package_of(module.packages, path)) {
            for set in package.vectors {
                sets.entry(set).or_default().insert(package.folder);
            }
        }
    }
    let _ = writeln!(out, "## vectors to record: {}", sets.len());
    for (set, folders) in sets {
        let folders: Vec<&str> = folders.into_iter().collect();
        let _ = writeln!(out, "  {set}: {}", folders.join(", "));
    }
}
