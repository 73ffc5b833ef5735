//! Nodes and pods as `PartialObjectMetadata`.

use super::usage::{JsonWriter, Measured, ProtobufWriter, ResponseContext, UsageList, UsageObject};
use crate::encode::{MetaVersion, Object, json, protobuf};

const KIND: &str = "PartialObjectMetadata";

/// The metadata of one object.
pub(super) struct Partial<T> {
    pub(super) version: MetaVersion,
    pub(super) of: UsageObject<T>,
}

/// The metadata of a list.
pub(super) struct PartialList<T> {
    pub(super) version: MetaVersion,
    pub(super) of: UsageList<T>,
}

/// `{"kind":…,"apiVersion":…,"metadata":…}`.
pub(super) fn write(out: &mut Vec<u8>, writer: &mut JsonWriter, version: MetaVersion, of: &impl Measured) {
    out.push(b'{');
    json::field(out, "kind", KIND);
    json::field(out, "apiVersion", version.api_version());
    out.extend_from_slice(b",\"metadata\":");
    writer.metadata(out, of);
    out.push(b'}');
}

impl<T: Measured> Object for Partial<T> {
    fn kind(&self) -> (String, String) {
        (self.version.api_version().to_owned(), KIND.to_owned())
    }

    fn json(&self, out: &mut Vec<u8>) {
        let ResponseContext { now, .. } = self.of.context;
        write(out, &mut JsonWriter::new(now), self.version, &self.of.item);
    }

    fn protobuf(&self, out: &mut Vec<u8>) {
        ProtobufWriter::new(self.of.context.now).metadata(out, &self.of.item);
    }
}

impl<T: Measured> Object for PartialList<T> {
    fn kind(&self) -> (String, String) {
        (self.version.api_version().to_owned(), format!("{KIND}List"))
    }

    fn json(&self, out: &mut Vec<u8>) {
        let (version, kind) = self.kind();
        out.push(b'{');
        json::field(out, "kind", &kind);
        json::field(out, "apiVersion", &version);
        out.extend_from_slice(b",\"metadata\":{},\"items\":");
        if self.of.items.is_empty() {
            return out.extend_from_slice(b"null}");
        }
        out.push(b'[');
        let mut writer = JsonWriter::new(self.of.context.now);
        for item in &self.of.items {
            json::comma(out);
            write(out, &mut writer, self.version, item);
        }
        out.extend_from_slice(b"]}");
    }

    fn protobuf(&self, out: &mut Vec<u8>) {
        protobuf::list_meta(out);
        let mut writer = ProtobufWriter::new(self.of.context.now);
        for item in &self.of.items {
            protobuf::message(out, 2, |out| writer.metadata(out, item));
        }
    }

    fn size(&self) -> usize {
        self.of.size()
    }
}
