//! The differences between the folders of two releases.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context as _;

use super::fields::fields;
use super::releases::{WatchedPackage, package_of};
use super::texts::{TextKind, texts};

/// How a file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileChange {
    Added,
    Removed,
    /// Lines of the new file that the old one does not have, and the reverse.
    Changed {
        added: usize,
        removed: usize,
    },
}

/// Texts that only one of the releases has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TextChanges {
    pub(super) added: BTreeSet<String>,
    pub(super) removed: BTreeSet<String>,
}

/// The differences in one module.
#[derive(Debug, Default)]
pub(super) struct ModuleChanges {
    /// Changed files, by path.
    pub(super) files: BTreeMap<String, FileChange>,
    /// Changed texts, by kind; kinds without a difference are absent.
    pub(super) texts: BTreeMap<TextKind, TextChanges>,
    /// Fields of resource definitions.
    pub(super) fields: TextChanges,
}

/// The number of lines in which generated code is marked as such, after the licence.
const MAX_HEADER_LINES: usize = 40;

/// The texts and fields of one release that users see.
#[derive(Default)]
struct Visible {
    texts: BTreeSet<(TextKind, String)>,
    fields: BTreeSet<String>,
}

impl ModuleChanges {
    /// Compares the files of these packages.
    pub(super) fn between(old: &Path, new: &Path, packages: &[WatchedPackage]) -> anyhow::Result<Self> {
        let (old, new) = (sources(old, packages)?, sources(new, packages)?);
        let mut changes = Self::default();
        for (path, text) in &new {
            match old.get(path) {
                None => {
                    changes.files.insert(path.clone(), FileChange::Added);
                }
                Some(before) if before != text => {
                    let change = FileChange::Changed {
                        added: lines_only_in(text, before),
                        removed: lines_only_in(before, text),
                    };
                    changes.files.insert(path.clone(), change);
                }
                Some(_) => {}
            }
        }
        let gone = old.keys().filter(|path| !new.contains_key(*path));
        changes.files.extend(gone.map(|path| (path.clone(), FileChange::Removed)));
        // All files are compared, not only those that differ, because a text that moves to another file has not changed.
        let (old, new) = (visible(&old), visible(&new));
        for (kind, text) in new.texts.difference(&old.texts) {
            changes.texts.entry(*kind).or_default().added.insert(text.clone());
        }
        for (kind, text) in old.texts.difference(&new.texts) {
            changes.texts.entry(*kind).or_default().removed.insert(text.clone());
        }
        changes.fields.added.extend(new.fields.difference(&old.fields).cloned());
        changes.fields.removed.extend(old.fields.difference(&new.fields).cloned());
        Ok(changes)
    }
}

/// The sources of these packages, by path.
fn sources(root: &Path, packages: &[WatchedPackage]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for package in packages {
        let folder = root.join(package.folder);
        if folder.is_dir() {
            walk(root, &folder, packages, &mut found)?;
        }
    }
    Ok(found)
}

fn walk(
    root: &Path,
    folder: &Path,
    packages: &[WatchedPackage],
    found: &mut BTreeMap<String, String>,
) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            if !matches!(name.as_str(), "testdata" | "testing" | "mock" | "mocks" | "vendor") {
                walk(root, &path, packages, found)?;
            }
        } else if is_source(&name) {
            let relative = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
            if package_of(packages, &relative).is_some() {
                let bytes =
                    std::fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
                let text = String::from_utf8_lossy(&bytes).into_owned();
                if !text.lines().take(MAX_HEADER_LINES).any(|line| line.starts_with("// Code generated")) {
                    found.insert(relative, text);
                }
            }
        }
    }
    Ok(())
}

/// Whether a file is neither generated nor a test.
fn is_source(name: &str) -> bool {
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    let is_generated = end == "go" && name.contains("generated") || name.ends_with(".pb.go");
    let is_known = ["go", "yaml", "yml", "proto"].contains(&end);
    is_known && !is_generated && !name.ends_with("_test.go")
}

fn visible(files: &BTreeMap<String, String>) -> Visible {
    let mut all = Visible::default();
    for (path, text) in files {
        if std::path::Path::new(path).extension().is_some_and(|end| end == "go") {
            all.texts.extend(texts(path, text));
        } else if path.contains("crd") {
            all.fields.extend(fields(path, text));
        }
    }
    all
}

/// The number of lines of a file that the other one does not have.
fn lines_only_in(one: &str, other: &str) -> usize {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in other.lines() {
        *counts.entry(line).or_default() += 1;
    }
    let is_new = |line: &&str| match counts.get_mut(*line) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    one.lines().filter(is_new).count()
}
