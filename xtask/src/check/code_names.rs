//! Names of code on pages other than the glossary: the tests of promises in `docs/security.md`, and members of types
//! (`Type::member`) in `docs/architecture.md`.

use std::path::Path;

use super::TrackedFile;
use super::glossary::{items, rust_files};

const SECURITY: &str = "docs/security.md";
const ARCHITECTURE: &str = "docs/architecture.md";
/// The end of the first row of a table whose second column names tests.
const TEST_COLUMN: &str = "| Test |";

/// The names that no Rust file defines, as `FILE:LINE: …`.
pub(super) fn undefined_names(files: &[TrackedFile]) -> Vec<String> {
    let text = |page: &str| {
        files.iter().find(|file| file.path == Path::new(page)).map_or("", |file| file.text.as_str())
    };
    let mut problems = undefined_tests(files, text(SECURITY));
    problems.extend(undefined_members(files, text(ARCHITECTURE)));
    problems
}

fn undefined_tests(files: &[TrackedFile], page: &str) -> Vec<String> {
    let functions = items(files, &["fn"]);
    let is_word = |code: &&str| code.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    let mut problems = Vec::new();
    let mut is_of_tests = false;
    for (number, line) in (1..).zip(page.lines()) {
        is_of_tests = line.starts_with('|') && (is_of_tests || line.ends_with(TEST_COLUMN));
        let Some((_, tests)) = line.trim_start_matches('|').split_once('|').filter(|_| is_of_tests) else {
            continue;
        };
        // Code of several words, such as a path or a command, names no function.
        for name in code(tests).filter(is_word).filter(|name| !functions.contains(name)) {
            problems.push(format!("{SECURITY}:{number}: no Rust file defines the test {name}"));
        }
    }
    problems
}

fn undefined_members(files: &[TrackedFile], page: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(page.lines()) {
        for path in code(line).filter(|path| path.starts_with(|c: char| c.is_ascii_uppercase())) {
            let Some((of, rest)) = path.split_once("::") else { continue };
            let member = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            let types = [format!("impl {of} {{"), format!("struct {of} {{")];
            let members = [format!("fn {member}("), format!("fn {member}<"), format!("pub {member}:")];
            let contains =
                |file: &TrackedFile, texts: &[String]| texts.iter().any(|text| file.text.contains(text));
            if !rust_files(files).any(|file| contains(file, &types) && contains(file, &members)) {
                problems.push(format!("{ARCHITECTURE}:{number}: no Rust file defines {of}::{member}"));
            }
        }
    }
    problems
}

/// Every second piece between backquotes is code.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const CODE: &str = "pub struct Seen {\n    pub pods: u8,\n}\nimpl Seen {\n    pub fn one(&self) {}\n}\n";

    fn problems(page: &str, text: &str) -> Vec<String> {
        let file = |path: &str, text: &str| TrackedFile { path: PathBuf::from(path), text: text.to_owned() };
        undefined_names(&[file(page, text), file("crates/a/src/b.rs", CODE), file("c.rs", "fn two() {}")])
    }

    #[test]
    fn tests_in_the_second_column_exist() {
        let table = "| `no` | Test |\n|---|---|\n| `no` | `one`, `two`; `make no`, `a/no` |\n";
        assert_eq!(problems(SECURITY, &format!("{table}\n| `no` | `no` |\n")), Vec::<String>::new());
        let found = problems(SECURITY, &format!("{table}| a | `one`, `no_test` |\n"));
        assert_eq!(found, ["docs/security.md:4: no Rust file defines the test no_test"]);
    }

    #[test]
    fn members_are_defined_beside_their_type() {
        assert_eq!(problems(ARCHITECTURE, "`Seen::one(x)`, `Seen::pods`, `b::no`"), Vec::<String>::new());
        let found = problems(ARCHITECTURE, "\n`Seen::no` and `Seen::two`");
        let expected =
            ["no", "two"].map(|name| format!("docs/architecture.md:2: no Rust file defines Seen::{name}"));
        assert_eq!(found, expected);
    }
}
