//! References to sections of docs/spec: `docs/spec/hpa.md 5.3, 6.1`, `docs/spec/hpa.md Appendix C.1`.

use std::collections::{BTreeMap, BTreeSet};

use super::TrackedFile;

const FOLDER: &str = "docs/spec/";
/// The texts that may separate two sections of one reference.
const SEPARATORS: [&str; 5] = [", ", " and ", " to ", " – ", "–"];

/// The references that lead to no section, as `FILE:LINE: …`.
pub(super) fn dangling_references(files: &[TrackedFile]) -> Vec<String> {
    let specs: BTreeMap<String, BTreeSet<String>> = files
        .iter()
        .filter_map(|file| Some((file.path.to_str()?.strip_prefix(FOLDER)?.to_owned(), sections(&file.text))))
        .collect();
    let mut problems = Vec::new();
    for file in files {
        for (number, line) in (1..).zip(file.text.lines()) {
            for (name, wanted) in references(line) {
                let at = format!("{}:{number}", file.path.display());
                let Some(sections) = specs.get(name) else {
                    problems.push(format!("{at}: there is no {FOLDER}{name}"));
                    continue;
                };
                let missing = wanted.into_iter().filter(|section| !sections.contains(*section));
                problems
                    .extend(missing.map(|section| format!("{at}: {FOLDER}{name} has no section {section}")));
            }
        }
    }
    problems
}

/// The files and sections that a line names.
fn references(line: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found = Vec::new();
    for reference in line.split(FOLDER).skip(1) {
        let end = reference.find(".md").map(|end| end + ".md".len());
        let Some((name, mut rest)) = end.and_then(|end| reference.split_at_checked(end)) else { continue };
        let is_name = |c: char| c.is_ascii_lowercase() || matches!(c, '-' | '.');
        if name.starts_with('.') || !name.chars().all(is_name) {
            continue;
        }
        let mut sections = Vec::new();
        let mut separators: &[&str] = &[" "];
        while let Some((section, behind)) =
            separators.iter().find_map(|separator| section(rest.strip_prefix(separator)?))
        {
            sections.push(section);
            (rest, separators) = (behind, &SEPARATORS);
        }
        found.push((name, sections));
    }
    found
}

/// A section at the beginning of a text: `5.3`, `Appendix C`, `C.1`, `T5`; and what is behind it.
fn section(text: &str) -> Option<(&str, &str)> {
    let is_appendix = text.starts_with("Appendix ") || text.starts_with("appendix ");
    let text = if is_appendix { text.get("Appendix ".len()..)? } else { text };
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end)?;
    let section = word.trim_end_matches('.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = section.strip_prefix(|c: char| c.is_ascii_uppercase());
    let valid = match numbers {
        Some("") => is_appendix,
        Some(numbers) => numbers.strip_prefix('.').unwrap_or(numbers).split('.').all(is_number),
        None => section.split('.').all(is_number),
    };
    (valid && !section.is_empty()).then_some((section, rest))
}

/// The sections of a page: numbered headings, appendices, numbered paragraphs of appendices, and traps in tables.
fn sections(page: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in page.lines() {
        let heading = line.trim_start_matches('#').trim_start().trim_start_matches("**");
        let row = line.strip_prefix("| ").filter(|row| row.starts_with('T'));
        let paragraph = Some(line).filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
        let heading = Some(heading).filter(|_| line.starts_with('#'));
        let named = heading.or(row).or(paragraph).and_then(section);
        found.extend(named.map(|(section, _)| section.to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const PAGE: &str =
        "# Page\n## 1. First\n### 1.2 Second\n## Appendix C. More\nC.1 **Get**: text\n| T5 | a trap |\n";

    fn problems(line: &str) -> Vec<String> {
        let file = |path: &str, text: &str| TrackedFile { path: PathBuf::from(path), text: text.to_owned() };
        dangling_references(&[file("docs/spec/hpa.md", PAGE), file("a.rs", &format!("\n{line}"))])
    }

    #[test]
    fn references_to_sections_resolve() {
        for sections in
            ["1", "1.2", "1, 1.2", "1 to 1.2)", "1.2. More", "Appendix C", "C.1", "1.2, T5", "1.2 step 9", ""]
        {
            let line = format!("// docs/spec/hpa.md {sections}");
            assert!(problems(&line).is_empty(), "{line}: {:?}", problems(&line));
        }
        assert!(problems("see docs/spec/hpa.md.").is_empty());
    }

    #[test]
    fn dangling_references_are_found_with_their_place() {
        assert_eq!(
            problems(&format!("// {FOLDER}hpa.md 1.2, 7.1")),
            ["a.rs:2: docs/spec/hpa.md has no section 7.1"]
        );
        assert_eq!(problems(&format!("{FOLDER}hpa.md C.9 and T9")).len(), 2);
        assert_eq!(
            problems(&format!("{FOLDER}nothing.md 1.2")),
            [format!("a.rs:2: there is no {FOLDER}nothing.md")]
        );
    }
}
