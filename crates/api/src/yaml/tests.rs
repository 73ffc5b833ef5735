//! Tests of the YAML reader.

mod decoding;
mod properties;
mod syntax;
mod writing;

use super::*;

/// The only document of a text.
fn document(text: &str) -> Document {
    let mut documents =
        parse(&SourceFile::new("shop.yaml", text)).unwrap_or_else(|problem| panic!("{problem}"));
    assert_eq!(documents.len(), 1, "documents in {text:?}");
    documents.remove(0)
}

fn json(text: &str) -> serde_json::Value {
    document(text).root.to_json()
}

/// What a user sees for a text that does not parse.
fn refused(text: &str) -> String {
    match parse(&SourceFile::new("shop.yaml", text)) {
        Ok(documents) => panic!("{text:?} was read as {documents:?}"),
        Err(problem) => problem.render(false),
    }
}

/// Compares what is shown, leaving out the indentation of the test and its first newline.
fn assert_shown(shown: &str, expected: &str) {
    let margin = expected
        .lines()
        .find(|line| !line.trim().is_empty())
        .map_or(0, |line| line.len() - line.trim_start().len());
    let expected: Vec<&str> = expected.trim_matches(['\n', ' ']).lines().collect();
    let expected: Vec<&str> = expected
        .iter()
        .enumerate()
        .map(|(i, line)| if i == 0 { line } else { line.get(margin..).unwrap_or("") })
        .collect();
    assert_eq!(shown, expected.join("\n"), "\n--- shown\n{shown}\n");
}
