//! Import cycles among sibling modules.
//!
//! A module counts with all modules below it: `a::b` that imports `c::d` is an import of `c` by `a`. An import of a name
//! that a module re-exports is an import of the module that has it. Imports between a parent and its children are allowed,
//! and tests are not checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::imports::{imported_names, references, test_modules};

/// `["hpa", "observe"]`; empty for the root of a crate.
type ModulePath = Vec<String>;

/// The file and line of an import.
type ImportSite = (PathBuf, usize);

/// The names that each module imports, with their paths.
type ImportedNames = BTreeMap<ModulePath, BTreeMap<String, Vec<String>>>;

/// Re-exports that are followed from one path, so that declarations which name each other end.
const MAX_REEXPORTS: usize = 8;

/// The imports of each child of one module by its siblings: importer, imported, and the first place.
type SiblingImports = BTreeMap<String, BTreeMap<String, ImportSite>>;

/// All cycles in the workspace, each as text for people.
pub(super) fn cycles() -> anyhow::Result<Vec<String>> {
    let mut roots = vec![PathBuf::from("xtask/src"), PathBuf::from("fuzz/src")];
    for entry in std::fs::read_dir("crates").context("failed to list crates")? {
        roots.push(entry?.path().join("src"));
    }
    roots.sort();
    let mut found = Vec::new();
    for root in roots.iter().filter(|root| root.is_dir()) {
        found.extend(cycles_in(&modules(root)?));
    }
    Ok(found)
}

/// The file and text of every module of a crate, without test modules.
fn modules(root: &Path) -> anyhow::Result<BTreeMap<ModulePath, (PathBuf, String)>> {
    let mut found = BTreeMap::new();
    read_folder(root, &[], &mut found)?;
    let for_tests: Vec<ModulePath> = found
        .iter()
        .flat_map(|(path, (_, text)): (&ModulePath, &(PathBuf, String))| {
            test_modules(text).into_iter().map(|name| path.iter().cloned().chain([name]).collect())
        })
        .collect();
    found.retain(|path, _| !for_tests.iter().any(|tests| path.starts_with(tests)));
    Ok(found)
}

fn read_folder(
    folder: &Path,
    module: &[String],
    found: &mut BTreeMap<ModulePath, (PathBuf, String)>,
) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let own = || module.iter().cloned().chain([name.clone()]).collect::<ModulePath>();
        if path.is_dir() {
            read_folder(&path, &own(), found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let root = matches!(name.as_str(), "mod" | "lib" | "main");
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("failed to read {}", path.display()))?;
            found.insert(if root { module.to_vec() } else { own() }, (path, text));
        }
    }
    Ok(())
}

fn cycles_in(modules: &BTreeMap<ModulePath, (PathBuf, String)>) -> Vec<String> {
    let names: ImportedNames =
        modules.iter().map(|(module, (_, text))| (module.clone(), imported_names(text))).collect();
    let mut by_parent: BTreeMap<ModulePath, SiblingImports> = BTreeMap::new();
    for (module, (file, text)) in modules {
        for reference in references(text) {
            let Some(target) = resolve(module, &reference.segments, &names, MAX_REEXPORTS) else { continue };
            let shared = module.iter().zip(&target).take_while(|(one, other)| one == other).count();
            let (Some(importer), Some(imported)) = (module.get(shared), target.get(shared)) else { continue };
            let parent = module.iter().take(shared).cloned().collect();
            let imports = by_parent.entry(parent).or_default().entry(importer.clone()).or_default();
            imports.entry(imported.clone()).or_insert_with(|| (file.clone(), reference.line));
        }
    }
    by_parent.values().flat_map(cycles_among).collect()
}

/// The module of a path: its longest prefix that is a module, or the module from which this one imports the next name.
fn resolve(
    module: &[String],
    segments: &[String],
    names: &ImportedNames,
    reexports: usize,
) -> Option<ModulePath> {
    let mut path: ModulePath = module.to_vec();
    for (at, segment) in segments.iter().enumerate() {
        match segment.as_str() {
            "crate" if at == 0 => path.clear(),
            "super" => drop(path.pop()?),
            name => {
                path.push(name.to_owned());
                if !names.contains_key(&path) {
                    path.pop();
                    let imported = names.get(&path).and_then(|names| names.get(name));
                    let Some(imported) = imported.filter(|_| reexports > 0) else { break };
                    let rest = segments.get(at + 1..).unwrap_or_default();
                    return resolve(&path, &[imported.as_slice(), rest].concat(), names, reexports - 1);
                }
            }
        }
    }
    Some(path)
}

/// The shortest cycle through each module that is in one, each cycle once.
fn cycles_among(imports: &SiblingImports) -> Vec<String> {
    let mut shown = BTreeSet::new();
    let mut texts = Vec::new();
    for start in imports.keys() {
        let Some(cycle) = shortest_cycle(start, imports) else { continue };
        if shown.insert(cycle.iter().cloned().collect::<BTreeSet<_>>()) {
            texts.push(show(&cycle, imports));
        }
    }
    texts
}

fn shortest_cycle(start: &String, imports: &SiblingImports) -> Option<Vec<String>> {
    let mut seen = BTreeSet::from([start]);
    let mut paths = vec![vec![start.clone()]];
    while !paths.is_empty() {
        let mut longer = Vec::new();
        for path in paths {
            for next in path.last().and_then(|last| imports.get(last)).into_iter().flat_map(BTreeMap::keys) {
                if next == start {
                    return Some(path);
                }
                if seen.insert(next) {
                    longer.push(path.iter().cloned().chain([next.clone()]).collect());
                }
            }
        }
        paths = longer;
    }
    None
}

/// `a -> b -> a`, and the file and line of each import.
fn show(cycle: &[String], imports: &SiblingImports) -> String {
    let ends = cycle.iter().skip(1).chain(cycle.first());
    let mut text = cycle.iter().chain(cycle.first()).cloned().collect::<Vec<_>>().join(" -> ");
    for (importer, imported) in cycle.iter().zip(ends) {
        if let Some((file, line)) = imports.get(importer).and_then(|imports| imports.get(imported)) {
            text += &format!("\n  {importer} imports {imported} at {}:{line}", file.display());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let modules = files.iter().map(|(path, text)| {
            let module = path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
            (module, (PathBuf::from(format!("{path}.rs")), (*text).to_owned()))
        });
        cycles_in(&modules.collect())
    }

    #[test]
    fn siblings_that_import_each_other_are_a_cycle() {
        let cycles = found(&[
            ("", "mod a; mod b; mod c;"),
            ("a", "use crate::b::B;"),
            ("b", "\nuse super::c::C;"),
            ("c", "mod d;"),
            ("c::d", "use crate::a::A;"),
        ]);
        let expected =
            "a -> b -> c -> a\n  a imports b at a.rs:1\n  b imports c at b.rs:2\n  c imports a at c::d.rs:1";
        assert_eq!(cycles, [expected]);
    }

    #[test]
    fn cycles_through_reexports_of_the_parent_are_found() {
        let cycles = found(&[
            ("p", "mod a;\nmod b;\npub use a::A;\npub use b::c::C;\npub use serde::Serialize;"),
            ("p::a", "use super::{C, Serialize};"),
            ("p::b", "mod c;"),
            ("p::b::c", "use crate::p::A;"),
        ]);
        assert_eq!(cycles, ["a -> b -> a\n  a imports b at p::a.rs:1\n  b imports a at p::b::c.rs:1"]);
    }

    #[test]
    fn parents_and_children_may_import_each_other() {
        let files = [
            ("", "use crate::a::b::B;"),
            ("a", "use self::b::B; use crate::C;"),
            ("a::b", "use super::A; use crate::C;"),
        ];
        assert!(found(&files).is_empty());
    }

    #[test]
    fn a_cycle_below_a_module_is_found() {
        let cycles = found(&[("a", ""), ("a::b", "use super::c::C;"), ("a::c", "crate::a::b::f()")]);
        assert_eq!(cycles.len(), 1, "{cycles:?}");
    }
}
