//! Decodes a line of a watch.

use super::failure::{WatchFailure, WatchStatus};
use super::json::{Cursor, JsonError};
use super::object::{ObjectHead, view};
use super::version::Version;
use super::{View, WatchEvent, WatchSource};

/// A decoded line of a watch.
#[derive(Debug)]
pub(super) enum Event<T> {
    /// An object changed; the collection has this version.
    Change(WatchEvent<T>, Option<Version>),
    /// An object changed to a version that is already known, or that was applied without decoding it.
    Known(Option<Version>),
    /// A bookmark: there was no change up to this version.
    Bookmark(Option<Version>),
    /// An event of an unknown type.
    Other,
}

/// Decodes a line.
pub(super) fn read<T: View>(
    line: &[u8],
    source: &WatchSource,
    scratch: &mut Vec<u8>,
) -> Result<Event<T>, WatchFailure> {
    let (kind, object) = open(line).map_err(|error| WatchFailure::undecodable(&error.last()))?;
    if kind == "ERROR" {
        let status = Cursor::new(object).value::<WatchStatus>().unwrap_or_default();
        return Err(WatchFailure::error_event(status));
    }
    if kind == "MODIFIED"
        && let Some(version) = source.apply_text(object)
    {
        return Ok(Event::Known(Version::new(&version)));
    }
    let head = ObjectHead::of(object);
    let version = Version::new(&head.version);
    Ok(match kind {
        "MODIFIED" if source.knows(&head.namespace, &head.name, &head.version) => Event::Known(version),
        "ADDED" | "MODIFIED" => match view(object, &head, scratch) {
            Ok(object) => Event::Change(WatchEvent::Applied(object), version),
            // Without a name the changed object is unknown, so everything must be listed again.
            Err(why) if head.name.is_empty() => return Err(WatchFailure::undecodable(&why.to_string())),
            Err(why) => Event::Change(head.unreadable(why.to_string()), version),
        },
        "DELETED" if head.name.is_empty() => {
            return Err(WatchFailure::undecodable("an object without a name"));
        }
        "DELETED" => Event::Change(head.deleted(), version),
        "BOOKMARK" => Event::Bookmark(version),
        _ => Event::Other,
    })
}

/// The type of an event, and the text from the start of its object.
fn open(line: &[u8]) -> Result<(&'static str, &[u8]), JsonError> {
    let mut cursor = Cursor::new(line);
    let (mut kind, mut object) = (None, None);
    let mut first = true;
    cursor.take(b'{')?;
    // The API server writes the type first, so that the object need not be skipped.
    while kind.is_none() || object.is_none() {
        let Some(key) = cursor.key(&mut first)? else { break };
        match &*key {
            "type" => kind = Some(known(&cursor.text()?)),
            "object" => {
                object = Some(cursor.rest());
                if kind.is_none() {
                    cursor.skip()?;
                }
            }
            _ => cursor.skip()?,
        }
    }
    kind.zip(object).ok_or_else(|| JsonError::Broken("neither type nor object".to_owned()))
}

fn known(kind: &str) -> &'static str {
    ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
        .into_iter()
        .find(|known| *known == kind)
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use api::pod::Pod;

    use super::*;

    #[test]
    fn a_known_change_is_not_decoded_but_advances_the_version() {
        let source = WatchSource::pods()
            .knowing(|namespace, name, version| (namespace, name, version) == ("ns", "a", "7"));
        let line = |kind: &str, version: u32| {
            let meta = format!(r#"{{"name":"a","namespace":"ns","resourceVersion":"{version}"}}"#);
            format!(r#"{{"type":"{kind}","object":{{"metadata":{meta}}}}}"#)
        };
        let read = |kind, version| read::<Pod>(line(kind, version).as_bytes(), &source, &mut Vec::new());
        assert!(matches!(read("MODIFIED", 7), Ok(Event::Known(Some(version))) if version.as_str() == "7"));
        assert!(matches!(read("MODIFIED", 8), Ok(Event::Change(WatchEvent::Applied(_), _))));
        assert!(matches!(read("ADDED", 7), Ok(Event::Change(WatchEvent::Applied(_), _))));
        assert!(matches!(read("DELETED", 7), Ok(Event::Change(WatchEvent::Deleted { .. }, _))));
    }

    #[test]
    fn a_change_that_was_applied_as_text_is_not_decoded() {
        let source = WatchSource::pods().with_text_handler(|text| {
            text.starts_with(br#"{"metadata":{"name":"a""#).then(|| "7".to_owned())
        });
        let read = |kind: &str, name: &str| {
            let line = format!(
                r#"{{"type":"{kind}","object":{{"metadata":{{"name":"{name}","resourceVersion":"7"}}}}}}"#
            );
            read::<Pod>(line.as_bytes(), &source, &mut Vec::new())
        };
        assert!(matches!(read("MODIFIED", "a"), Ok(Event::Known(Some(version))) if version.as_str() == "7"));
        assert!(matches!(read("MODIFIED", "b"), Ok(Event::Change(WatchEvent::Applied(_), _))));
        assert!(matches!(read("ADDED", "a"), Ok(Event::Change(WatchEvent::Applied(_), _))));
    }
}
