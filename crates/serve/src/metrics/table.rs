//! Nodes and pods as a table, for `kubectl get podmetrics`.

use std::sync::Arc;

use api::provider::{Compat, ResourceUsage};

use super::partial;
use super::usage::{JsonWriter, Measured, UsageList};
use crate::encode::{MetaVersion, Object, json};
use crate::include_object::IncludeObject;

/// A table.
pub(super) struct Table<T> {
    pub(super) version: MetaVersion,
    pub(super) style: IncludeObject,
    pub(super) compat: Compat,
    pub(super) of: UsageList<T>,
}

fn column(out: &mut Vec<u8>, name: &str, format: &str, description: &str) {
    json::comma(out);
    out.push(b'{');
    json::field(out, "name", name);
    json::field(out, "type", "string");
    json::field(out, "format", format);
    json::field(out, "description", description);
    out.extend_from_slice(b",\"priority\":0}");
}

fn cells(out: &mut Vec<u8>, of: &impl Measured, columns: &[Arc<str>], usage: &ResourceUsage) {
    out.extend_from_slice(b"{\"cells\":[");
    json::string(out, of.name());
    for column in columns {
        out.push(b',');
        match usage.iter().find(|(resource, _)| resource == column) {
            Some((_, amount)) => json::quantity(out, amount),
            None => out.extend_from_slice(b"\"0\""),
        }
    }
    out.extend_from_slice(b",\"");
    json::duration(out, of.window());
    out.extend_from_slice(b"\"],\"object\":");
}

impl<T: Measured> Object for Table<T> {
    fn kind(&self) -> (String, String) {
        (self.version.api_version().to_owned(), "Table".to_owned())
    }

    fn json(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        json::field(out, "kind", "Table");
        json::field(out, "apiVersion", self.version.api_version());
        out.extend_from_slice(b",\"metadata\":{},\"columnDefinitions\":");
        if self.of.items.is_empty() {
            return out.extend_from_slice(b"null,\"rows\":null}");
        }
        // The columns are those of the first object with usage.
        let names = |item: &T| item.total().into_iter().map(|(resource, _)| resource).collect::<Vec<_>>();
        let first = self.of.items.iter().map(names).enumerate().find(|(_, names)| !names.is_empty());
        let (first, columns) = first.unwrap_or((self.of.items.len(), Vec::new()));
        out.push(b'[');
        column(out, "Name", "name", "Name of the resource");
        for name in &columns {
            column(out, name, "quantity", "");
        }
        column(out, "Window", "duration", "");
        out.extend_from_slice(b"],\"rows\":[");
        let mut writer = JsonWriter::new(self.of.context.now);
        for (index, item) in self.of.items.iter().enumerate() {
            json::comma(out);
            // metrics-server leaves rows short that come before it knows the columns.
            let known = if index < first && self.compat.is_strict() { &[][..] } else { &columns };
            cells(out, item, known, &item.total());
            match self.style {
                IncludeObject::Nothing => out.extend_from_slice(b"null"),
                IncludeObject::Metadata => partial::write(out, &mut writer, self.version, item),
                IncludeObject::Object => writer.whole(out, &self.of.context.api_version, item),
            }
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
    }

    /// Tables have no protobuf encoding; negotiation refuses it.
    fn protobuf(&self, _: &mut Vec<u8>) {}

    fn size(&self) -> usize {
        self.of.size()
    }
}
