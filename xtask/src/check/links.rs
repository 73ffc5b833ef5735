//! Relative links between Markdown pages: `[text](page.md#section)`.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::TrackedFile;

/// The links that lead to no file or to no heading, as `FILE:LINE: …`.
pub(super) fn dangling_links(files: &[TrackedFile]) -> Vec<String> {
    let is_page = |file: &&TrackedFile| file.path.extension().is_some_and(|extension| extension == "md");
    let pages: BTreeMap<&Path, Vec<String>> =
        files.iter().filter(is_page).map(|page| (page.path.as_path(), anchors(&page.text))).collect();
    let mut problems = Vec::new();
    for page in files.iter().filter(is_page) {
        for (number, target) in links(&page.text) {
            let at = format!("{}:{number}", page.path.display());
            let (file, anchor) =
                target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
            let path = if file.is_empty() { page.path.clone() } else { beside(&page.path, file) };
            if !path.exists() && !pages.contains_key(path.as_path()) {
                problems.push(format!("{at}: {target} leads to no file"));
            } else if let (Some(anchor), Some(anchors)) = (anchor, pages.get(path.as_path()))
                && !anchors.iter().any(|known| known == anchor)
            {
                problems.push(format!("{at}: {target} leads to no heading"));
            }
        }
    }
    problems
}

/// A path relative to a page, without `.` and `..`.
fn beside(page: &Path, target: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

/// Lines outside of code blocks, numbered from one.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence && !line.starts_with("    ")
    })
}

/// The targets of relative links, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // Every second piece between backquotes is code.
        for piece in line.split('`').step_by(2) {
            for rest in piece.split("](").skip(1) {
                let target = rest.split([')', ' ']).next().unwrap_or_default();
                if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                    found.push((number, target));
                }
            }
        }
    }
    found
}

/// The anchors that GitHub makes of the headings of a page.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text).map(|(_, line)| line).filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let file = |path: &str, text: &str| TrackedFile { path: PathBuf::from(path), text: text.to_owned() };
        dangling_links(&[file("docs/a.md", text), file("docs/b/c.md", "# One: `two` & three\n")])
    }

    #[test]
    fn links_to_pages_and_headings_resolve() {
        let text = "# Own\n[b](b/c.md) [c](b/c.md#one-two--three) [d](#own) [e](https://x.y/z) `[f](no.md)`\n```\n[g](no.md)\n```\n";
        assert_eq!(problems(text), Vec::<String>::new());
    }

    #[test]
    fn dangling_links_are_found_with_their_place() {
        assert_eq!(problems("\n[b](c.md)"), ["docs/a.md:2: c.md leads to no file"]);
        assert_eq!(problems("[b](b/c.md#two)"), ["docs/a.md:1: b/c.md#two leads to no heading"]);
    }
}
