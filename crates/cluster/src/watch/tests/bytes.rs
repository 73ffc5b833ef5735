//! Bytes that arrive in any pieces, and bytes that mean nothing.

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::pod::Pod;
use proptest::prelude::*;

use super::server::{event, list_text, pod};
use crate::watch::WatchSource;
use crate::watch::event::{Event, read};
use crate::watch::list::{List, ListPiece};
use crate::watch::{View as _, WatchEvent};

/// Reads a list that arrives in pieces of a size.
fn in_pieces(text: &[u8], size: usize) -> Result<Vec<String>, String> {
    let mut list = List::default();
    let mut chunks = text.chunks(size);
    let mut found = Vec::new();
    loop {
        match list.next().map_err(|failure| failure.text)? {
            ListPiece::More => match chunks.next() {
                Some(chunk) => list.push(chunk),
                None => list.end(),
            },
            ListPiece::Begin(version) => found.push(version.as_str().to_owned()),
            ListPiece::Item(item) => found.push(String::from_utf8(item.to_vec()).unwrap()),
            ListPiece::End => return Ok(found),
        }
    }
}

#[test]
fn a_list_is_decoded_equally_from_any_chunks() {
    let texts = [
        list_text(10, &[pod("a", 1), r#"{"x":"]}\"[{"}"#.to_owned(), "17".to_owned(), "null".to_owned()]),
        r#" { "items" : [ {"a":1} , 12 ] , "metadata" : { "continue":"", "resourceVersion" : "10" } , "x":[1] } "#.to_owned(),
        r#"{"kind":"PodList","metadata":{"resourceVersion":"10"},"items":null}"#.to_owned(),
        r#"{"metadata":{"resourceVersion":"10"},"items":[],"more":{"items":[1]}}"#.to_owned(),
    ];
    for text in texts {
        let whole = in_pieces(text.as_bytes(), text.len()).unwrap();
        assert_eq!(whole[0], "10");
        for size in 1..text.len() {
            assert_eq!(in_pieces(text.as_bytes(), size).unwrap(), whole, "{text} in pieces of {size}");
        }
    }
}

#[test]
fn a_body_that_is_no_list_is_refused() {
    for text in [
        "",
        "null",
        "[]",
        "{}",
        r#"{"metadata":{},"items":[]}"#,
        r#"{"metadata":{"resourceVersion":"10"}}"#,
        r#"{"metadata":{"resourceVersion":10},"items":[]}"#,
        r#"{"metadata":{"resourceVersion":"10"},"items":{}}"#,
        r#"{"metadata":{"resourceVersion":"10"},"items":[1 2]}"#,
        r#"{"metadata":{"resourceVersion":"10"},"items":[1,]}"#,
        r#"{"metadata":{"resourceVersion":"10"},"items":[1]"#,
    ] {
        assert!(in_pieces(text.as_bytes(), 5).is_err(), "{text}");
    }
}

#[test]
fn a_too_large_item_is_refused_early() {
    let mut list = List::default();
    list.push(br#"{"metadata":{"resourceVersion":"1"},"items":[{"x":""#);
    assert!(matches!(list.next(), Ok(ListPiece::Begin(_))));
    let megabyte = vec![b'x'; 1 << 20];
    let pushed = (0..100).find(|_| {
        list.push(&megabyte);
        list.next().is_err()
    });
    assert!(pushed.is_some_and(|pushed| pushed < 64), "{pushed:?}");
}

#[test]
fn managed_fields_are_removed() {
    let object = r#"{"kind":"HorizontalPodAutoscaler","metadata":{"name":"web","namespace":"shop","resourceVersion":"7",
        "managedFields":[{"manager":"kubectl","fieldsV1":{"f:spec":{"f:maxReplicas":{}}}}],"labels":{"a":"b"}},
        "spec":{"maxReplicas":4}}"#;
    let line = event("ADDED", &object.replace('\n', ""));
    let Ok(Event::Change(WatchEvent::Applied(hpa), version)) =
        read::<HorizontalPodAutoscaler>(line.as_bytes(), &WatchSource::pods(), &mut Vec::new())
    else {
        unreachable!()
    };
    assert_eq!(hpa.key(), ("shop", "web"));
    assert_eq!(version.unwrap().as_str(), "7");
    assert!(hpa.metadata.managed_fields.is_empty());
    assert_eq!(hpa.metadata.labels["a"], "b");
    assert_eq!(hpa.spec.max_replicas, 4);
}

#[test]
fn keys_are_found_in_any_order_and_with_escapes() {
    let line = r#"{"object":{"spec":{},"metadata":{"resourceVersion":"7","name":"\u0061","x":null,"namespace":"n"}},"type":"ADDED"}"#;
    let Ok(Event::Change(WatchEvent::Applied(pod), Some(version))) =
        read::<Pod>(line.as_bytes(), &WatchSource::pods(), &mut Vec::new())
    else {
        unreachable!()
    };
    assert_eq!((pod.key(), version.as_str()), (("n", "a"), "7"));
}

proptest! {
    #[test]
    fn arbitrary_bytes_of_a_watch_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), size in 1_usize..20) {
        let _ = read::<Pod>(&bytes, &WatchSource::pods(), &mut Vec::new());
        let _ = in_pieces(&bytes, size);
    }

    #[test]
    fn list_with_a_wrong_byte_does_not_panic(at in 0_usize..200, byte: u8, size in 1_usize..50) {
        let mut text = list_text(10, &[pod("a", 1), pod("b", 2)]).into_bytes();
        if let Some(there) = text.get_mut(at) {
            *there = byte;
        }
        let mut line = event("ADDED", &pod("a", 1)).into_bytes();
        if let Some(there) = line.get_mut(at) {
            *there = byte;
        }
        let _ = read::<Pod>(&line, &WatchSource::pods(), &mut Vec::new());
        let mut list = List::default();
        let mut ended = false;
        let mut chunks = text.chunks(size);
        while !ended {
            match list.next() {
                Ok(ListPiece::More) => match chunks.next() {
                    Some(chunk) => list.push(chunk),
                    None => list.end(),
                },
                Ok(ListPiece::End) | Err(_) => ended = true,
                Ok(_) => {}
            }
        }
    }
}
