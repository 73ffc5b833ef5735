#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::table::{FieldType, JsonForm, TABLE};
use super::{ProtobufError, read};

const CONFIG_MAP: &str = "\x0a\x0f\x0a\x02v1\x12\x09ConfigMap";

/// A body with a type and an object.
fn body(kind: &str, raw: &[u8]) -> Vec<u8> {
    let head = match kind {
        "ConfigMap" => CONFIG_MAP.to_owned(),
        "Secret" => "\x0a\x0c\x0a\x02v1\x12\x06Secret".to_owned(),
        "Deployment" => "\x0a\x15\x0a\x07apps/v1\x12\x0aDeployment".to_owned(),
        "CustomResourceDefinition" => {
            "\x0a\x33\x0a\x17apiextensions.k8s.io/v1\x12\x18CustomResourceDefinition".to_owned()
        }
        _ => String::new(),
    };
    [b"k8s\0", head.as_bytes(), &item(2, raw)].concat()
}

/// A length-delimited field.
fn item(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut length = bytes.len();
    let mut all = vec![number << 3 | 2];
    while length > 127 {
        all.push((length & 127) as u8 | 128);
        length >>= 7;
    }
    all.push(length as u8);
    [all, bytes.to_vec()].concat()
}

fn config_map(raw: &[u8]) -> Result<Value, String> {
    read(&body("ConfigMap", raw), "", "").map_err(|error| match error {
        ProtobufError::Envelope(why) => format!("envelope: {why}"),
        ProtobufError::Object { version, kind, why } => format!("{kind} {version}: {why}"),
    })
}

#[test]
fn every_referenced_message_exists() {
    assert!(TABLE.len() > 300);
    for (name, message) in TABLE.iter() {
        for field in message.fields.values() {
            let known = match &field.kind {
                FieldType::Message(inside) => TABLE.contains_key(inside),
                _ => true,
            };
            assert!(known, "{name}.{}: {:?}", field.name, field.kind);
        }
        if let JsonForm::Inside(names) = message.form {
            assert!(message.fields.values().all(|field| names.contains(&field.name.as_str())), "{name}");
        }
    }
}

#[test]
fn missing_kind_and_version_take_the_expected_ones() {
    let metadata = item(1, &item(1, b"a"));
    let expected = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
    assert_eq!(config_map(&metadata).unwrap(), expected);
    let untyped = body("", &metadata);
    assert_eq!(read(&untyped, "v1", "ConfigMap").unwrap(), expected);
    // The message of this kind is unknown.
    assert_eq!(
        read(&untyped, "example.com/v1", "A").unwrap(),
        json!({"kind": "A", "apiVersion": "example.com/v1"})
    );
}

#[test]
fn repeated_messages_are_merged_and_scalars_replaced() {
    let raw = [item(1, &item(1, b"a")), item(1, &[item(3, b"n"), item(1, b"b")].concat())].concat();
    assert_eq!(config_map(&raw).unwrap()["metadata"], json!({"name": "b", "namespace": "n"}));
    let emptied = [item(1, &item(1, b"a")), item(1, &item(1, b""))].concat();
    assert_eq!(config_map(&emptied).unwrap()["metadata"], json!({}));
}

#[test]
fn map_keys_are_sorted_and_values_may_be_missing() {
    let entry = |key: &[u8], value: &[u8]| item(2, &[item(1, key), item(2, value)].concat());
    let raw = [entry(b"b", b"2"), entry(b"a", b""), item(2, &item(1, b"c"))].concat();
    let data = config_map(&raw).unwrap()["data"].clone();
    assert_eq!(data.to_string(), r#"{"a":"","b":"2","c":""}"#);
}

#[test]
fn negative_numbers_take_ten_bytes() {
    let minus_one = [&[0x08][..], &[0xff; 9], &[0x01]].concat();
    let found = read(&body("Deployment", &item(2, &minus_one)), "", "").unwrap();
    assert_eq!(found["spec"], json!({"replicas": -1}));
}

#[test]
fn packed_lists_are_decoded() {
    // spec.template.spec.securityContext.supplementalGroups
    let raw =
        [2, 3, 2, 14, 4].iter().rev().fold(vec![1, 2, 0xff, 1], |inside, number| item(*number, &inside));
    let found = read(&body("Deployment", &raw), "", "").unwrap();
    assert_eq!(
        found.pointer("/spec/template/spec/securityContext/supplementalGroups"),
        Some(&json!([1, 2, 255]))
    );
}

#[test]
fn envelope_errors_have_the_texts_of_the_real_server() {
    let why = |body: &[u8]| read(body, "v1", "ConfigMap").unwrap_err().to_string();
    assert_eq!(why(b""), "empty data");
    assert_eq!(why(b"k8s\0"), "empty body");
    assert_eq!(
        why(b"{}"),
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    );
    assert_eq!(why(b"k8s\0\x0a\xff"), "unexpected EOF");
    let negative = "proto: negative length found during unmarshaling";
    assert_eq!(why(b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), negative);
    assert_eq!(why(b"k8s\0\x0a\xff\xff\xff\xff\x7f"), "unexpected EOF");
    assert_eq!(why(b"k8s\0\x08\x01"), "proto: wrong wireType = 0 for field TypeMeta");
}

#[test]
fn object_errors_have_the_texts_of_the_real_server() {
    let why = |raw: &[u8]| config_map(raw).unwrap_err();
    assert_eq!(why(b"\x0a\x15\x0a\x03abc"), "ConfigMap v1: unexpected EOF");
    assert_eq!(why(b"\x02\x00"), "ConfigMap v1: proto: ConfigMap: illegal tag 0 (wire type 2)");
    assert_eq!(why(b"\x10\x01"), "ConfigMap v1: proto: wrong wireType = 0 for field Data");
    assert_eq!(why(&[&[0x20][..], &[0xff; 11]].concat()), "ConfigMap v1: proto: integer overflow");
    assert_eq!(why(b"\x08\x01"), "ConfigMap v1: proto: wrong wireType = 0 for field ObjectMeta");
    assert_eq!(why(b"\x4f\x01"), "ConfigMap v1: proto: illegal wireType 7");
    assert_eq!(why(b"\x4c"), "ConfigMap v1: proto: ConfigMap: wiretype end group for non-group");
}

#[test]
fn excessive_nesting_is_an_error() {
    // Nested schemas: `not` within `not`.
    let nested = |levels: usize| {
        (0..levels).fold(Vec::new(), |inside, _| {
            // Field number 28 takes two bytes.
            let plain = item(1, &inside);
            [&[0xe2, 0x01][..], &plain[1..]].concat()
        })
    };
    let definition = |levels: usize| {
        let version = item(4, &item(1, &nested(levels)));
        let spec = item(7, &version);
        read(&body("CustomResourceDefinition", &item(2, &spec)), "", "")
    };
    let schema = definition(2).unwrap();
    assert_eq!(schema["spec"]["versions"][0]["schema"]["openAPIV3Schema"], json!({"not": {"not": {}}}));
    assert!(definition(90).is_ok());
    let why = definition(5000).unwrap_err().to_string();
    assert_eq!(why, "proto: messages are nested too deeply");
}

proptest! {
    /// Any input is decoded or refused.
    #[test]
    fn any_bytes_decode_or_fail(
        kind in prop::sample::select(vec!["ConfigMap", "Secret", "Deployment", "CustomResourceDefinition", ""]),
        raw in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = read(&raw, "v1", "Pod");
        let _ = read(&body(kind, &raw), "v1", "Pod");
    }

    /// Well-formed, deeply nested items with existing field numbers.
    #[test]
    fn any_fields_decode_or_fail(
        kind in prop::sample::select(vec!["ConfigMap", "Secret", "Deployment", "CustomResourceDefinition"]),
        path in prop::collection::vec(1..15_u8, 0..12),
        leaf in prop::collection::vec(any::<u8>(), 0..40),
        cut in 0..60_usize,
    ) {
        let whole = path.iter().rev().fold(leaf, |inside, number| item(*number, &inside));
        let whole = body(kind, &whole);
        let _ = read(&whole, "v1", "Pod");
        let _ = read(&whole[..whole.len().saturating_sub(cut)], "v1", "Pod");
    }
}
