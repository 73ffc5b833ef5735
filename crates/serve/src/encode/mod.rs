//! Objects on the wire: as JSON, as YAML or in the protobuf form of Kubernetes.
//!
//! ```text
//! negotiate  which of them a client wants, from `Accept`, `?pretty` and `User-Agent`
//! json       the text, written into one buffer
//! protobuf   the bytes, likewise
//! gzip       large answers made smaller while they are sent
//! ```

pub(crate) mod gzip;
pub(crate) mod json;
mod negotiate;
pub(crate) mod protobuf;

use bytes::Bytes;
use serde_json::Value;

pub(crate) use negotiate::{Choice, Encoding, Form, Forms, MetaVersion, choose, for_errors, presentable};

/// The content types an object can be had in, as error messages name them.
pub(crate) const TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// An object that can be sent.
pub(crate) trait Object {
    /// `apiVersion` and `kind`.
    fn kind(&self) -> (String, String);
    /// Its JSON text, compact.
    fn json(&self, out: &mut Vec<u8>);
    /// The fields of its message.
    fn protobuf(&self, out: &mut Vec<u8>);
    /// How large it will be, about.
    fn size(&self) -> usize {
        512
    }
}

/// The bytes of an object.
pub(crate) fn encode(object: &impl Object, choice: Choice) -> Bytes {
    match choice.encoding {
        Encoding::Protobuf => {
            let (version, kind) = object.kind();
            protobuf::envelope(&version, &kind, object.size(), |out| object.protobuf(out))
        }
        Encoding::Json | Encoding::Yaml => {
            let mut text = Vec::with_capacity(object.size());
            object.json(&mut text);
            dressed(text, choice)
        }
    }
}

/// Compact JSON in the form that is wanted.
pub(crate) fn dressed(mut text: Vec<u8>, choice: Choice) -> Bytes {
    if choice.encoding == Encoding::Yaml {
        return yaml(&text).into();
    }
    if choice.pretty {
        return json::indented(&text).into();
    }
    text.push(b'\n');
    text.into()
}

/// JSON as YAML with ascending keys.
fn yaml(text: &[u8]) -> String {
    let mut value: Value = serde_json::from_slice(text).unwrap_or_default();
    value.sort_all_objects();
    api::yaml::to_yaml(&value)
}
