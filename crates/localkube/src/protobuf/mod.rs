//! Request bodies in Kubernetes' protobuf encoding, which kubectl prefers for kinds it knows.
//!
//! Responses are JSON, which every client accepts. The result equals the JSON of the same object without nulls.

mod message;
mod table;
#[cfg(test)]
mod tests;
mod wire;

use serde_json::{Value, json};

use crate::object::set;
use crate::schema;
use table::TABLE;
pub use wire::WireError;
use wire::WireReader;

/// The media type.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The first four bytes of every body.
const MAGIC: &[u8] = b"k8s\0";

/// A body cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// The envelope is invalid, so the kind is unknown.
    #[error("{0}")]
    Envelope(WireError),
    /// The object is invalid.
    #[error("{why}")]
    Object {
        /// Its version.
        version: String,
        /// Its kind.
        kind: String,
        /// The error.
        why: WireError,
    },
}

/// Decodes an object; `api_version` and `kind` are the defaults if the body does not state them. For kinds that are not
/// built in, only these two are decoded.
pub fn read(body: &[u8], api_version: &str, kind: &str) -> Result<Value, ProtobufError> {
    let envelope = Envelope::read(body).map_err(ProtobufError::Envelope)?;
    let or = |found: String, expected: &str| if found.is_empty() { expected.to_owned() } else { found };
    let (api_version, kind) = (or(envelope.api_version, api_version), or(envelope.kind, kind));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let mut object = match schema::built_in(group, version, &kind) {
        Some(schema) if TABLE.contains_key(&schema.name) => message::read(&schema.name, envelope.raw)
            .map_err(|why| ProtobufError::Object { version: version.to_owned(), kind: kind.clone(), why })?,
        _ => json!({}),
    };
    set(&mut object, &["kind"], kind.into());
    set(&mut object, &["apiVersion"], api_version.into());
    Ok(object)
}

/// The envelope of every object.
#[derive(Default)]
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(body: &'a [u8]) -> Result<Self, WireError> {
        let inside = match body.strip_prefix(MAGIC) {
            _ if body.is_empty() => return Err(WireError::EmptyData),
            None => return Err(WireError::Prefix),
            Some([]) => return Err(WireError::EmptyBody),
            Some(inside) => inside,
        };
        let mut envelope = Self::default();
        let mut wire = WireReader::new("Unknown", inside);
        while let Some((number, item)) = wire.next()? {
            match number {
                1 => envelope.read_type(item.bytes("TypeMeta")?)?,
                2 => envelope.raw = item.bytes("Raw")?,
                // Unused encodings and media types.
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let mut wire = WireReader::new("TypeMeta", bytes);
        while let Some((number, item)) = wire.next()? {
            match number {
                1 => self.api_version = wire::text(item.bytes("APIVersion")?),
                2 => self.kind = wire::text(item.bytes("Kind")?),
                _ => {}
            }
        }
        Ok(())
    }
}
