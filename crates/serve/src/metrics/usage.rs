//! Encodes `NodeMetrics` and `PodMetrics`.

use std::sync::Arc;

use api::provider::{Labels, NodeUsage, PodUsage, ResourceUsage};
use jiff::Timestamp;

use crate::encode::json::{self, Instants};
use crate::encode::{Object, protobuf};

/// What nodes and pods have in common.
pub(super) trait Measured: Send + Sync + 'static {
    /// The kind; that of a list has the suffix `List`.
    const KIND: &'static str;
    fn name(&self) -> &str;
    fn namespace(&self) -> &str;
    fn labels(&self) -> &Arc<Labels>;
    fn timestamp(&self) -> Option<Timestamp>;
    /// Nanoseconds.
    fn window(&self) -> i64;
    /// The total usage.
    fn total(&self) -> ResourceUsage;
    /// Writes the last field, the usage, as JSON.
    fn used_json(&self, out: &mut Vec<u8>);
    /// Writes the usage in protobuf field 4.
    fn used_protobuf(&self, out: &mut Vec<u8>);
    /// The approximate encoded size.
    fn size(&self) -> usize;
}

/// Common values of all objects of a response.
#[derive(Clone, Debug)]
pub(super) struct ResponseContext {
    /// `metrics.k8s.io/v1beta1`.
    pub(super) api_version: Arc<str>,
    /// The time of the response, which is the `creationTimestamp` of all objects.
    pub(super) now: Timestamp,
}

/// A list.
pub(super) struct UsageList<T> {
    pub(super) context: ResponseContext,
    pub(super) items: Vec<T>,
}

/// One object.
pub(super) struct UsageObject<T> {
    pub(super) context: ResponseContext,
    pub(super) item: T,
}

/// Writes objects as JSON.
pub(super) struct JsonWriter {
    now: Vec<u8>,
    instants: Instants,
    labels: CachedLabels,
}

/// Writes objects in protobuf.
pub(super) struct ProtobufWriter {
    now: Vec<u8>,
    labels: CachedLabels,
}

/// The labels that were encoded last: neighbours often have equal labels.
#[derive(Default)]
struct CachedLabels(Option<(Arc<Labels>, Vec<u8>)>);

impl CachedLabels {
    fn write(&mut self, out: &mut Vec<u8>, labels: &Arc<Labels>, write: impl FnOnce(&mut Vec<u8>)) {
        match &self.0 {
            Some((last, text)) if Arc::ptr_eq(last, labels) => out.extend_from_slice(text),
            _ => {
                let at = out.len();
                write(out);
                let mut text = self.0.take().map(|(_, text)| text).unwrap_or_default();
                text.clear();
                text.extend_from_slice(out.get(at..).unwrap_or_default());
                self.0 = Some((Arc::clone(labels), text));
            }
        }
    }
}

impl JsonWriter {
    pub(super) fn new(now: Timestamp) -> Self {
        let mut text = Vec::new();
        Instants::default().write(&mut text, Some(now));
        Self { now: text, instants: Instants::default(), labels: CachedLabels::default() }
    }

    /// `{"name":…,"namespace":…,"creationTimestamp":…,"labels":{…}}`.
    pub(super) fn metadata(&mut self, out: &mut Vec<u8>, of: &impl Measured) {
        out.extend_from_slice(b"{\"name\":");
        json::string(out, of.name());
        if !of.namespace().is_empty() {
            out.extend_from_slice(b",\"namespace\":");
            json::string(out, of.namespace());
        }
        out.extend_from_slice(b",\"creationTimestamp\":");
        out.extend_from_slice(&self.now);
        if !of.labels().is_empty() {
            self.labels.write(out, of.labels(), |out| {
                out.extend_from_slice(b",\"labels\":{");
                of.labels().iter().for_each(|(key, value)| json::field(out, key, value));
                out.push(b'}');
            });
        }
        out.push(b'}');
    }

    /// The fields of an object after its kind, and the closing brace.
    pub(super) fn fields(&mut self, out: &mut Vec<u8>, of: &impl Measured) {
        out.extend_from_slice(b"\"metadata\":");
        self.metadata(out, of);
        out.extend_from_slice(b",\"timestamp\":");
        self.instants.write(out, of.timestamp());
        out.extend_from_slice(b",\"window\":\"");
        json::duration(out, of.window());
        out.extend_from_slice(b"\",");
        of.used_json(out);
        out.push(b'}');
    }

    /// An object with its kind.
    pub(super) fn whole<T: Measured>(&mut self, out: &mut Vec<u8>, api_version: &str, of: &T) {
        out.push(b'{');
        json::field(out, "kind", T::KIND);
        json::field(out, "apiVersion", api_version);
        out.push(b',');
        self.fields(out, of);
    }
}

impl ProtobufWriter {
    pub(super) fn new(now: Timestamp) -> Self {
        let mut bytes = Vec::new();
        protobuf::instant(&mut bytes, 8, Some(now));
        Self { now: bytes, labels: CachedLabels::default() }
    }

    /// The message of an object's metadata, in field 1.
    pub(super) fn metadata(&mut self, out: &mut Vec<u8>, of: &impl Measured) {
        protobuf::message(out, 1, |out| {
            protobuf::text(out, 1, of.name());
            protobuf::text(out, 2, "");
            protobuf::text(out, 3, of.namespace());
            (4..=6).for_each(|field| protobuf::text(out, field, ""));
            protobuf::number(out, 7, 0);
            out.extend_from_slice(&self.now);
            self.labels.write(out, of.labels(), |out| {
                of.labels().iter().for_each(|(key, value)| protobuf::entry(out, 11, key, value));
            });
        });
    }

    /// The fields of an object.
    pub(super) fn fields(&mut self, out: &mut Vec<u8>, of: &impl Measured) {
        self.metadata(out, of);
        protobuf::instant(out, 2, of.timestamp());
        protobuf::message(out, 3, |out| protobuf::number(out, 1, of.window()));
        of.used_protobuf(out);
    }
}

impl<T: Measured> Object for UsageObject<T> {
    fn kind(&self) -> (String, String) {
        (self.context.api_version.to_string(), T::KIND.to_owned())
    }

    fn json(&self, out: &mut Vec<u8>) {
        JsonWriter::new(self.context.now).whole(out, &self.context.api_version, &self.item);
    }

    fn protobuf(&self, out: &mut Vec<u8>) {
        ProtobufWriter::new(self.context.now).fields(out, &self.item);
    }
}

impl<T: Measured> UsageList<T> {
    /// `apiVersion` and `kind` of a list.
    pub(super) fn kind_of(context: &ResponseContext) -> (String, String) {
        (context.api_version.to_string(), format!("{}List", T::KIND))
    }
}

/// The beginning of a list, up to its items.
pub(super) fn head(out: &mut Vec<u8>, (version, kind): &(String, String)) {
    out.push(b'{');
    json::field(out, "kind", kind);
    json::field(out, "apiVersion", version);
    out.extend_from_slice(b",\"metadata\":{},\"items\":[");
}

impl<T: Measured> Object for UsageList<T> {
    fn kind(&self) -> (String, String) {
        Self::kind_of(&self.context)
    }

    fn json(&self, out: &mut Vec<u8>) {
        head(out, &self.kind());
        let mut writer = JsonWriter::new(self.context.now);
        for item in &self.items {
            json::comma(out);
            out.push(b'{');
            writer.fields(out, item);
        }
        out.extend_from_slice(b"]}");
    }

    fn protobuf(&self, out: &mut Vec<u8>) {
        protobuf::list_meta(out);
        let mut writer = ProtobufWriter::new(self.context.now);
        for item in &self.items {
            protobuf::message(out, 2, |out| writer.fields(out, item));
        }
    }

    fn size(&self) -> usize {
        256 + self.items.iter().map(Measured::size).sum::<usize>()
    }
}

fn usage_json(out: &mut Vec<u8>, usage: &ResourceUsage) {
    out.extend_from_slice(b"\"usage\":{");
    for (resource, amount) in usage {
        json::comma(out);
        json::string(out, resource);
        out.push(b':');
        json::quantity(out, amount);
    }
    out.push(b'}');
}

fn usage_protobuf(out: &mut Vec<u8>, field: u32, usage: &ResourceUsage) {
    for (resource, amount) in usage {
        protobuf::message(out, field, |out| {
            protobuf::text(out, 1, resource);
            protobuf::quantity(out, 2, amount);
        });
    }
}

fn labels_size(labels: &Labels) -> usize {
    labels.iter().map(|(key, value)| key.len() + value.len() + 6).sum()
}

impl Measured for NodeUsage {
    const KIND: &'static str = "NodeMetrics";

    fn name(&self) -> &str {
        &self.name
    }

    fn namespace(&self) -> &'static str {
        ""
    }

    fn labels(&self) -> &Arc<Labels> {
        &self.labels
    }

    fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    fn window(&self) -> i64 {
        self.window
    }

    fn total(&self) -> ResourceUsage {
        self.usage.clone()
    }

    fn used_json(&self, out: &mut Vec<u8>) {
        usage_json(out, &self.usage);
    }

    fn used_protobuf(&self, out: &mut Vec<u8>) {
        usage_protobuf(out, 4, &self.usage);
    }

    fn size(&self) -> usize {
        160 + self.name.len() + labels_size(&self.labels) + self.usage.len() * 32
    }
}

impl Measured for PodUsage {
    const KIND: &'static str = "PodMetrics";

    fn name(&self) -> &str {
        &self.name
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn labels(&self) -> &Arc<Labels> {
        &self.labels
    }

    fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    fn window(&self) -> i64 {
        self.window
    }

    /// The sum keeps the format of the first container.
    fn total(&self) -> ResourceUsage {
        let mut total: ResourceUsage = Vec::new();
        for (resource, amount) in self.containers.iter().flat_map(|container| &container.usage) {
            match total.iter_mut().find(|(known, _)| known == resource) {
                Some((_, sum)) => sum.add(amount),
                None => total.push((Arc::clone(resource), amount.clone())),
            }
        }
        total.sort_by(|a, b| a.0.cmp(&b.0));
        total
    }

    fn used_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"containers\":[");
        for container in &self.containers {
            json::comma(out);
            out.extend_from_slice(b"{\"name\":");
            json::string(out, &container.name);
            out.push(b',');
            usage_json(out, &container.usage);
            out.push(b'}');
        }
        out.push(b']');
    }

    fn used_protobuf(&self, out: &mut Vec<u8>) {
        for container in &self.containers {
            protobuf::message(out, 4, |out| {
                protobuf::text(out, 1, &container.name);
                usage_protobuf(out, 2, &container.usage);
            });
        }
    }

    fn size(&self) -> usize {
        let containers = self.containers.iter().map(|it| 32 + it.name.len() + it.usage.len() * 32);
        170 + self.name.len() + self.namespace.len() + labels_size(&self.labels) + containers.sum::<usize>()
    }
}
