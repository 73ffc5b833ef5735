//! Encodings of objects: JSON, YAML and the protobuf of Kubernetes.
//!
//! ```text
//! negotiate  content negotiation by `Accept`, `?pretty` and `User-Agent`
//! encoded    objects that are encoded once
//! status     the `Status` object
//! json       JSON, written into one buffer
//! protobuf   protobuf, written into one buffer
//! gzip       compression of large responses
//! ```

mod encoded;
pub(crate) mod gzip;
pub(crate) mod json;
mod negotiate;
pub(crate) mod protobuf;
mod status;

use bytes::Bytes;
use serde_json::Value;

pub(crate) use encoded::Encoded;
pub(crate) use negotiate::{Choice, Encoding, Form, Forms, MetaVersion, choose, for_errors, presentable};

/// The supported content types, as error messages name them.
pub(crate) const TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// An object that can be encoded.
pub(crate) trait Object {
    /// `apiVersion` and `kind`.
    fn kind(&self) -> (String, String);
    /// Writes compact JSON.
    fn json(&self, out: &mut Vec<u8>);
    /// Writes the fields of its message.
    fn protobuf(&self, out: &mut Vec<u8>);
    /// The approximate size.
    fn size(&self) -> usize {
        512
    }
}

/// Encodes an object.
pub(crate) fn encode(object: &impl Object, choice: Choice) -> Bytes {
    match choice.encoding {
        Encoding::Protobuf => {
            let (version, kind) = object.kind();
            protobuf::envelope(&version, &kind, object.size(), |out| object.protobuf(out))
        }
        Encoding::Json | Encoding::Yaml => {
            let mut text = Vec::with_capacity(object.size());
            object.json(&mut text);
            converted(text, choice)
        }
    }
}

/// Converts compact JSON to the chosen form.
pub(crate) fn converted(mut text: Vec<u8>, choice: Choice) -> Bytes {
    if choice.encoding == Encoding::Yaml {
        return yaml(&text).into();
    }
    if choice.pretty {
        return json::indented(&text).into();
    }
    text.push(b'\n');
    text.into()
}

/// Converts JSON to YAML with sorted keys and folded texts.
fn yaml(text: &[u8]) -> String {
    let mut value: Value = serde_json::from_slice(text).unwrap_or_default();
    value.sort_all_objects();
    api::yaml::to_folded_yaml(&value)
}
