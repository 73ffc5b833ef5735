//! Container that a line belongs to.

use api::provider::Compat;
use memchr::{memchr, memchr2, memmem};

use super::LineError;
use super::line::LabelPairs;

/// A container, identified by three label values as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ContainerKey<'a> {
    pub(super) namespace: &'a str,
    pub(super) pod: &'a str,
    pub(super) container: &'a str,
}

/// Fast path: parses labels exactly as kubelets write them, and returns the text after them.
pub(super) fn usual(text: &[u8]) -> Option<(ContainerKey<'_>, &[u8])> {
    let (container, rest) = value(text.strip_prefix(b"{container=\"")?)?;
    let (namespace, rest) = value(rest.strip_prefix(b",namespace=\"")?)?;
    let (pod, rest) = value(rest.strip_prefix(b",pod=\"")?)?;
    Some((ContainerKey { namespace, pod, container }, rest.strip_prefix(b"}")?))
}

/// Splits at the closing quote; `None` if the value has escapes.
fn value(text: &[u8]) -> Option<(&str, &[u8])> {
    let end = memchr2(b'"', b'\\', text)?;
    let rest = text.get(end..)?.strip_prefix(b"\"")?;
    Some((std::str::from_utf8(text.get(..end)?).ok()?, rest))
}

/// Container that labels (from `{` to `}`) identify, if any.
pub(super) fn container_key(labels: &[u8], compat: Compat) -> Result<Option<ContainerKey<'_>>, LineError> {
    if compat.is_strict() {
        return by_search(labels).map(Some);
    }
    Ok(by_name(labels))
}

/// Parses labels by name; a series without one of the three labels is not about a container.
fn by_name(labels: &[u8]) -> Option<ContainerKey<'_>> {
    let (mut namespace, mut pod, mut container) = (None, None, None);
    let mut all = LabelPairs::new(labels);
    while let Some((name, value)) = all.next() {
        let known = match name {
            b"container" => &mut container,
            b"namespace" => &mut namespace,
            b"pod" => &mut pod,
            _ => continue,
        };
        if known.is_none() {
            *known = std::str::from_utf8(value).ok();
        }
    }
    Some(ContainerKey { namespace: namespace?, pod: pod?, container: container? })
}

/// Imitates metrics-server: labels are found by substring search and end at the next quote. Where a label is missing,
/// metrics-server uses a wrong offset or crashes; this parser rejects the line instead of crashing.
fn by_search(labels: &[u8]) -> Result<ContainerKey<'_>, LineError> {
    let value = |text: &str| {
        let start = memmem::find(labels, text.as_bytes()).map_or(text.len() - 1, |at| at + text.len());
        let rest = labels.get(start..).ok_or(LineError::Labels)?;
        let end = memchr(b'"', rest).ok_or(LineError::Labels)?;
        std::str::from_utf8(rest.get(..end).unwrap_or_default()).map_err(|_| LineError::Labels)
    };
    Ok(ContainerKey {
        namespace: value("namespace=\"")?,
        pod: value("pod=\"")?,
        container: value("container=\"")?,
    })
}
