//! Reads one kubeconfig file with the YAML reader of all other files. Scalars mean what they mean to kubectl, and the code of kube's
//! reader for these types is not linked.

use std::io;
use std::path::{MAIN_SEPARATOR, Path};

use api::yaml::{Diagnostic, Node, NodeValue, SourceFile, Span, parse_within};
use kube::config::{Kubeconfig, KubeconfigError};
use serde::Deserialize as _;
use serde_json::Value;

/// Maximum number of values of a kubeconfig.
const MAX_VALUES: usize = 1_000_000;

/// Why a kubeconfig cannot be used. The texts of parsers are left out: they quote the file, which may contain secrets.
#[derive(Debug, thiserror::Error)]
pub(super) enum KubeconfigFileError {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("{line}:{column}: this is not a kubeconfig")]
    Invalid { line: u32, column: u32 },
    #[error(transparent)]
    Merge(#[from] KubeconfigError),
}

impl From<Diagnostic> for KubeconfigFileError {
    fn from(problem: Diagnostic) -> Self {
        Self::invalid(problem.span)
    }
}

impl KubeconfigFileError {
    fn invalid(at: Span) -> Self {
        Self::Invalid { line: at.line, column: at.column }
    }
}

/// Reads a file, which may have several documents.
pub(super) fn read(path: &Path) -> Result<Kubeconfig, KubeconfigFileError> {
    let source = SourceFile::from_bytes("kubeconfig", &std::fs::read(path)?)?;
    let mut all = Kubeconfig::default();
    for document in parse_within(&source, MAX_VALUES)? {
        let read = decode(document.root.to_json());
        let mut read = read.map_err(|_| KubeconfigFileError::invalid(position(&document.root)))?;
        if let Some(folder) = path.parent() {
            resolve_paths(&mut read, folder);
        }
        all = all.merge(read)?;
    }
    Ok(all)
}

fn decode(mut document: Value) -> Result<Kubeconfig, serde_json::Error> {
    remove_unset(&mut document);
    Kubeconfig::deserialize(&document)
}

/// Removes fields that are null, which kubectl reads as not set. An extension may have any value.
fn remove_unset(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, field| name == "extension" || !field.is_null());
            for (name, field) in fields {
                if name != "extension" {
                    remove_unset(field);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(remove_unset),
        _ => {}
    }
}

/// The position of the first part that is not as in a kubeconfig.
fn position(root: &Node) -> Span {
    let is_invalid = |key: &str, value: Value| decode(std::iter::once((key, value)).collect()).is_err();
    let NodeValue::Map(entries) = &root.value else { return root.span };
    for (key, node) in entries {
        if let NodeValue::Seq(items) = &node.value
            && let Some(item) =
                items.iter().find(|item| is_invalid(&key.name, Value::Array(vec![item.to_json()])))
        {
            return item.span;
        }
        if is_invalid(&key.name, node.to_json()) {
            return node.span;
        }
    }
    root.span
}

/// Makes paths absolute that are relative to the folder of the file.
fn resolve_paths(read: &mut Kubeconfig, folder: &Path) {
    let resolve = |path: &mut Option<String>| {
        let relative = path.as_deref().filter(|path| !path.is_empty() && Path::new(path).is_relative());
        if let Some(whole) = relative.and_then(|path| Some(folder.join(path).to_str()?.to_owned())) {
            *path = Some(whole);
        }
    };
    for cluster in read.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        resolve(&mut cluster.certificate_authority);
    }
    for user in read.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        resolve(&mut user.client_certificate);
        resolve(&mut user.client_key);
        resolve(&mut user.token_file);
        // As in kubectl, a plugin without a separator is looked for in PATH.
        if let Some(exec) = &mut user.exec
            && exec.command.as_ref().is_some_and(|command| command.contains(MAIN_SEPARATOR))
        {
            resolve(&mut exec.command);
        }
    }
}
