//! YAML and JSON into documents, and documents into YAML.

use api::yaml::{Diagnostic, Document, SourceFile, parse, to_yaml};

/// A file.
pub fn run(data: &[u8]) {
    match SourceFile::from_bytes("fuzz.yaml", data).and_then(|source| parse(&source)) {
        Ok(documents) => documents.into_iter().flat_map(Document::into_items).for_each(|d| look(&d)),
        Err(problem) => render(&problem),
    }
}

fn look(document: &Document) {
    for problem in document.decode::<serde_json::Value>().err().unwrap_or_default() {
        render(&problem);
    }
    render(&document.problem("spec.metrics[0].resource", "text"));
    let _ = document.locate("metadata.labels[app.kubernetes.io/name]");
    // What is written reads back as the same.
    let json = document.root.to_json();
    let written = to_yaml(&json);
    let again = SourceFile::from_bytes("again.yaml", written.as_bytes()).and_then(|source| parse(&source));
    match again.as_deref() {
        Ok([again]) => assert_eq!(again.root.to_json(), json, "{written}"),
        Ok(other) => panic!("{} documents instead of one: {written}", other.len()),
        Err(problem) => panic!("{}", problem.render(false)),
    }
}

pub(super) fn render(problem: &Diagnostic) {
    let _ = (problem.render(false), problem.render(true));
}
