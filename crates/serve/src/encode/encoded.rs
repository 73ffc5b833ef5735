//! An object that does not change, encoded once.

use std::sync::OnceLock;

use bytes::Bytes;
use http::HeaderMap;

use super::{Choice, Encoding, Forms, Object, choose, converted, encode, presentable};
use crate::query::Query;
use crate::status::Status;

/// An object that does not change, in every encoding. Indented JSON and YAML are rarely requested and made on demand.
#[derive(Debug)]
pub(crate) struct Encoded {
    json: Bytes,
    protobuf: Bytes,
    indented: OnceLock<Bytes>,
    yaml: OnceLock<Bytes>,
}

impl Encoded {
    pub(crate) fn new(object: &impl Object) -> Self {
        let made = |encoding| encode(object, Choice { encoding, pretty: false, form: None });
        Self {
            json: made(Encoding::Json),
            protobuf: made(Encoding::Protobuf),
            indented: OnceLock::new(),
            yaml: OnceLock::new(),
        }
    }

    /// The content type and the bytes in the encoding that a client accepts.
    pub(crate) fn negotiated(
        &self,
        headers: &HeaderMap,
        query: &Query,
    ) -> Result<(&'static str, Bytes), Status> {
        presentable(headers, false)?;
        let choice = choose(headers, query, Forms::default())?;
        let convert = || converted(self.json.trim_ascii_end().to_vec(), choice);
        let bytes = match choice.encoding {
            Encoding::Protobuf => &self.protobuf,
            Encoding::Yaml => self.yaml.get_or_init(convert),
            Encoding::Json if choice.pretty => self.indented.get_or_init(convert),
            Encoding::Json => &self.json,
        };
        Ok((choice.encoding.content_type(), bytes.clone()))
    }
}
