//! Nodes and pods without what they use: who wants to know only which there are gets this.

use super::usage::{List, Measured, One, Pen, Setting, Stamp};
use crate::encode::{MetaVersion, Object, json, protobuf};

const KIND: &str = "PartialObjectMetadata";

/// Only the metadata of one.
pub(super) struct Partial<T> {
    pub(super) version: MetaVersion,
    pub(super) of: One<T>,
}

/// Only the metadata of many.
pub(super) struct PartialList<T> {
    pub(super) version: MetaVersion,
    pub(super) of: List<T>,
}

/// `{"kind":…,"apiVersion":…,"metadata":…}`.
pub(super) fn write(out: &mut Vec<u8>, pen: &mut Pen, version: MetaVersion, of: &impl Measured) {
    out.push(b'{');
    json::field(out, "kind", KIND);
    json::field(out, "apiVersion", version.api_version());
    out.extend_from_slice(b",\"metadata\":");
    pen.metadata(out, of);
    out.push(b'}');
}

impl<T: Measured> Object for Partial<T> {
    fn kind(&self) -> (String, String) {
        (self.version.api_version().to_owned(), KIND.to_owned())
    }

    fn json(&self, out: &mut Vec<u8>) {
        let Setting { now, .. } = self.of.setting;
        write(out, &mut Pen::new(now), self.version, &self.of.item);
    }

    fn protobuf(&self, out: &mut Vec<u8>) {
        Stamp::new(self.of.setting.now).metadata(out, &self.of.item);
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
        let mut pen = Pen::new(self.of.setting.now);
        for item in &self.of.items {
            json::comma(out);
            write(out, &mut pen, self.version, item);
        }
        out.extend_from_slice(b"]}");
    }

    fn protobuf(&self, out: &mut Vec<u8>) {
        protobuf::list_meta(out);
        let mut stamp = Stamp::new(self.of.setting.now);
        for item in &self.of.items {
            protobuf::message(out, 2, |out| stamp.metadata(out, item));
        }
    }

    fn size(&self) -> usize {
        self.of.size()
    }
}
