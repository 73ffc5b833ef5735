//! YAML and JSON files: they are parsed to documents, and documents are written as YAML.

use api::yaml::{Diagnostic, Document, SourceFile, parse, to_yaml};

/// The input is a YAML or JSON file.
pub fn run(data: &[u8]) {
    match SourceFile::from_bytes("fuzz.yaml", data).and_then(|source| parse(&source)) {
        Ok(documents) => {
            documents.into_iter().flat_map(Document::into_items).for_each(|d| check_document(&d))
        }
        Err(problem) => render(&problem),
    }
}

fn check_document(document: &Document) {
    for problem in document.decode::<serde_json::Value>().err().unwrap_or_default() {
        render(&problem);
    }
    render(&document.problem("spec.metrics[0].resource", "text"));
    let _ = document.locate("metadata.labels[app.kubernetes.io/name]");
    // Parsing the written YAML gives the same document.
    let json = document.root.to_json();
    let written = to_yaml(&json);
    let again = SourceFile::from_bytes("again.yaml", written.as_bytes()).and_then(|source| parse(&source));
    match again.as_deref() {
        // An item of a List may be null; a file with nothing else has no document.
        Ok([]) => assert!(json.is_null(), "no document: {written}"),
        Ok([again]) => assert_eq!(again.root.to_json(), json, "{written}"),
        Ok(other) => panic!("{} documents instead of one: {written}", other.len()),
        Err(problem) => panic!("{}", problem.render(false)),
    }
}

pub(super) fn render(problem: &Diagnostic) {
    let _ = (problem.render(false), problem.render(true));
}
