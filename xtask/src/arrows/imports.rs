//! Finds the paths that a Rust file names with `crate::` and `super::`, from its text.
//!
//! The text is not parsed as Rust: comments and test modules are blanked, `use` trees are expanded, and every other
//! `crate::…` or `super::…` is read as far as it is a path.

use std::collections::BTreeMap;

/// A path in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathReference {
    /// Number of the line, from one.
    pub(super) line: usize,
    /// `crate`, `a`, `B` for `crate::a::B`.
    pub(super) segments: Vec<String>,
}

/// All paths that begin with `crate` or `super`.
pub(super) fn references(text: &str) -> Vec<PathReference> {
    let code = code_only(text);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = next_root(&code, at) {
        let line = code.get(..offset).unwrap_or_default().matches('\n').count() + 1;
        let rest = code.get(offset..).unwrap_or_default();
        let mut tree = Tree { rest, paths: Vec::new() };
        tree.read(&mut Vec::new());
        at = code.len() - tree.rest.len();
        found.extend(tree.paths.into_iter().map(|segments| PathReference { line, segments }));
    }
    found
}

/// The names that `use` declarations of a module import, each with its path. Names after `as` and `*` are left out.
pub(super) fn imported_names(text: &str) -> BTreeMap<String, Vec<String>> {
    let code = code_only(text);
    let mut names = BTreeMap::new();
    for (offset, word) in code.match_indices("use ") {
        let line = code.get(..offset).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
        // Declarations in functions are indented, and import nothing into the module.
        let is_declaration =
            line.is_empty() || line == "pub " || line.starts_with("pub(") && line.ends_with(") ");
        if !is_declaration {
            continue;
        }
        let mut tree = Tree { rest: code.get(offset + word.len()..).unwrap_or_default(), paths: Vec::new() };
        tree.read(&mut Vec::new());
        for path in tree.paths {
            if let Some(name) = path.last().cloned() {
                names.insert(name, path);
            }
        }
    }
    names
}

/// Names of modules that are declared only for tests.
pub(super) fn test_modules(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut for_tests = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_suffix(';').and_then(module_name).filter(|_| for_tests) {
            names.push(name.to_owned());
        }
        for_tests = line.starts_with("#[cfg(test)]") || for_tests && line.starts_with("#[");
    }
    names
}

fn module_name(line: &str) -> Option<&str> {
    let (before, name) = line.split_once("mod ")?;
    (before.is_empty() || before.starts_with("pub")).then_some(name)
}

/// The text with comments and all items under `#[cfg(test)]` blanked, without changing line numbers.
fn code_only(text: &str) -> String {
    let mut code = String::new();
    // The indentation of the test item that is being skipped.
    let mut skipped: Option<usize> = None;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        if let Some(item) = skipped {
            let ends = indent == item
                && (trimmed.starts_with('}') || trimmed.ends_with(';') || trimmed.ends_with('}'))
                && !trimmed.starts_with("#[");
            if ends {
                skipped = None;
            }
        } else if trimmed.starts_with("#[cfg(test)]") {
            skipped = Some(indent);
        } else {
            code += line.split_once("//").map_or(line, |(before, _)| before);
        }
        code.push('\n');
    }
    code
}

/// The position of the next `crate::` or `super::` that does not continue a longer word or path.
fn next_root(code: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let rest = code.get(at..)?;
        let next = ["crate::", "super::"].iter().filter_map(|root| rest.find(root)).min()?;
        let offset = at + next;
        let before = code.get(..offset)?.chars().next_back();
        if !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '$')) {
            return Some(offset);
        }
        at = offset + "crate::".len();
    }
}

struct Tree<'a> {
    rest: &'a str,
    paths: Vec<Vec<String>>,
}

impl Tree<'_> {
    /// Reads one path, or one branch of a `use` tree after the segments that precede it.
    fn read(&mut self, leading: &mut Vec<String>) {
        let length = leading.len();
        loop {
            self.rest = self.rest.trim_start();
            if let Some(inside) = self.rest.strip_prefix('{') {
                self.rest = inside;
                self.branches(leading);
                break;
            }
            let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
            let (word, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
            self.rest = rest;
            if !word.is_empty() && word != "self" {
                leading.push(word.to_owned());
            }
            match self.rest.strip_prefix("::") {
                Some(rest) => self.rest = rest,
                None => {
                    self.paths.push(leading.clone());
                    break;
                }
            }
            // `crate::f::<T>` and `crate::*`
            if self.rest.starts_with(['<', '*']) {
                self.paths.push(leading.clone());
                break;
            }
        }
        leading.truncate(length);
    }

    /// Reads the branches of a `use` tree up to the closing brace.
    fn branches(&mut self, leading: &mut Vec<String>) {
        loop {
            self.read(leading);
            // The rest of a branch is `as NAME` or `*`.
            let Some(end) = self.rest.find([',', '}']) else { return };
            let closed = self.rest.get(end..).is_some_and(|rest| rest.starts_with('}'));
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            let over = self.rest.trim_start().strip_prefix('}');
            if let Some(rest) = over.filter(|_| !closed) {
                self.rest = rest;
                return;
            }
            if closed {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        references(text).iter().map(|found| format!("{} {}", found.line, found.segments.join("::"))).collect()
    }

    #[test]
    fn use_trees_are_expanded() {
        let text = "use crate::{a::B, c::{self, D, e::*},\n    f};\nuse super::super::g::H as I;\n";
        let expected = [
            "1 crate::a::B",
            "1 crate::c",
            "1 crate::c::D",
            "1 crate::c::e",
            "1 crate::f",
            "3 super::super::g::H",
        ];
        assert_eq!(paths(text), expected);
    }

    #[test]
    fn paths_in_expressions_are_found() {
        let text = "fn f() -> crate::a::B {\n    super::c::d::<u8>(crate::e::F { g: 1 })\n}\n";
        assert_eq!(paths(text), ["1 crate::a::B", "2 super::c::d", "2 crate::e::F"]);
    }

    #[test]
    fn comments_macros_and_tests_are_ignored() {
        let text = "// crate::a\n/// [`crate::b`]\n$crate::c();\n#[cfg(test)]\nuse crate::d;\n#[cfg(test)]\nmod tests {\n    use crate::e;\n}\nuse crate::f;\n";
        assert_eq!(paths(text), ["10 crate::f"]);
    }

    #[test]
    fn imported_names_have_the_paths_of_their_declarations() {
        let text = "pub use a::{B, c::D};\npub(super) use crate::e::F;\nfn g() {\n    use h::I;\n}\n#[cfg(test)]\nuse j::K;\n";
        let names = imported_names(text);
        let found: Vec<_> = names.iter().map(|(name, path)| (name.as_str(), path.join("::"))).collect();
        assert_eq!(found, [("B", "a::B".into()), ("D", "a::c::D".into()), ("F", "crate::e::F".into())]);
    }

    #[test]
    fn test_modules_are_recognized() {
        let text =
            "mod a;\n#[cfg(test)]\nmod b;\n#[cfg(test)]\n#[path = \"x.rs\"]\npub(crate) mod c;\nmod d;\n";
        assert_eq!(test_modules(text), ["b", "pub(crate) c".trim_start_matches("pub(crate) ")]);
    }
}
