//! Which container a line is about.

use api::provider::Compat;
use memchr::{memchr, memchr2, memmem};

use super::Flaw;
use super::line::Labels;

/// A container: the text of three labels, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Whose<'a> {
    pub(super) namespace: &'a str,
    pub(super) pod: &'a str,
    pub(super) container: &'a str,
}

/// The container that labels name if they are exactly as kubelets write them, and what follows them.
pub(super) fn usual(text: &[u8]) -> Option<(Whose<'_>, &[u8])> {
    let (container, rest) = value(text.strip_prefix(b"{container=\"")?)?;
    let (namespace, rest) = value(rest.strip_prefix(b",namespace=\"")?)?;
    let (pod, rest) = value(rest.strip_prefix(b",pod=\"")?)?;
    Some((Whose { namespace, pod, container }, rest.strip_prefix(b"}")?))
}

/// What comes before a quote, and what after; nothing if it may be complicated.
fn value(text: &[u8]) -> Option<(&str, &[u8])> {
    let end = memchr2(b'"', b'\\', text)?;
    let rest = text.get(end..)?.strip_prefix(b"\"")?;
    Some((std::str::from_utf8(text.get(..end)?).ok()?, rest))
}

/// The container that labels (from `{` to `}`) name; none if they name none.
pub(super) fn whose(labels: &[u8], compat: Compat) -> Result<Option<Whose<'_>>, Flaw> {
    if compat.is_strict() {
        return by_search(labels).map(Some);
    }
    Ok(by_name(labels))
}

/// Series without one of the labels are not about a container.
fn by_name(labels: &[u8]) -> Option<Whose<'_>> {
    let (mut namespace, mut pod, mut container) = (None, None, None);
    let mut all = Labels::new(labels);
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
    Some(Whose { namespace: namespace?, pod: pod?, container: container? })
}

/// As metrics-server does it: labels are found by their text, wherever it is, and end with the next quote. Where the text is
/// missing, it takes what happens to stand at a certain place, or crashes; we refuse the line instead of crashing.
fn by_search(labels: &[u8]) -> Result<Whose<'_>, Flaw> {
    let value = |text: &str| {
        let start = memmem::find(labels, text.as_bytes()).map_or(text.len() - 1, |at| at + text.len());
        let rest = labels.get(start..).ok_or(Flaw::Labels)?;
        let end = memchr(b'"', rest).ok_or(Flaw::Labels)?;
        std::str::from_utf8(rest.get(..end).unwrap_or_default()).map_err(|_| Flaw::Labels)
    };
    Ok(Whose { namespace: value("namespace=\"")?, pod: value("pod=\"")?, container: value("container=\"")? })
}
