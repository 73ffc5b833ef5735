//! `docs/glossary.md`: each term stands in one row, and the types and modules that rows name exist.

use std::collections::{BTreeMap, BTreeSet};

use super::TrackedFile;

const GLOSSARY: &str = "docs/glossary.md";
/// The keywords before the name of an item at its definition.
const KEYWORDS: [&str; 9] =
    ["struct", "enum", "trait", "type", "fn", "mod", "const", "static", "macro_rules!"];

/// Terms with more than one row, and names without a definition, as `FILE:LINE: …`.
pub(super) fn problems(files: &[TrackedFile]) -> Vec<String> {
    let Some(glossary) = files.iter().find(|file| file.path.to_str() == Some(GLOSSARY)) else {
        return vec![format!("there is no {GLOSSARY}")];
    };
    let defined = definitions(files);
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(glossary.text.lines()) {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (Some(terms), Some(carriers)) = (cells.next(), cells.next()) else { continue };
        if terms == "Term" || terms.starts_with("---") {
            continue;
        }
        for term in terms.split(", ") {
            if let Some(first) = lines.insert(term, number) {
                problems.push(format!("{GLOSSARY}:{number}: {term} also stands in line {first}"));
            }
        }
        // Every second piece between backquotes is code.
        for name in carriers.split('`').skip(1).step_by(2).flat_map(names) {
            // Folders of crates are written with dashes.
            if !defined.contains(name) && !defined.contains(name.replace('_', "-").as_str()) {
                problems.push(format!("{GLOSSARY}:{number}: no Rust file defines {name}"));
            }
        }
    }
    problems
}

/// The items that a path names: `a::{B, C}` names `a`, `B` and `C`. Files and flags name none.
fn names(path: &str) -> Vec<&str> {
    if path.contains('/') || path.starts_with('-') {
        return Vec::new();
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let path = path.split('<').next().unwrap_or(path);
    path.split(|c| !is_word(c)).filter(|name| !name.is_empty()).collect()
}

/// The names of all crates, modules and items.
fn definitions(files: &[TrackedFile]) -> BTreeSet<&str> {
    let mut found = items(files, &KEYWORDS);
    for file in rust_files(files) {
        found.extend(file.path.iter().filter_map(|part| part.to_str()?.split('.').next()));
    }
    found
}

pub(super) fn rust_files(files: &[TrackedFile]) -> impl Iterator<Item = &TrackedFile> {
    files.iter().filter(|file| file.path.extension().is_some_and(|extension| extension == "rs"))
}

/// The names of all items that one of the keywords defines.
pub(super) fn items<'a>(files: &'a [TrackedFile], keywords: &[&str]) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    for file in rust_files(files) {
        let mut before = "";
        for word in file.text.split_whitespace() {
            if keywords.contains(&before) {
                found.extend(word.split(|c: char| !c.is_alphanumeric() && c != '_').next());
            }
            before = word;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn problems_of(rows: &str) -> Vec<String> {
        let file = |path: &str, text: &str| TrackedFile { path: PathBuf::from(path), text: text.to_owned() };
        let glossary = format!("| Term | Type or module | Meaning |\n|---|---|---|\n{rows}");
        let code = "pub(crate) struct Store<K>(K);\nimpl<K> Store<K> {\n    fn list() {}\n}\n";
        problems(&[file(GLOSSARY, &glossary), file("crates/api/src/store.rs", code)])
    }

    #[test]
    fn defined_names_and_single_rows_are_right() {
        let rows = "| store, list | `api::store::{Store<K>}`, `Store::list` | not `checked` |\n\
                    | schema file | `xtask/src/**/*.schema`, `--flag` | text |\n";
        assert_eq!(problems_of(rows), Vec::<String>::new());
    }

    #[test]
    fn second_rows_and_undefined_names_are_found_with_their_line() {
        let rows = "| store | `Store` | text |\n| queue, store | `api::Queue` | text |\n";
        let expected = [
            "docs/glossary.md:4: store also stands in line 3",
            "docs/glossary.md:4: no Rust file defines Queue",
        ];
        assert_eq!(problems_of(rows), expected);
    }
}
